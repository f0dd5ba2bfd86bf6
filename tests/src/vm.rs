//! Boots a guest once a kernel or place of the matrix, plays sessions in it, and keeps what they reported.

use crate::findings;
use crate::launch;
use crate::leftovers;
use crate::matrix::places::{Machine, Place};
use crate::self_test;
use crate::session::Report;
use anyhow::{Context as _, Result};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Seconds that all sessions may take together: under emulation, on a busy machine.
const TIMEOUT: &str = "1800";

/// A directory where each place's reports are kept, and taken from if they are there: for work on the matrix itself,
/// without a boot of each for every change.
const KEPT: &str = "NUMAWATCH_MATRIX_KEPT";

/// What came out of a guest.
#[derive(Debug, Default)]
pub struct Guest {
    sessions: BTreeMap<String, Report>,
    leftovers: Option<leftovers::Report>,
    self_test: Option<self_test::Report>,
    launch: Option<launch::Report>,
    findings: Option<findings::Report>,
    machine: Option<Machine>,
    /// What was printed besides, for failed tests.
    trouble: String,
}

impl Guest {
    /// Boots it and plays all sessions; `scenario` is the runner's binary.
    #[must_use]
    pub fn play(kernel: &str, scenario: &Path) -> Self {
        // With 512 MiB a node, bound memory left as little as 23 MiB of node 0 free, and sometimes none.
        let machine = ["--modules", "brd", "--memory", "2G"];
        Self::run(kernel, scenario, &machine, &[], None)
    }

    /// Boots it with a GPU on node 1, and plays the launches.
    #[must_use]
    pub fn play_launches(kernel: &str, scenario: &Path) -> Self {
        let arguments = ["--gpu", launch::NAME].map(str::to_owned);
        Self::run(kernel, scenario, &["--gpu-node", "1"], &arguments, None)
    }

    /// Boots it with a GPU on node 1, and plays what findings are raised and cleared by.
    #[must_use]
    pub fn play_findings(kernel: &str, scenario: &Path) -> Self {
        let machine = ["--gpu-node", "1", "--memory", "2G"];
        Self::run(
            kernel,
            scenario,
            &machine,
            &[findings::NAME.to_owned()],
            None,
        )
    }

    /// Boots a place of the matrix, and plays the matrix's sessions.
    #[must_use]
    pub fn play_at(place: &Place, scenario: &Path) -> Self {
        // Up to four nodes have their share, and each the same.
        let mut machine = vec!["--layout", place.layout, "--memory", "2G"];
        let cpu = place.nodes.cpu.to_string();
        if place.gpu {
            machine.extend(["--gpu-node", &cpu]);
        }
        let mut arguments = vec!["--matrix".to_owned()];
        let mut node =
            |option: &str, id: u32| arguments.extend([option.to_owned(), id.to_string()]);
        node("--cpu-node", place.nodes.cpu);
        node("--memory-node", place.nodes.memory);
        if let Some(other) = place.nodes.other {
            node("--other-node", other);
        }
        if place.gpu {
            arguments.push("--gpu".to_owned());
        }
        if let Some(rung) = place.forced {
            arguments.push(format!("--forced={}", rung.as_str()));
        }
        let kept = std::env::var_os(KEPT)
            .map(|directory| PathBuf::from(directory).join(format!("{}.json", place.name())));
        if let Some(text) = kept
            .as_ref()
            .and_then(|file| std::fs::read_to_string(file).ok())
        {
            let mut guest = Self::default();
            text.lines().for_each(|line| guest.keep(line));
            return guest;
        }
        Self::run(
            place.kernel,
            scenario,
            &machine,
            &arguments,
            kept.as_deref(),
        )
    }

    fn run(
        kernel: &str,
        scenario: &Path,
        machine: &[&str],
        arguments: &[String],
        kept: Option<&Path>,
    ) -> Self {
        let mut guest = Self::default();
        match run(kernel, scenario, machine, arguments) {
            Ok((stdout, rest)) => {
                guest.trouble = rest;
                if let Some(Err(error)) = kept.map(|file| std::fs::write(file, &stdout)) {
                    let _ = writeln!(guest.trouble, "{KEPT}: {error}");
                }
                for line in stdout.lines() {
                    guest.keep(line);
                }
            }
            Err(error) => guest.trouble = format!("{error:#}"),
        }
        guest
    }

    fn keep(&mut self, line: &str) {
        if let Ok(report) = serde_json::from_str::<launch::Report>(line) {
            self.launch = Some(report);
        } else if let Ok(report) = serde_json::from_str::<findings::Report>(line) {
            self.findings = Some(report);
        } else if let Ok(report) = serde_json::from_str::<self_test::Report>(line) {
            self.self_test = Some(report);
        } else if let Ok(report) = serde_json::from_str::<leftovers::Report>(line) {
            self.leftovers = Some(report);
        } else if let Ok(machine) = serde_json::from_str::<Machine>(line) {
            self.machine = Some(machine);
        } else if let Ok(report) = serde_json::from_str::<Report>(line) {
            self.sessions.insert(report.session.clone(), report);
        } else {
            self.trouble.push_str(line);
            self.trouble.push('\n');
        }
    }

