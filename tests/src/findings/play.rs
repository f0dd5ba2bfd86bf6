//! Plays it on nodes 0 and 1, a GPU on node 1: wrong tenants first, then what the findings said to type.

use super::neighbour::Full;
use super::start::{Given, Tenant};
use super::{Check, MANY_PAGES, NAME, PAGES, Report, WEIGHTS_PAGES, finding};
use crate::cgroup::Cgroup;
use crate::play::Tools;
use anyhow::{Context as _, Result, bail, ensure};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

const GPU: &str = "/dev/dri/renderD128";
/// On the guest's disk: only a real file has pages that can be dropped.
const WEIGHTS: &str = "/disk/model.gguf";
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

const ON_NODE_0: &[usize] = &[0, 1];
const ON_NODE_1: &[usize] = &[2, 3];

const fn bound(node: u32) -> (i32, u32) {
    (libc::MPOL_BIND, node)
}

type Tenants = BTreeMap<&'static str, Tenant>;

/// Plays it.
#[must_use]
pub fn play(tools: &Tools) -> Report {
    let mut report = Report {
        session: NAME.to_owned(),
        ..Report::default()
    };
    if let Err(error) = play_into(tools, &mut report) {
        report.error = Some(format!("{error:#}"));
    }
    report
}

fn play_into(tools: &Tools, report: &mut Report) -> Result<()> {
    let stage = Stage::new(tools);
    let cgroup = Cgroup::create("tenant", &[("cpuset.mems", "0"), ("cpuset.cpus", "0-1")])?;
    let mut tenants = stage.failing(&cgroup, report)?;
    tenants.extend(stage.warning(report)?);
    let mut mended = Tenants::new();
    for (name, tenant) in tenants {
        let tenant = match name {
            // Its neighbour is gone.
            "full" => tenant,
            _ => mend(name, tenant, report)?,
        };
        report.mended.insert(name.to_owned(), tenant.told.clone());
        mended.insert(name, tenant);
    }
    stage.check("mended", &mended, report)?;
    for (name, tenant) in mended {
        if let Some(told) = tenant.end()? {
            report.at_the_end.insert(name.to_owned(), told);
        }
    }
    Ok(())
}

/// Which lines of a finding's advice are typed for a tenant, and by which check it was given.
struct Mend {
    check: &'static str,
    id: &'static str,
    lines: &'static [usize],
    /// The tenant is ended first, and the last line starts it anew.
    relaunch: bool,
}

impl Mend {
    fn of(name: &str) -> Result<Self> {
        let (check, id, lines, relaunch): (_, _, &[usize], _) = match name {
            "away" => ("fails", "memory-away-from-gpu", &[0], true),
            "threads" => ("fails", "threads-away-from-memory", &[0], false),
            "cpuset" => ("fails", "cpuset-forbids-gpu-node", &[0, 1], false),
            "weights" => ("fails", "weights-in-remote-page-cache", &[0, 1], true),
            "wander" => ("warns", "threads-wander", &[0], true),
            "preferred" => ("warns", "policy-is-a-hint", &[0], true),
            "late" => ("warns", "memory-from-before-bind", &[0], true),
            _ => bail!("no advice is known for tenant {name}"),
        };
        Ok(Self {
            check,
            id,
            lines,
            relaunch,
        })
    }
}

/// Does what the finding said to type, word by word.
fn mend(name: &str, tenant: Tenant, report: &Report) -> Result<Tenant> {
    let Mend {
        check,
        id,
        lines,
        relaunch,
    } = Mend::of(name)?;
    let checked = report.checks.get(check).context(check)?.report()?;
    let found = finding(&checked, tenant.pid(), id)
        .with_context(|| format!("tenant {name} has no finding {id}"))?;
    let mut advice = Vec::new();
    for line in lines {
        let line = found.advice.get(*line);
        advice.push(line.with_context(|| format!("{id}: {:?}", found.advice))?);
    }
    let start = if relaunch { advice.pop() } else { None };
    let tenant = match start {
        Some(_) => tenant.end().map(|_| None)?,
        None => Some(tenant),
    };
    for line in advice {
        let status = Command::new("sh")
            .args(["-c", line])
            .stdout(Stdio::null())
            .status()
            .context("sh")?;
        ensure!(status.success(), "{line}: {status}");
    }
    match (tenant, start) {
        (Some(tenant), _) => Ok(tenant),
        (None, start) => {
            let start = start.context("no line starts it")?;
            Tenant::start(Given::default(), &format!("exec {start}"))
        }
    }
}

