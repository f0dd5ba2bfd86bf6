//! `numawatch check`: is each process near its GPU and its memory, why not, and what to type.

use super::span::Span;
use super::{runtime, span, table, terminal};
use crate::cli::Check as Options;
use crate::logging;
use crate::sampler::{self, NumaMaps};
use crate::wrap::Wrap;
use anyhow::Result;
use model::check::{Report, State, check};
use model::finding::Finding;
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
    let mut sampler = sampler::start(sampler::Options {
        numa_maps: NumaMaps::Policies,
        ..super::options(&options.watch, false)?
    })?;
    let thresholds = *sampler.thresholds();
    let watched = span::watch(&mut sampler, options.span, options.watch.interval);
    let Span { first, last } = runtime()?.block_on(watched)?;
    let report = check(&first, &last, &thresholds, &options.watch.pids);
    let mut out = std::io::stdout().lock();
    if options.json {
        let document = Document {
            schema_version: last.schema_version,
            state: report.worst(),
            thresholds: &thresholds,
            report: &report,
        };
        serde_json::to_writer_pretty(&mut out, &document).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        // Names and paths are other people's: they are not to talk to the terminal.
        let wrap = Wrap::of(terminal::columns(&out));
        let text = text(&report, &last, wrap).replace(|c: char| c.is_control() && c != '\n', "?");
        out.write_all(text.as_bytes())?;
    }
    out.flush()?;
    Ok(exit(report.worst(), options.strict))
}

/// A failure is 1; what may cost, or isn't known, only if asked to be strict.
fn exit(worst: State, strict: bool) -> ExitCode {
    match worst {
        State::Fail => ExitCode::FAILURE,
        State::Warn | State::Unknown if strict => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

fn text(report: &Report, snapshot: &Snapshot, wrap: Wrap) -> String {
    let mut text = String::new();
    for process in snapshot.processes.iter().filter(|p| p.alive) {
        let _ = writeln!(text, "{}", title(process));
        for answer in report.answers.iter().filter(|a| a.pid == process.pid) {
            let start = format!("  {:<7}  {:<15}  ", answer.state.as_str(), answer.id);
            text.push_str(&wrap.text(&start, &answer.summary, 28));
        }
        for finding in of(report, Some(process.pid)) {
            text.push_str(&told(finding, wrap));
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
            text.push_str(&told(finding, wrap));
        }
    }
    text.push_str(&table::lost(&report.lost));
    if report.answers.is_empty() && report.ended.is_empty() {
        text.push_str("UNKNOWN: no process was there to check at the end; --pid, --match or --all select others\n");
    } else {
        let _ = writeln!(text, "{}: the worst of the above", report.worst().as_str());
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

fn told(finding: &Finding, wrap: Wrap) -> String {
    let mark = finding.severity.mark();
    let mut text = wrap.text(
        &format!("  {mark:<7}  "),
        &format!("{}: {}", finding.id, finding.summary),
        11,
    );
    let evidence: Vec<String> = finding.evidence.iter().map(ToString::to_string).collect();
    if !evidence.is_empty() {
        text.push_str(&wrap.text("           seen:    ", &evidence.join("; "), 20));
    }
    for line in &finding.advice {
        // A command is copied whole.
        let _ = writeln!(text, "           type:    {line}");
    }
    for line in &finding.hints {
        text.push_str(&wrap.text("           do:      ", line, 20));
    }
    text.push_str(&wrap.text("           unless:  ", &finding.unless, 20));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

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