    /// A session's report.
    ///
    /// # Panics
    /// When the guest didn't get so far.
    #[must_use]
    pub fn session(&self, name: &str) -> &Report {
        match self.sessions.get(name) {
            Some(report) => report,
            None => panic!("the guest didn't play session {name}:\n{}", self.trouble),
        }
    }

    /// What the self-test found.
    ///
    /// # Panics
    /// When the guest didn't get so far.
    #[must_use]
    pub fn self_test(&self) -> &self_test::Report {
        match &self.self_test {
            Some(report) => report,
            None => panic!(
                "the guest didn't play session {}:\n{}",
                self_test::NAME,
                self.trouble
            ),
        }
    }

    /// What was launched.
    ///
    /// # Panics
    /// When the guest didn't get so far.
    #[must_use]
    pub fn launches(&self) -> &launch::Report {
        match &self.launch {
            Some(report) => report,
            None => panic!(
                "the guest didn't play session {}:\n{}",
                launch::NAME,
                self.trouble
            ),
        }
    }

    /// What was found, before and after.
    ///
    /// # Panics
    /// When the guest didn't get so far.
    #[must_use]
    pub fn findings(&self) -> &findings::Report {
        match &self.findings {
            Some(report) => report,
            None => panic!(
                "the guest didn't play session {}:\n{}",
                findings::NAME,
                self.trouble
            ),
        }
    }

    /// All sessions' reports.
    pub fn sessions(&self) -> impl Iterator<Item = &Report> {
        self.sessions.values()
    }

    /// What sysfs said of its nodes; `None` where the guest didn't get so far.
    #[must_use]
    pub fn machine(&self) -> Option<&Machine> {
        self.machine.as_ref()
    }

    /// What was printed besides.
    #[must_use]
    pub fn trouble(&self) -> &str {
        &self.trouble
    }

    /// What numawatch left behind.
    ///
    /// # Panics
    /// When the guest didn't get so far.
    #[must_use]
    pub fn leftovers(&self) -> &leftovers::Report {
        match &self.leftovers {
            Some(report) => report,
            None => panic!(
                "the guest didn't play session {}:\n{}",
                leftovers::NAME,
                self.trouble
            ),
        }
    }
}

/// Runs a shell script in a guest, as root, and gives its stdout.
///
/// # Errors
/// When the guest doesn't boot, or the script fails.
pub fn in_guest(machine: &[&str], script: &str) -> Result<String> {
    let mut command = xtask_vm();
    command.args(["--timeout", TIMEOUT]).args(machine);
    command.args(["--", "sh", "-c", script]);
    let output = command.stdin(Stdio::null()).output()?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(
        output.status.success(),
        "{command:?}: {}\n{stderr}",
        output.status
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// stdout, and the rest.
fn run(
    kernel: &str,
    scenario: &Path,
    machine: &[&str],
    arguments: &[String],
) -> Result<(String, String)> {
    let disk = Disk::create()?;
    let mut command = xtask_vm();
    command.args(["--kernel", kernel, "--timeout", TIMEOUT]);
    command.args(machine);
    command
        .arg("--add")
        .arg(scenario)
        .arg("--disk")
        .arg(&disk.0);
    command.args(["--", "scenario"]).args(arguments);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("{command:?}"))?;
    let mut stderr = child.stderr.take().context("stderr")?;
    let listener = std::thread::spawn(move || {
        let mut text = String::new();
        let _ = stderr.read_to_string(&mut text);
        text
    });
    let mut stdout = String::new();
    for line in BufReader::new(child.stdout.take().context("stdout")?).lines() {
        stdout.push_str(&line?);
        stdout.push('\n');
    }
    let status = child.wait()?;
    let stderr = listener.join().unwrap_or_default();
    Ok((stdout, format!("{command:?}: {status}\n{stderr}")))
}

/// `NUMAWATCH_XTASK`, where xtask runs the tests and has built what they need; else by cargo, which builds it.
fn xtask_vm() -> Command {
    if let Some(built) = std::env::var_os("NUMAWATCH_XTASK") {
        let mut command = Command::new(built);
        command.args(["vm", "--no-build"]);
        return command;
    }
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(["xtask", "vm"])
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    command
}

/// An empty directory, for the guest's disk; gone on drop.
struct Disk(PathBuf);

impl Disk {
    fn create() -> Result<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("numawatch-disk-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).with_context(|| path.display().to_string())?;
        Ok(Self(path))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
