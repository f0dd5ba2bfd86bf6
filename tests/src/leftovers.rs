//! Ends numawatch in several ways, and looks for what it left behind in the kernel.

use crate::bpf::Objects;
use crate::play::Tools;
use crate::process::{LIMIT, Running};
use crate::sessions::{KPROBES_ONLY, TRACEPOINTS_ONLY};
use crate::sysctl;
use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use std::process::Command;
use std::time::{Duration, Instant};

/// The session's name.
pub const NAME: &str = "leftovers";

/// Watches for longer than anybody waits.
pub const SNAPSHOT: &str = "snapshot --json --for 600s";
/// Watches for good; nobody takes what it exports.
pub const AGENT: &str = "agent --otlp-endpoint http://127.0.0.1:9";

/// What was left, by ending.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// [`NAME`].
    pub session: String,
    /// One for each signal and rung.
    pub endings: Vec<Ending>,
    /// What went wrong with the session itself.
    pub error: Option<String>,
}

/// One numawatch's end.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Ending {
    /// The signal that it got while it was watching.
    pub signal: i32,
    /// The command that was watching.
    pub command: String,
    /// More of its arguments: the rung that it was told to stand on.
    pub options: String,
    /// Its exit status; `None` when the signal ended it.
    pub exit_code: Option<i32>,
    /// BPF programs that it had loaded.
    pub programs: usize,
    /// Its programs, maps, links and BTF objects that stayed.
    pub left: Vec<String>,
    /// Settings with another value than before.
    pub changed: Vec<String>,
    /// What it wrote to stderr.
    pub stderr: String,
}

/// Ends one numawatch after the other.
#[must_use]
pub fn play(tools: &Tools) -> Report {
    let mut report = Report {
        session: NAME.to_owned(),
        ..Report::default()
    };
    for (command, signal, options) in [
        (SNAPSHOT, libc::SIGKILL, ""),
        (SNAPSHOT, libc::SIGKILL, TRACEPOINTS_ONLY),
        (SNAPSHOT, libc::SIGKILL, KPROBES_ONLY),
        (SNAPSHOT, libc::SIGTERM, ""),
        (SNAPSHOT, libc::SIGINT, ""),
        (AGENT, libc::SIGKILL, ""),
    ] {
        match ending(tools, command, signal, options) {
            Ok(ending) => report.endings.push(ending),
            Err(error) => report.error = Some(format!("signal {signal}: {error:#}")),
        }
    }
    report
}

/// Starts one numawatch on the calling process, and ends it once it watches.
///
/// # Errors
/// When it doesn't get so far, or doesn't end.
pub fn ending(tools: &Tools, watching: &str, signal: i32, options: &str) -> Result<Ending> {
    let objects = Objects::now()?;
    let settings = sysctl::all();
    let mut command = Command::new(&tools.numawatch);
    let pid = std::process::id().to_string();
    command.args(watching.split_ascii_whitespace());
    command.args(["--pid", &pid]);
    command.args(options.split_ascii_whitespace());
    let mut numawatch = Running::start(&mut command)?;
    numawatch
        .stderr_line(|line| line.starts_with("numawatch: watching "))
        .context("numawatch")?;
    let during = Objects::now()?;
    numawatch.signal(signal);
    let (status, _) = numawatch.wait()?;
    Ok(Ending {
        signal,
        command: watching.to_owned(),
        options: options.to_owned(),
        exit_code: status.code(),
        programs: during.programs.difference(&objects.programs).count(),
        left: left_since(&objects)?,
        changed: sysctl::changes(&settings, &sysctl::all()),
        stderr: numawatch.stderr_so_far(),
    })
}

/// The kernel frees objects a little after their last user: this waits until it has, or clearly won't.
pub(crate) fn left_since(before: &Objects) -> Result<Vec<String>> {
    let end = Instant::now() + LIMIT.min(Duration::from_secs(30));
    loop {
        let left = Objects::now()?.new_since(before);
        if left.is_empty() || Instant::now() >= end {
            return Ok(left);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
