//! `bench placement`: what finding a process's memory costs and how far off it is, beside `numastat -p`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};

use super::figures::Spread;
use super::table::{self, Line, Unit};
use super::{build_workload, document, placement_nodes};
use crate::{apt, command, product, say, workspace};

/// One process's placement: CPU time of a refresh, how many it takes, and the error, beside numastat -p.
#[derive(clap::Args)]
#[command(after_help = "\
Prints a table and exits 1 where a target is missed; costs are of this machine, and how far off it is on two nodes is of a
guest of 16 GiB. Installs Debian's numactl where numastat is missing. Sizes for which
the machine has no memory are left out, and named.

Examples:
  cargo xtask bench placement
  cargo xtask bench placement --write-docs")]
pub(crate) struct Args {
    /// Refreshes of each process
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(10..=1000))]
    refreshes: u32,
    /// Write docs/placement.md
    #[arg(long)]
    write_docs: bool,
}

/// A process of `workload place`.
struct Case {
    what: &'static str,
    arguments: &'static str,
    /// Memory that it needs, MiB.
    needs: u64,
    /// Its memory is in 4 KiB pages, and the ratio is held to the target if it is the largest such.
    small_pages: bool,
}

const CASES: &[Case] = &[
    case("1 GiB of 4 KiB pages", "--part anon:0:262144", 1_024, true),
    case("4 GiB of 4 KiB pages", "--part anon:0:1048576", 4_096, true),
    case("8 GiB of 4 KiB pages", "--part anon:0:2097152", 8_192, true),
    case("4 GiB of huge pages", "--part thp:0:1048576", 4_096, false),
    case(
        "1 GiB of a mapped file",
        "--part file:0:262144",
        1_024,
        false,
    ),
    case(
        "1 GiB of each of four kinds",
        "--part anon:0:262144 --part thp:0:262144 --part file:0:262144 --part memfd:0:262144",
        4_096,
        false,
    ),
    case("20,000 mappings", "--mappings 20000", 100, false),
    case(
        "64 MiB in 400 GiB reserved",
        "--reserve 400 --reserve-pages 16384",
        100,
        false,
    ),
];

const fn case(what: &'static str, arguments: &'static str, needs: u64, small_pages: bool) -> Case {
    Case {
        what,
        arguments,
        needs,
        small_pages,
    }
}

/// Memory that others keep, MiB.
const SPARED: u64 = 2_048;

/// A refresh may take so much CPU time, milliseconds.
const MOST_MILLISECONDS: f64 = 5.0;

/// Of the CPU time of numastat -p, at the largest size of 4 KiB pages, in percent: a thirtieth.
const MOST_PERCENT: f64 = 100.0 / 30.0;

/// A node's share may be off by so many percentage points.
pub(super) const MOST_POINTS: f64 = 2.0;

/// Runs of numastat whose CPU time is taken together, as the kernel tells it in hundredths of a second.
const NUMASTATS: u32 = 10;

/// Measures; status 1 when a target is missed.
pub(crate) fn main(args: &Args) -> Result<ExitCode> {
    let numastat = numastat()?;
    let numawatch = product::build(true)?;
    let workload = build_workload()?;
    let (fitting, left_out): (Vec<&Case>, Vec<&Case>) = CASES
        .iter()
        .partition(|case| available_mib() >= case.needs + SPARED);
    for case in &left_out {
        say::note(&format!("left out, no memory for it: {}", case.what));
    }
    let largest = fitting
        .iter()
        .filter(|case| case.small_pages)
        .map(|c| c.needs)
        .max();
    let mut lines = Vec::new();
    for case in fitting {
        let is_largest = case.small_pages && Some(case.needs) == largest;
        say::step(case.what, || {
            let process = Placed::start(&workload, case)?;
            let refreshes = refresh(&numawatch, process.pid(), args.refreshes)?;
            let (cost, truth) = numastat_of(&numastat, process.pid())?;
            add(&mut lines, case.what, &refreshes, cost, &truth, is_largest)
        })?;
    }
    let mut left_out: Vec<&str> = left_out.iter().map(|case| case.what).collect();
    if available_mib() >= placement_nodes::GUEST_GIB * 1_024 + SPARED {
        lines.extend(say::step("In a guest of two nodes", || {
            placement_nodes::measure(&numastat)
        })?);
    } else {
        say::note("left out, no memory for it: the guest of two nodes");
        left_out.push("the guest of two nodes");
    }
    println!("{}", table::markdown(&lines));
    if args.write_docs {
        document::write_placement(&lines, &left_out)?;
    }
    let missed = lines.iter().any(|line| line.passes() == Some(false));
    Ok(ExitCode::from(u8::from(missed)))
}

