//! `numawatch check`: is each process near its GPU and its memory, why not, and what to type.

use super::{runtime, sampler, span};
use crate::cli::Check as Options;
use crate::doctor::text::wrapped;
use crate::host::cache::read_largest_cache;
use crate::host::placement::read_placement;
use crate::host::process::ProcessDir;
use crate::host::root::Root;
use crate::logging;
use anyhow::{Context, Result, anyhow, ensure};
use model::check::{Report, State, check};
use model::finding::{Evidence, Finding, Severity};
use model::findings::View;
use model::policy::OwnPolicy;
use model::process::Process;
use model::snapshot::Snapshot;
use model::thresholds::Thresholds;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

#[derive(Serialize)]
struct Document<'a> {
    schema_version: u32,
    state: State,
    thresholds: &'a Thresholds,
    #[serde(flatten)]
    report: &'a Report,
}

pub(super) fn run(options: &Options) -> Result<ExitCode> {
    logging::to_stderr();
    let thresholds = thresholds(&options.thresholds)?;
    let root = Root::system();
    let mut sampler = sampler(&options.watch, false)?;
    let watched = span::watch(&mut sampler, options.span, options.watch.interval);
    let mut span = runtime()?.block_on(watched)?;
    for process in span.last.processes.iter_mut().filter(|p| p.alive) {
        process.placement.own_policies = read_own_policies(&root, process);
    }
    let view = View {
        now: &span.last,
        before: Some(&span.first),
        thresholds: &thresholds,
        cache_bytes: read_largest_cache(&root),
    };
    let report = check(&view, &options.watch.pids);
    let mut out = std::io::stdout().lock();
    if options.json {
        let document = Document {
            schema_version: span.last.schema_version,
            state: report.worst(),
            thresholds: &thresholds,
            report: &report,
        };
        serde_json::to_writer_pretty(&mut out, &document).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        out.write_all(text(&report, &span.last).as_bytes())?;
    }
    out.flush()?;
    Ok(exit(report.worst(), options.strict))
}

/// The policies of a process's mappings; `None` where they can't be read, or the process has ended.
fn read_own_policies(root: &Root, process: &Process) -> Option<Vec<OwnPolicy>> {
    let dir = ProcessDir::open(root, process.pid).ok()?;
    let same = dir.stat().ok()?.start_time == process.start_time;
    let sum = same.then(|| read_placement(&dir))?.ok()??;
    Some(sum.own_policies())
}

