//! `numawatch refresh-placement`: refreshes one process's placement again and again, and tells what each cost; for
//! `cargo xtask bench placement`, which reads a line a refresh: `refresh NANOSECONDS COVERAGE NODE=BYTES …`.

use crate::cli::RefreshPlacement as Options;
use crate::host::root::Root;
use crate::sampler::placement::Refreshes;
use anyhow::{Context, Result};
use std::io::Write;
use std::process::ExitCode;

pub(super) fn run(options: &Options) -> Result<ExitCode> {
    let mut refreshes = Refreshes::of(&Root::system(), options.pid)?;
    let mut out = std::io::stdout().lock();
    for _ in 0..options.count {
        let (cpu_time_ns, placement) = refreshes.next();
        let reason = placement.reason.clone().unwrap_or_default();
        let by_node = placement.by_node_bytes.with_context(|| reason.clone())?;
        let coverage = placement.coverage.unwrap_or(0.0);
        write!(out, "refresh {cpu_time_ns} {coverage}")?;
        for (node, bytes) in by_node {
            write!(out, " {node}={bytes}")?;
        }
        writeln!(out)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
