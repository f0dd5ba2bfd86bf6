//! `numawatch doctor --self-test`, whole and with each signal broken on purpose.

use crate::bpf::Objects;
use crate::leftovers::left_since;
use crate::play::Tools;
use crate::process::Running;
use crate::session::Setting;
use anyhow::{Context as _, Result};
use model::selftest::{Report as Tests, Test, Verdict};
use model::signal::{Signal, SignalName};
use serde::{Deserialize, Serialize};
use std::process::Command;

/// The session's name.
pub const NAME: &str = "self-test";

/// Balancing has something to do.
pub const SETTINGS: &[Setting] = &[Setting {
    path: "/proc/sys/kernel/numa_balancing",
    value: "1",
    optional: false,
}];

/// What came of it; the guest prints it as one line.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// [`NAME`].
    pub session: String,
    /// The one that is whole, then one for each signal that was broken.
    pub runs: Vec<Run>,
    /// What went wrong with the session itself.
    pub error: Option<String>,
}

/// One run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Run {
    /// The signal that was broken.
    pub broken: Option<SignalName>,
    /// More of its arguments.
    pub options: String,
    /// Its exit status; `None` when a signal ended it.
    pub exit_code: Option<i32>,
    /// What it printed.
    pub document: Document,
    /// What it left in the kernel.
    pub left: Vec<String>,
}

/// What `doctor --json` prints, as far as it matters here.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Document {
    /// Every signal as it stands after its test.
    pub signals: Vec<Signal>,
    /// The tests.
    pub self_test: Tests,
}

impl Run {
    /// How a signal's test came out.
    ///
    /// # Panics
    /// When it has none.
    #[must_use]
    pub fn verdict(&self, signal: SignalName) -> Verdict {
        match self.document.self_test.test(signal) {
            Some(test) => test.verdict,
            None => panic!("no test of {}: {self:?}", signal.as_str()),
        }
    }

    /// Signals whose test failed.
    #[must_use]
    pub fn failed(&self) -> Vec<SignalName> {
        let tests = self.document.self_test.tests.iter();
        tests
            .filter(|test| test.verdict == Verdict::Failed)
            .map(|test| test.signal)
            .collect()
    }
}

/// Runs it whole, then once for each of these signals.
#[must_use]
pub fn play(tools: &Tools, broken: &[SignalName]) -> Report {
    let mut report = Report {
        session: NAME.to_owned(),
        ..Report::default()
    };
    let broken = broken.iter().copied().map(Some);
    for broken in std::iter::once(None).chain(broken) {
        match run_until_balanced(tools, broken) {
            Ok(run) => report.runs.push(run),
            Err(error) => report.error = Some(format!("{broken:?}: {error:#}")),
        }
    }
    report
}

/// When NUMA balancing moves pages is the kernel's affair: on a busy machine it may not in the time that it has.
fn run_until_balanced(tools: &Tools, broken: Option<SignalName>) -> Result<Run> {
    const TURNS: usize = 5;
    let mut last = run(tools, broken, "")?;
    for _ in 1..TURNS {
        let late = |test: &Test| {
            let reason = test.reason.as_deref().unwrap_or_default();
            test.verdict == Verdict::NotTested && reason.starts_with("NUMA balancing moved")
        };
        if !last.document.self_test.tests.iter().any(late) {
            break;
        }
        last = run(tools, broken, "")?;
    }
    Ok(last)
}

/// One run.
///
/// # Errors
/// When it prints no document.
pub fn run(tools: &Tools, broken: Option<SignalName>, options: &str) -> Result<Run> {
    let before = Objects::now()?;
    let mut command = Command::new(&tools.numawatch);
    command.args(["doctor", "--self-test", "--json"]);
    command.args(options.split_ascii_whitespace());
    if let Some(signal) = broken {
        command.args(["--break", signal.as_str()]);
    }
    let mut numawatch = Running::start(&mut command)?;
    let (status, stdout) = numawatch.wait()?;
    let stderr = numawatch.stderr_so_far();
    Ok(Run {
        broken,
        options: options.to_owned(),
        exit_code: status.code(),
        document: serde_json::from_str(&stdout)
            .with_context(|| format!("its document: {stdout:.400}; its stderr: {stderr}"))?,
        left: left_since(&before)?,
    })
}