/// A failure is 1; what may cost, or isn't known, only if asked to be strict.
fn exit(worst: State, strict: bool) -> ExitCode {
    match worst {
        State::Fail => ExitCode::FAILURE,
        State::Warn | State::Unknown if strict => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

/// The defaults, changed by `NAME=VALUE`s.
fn thresholds(changes: &[(String, f64)]) -> Result<Thresholds> {
    let mut values = serde_json::to_value(Thresholds::default())?;
    for (name, value) in changes {
        // An integer's threshold is read as one.
        let whole = values.get(name).is_some_and(serde_json::Value::is_u64);
        ensure!(
            !whole || value.fract() == 0.0,
            "--threshold: {name} is a whole number, and not {value}"
        );
        values[name] = if whole {
            serde_json::from_str(&format!("{value}"))?
        } else {
            (*value).into()
        };
    }
    let thresholds: Thresholds = serde_json::from_value(values).context("--threshold")?;
    thresholds
        .check()
        .map_err(|why| anyhow!("--threshold: {why}"))?;
    Ok(thresholds)
}

fn text(report: &Report, snapshot: &Snapshot) -> String {
    let mut text = String::new();
    for process in snapshot.processes.iter().filter(|p| p.alive) {
        let _ = writeln!(text, "{}", title(process));
        for answer in report.answers.iter().filter(|a| a.pid == process.pid) {
            let start = format!("  {:<7}  {:<15}  ", answer.state.as_str(), answer.id);
            text.push_str(&wrapped(&start, &answer.summary, 28));
        }
        for finding in of(report, Some(process.pid)) {
            text.push_str(&told(finding));
        }
    }
    for ended in &report.ended {
        let name = ended
            .name
            .as_deref()
            .unwrap_or("(ended before it was seen)");
        let _ = writeln!(text, "{} {name}", ended.pid);
        text.push_str("  UNKNOWN  it ended meanwhile: nothing can be said of it\n");
    }
    let machine: Vec<_> = of(report, None).collect();
    if !machine.is_empty() {
        text.push_str("the machine\n");
        for finding in machine {
            text.push_str(&told(finding));
        }
    }
    if report.answers.is_empty() && report.ended.is_empty() {
        text.push_str("UNKNOWN: no process was there to check at the end; --pid, --match or --all select others\n");
    }
    text
}

fn title(process: &Process) -> String {
    let engine = process.engine.as_deref().map(|e| format!(" ({e})"));
    let devices: Vec<String> = process
        .devices
        .iter()
        .map(|d| match d.node {
            Some(node) => format!(", {} on node {node}", d.label),
            None => format!(", {} on an unknown node", d.label),
        })
        .collect();
    format!(
        "{} {}{}{}",
        process.pid,
        process.name,
        engine.unwrap_or_default(),
        devices.concat()
    )
}

fn of(report: &Report, pid: Option<u32>) -> impl Iterator<Item = &Finding> {
    report.findings.iter().filter(move |f| f.pid == pid)
}

fn told(finding: &Finding) -> String {
    let mark = match finding.severity {
        Severity::Info => "INFO",
        Severity::Warn => "WARN",
        Severity::Fail => "FAIL",
    };
    let mut text = wrapped(
        &format!("  {mark:<7}  "),
        &format!("{}: {}", finding.id, finding.summary),
        11,
    );
    let evidence: Vec<String> = finding.evidence.iter().map(number).collect();
    if !evidence.is_empty() {
        text.push_str(&wrapped("           seen:    ", &evidence.join("; "), 20));
    }
    for line in &finding.advice {
        // A command is copied whole.
        let _ = writeln!(text, "           type:    {line}");
    }
    text.push_str(&wrapped("           unless:  ", &finding.unless, 20));
    text
}

fn number(evidence: &Evidence) -> String {
    let value = match evidence.unit.as_str() {
        "By" => format!("{:.1} MiB", evidence.value / f64::from(1 << 20)),
        "s" => format!("{:.2} s", evidence.value),
        "1" if evidence.value <= 1.0 => format!("{:.1} %", evidence.value * 100.0),
        "1" => format!("{:.0}", evidence.value),
        unit => format!(
            "{:.1} {}",
            evidence.value,
            unit.trim_matches(['{', '}']).replace("}/", "s/")
        ),
    };
    format!("{} {value} ({})", evidence.name, evidence.source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_changed_by_its_name() {
        let changed = thresholds(&[
            ("remote_from".into(), 0.4),
            ("evidence_pages".into(), 128.0),
        ])
        .unwrap();
        assert!((changed.remote_from - 0.4).abs() < f64::EPSILON);
        assert_eq!(changed.evidence_pages, 128);
    }

    #[test]
    fn an_unknown_threshold_is_refused_by_name() {
        let error = thresholds(&[("remote".into(), 0.4)]).unwrap_err();
        assert!(
            format!("{error:#}").contains("unknown field `remote`"),
            "{error:#}"
        );
    }

    #[test]
    fn what_cannot_be_meant_is_refused_in_words() {
        for (name, value, words) in [
            ("evidence_pages", 1.5, "is a whole number"),
            ("free_share", 7.0, "is a share"),
        ] {
            let error = thresholds(&[(name.into(), value)]).unwrap_err();
            assert!(format!("{error:#}").contains(words), "{error:#}");
        }
    }

    #[test]
    fn only_a_failure_fails_unless_strict() {
        let failed = |state, strict| exit(state, strict) == ExitCode::FAILURE;
        for (state, usual, strict) in [
            (State::Pass, false, false),
            (State::Unknown, false, true),
            (State::Warn, false, true),
            (State::Fail, true, true),
        ] {
            assert_eq!(
                (failed(state, false), failed(state, true)),
                (usual, strict),
                "{state:?}"
            );
        }
    }
}
