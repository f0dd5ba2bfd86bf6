//! `numawatch launch` on a machine of two nodes: what the command inherits, and why it isn't launched.

use crate::cgroup::Cgroup;
use crate::play::Tools;
use crate::process::Running;
use anyhow::{Context as _, Result};
use model::process::{ByNode, Process};
use model::snapshot::Snapshot;
use serde::{Deserialize, Serialize};
use std::process::{Command, Stdio};

/// The session's name.
pub const NAME: &str = "launch";

/// 64 MiB.
pub const PAGES: u64 = 16_384;

/// A container's id.
pub const CONTAINER: &str = "4f1d3a2b5c6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708";

/// Larger than any guest; a hole, so that it takes no disk.
const MODEL: (&str, u64) = ("/tmp/model.gguf", 64 << 30);

/// What `workload inherited` says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inherited {
    /// Its pid.
    pub pid: u32,
    /// The task's policy, as `get_mempolicy` has it: 2 is bind.
    pub mode: i32,
    /// The policy's nodes.
    pub nodes: Vec<u32>,
    /// The first line of its `numa_maps`.
    pub numa_maps: String,
    /// CPUs it may run on.
    pub cpus: Vec<u32>,
    /// Where its pages lie, as `move_pages` tells.
    pub pages: ByNode,
    /// The same of another thread's.
    pub thread_pages: ByNode,
}

/// What came of it; the guest prints it as one line.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// [`NAME`].
    pub session: String,
    /// Each launch.
    pub launches: Vec<Launch>,
    /// What `numawatch check --json` said of processes with the GPU open.
    #[serde(default)]
    pub checks: Vec<Launch>,
    /// The process that was launched in a container's cgroup, and its pid before.
    pub watched: Option<(u32, Process)>,
    /// What went wrong with the session itself.
    pub error: Option<String>,
}

/// One launch.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Launch {
    /// What it is about.
    pub name: String,
    /// Its exit status; `None` when a signal ended it.
    pub exit_code: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// What it wrote to stderr.
    pub stderr: String,
}

impl Launch {
    /// What the workload said.
    ///
    /// # Panics
    /// When it wasn't launched.
    #[must_use]
    pub fn inherited(&self) -> Inherited {
        match serde_json::from_str(&self.stdout) {
            Ok(inherited) => inherited,
            Err(error) => panic!("{error}: {self:?}"),
        }
    }
}

impl Report {
    /// A check by its name: how it exited, and what it said.
    ///
    /// # Panics
    /// When there was none, or it said nothing.
    #[must_use]
    pub fn check(&self, name: &str) -> (Option<i32>, model::check::Report) {
        let Some(check) = self.checks.iter().find(|check| check.name == name) else {
            panic!("no check {name}: {:?}", self.error)
        };
        match serde_json::from_str(&check.stdout) {
            Ok(report) => (check.exit_code, report),
            Err(error) => panic!("{error}: {check:?}"),
        }
    }

    /// A launch by its name.
    ///
    /// # Panics
    /// When there was none.
    #[must_use]
    pub fn launch(&self, name: &str) -> &Launch {
        match self.launches.iter().find(|launch| launch.name == name) {
            Some(launch) => launch,
            None => panic!("no launch {name}: {:?}", self.error),
        }
    }
}

/// Plays it on nodes 0 and 1; `gpu` where node 1 has one.
#[must_use]
pub fn play(tools: &Tools, gpu: bool) -> Report {
    let mut report = Report {
        session: NAME.to_owned(),
        ..Report::default()
    };
    if let Err(error) = play_into(tools, gpu, &mut report) {
        report.error = Some(format!("{error:#}"));
    }
    report
}

