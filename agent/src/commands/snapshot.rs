//! `numawatch snapshot`: watches for a while, then prints one table or one JSON document.

use super::{Stop, announce, runtime, sampler, table};
use crate::cli::Snapshot as Options;
use crate::logging;
use crate::sampler::Sampler;
use anyhow::{Context, Result};
use model::snapshot::Snapshot;
use std::io::Write;
use std::process::ExitCode;
use tokio::time::{Instant, sleep_until};

pub(super) fn run(options: &Options) -> Result<ExitCode> {
    logging::to_stderr();
    let mut sampler = sampler(&options.watch, true)?;
    let snapshot = runtime()?.block_on(watch(&mut sampler, options))?;
    let mut out = std::io::stdout().lock();
    if options.json {
        serde_json::to_writer_pretty(&mut out, &snapshot).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        out.write_all(table::processes(&snapshot, &options.watch.words()).as_bytes())?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Ticks until the time is over or a signal comes; the ticks in between follow processes that come and go.
async fn watch(sampler: &mut Sampler, options: &Options) -> Result<Snapshot> {
    let mut stop = Stop::new()?;
    // Whoever waits for this line may signal at once.
    announce(sampler);
    let began = Instant::now();
    let end = began
        .checked_add(options.span)
        .context("--for is too long")?;
    loop {
        sampler.tick()?;
        let next = (Instant::now() + options.watch.interval).min(end);
        let stopped = tokio::select! {
            () = sleep_until(next) => false,
            () = stop.asked() => true,
        };
        if stopped || Instant::now() >= end {
            return sampler.finish();
        }
    }
}