/// One refresh.
#[derive(Debug, PartialEq)]
pub(super) struct Refresh {
    milliseconds: f64,
    pub(super) coverage: f64,
    pub(super) by_node: BTreeMap<u32, f64>,
}

fn add(
    lines: &mut Vec<Line>,
    what: &str,
    refreshes: &[Refresh],
    numastat_ms: f64,
    truth: &BTreeMap<u32, f64>,
    is_largest: bool,
) -> Result<()> {
    let whole = refreshes.iter().position(|r| r.coverage >= 1.0);
    let whole =
        whole.with_context(|| format!("{what}: not surveyed within {}", refreshes.len()))?;
    let costs = |some: &[Refresh]| some.iter().map(|r| r.milliseconds).collect::<Vec<f64>>();
    let (before, after) = refreshes.split_at(whole + 1);
    let last = after.last().context("no refresh after the survey")?;
    let later = costs(after);
    let ratios: Vec<f64> = later.iter().map(|ms| ms / numastat_ms * 100.0).collect();
    for (part, turns, unit, target) in [
        (
            "a refresh",
            later,
            Unit::Milliseconds,
            Some(MOST_MILLISECONDS),
        ),
        (
            "a refresh while it is surveyed",
            costs(before),
            Unit::Milliseconds,
            Some(MOST_MILLISECONDS),
        ),
        (
            "refreshes until it is surveyed",
            vec![before.len() as f64],
            Unit::Number,
            None,
        ),
        ("numastat -p", vec![numastat_ms], Unit::Milliseconds, None),
        (
            "a refresh, of numastat -p",
            ratios,
            Unit::Share,
            is_largest.then_some(MOST_PERCENT),
        ),
        (
            "a node's share, off by",
            vec![off_by(&last.by_node, truth)],
            Unit::Points,
            // One node has all of it whatever is found.
            (truth.len() > 1).then_some(MOST_POINTS),
        ),
        (
            "the sum, off by",
            vec![sum_off_by(&last.by_node, truth)],
            Unit::Share,
            None,
        ),
    ] {
        let spread = Spread::of(&turns).with_context(|| format!("{what}: no {part}"))?;
        lines.push(Line {
            what: format!("{what}: {part}"),
            spread,
            unit,
            target,
        });
    }
    Ok(())
}

/// The most by which a node's share differs, in percentage points.
pub(super) fn off_by(found: &BTreeMap<u32, f64>, truth: &BTreeMap<u32, f64>) -> f64 {
    let share = |of: &BTreeMap<u32, f64>, node: u32| {
        of.get(&node).unwrap_or(&0.0) * 100.0 / of.values().sum::<f64>().max(1.0)
    };
    let nodes = found.keys().chain(truth.keys());
    nodes
        .map(|node| (share(found, *node) - share(truth, *node)).abs())
        .fold(0.0, f64::max)
}

/// By how many percent the sums differ.
pub(super) fn sum_off_by(found: &BTreeMap<u32, f64>, truth: &BTreeMap<u32, f64>) -> f64 {
    let sum = |of: &BTreeMap<u32, f64>| of.values().sum::<f64>();
    (sum(found) - sum(truth)).abs() * 100.0 / sum(truth).max(1.0)
}

fn refresh(numawatch: &Path, pid: u32, count: u32) -> Result<Vec<Refresh>> {
    let mut command = Command::new(numawatch);
    command.args(["refresh-placement", "--pid", &pid.to_string()]);
    let said = command::output(command.args(["--count", &count.to_string()]))?;
    let read = |line: &str| read_refresh(line).with_context(|| format!("not understood: {line}"));
    said.lines().map(read).collect()
}

pub(super) fn read_refresh(line: &str) -> Option<Refresh> {
    let mut words = line.strip_prefix("refresh ")?.split(' ');
    let milliseconds = words.next()?.parse::<f64>().ok()? / 1e6;
    let coverage = words.next()?.parse().ok()?;
    let node = |word: &str| {
        let (node, bytes) = word.split_once('=')?;
        Some((node.parse().ok()?, bytes.parse().ok()?))
    };
    Some(Refresh {
        milliseconds,
        coverage,
        by_node: words.map(node).collect::<Option<_>>()?,
    })
}

