//! `bench`: what watching costs, measured.

mod document;
mod figures;
mod gauge;
mod guest;
mod host;
mod placement;
mod placement_nodes;
mod table;
mod tracefs;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Subcommand;

use crate::{command, ebpf, product, say, workspace};
use host::Tools;

/// Measures what numawatch costs.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Probes(Probes),
    Placement(placement::Args),
}

/// Each program under its own load: nanoseconds above an empty program, beside bpftrace, and how much slower the load gets.
#[derive(clap::Args)]
#[command(after_help = "\
Prints a table and exits 1 where a target is missed. Needs root; installs Debian's bpftrace where it is
missing. Statistics (BPF_ENABLE_STATS) are on while a measurement runs and go with it. Programs that this
machine refuses are measured in the guest, as ratios to an empty program: emulated time means nothing.

Examples:
  cargo xtask bench probes
  cargo xtask bench probes --turns 9 --no-guest
  cargo xtask bench probes --write-docs")]
struct Probes {
    /// Turns of each measurement
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    turns: u32,
    /// Leave out what only the guest can run
    #[arg(long)]
    no_guest: bool,
    /// Write docs/cost.md
    #[arg(long, conflicts_with = "no_guest")]
    write_docs: bool,
}

/// Measures; status 1 when a target is missed.
pub(crate) fn main(args: &Args) -> Result<ExitCode> {
    match &args.what {
        What::Probes(args) => probes(args),
        What::Placement(args) => placement::main(args),
    }
}

fn probes(args: &Probes) -> Result<ExitCode> {
    if !command::is_root() {
        bail!("measuring loads eBPF programs: become root, then type this again");
    }
    let tools = tools()?;
    let _tracefs = tracefs::Tracefs::provide()?;
    let host = host::measure(&tools, args.turns)?;
    let guest = if args.no_guest {
        Vec::new()
    } else {
        guest::measure(&tools.empty, args.turns)?
    };
    println!("{}", table::markdown(&host));
    if !guest.is_empty() {
        println!("In the guest, times an empty program at the same place:\n");
        println!("{}", table::markdown(&guest));
    }
    if args.write_docs {
        document::write(&host, &guest, args.turns)?;
    }
    let missed = host
        .iter()
        .chain(&guest)
        .filter(|line| line.passes() == Some(false));
    Ok(ExitCode::from(u8::from(missed.count() > 0)))
}

fn tools() -> Result<Tools> {
    let empty = ebpf::build_empty()?;
    let numawatch = product::build(false)?;
    Ok(Tools {
        gauge: build_gauge()?,
        numawatch,
        empty,
        bpftrace: Tools::bpftrace()?,
    })
}

fn build_gauge() -> Result<PathBuf> {
    build_of_tests("gauge")
}

fn build_workload() -> Result<PathBuf> {
    build_of_tests("workload")
}

fn build_of_tests(name: &str) -> Result<PathBuf> {
    say::step(&format!("Building {name}"), || {
        let mut cargo = command::cargo();
        cargo.args(["build", "--quiet", "--package", "tests", "--bin", name]);
        command::run(&mut cargo)
    })?;
    Ok(workspace::target().join("debug").join(name))
}