/// The programs, as a shell is told them.
struct Stage<'a> {
    tools: &'a Tools,
    workload: String,
}

impl<'a> Stage<'a> {
    fn new(tools: &'a Tools) -> Self {
        Self {
            tools,
            workload: tools.workload.display().to_string(),
        }
    }

    /// What fails a check.
    fn failing(&self, cgroup: &Cgroup, report: &mut Report) -> Result<Tenants> {
        let workload = &self.workload;
        let server = format!("exec {workload} tenant --device {GPU}");
        self.earlier_run()?;
        let on_node_0 = Given {
            cpus: ON_NODE_0,
            policy: Some(bound(0)),
        };
        let on_node_1 = Given {
            cpus: ON_NODE_1,
            policy: Some(bound(1)),
        };
        let apart = Given {
            cpus: ON_NODE_1,
            policy: Some(bound(0)),
        };
        let starts = [
            ("away", on_node_0, format!("{server} --pages {MANY_PAGES}")),
            (
                "threads",
                apart,
                format!("exec {workload} tenant --pages {PAGES} --work compute"),
            ),
            (
                "weights",
                on_node_1,
                format!("{server} --pages {PAGES} --weights {WEIGHTS}"),
            ),
            (
                "cpuset",
                Given::default(),
                format!("{}; {server} --pages {PAGES}", cgroup.join()),
            ),
        ];
        let tenants = start(starts, report)?;
        self.check("fails", &tenants, report)?;
        Ok(tenants)
    }

    /// What warns, and nothing that fails; meanwhile a neighbour fills node 1, and goes.
    fn warning(&self, report: &mut Report) -> Result<Tenants> {
        let workload = &self.workload;
        let server = format!("{workload} tenant --device {GPU} --pages {PAGES}");
        let starts = [
            (
                "wander",
                Given {
                    cpus: &[1, 2, 3],
                    policy: Some(bound(1)),
                },
                format!("exec {server} --work hop"),
            ),
            (
                "preferred",
                Given {
                    cpus: ON_NODE_1,
                    policy: Some((libc::MPOL_PREFERRED, 1)),
                },
                format!("exec {server}"),
            ),
            (
                "late",
                Given {
                    cpus: ON_NODE_0,
                    policy: None,
                },
                format!("exec {workload} tenant --pages {PAGES} --bind-late 1"),
            ),
            (
                "full",
                Given::default(),
                format!(
                    "exec {} launch --gpu 0 -- {server}",
                    self.tools.numawatch.display()
                ),
            ),
        ];
        let tenants = start(starts, report)?;
        let full = Full::fill(1)?;
        let neighbour = full.press(workload)?;
        report.full.push(full.counts()?);
        self.check("warns", &tenants, report)?;
        report.full.push(full.counts()?);
        neighbour.end()?;
        Ok(tenants)
    }

    /// Somebody reads the weights on node 0, and is gone.
    fn earlier_run(&self) -> Result<()> {
        let mut file = std::fs::File::create(WEIGHTS).context(WEIGHTS)?;
        for _ in 0..WEIGHTS_PAGES {
            file.write_all(&[0x5a; 4096]).context(WEIGHTS)?;
        }
        file.sync_all().context(WEIGHTS)?;
        drop(file);
        std::fs::write(DROP_CACHES, "1").context(DROP_CACHES)?;
        let given = Given {
            policy: Some(bound(0)),
            ..Given::default()
        };
        let script = format!("exec {} tenant --weights {WEIGHTS}", self.workload);
        Tenant::start(given, &script)?.end()?;
        Ok(())
    }

    fn check(&self, name: &str, tenants: &Tenants, report: &mut Report) -> Result<()> {
        let mut command = Command::new(&self.tools.numawatch);
        command.args(["check", "--json", "--for", "2s"]);
        for tenant in tenants.values() {
            command.args(["--pid", &tenant.pid().to_string()]);
        }
        let output = command.stdin(Stdio::null()).output().context("numawatch")?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let check = Check {
            exit_code: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        };
        report.checks.insert(name.to_owned(), check);
        Ok(())
    }
}

fn start<const N: usize>(
    starts: [(&'static str, Given<'_>, String); N],
    report: &mut Report,
) -> Result<Tenants> {
    let mut tenants = Tenants::new();
    for (name, given, script) in starts {
        let tenant = Tenant::start(given, &script)?;
        report.raised.insert(name.to_owned(), tenant.told.clone());
        tenants.insert(name, tenant);
    }
    Ok(tenants)
}