/// CPU time of one numastat -p in milliseconds, and what it says by node, bytes.
fn numastat_of(numastat: &Path, pid: u32) -> Result<(f64, BTreeMap<u32, f64>)> {
    let before = childrens_cpu_ms()?;
    let mut said = String::new();
    for _ in 0..NUMASTATS {
        said = command::output(Command::new(numastat).args(["-p", &pid.to_string()]))?;
    }
    let each = (childrens_cpu_ms()? - before) / f64::from(NUMASTATS);
    let by_node = read_numastat(&said).with_context(|| format!("numastat -p said: {said}"))?;
    Ok((each, by_node))
}

/// The line of totals has a column a node, and their sum, in MiB.
pub(super) fn read_numastat(said: &str) -> Option<BTreeMap<u32, f64>> {
    let totals = said.lines().rfind(|line| line.starts_with("Total"))?;
    let numbers = totals.split_whitespace().skip(1).map(str::parse::<f64>);
    let mut numbers = numbers.collect::<Result<Vec<_>, _>>().ok()?;
    numbers.pop()?;
    let bytes = numbers.into_iter().map(|mib| mib * f64::from(1 << 20));
    Some((0..).zip(bytes).collect())
}

/// CPU time of children that have ended, as the kernel tells it: in hundredths of a second.
fn childrens_cpu_ms() -> Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat").context("cannot read /proc/self/stat")?;
    let fields = stat.rsplit_once(") ").map(|(_, rest)| rest);
    let fields: Vec<&str> = fields.unwrap_or_default().split(' ').collect();
    let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok();
    let sum = ticks(13).zip(ticks(14)).map(|(user, system)| user + system);
    Ok(sum.context("/proc/self/stat lacks fields")? * 10.0)
}

fn numastat() -> Result<PathBuf> {
    if let Some(there) = command::find("numastat") {
        return Ok(there);
    }
    let root = apt::provide(&["numactl"], "numastat")?;
    Ok(root.join("usr/bin/numastat"))
}

fn available_mib() -> u64 {
    let told = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = told
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) / 1_024
}

/// A running `workload place`, ended when dropped.
struct Placed(Child);

impl Placed {
    fn start(workload: &Path, case: &Case) -> Result<Self> {
        let mut command = Command::new(workload);
        command.args(["place", "--no-wait", "--hold", "600", "--directory"]);
        command.arg(workspace::target());
        command.args(case.arguments.split(' '));
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start workload")?;
        let mut placed = Self(child);
        let said = placed.0.stdout.take().context("workload has no stdout")?;
        for line in BufReader::new(said).lines() {
            if line.context("workload's stdout")?.contains("\"done\":true") {
                return Ok(placed);
            }
        }
        bail!("workload ended before its memory was there")
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refresh_is_read() {
        let refresh = Refresh {
            milliseconds: 1.5,
            coverage: 0.25,
            by_node: BTreeMap::from([(0, 4096.0), (8, 0.0)]),
        };
        assert_eq!(
            read_refresh("refresh 1500000 0.25 0=4096 8=0"),
            Some(refresh)
        );
        assert_eq!(read_refresh("refresh 1500000 0.25 0:4096"), None);
        assert_eq!(read_refresh("hello"), None);
    }

    #[test]
    fn numastats_totals_are_read_by_node() {
        let said = "\nPer-node process memory usage (in MBs) for PID 7 (x)\n\
             \x20                          Node 0          Node 1           Total\n\
             Private                     1.00            3.00            4.00\n\
             Total                       2.00            3.00            5.00\n";
        let want = BTreeMap::from([(0, 2_097_152.0), (1, 3_145_728.0)]);
        assert_eq!(read_numastat(said), Some(want));
        assert_eq!(read_numastat("nothing"), None);
    }

    #[test]
    #[allow(clippy::float_cmp, reason = "the expected values are exact in binary")]
    fn shares_and_sums_are_compared() {
        let found = BTreeMap::from([(0, 75.0), (1, 25.0)]);
        let truth = BTreeMap::from([(0, 50.0), (1, 50.0)]);
        assert_eq!(off_by(&found, &truth), 25.0);
        assert_eq!(sum_off_by(&found, &BTreeMap::from([(0, 200.0)])), 50.0);
    }
}
