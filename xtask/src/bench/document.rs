//! `docs/cost.md` and `docs/placement.md`: the tables, what their lines mean, on which machine, and how to take them again.

use std::fs;

use anyhow::{Context, Result};

use super::table::{self, Line};
use crate::{say, workspace};

/// Writes it.
pub(crate) fn write(host: &[Line], guest: &[Line], turns: u32) -> Result<()> {
    let file = workspace::root().join("docs/cost.md");
    fs::write(&file, text(host, guest, turns, &machine()))
        .with_context(|| format!("cannot write {}", file.display()))?;
    say::note(&format!("{} is written", file.display()));
    Ok(())
}

fn text(host: &[Line], guest: &[Line], turns: u32, machine: &str) -> String {
    let (host, guest) = (table::markdown(host), table::markdown(guest));
    format!(
        "\
# What watching costs

Taken by `cargo xtask bench probes --write-docs`, which writes this file; take it again on your own machine with
`cargo xtask bench probes`, which prints the same tables and exits 1 where a target is missed. It needs root, and Debian's
`bpftrace`, which it installs.

{turns} turns, {machine}.

## On this machine

{host}
- **Nanoseconds of a program** are `run_time_ns / run_cnt` from the kernel's own statistics, less what an empty program of the
  same type reads at the same place in the same turn: that much is the statistics' own cost.
- **bpftrace** counts the same beside it in the same turns (`xtask/src/bench/*.bt`), less an empty program at the classic
  tracepoint. The two counts must agree within 1 %, else there is no table. It counts no nodes and no moves, which numawatch
  does; its figures are what the same question costs without numawatch. Its script for a first touch keeps a thread's state
  up at each fault and system call; numawatch asks the thread instead, and looks nothing up at a fault that cannot be a copy.
- **Watched** means that numawatch counts for the load's processes; **not watched** that it watches another process, and the
  load only passes by.
- **A first touch** passes through three programs of the tracepoint rung, which is what a host without fentry stands on.
- **Slower** is CPU time of the load without any statistics, over three times as many turns: of the ping-pong against the turns
  of the same two processes just before and just after it, without numawatch (an empty program at sched_switch is what any program there costs); of the fault loop against a turn of the same
  round with empty programs at the same places. The ping-pong is two processes and two pipes on one
  CPU, under all that numawatch attaches on a host without fentry.

## In the guest

fentry and kprobe programs, which this machine refuses. Time of an emulated machine means nothing: these are times what an
empty program of the same type reads at the same place, with the statistics' own cost on both sides.

{guest}"
    )
}

/// Writes `docs/placement.md`.
pub(crate) fn write_placement(lines: &[Line], left_out: &[&str]) -> Result<()> {
    let file = workspace::root().join("docs/placement.md");
    fs::write(&file, placement_text(lines, left_out, &machine()))
        .with_context(|| format!("cannot write {}", file.display()))?;
    say::note(&format!("{} is written", file.display()));
    Ok(())
}

fn placement_text(lines: &[Line], left_out: &[&str], machine: &str) -> String {
    let table = table::markdown(lines);
    let left_out = if left_out.is_empty() {
        String::new()
    } else {
        format!(
            "Left out, as this machine had no memory for them: {}.\n\n",
            left_out.join(", ")
        )
    };
    format!(
        "\
# What finding memory costs

Taken by `cargo xtask bench placement --write-docs`, which writes this file; take it again on your own machine with
`cargo xtask bench placement`, which prints the same table and exits 1 where a target is missed. It installs Debian's
`numactl`, for `numastat`, where that is missing.

{machine}. How it works is in [probes.md](probes.md#placement-where-resident-pages-lie).

{table}
{left_out}- **A refresh** is CPU time of finding one process's placement once, `CLOCK_THREAD_CPUTIME_ID`, after its survey is complete.
- **While it is surveyed**: slices of the pass over its addresses are in it.
- **numastat -p** is its CPU time, the kernel's part included: it reads `numa_maps`, and so does `snapshot --exact`.
- **A node's share, off by**: percentage points, against `numastat -p`. A machine of one node has all of it there whatever is
  found; **on two nodes** is a guest of 16 GiB whose processors are emulated: its memory is as real as any, its costs are not
  taken. That the bound of 2 points and the 95 % interval hold is a test over 1,000 seeded runs with made-up nodes
  (`model/src/sampled.rs`), and two kernels are compared with `numa_maps` (`tests/tests/guest/placement.rs`).
"
    )
}

/// The kernel and the processor, as the machine calls them.
fn machine() -> String {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let release = read("/proc/sys/kernel/osrelease");
    // What follows the number is the packager's.
    let release = release.trim().split('-').next().unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("an unnamed processor", |(_, model)| model.trim());
    let cpus = cpuinfo
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count();
    format!("Linux {release}, {cpus} CPUs, {model}")
}
