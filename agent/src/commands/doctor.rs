//! `numawatch doctor`: what this host can measure, signal by signal, and why not; with `--self-test` also whether it does.

use super::terminal;
use crate::cli::Doctor as Options;
use crate::doctor::check::{Check, Outcome};
use crate::doctor::checks::checks;
use crate::doctor::facts::Facts;
use crate::doctor::text;
use crate::engines::selection::Selection;
use crate::host::process::own_pid;
use crate::host::root::Root;
use crate::logging;
use crate::sampler::{self, NumaMaps, Sampler};
use crate::wrap::Wrap;
use anyhow::Result;
use model::selftest;
use model::signal::{Signal, SignalName};
use model::thresholds::Thresholds;
use serde::Serialize;
use std::io::Write as _;
use std::process::ExitCode;

#[derive(Serialize)]
struct Report<'a> {
    schema_version: u32,
    checks: Vec<Check>,
    signals: &'a [Signal],
    self_test: Option<&'a selftest::Report>,
}

pub(super) fn run(options: &Options) -> Result<ExitCode> {
    logging::to_stderr();
    let root = Root::system();
    let mut facts = Facts::of_host(&root, &options.probes.btf)?;
    // Nobody is watched: the probes are attached, and leave with this process.
    let started = Sampler::start(sampler::Options {
        root: root.clone(),
        selection: Selection::new(vec![own_pid(&root)], None, false)?,
        attach: options.probes.options()?,
        keep_ended: false,
        numa_maps: NumaMaps::Unread,
        thresholds: Thresholds::default(),
        self_test: options.self_test,
        nvml: None,
    });
    match started {
        Ok(mut sampler) => {
            let host = sampler.tick()?.host;
            facts.signals = sampler.signals();
            facts.refused = sampler.refused().map(|refused| {
                let more = refused.would_help.map(|more| format!("; {more}"));
                format!("{}{}", refused.why, more.unwrap_or_default())
            });
            facts.self_test = sampler.self_test().cloned();
            if facts.refused.is_none() {
                facts.map_bytes = host.agent.kernel_memory_bytes;
            }
            facts.maps = host.maps;
            facts.lost = host.lost;
        }
        Err(error) => {
            let reason = format!("{error:#}");
            let unavailable = |name| Signal::unavailable(name, reason.clone());
            facts.signals = SignalName::ALL.into_iter().map(unavailable).collect();
            facts.refused = Some(reason);
        }
    }
    let checks = checks(&facts);
    let failed = checks.iter().any(|c| c.outcome == Outcome::Fail);
    print(options.json, checks, &facts)?;
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn print(json: bool, checks: Vec<Check>, facts: &Facts) -> Result<()> {
    let mut out = std::io::stdout().lock();
    if json {
        let report = Report {
            schema_version: 1,
            checks,
            signals: &facts.signals,
            self_test: facts.self_test.as_ref(),
        };
        serde_json::to_writer_pretty(&mut out, &report).map_err(std::io::Error::from)?;
        writeln!(out)?;
        return Ok(());
    }
    let wrap = Wrap::of(terminal::columns(&out));
    let mut text = text::checks(&checks, wrap);
    if let Some(report) = &facts.self_test {
        text.push('\n');
        text.push_str(&text::self_test(report, wrap));
    }
    out.write_all(text.as_bytes())?;
    Ok(())
}
