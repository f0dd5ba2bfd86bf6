//! `numawatch doctor`: what this host can measure, signal by signal, and why not.

use super::table;
use crate::cli::Doctor as Options;
use crate::engines::selection::Selection;
use crate::host::kernel::{read_host, read_numa_balancing};
use crate::host::process::own_pid;
use crate::host::root::Root;
use crate::logging;
use crate::sampler::{self, Sampler};
use anyhow::Result;
use model::signal::{Signal, SignalName, SignalState};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
enum Outcome {
    Pass,
    Warn,
    Fail,
}

/// One check; ids are stable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Check {
    id: String,
    outcome: Outcome,
    what: String,
}

#[derive(Serialize)]
struct Report {
    schema_version: u32,
    checks: Vec<Check>,
    signals: Vec<Signal>,
}

pub(super) fn run(options: &Options) -> Result<ExitCode> {
    logging::to_stderr();
    let root = Root::system();
    let mut checks = host_checks(&root)?;
    let balancing = read_numa_balancing(&root)?;
    // Nobody is watched: the probes are attached, and leave with this process.
    let started = Sampler::start(sampler::Options {
        root: root.clone(),
        selection: Selection::new(vec![own_pid(&root)], None, false)?,
        attach: options.probes.options(),
        keep_ended: false,
    });
    let signals = match started {
        Ok(sampler) => {
            checks.push(check(
                "probes.load",
                Outcome::Pass,
                "the kernel accepts the eBPF object",
            ));
            sampler.signals(balancing)
        }
        Err(error) => {
            checks.push(check("probes.load", Outcome::Fail, &format!("{error:#}")));
            let reason = format!("{error:#}");
            SignalName::ALL
                .into_iter()
                .map(|name| Signal::unavailable(name, reason.clone()))
                .collect()
        }
    };
    checks.extend(signals.iter().map(signal_check));
    let failed = checks.iter().any(|c| c.outcome == Outcome::Fail);
    print(options.json, checks, signals)?;
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn print(json: bool, checks: Vec<Check>, signals: Vec<Signal>) -> Result<()> {
    let mut out = std::io::stdout().lock();
    if json {
        let report = Report {
            schema_version: 1,
            checks,
            signals,
        };
        serde_json::to_writer_pretty(&mut out, &report).map_err(std::io::Error::from)?;
        writeln!(out)?;
        return Ok(());
    }
    let mut text = String::new();
    for check in &checks {
        let mark = match check.outcome {
            Outcome::Pass => "PASS",
            Outcome::Warn => "WARN",
            Outcome::Fail => "FAIL",
        };
        let _ = writeln!(text, "{mark}  {:<20}  {}", check.id, check.what);
    }
    text.push('\n');
    text.push_str(&table::signals(&signals));
    out.write_all(text.as_bytes())?;
    Ok(())
}

fn check(id: &str, outcome: Outcome, what: &str) -> Check {
    Check {
        id: id.to_owned(),
        outcome,
        what: what.to_owned(),
    }
}

fn host_checks(root: &Root) -> Result<Vec<Check>> {
    let host = read_host(root)?;
    let mut checks = vec![check(
        "host.kernel",
        Outcome::Pass,
        &format!("Linux {}", host.kernel),
    )];
    let btf = root.sys("kernel/btf/vmlinux").exists();
    checks.push(if btf {
        check(
            "host.btf",
            Outcome::Pass,
            "the kernel describes itself in /sys/kernel/btf/vmlinux",
        )
    } else {
        check(
            "host.btf",
            Outcome::Fail,
            "no /sys/kernel/btf/vmlinux: the kernel needs CONFIG_DEBUG_INFO_BTF",
        )
    });
    let (outcome, what) = match host.numa_balancing {
        None => (
            Outcome::Warn,
            "this kernel has no NUMA balancing, so there are no hint touches",
        ),
        Some(0) => (
            Outcome::Warn,
            "kernel.numa_balancing=0: no hint touches; remote shares are estimates",
        ),
        Some(1) => (
            Outcome::Pass,
            "kernel.numa_balancing=1: hint touches measure remote shares",
        ),
        Some(_) => (
            Outcome::Warn,
            "kernel.numa_balancing has memory tiering: hint touches are no remote share",
        ),
    };
    checks.push(check("host.numa_balancing", outcome, what));
    Ok(checks)
}

/// A signal by its state; what a setting switches off is a warning, what the host can't do too.
fn signal_check(signal: &Signal) -> Check {
    let (outcome, word) = match signal.state {
        SignalState::Attached => (Outcome::Pass, "attached"),
        SignalState::Degraded => (Outcome::Warn, "degraded"),
        SignalState::Unreliable => (Outcome::Fail, "unreliable"),
        // Without the scheduler's signal there is next to nothing to show.
        SignalState::Unavailable if signal.name == SignalName::Sched => {
            (Outcome::Fail, "unavailable")
        }
        SignalState::Unavailable => (Outcome::Warn, "unavailable"),
    };
    let what = match &signal.reason {
        Some(reason) => format!("{word}: {reason}"),
        None => word.to_owned(),
    };
    Check {
        id: format!("signal.{}", signal.name.as_str()),
        outcome,
        what,
    }
}
