//! `numawatch snapshot`: watches for a while, then prints one table or one JSON document.

use super::{runtime, span, table, terminal};
use crate::cli::Snapshot as Options;
use crate::logging;
use crate::sampler::{self, NumaMaps};
use anyhow::Result;
use std::io::Write;
use std::process::ExitCode;

pub(super) fn run(options: &Options) -> Result<ExitCode> {
    logging::to_stderr();
    let numa_maps = if options.exact {
        NumaMaps::Placement
    } else {
        NumaMaps::Unread
    };
    let mut sampler = sampler::start(sampler::Options {
        numa_maps,
        ..super::options(&options.watch, true)?
    })?;
    let watched = span::watch(&mut sampler, options.span, options.watch.interval);
    let snapshot = runtime()?.block_on(watched)?.last;
    let mut out = std::io::stdout().lock();
    if options.json {
        serde_json::to_writer_pretty(&mut out, &snapshot).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        let room = terminal::columns(&out);
        out.write_all(table::processes(&snapshot, &options.watch.words(), room).as_bytes())?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