fn play_into(tools: &Tools, gpu: bool, report: &mut Report) -> Result<()> {
    let numawatch = tools.numawatch.display();
    let workload = format!("{} inherited --pages {PAGES}", tools.workload.display());
    let model = std::fs::File::create(MODEL.0).context(MODEL.0)?;
    model.set_len(MODEL.1).context(MODEL.0)?;
    let model = MODEL.0;
    let launch = format!("exec {numawatch} launch");
    let mut launches = vec![
        ("without", format!("exec {workload}")),
        ("node", format!("{launch} --node 1 -- {workload}")),
        ("full", format!("{launch} --node 1 -- ls {model}")),
        (
            "full all the same",
            format!("{launch} --node 1 --needs 0 -- ls {model}"),
        ),
        ("needs", format!("{launch} --node 1 --needs 100G -- true")),
        (
            "needs little",
            format!("{launch} --node 1 --needs 1MiB -- true"),
        ),
        (
            "no command",
            format!("{launch} --node 1 -- /no/such/command"),
        ),
        ("no program", format!("{launch} --node 1 -- {model}")),
        (
            "its own code",
            format!("{launch} --node 1 -- sh -c 'exit 7'"),
        ),
        ("no node", format!("{launch} --node 7 -- true")),
        (
            "dry",
            format!("{launch} --node 1 --dry-run -- llama-server -m 'a b.gguf'"),
        ),
    ];
    if gpu {
        launches.extend([
            ("gpu by number", format!("{launch} --gpu 0 -- {workload}")),
            (
                "gpu by device",
                format!("{launch} --gpu renderD128 -- {workload}"),
            ),
            (
                "gpu elsewhere",
                format!("{launch} --gpu 0 --node 0 -- true"),
            ),
        ]);
    }
    for (name, script) in launches {
        report.launches.push(run(name, &script)?);
    }
    std::fs::remove_file(MODEL.0).context(MODEL.0)?;
    let only_0 = Cgroup::create("only-0", &[("cpuset.mems", "0")])?;
    let script = format!("{}; {launch} --node 1 -- true", only_0.join());
    report.launches.push(run("memory forbidden", &script)?);
    drop(only_0);
    let only_0 = Cgroup::create("only-0", &[("cpuset.cpus", "0-1")])?;
    let script = format!("{}; {launch} --node 1 -- true", only_0.join());
    report.launches.push(run("CPUs forbidden", &script)?);
    drop(only_0);
    let name = format!("docker-{CONTAINER}.scope");
    let container = Cgroup::create(&name, &[("cpuset.cpus", "1-3"), ("cpuset.mems", "0-1")])?;
    let script = format!(
        "{}; {launch} --node 1 -- {workload} --stay",
        container.join()
    );
    let mut held = Running::start(Command::new("sh").args(["-c", &script]))?;
    held.json_line::<Inherited>()?;
    let process = watched(tools, held.pid())?;
    report.watched = Some((held.pid(), process));
    held.close_stdin();
    held.wait()?;
    if gpu {
        play_checks(tools, report)?;
    }
    Ok(())
}

/// A process that has the GPU of node 1 open and keeps 64 MiB: bound to the other node, in a cgroup that forbids the GPU's,
/// and launched as it should be.
fn play_checks(tools: &Tools, report: &mut Report) -> Result<()> {
    let numawatch = tools.numawatch.display();
    let workload = tools.workload.display();
    let server = format!(
        "sh -c 'exec 9<>/dev/dri/renderD128; exec {workload} inherited --pages {PAGES} --stay'"
    );
    let only_0 = Cgroup::create("only-0", &[("cpuset.mems", "0"), ("cpuset.cpus", "0-1")])?;
    let cases = [
        (
            "away",
            format!("exec {numawatch} launch --node 0 -- {server}"),
        ),
        ("forbidden", format!("{}; exec {server}", only_0.join())),
        (
            "launched",
            format!("exec {numawatch} launch --gpu 0 -- {server}"),
        ),
    ];
    for (name, script) in cases {
        let mut held = Running::start(Command::new("sh").args(["-c", &script]))?;
        held.json_line::<Inherited>()
            .with_context(|| name.to_owned())?;
        let check = format!(
            "exec {numawatch} check --json --for 2s --pid {}",
            held.pid()
        );
        report.checks.push(run(name, &check)?);
        held.close_stdin();
        held.wait()?;
    }
    Ok(())
}

fn run(name: &str, script: &str) -> Result<Launch> {
    let output = Command::new("sh")
        .args(["-c", script])
        .stdin(Stdio::null())
        .output()
        .context("sh")?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(Launch {
        name: name.to_owned(),
        exit_code: output.status.code(),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    })
}

/// The process as a snapshot has it.
fn watched(tools: &Tools, pid: u32) -> Result<Process> {
    let output = Command::new(&tools.numawatch)
        .args([
            "snapshot",
            "--json",
            "--for",
            "1s",
            "--pid",
            &pid.to_string(),
        ])
        .stdin(Stdio::null())
        .output()
        .context("numawatch")?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let snapshot: Snapshot = serde_json::from_slice(&output.stdout).context(said)?;
    let process = snapshot.processes.into_iter().find(|p| p.pid == pid);
    process.context("the process isn't in the snapshot")
}
