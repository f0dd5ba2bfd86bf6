//! Boots a guest once a kernel, plays every session in it, and keeps what they reported.

use crate::leftovers;
use crate::self_test;
use crate::session::Report;
use anyhow::{Context as _, Result};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Seconds that all sessions may take together: under emulation, on a busy machine.
const TIMEOUT: &str = "1800";

/// What came out of a guest.
#[derive(Debug, Default)]
pub struct Guest {
    sessions: BTreeMap<String, Report>,
    leftovers: Option<leftovers::Report>,
    self_test: Option<self_test::Report>,
    /// What was printed besides, for failed tests.
    trouble: String,
}

impl Guest {
    /// Boots it and plays all sessions; `scenario` is the runner's binary.
    #[must_use]
    pub fn play(kernel: &str, scenario: &Path) -> Self {
        let mut guest = Self::default();
        match run(kernel, scenario) {
            Ok((stdout, rest)) => {
                guest.trouble = rest;
                for line in stdout.lines() {
                    guest.keep(line);
                }
            }
            Err(error) => guest.trouble = format!("{error:#}"),
        }
        guest
    }

    fn keep(&mut self, line: &str) {
        if let Ok(report) = serde_json::from_str::<self_test::Report>(line) {
            self.self_test = Some(report);
        } else if let Ok(report) = serde_json::from_str::<leftovers::Report>(line) {
            self.leftovers = Some(report);
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

/// stdout, and the rest.
fn run(kernel: &str, scenario: &Path) -> Result<(String, String)> {
    let disk = Disk::create(kernel)?;
    let mut command = xtask_vm();
    command.args(["--kernel", kernel, "--timeout", TIMEOUT]);
    command
        .arg("--add")
        .arg(scenario)
        .arg("--disk")
        .arg(&disk.0);
    command.args(["--", "scenario"]);
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
    fn create(kernel: &str) -> Result<Self> {
        let name = format!("numawatch-disk-{}-{kernel}", std::process::id());
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
