//! The subcommands, one file each, thin: they ask the sampler and show what it says.

mod agent;
mod check;
mod columns;
mod completions;
mod doctor;
mod launch;
mod placement;
mod snapshot;
mod span;
mod table;
mod terminal;
mod thresholds;
mod topo;
mod tui;

use crate::cli::{Cli, Command, Watch};
use crate::host::root::Root;
use crate::logging;
use crate::sampler::{self, NumaMaps, Refused, Sampler};
use crate::selftest;
use anyhow::{Context, Result};
use std::process::ExitCode;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Runs one subcommand; the exit code says whether a check failed.
///
/// # Errors
/// In one line, why it can't be done.
pub(crate) fn run(cli: Cli) -> Result<ExitCode> {
    match cli.command {
        Command::Tui(options) => tui::run(&options),
        Command::Snapshot(options) => snapshot::run(&options),
        Command::Agent(options) => agent::run(&options),
        Command::Check(options) => check::run(&options),
        Command::Doctor(options) => doctor::run(&options),
        Command::Topo(options) => topo::run(&options),
        Command::Launch(options) => launch::run(&options),
        Command::SelfTestEvents => selftest::child::run().map(|()| ExitCode::SUCCESS),
        Command::RefreshPlacement(options) => placement::run(&options),
        Command::Completions { shell } => completions::run(shell),
    }
}

/// Attaches the probes and begins to watch.
fn sampler(watch: &Watch, keep_ended: bool) -> Result<Sampler> {
    sampler::start(options(watch, keep_ended)?)
}

/// What every command that watches asks for.
fn options(watch: &Watch, keep_ended: bool) -> Result<sampler::Options> {
    Ok(sampler::Options {
        root: Root::system(),
        selection: watch.selection()?,
        attach: watch.probes.options()?,
        keep_ended,
        self_test: watch.self_test,
        nvml: watch.nvml.path.clone(),
        numa_maps: NumaMaps::Unread,
        thresholds: thresholds::thresholds(&watch.thresholds)?,
    })
}

/// Says on stderr what somebody who may not load eBPF misses; nothing to others.
fn say_what_is_missing(sampler: &Sampler) {
    let Some(Refused { why, would_help }) = sampler.refused() else {
        return;
    };
    let signals = sampler.signals();
    let live = signals.iter().filter(|signal| signal.is_live());
    let live: Vec<&str> = live.map(|signal| signal.name.as_str()).collect();
    let told = if live.is_empty() {
        "no signal".to_owned()
    } else {
        format!("{} by procfs only", live.join(", "))
    };
    let more = would_help.map_or_else(String::new, |more| format!("; {more}"));
    logging::say(&format!("{told} ({why}){more}"));
}

/// Says on stderr what is missing, and that watching has begun, so that whoever waits for it can go on.
fn announce(sampler: &Sampler) {
    say_what_is_missing(sampler);
    let n = sampler.watching();
    let processes = if n == 1 { "process" } else { "processes" };
    logging::say(&format!("watching {n} {processes}"));
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the event loop")
}

/// SIGINT, SIGTERM or SIGHUP: a request to end in good order.
struct Stop {
    signals: [Signal; 3],
}

impl Stop {
    fn new() -> Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self {
            signals: [
                listen(SignalKind::interrupt())?,
                listen(SignalKind::terminate())?,
                listen(SignalKind::hangup())?,
            ],
        })
    }

    async fn asked(&mut self) {
        let [a, b, c] = &mut self.signals;
        tokio::select! {
            _ = a.recv() => {}
            _ = b.recv() => {}
            _ = c.recv() => {}
        }
    }
}
