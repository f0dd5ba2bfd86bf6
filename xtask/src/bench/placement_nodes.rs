//! `bench placement` in the guest: how far off a sample of memory on two nodes is, beside `numastat -p` there.
//!
//! The guest's processors are emulated, so that what it costs there says nothing.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::figures::Spread;
use super::placement::{MOST_POINTS, off_by, read_numastat, read_refresh, sum_off_by};
use super::table::{Line, Unit};
use crate::command;

/// The guest's memory, GiB: for the largest case, and what is not evenly on both nodes.
pub(super) const GUEST_GIB: u64 = 16;

/// A process of `workload place`, with twice as much on node 0 as on node 1 where the case says so.
const CASES: &[(&str, &str)] = &[
    (
        "1 GiB of 4 KiB pages",
        "--part anon:0:174763 --part anon:1:87381",
    ),
    (
        "4 GiB of 4 KiB pages",
        "--part anon:0:699051 --part anon:1:349525",
    ),
    (
        "8 GiB of 4 KiB pages",
        "--part anon:0:1398101 --part anon:1:699051",
    ),
    (
        "4 GiB of huge pages",
        "--part thp:0:699392 --part thp:1:349184",
    ),
    (
        "512 MiB of a file in tmpfs",
        "--part file:0:87381 --part file:1:43691",
    ),
    (
        "512 MiB of each of four kinds",
        "--part anon:0:131072 --part thp:1:131072 --part file:0:131072 --part memfd:1:131072",
    ),
    ("20,000 mappings", "--mappings 20000"),
    (
        "64 MiB in 400 GiB reserved",
        "--reserve 400 --reserve-pages 16384",
    ),
];

/// Refreshes until a case is surveyed, and some more.
const REFRESHES: u32 = 1500;

/// What separates the cases in the guest's output.
const NEXT: &str = "next case";

/// Runs all cases in one boot.
pub(super) fn measure(numastat: &Path) -> Result<Vec<Line>> {
    let this = std::env::current_exe().context("where is this program?")?;
    let mut vm = Command::new(this);
    vm.args([
        "vm",
        "--timeout",
        "1500",
        "--memory",
        &format!("{GUEST_GIB}G"),
    ]);
    vm.arg("--add").arg(numastat);
    vm.args(["--", "sh", "-c", &script()]);
    let said = command::output(&mut vm)?;
    let mut answers = said.split(NEXT).skip(1);
    let mut lines = Vec::new();
    for (what, _) in CASES {
        let answer = answers.next().unwrap_or_default();
        let line = |text: &str| text.lines().find_map(read_refresh);
        let refresh = line(answer).with_context(|| format!("{what}: no refresh in {answer}"))?;
        let truth = read_numastat(answer).with_context(|| format!("{what}: no numastat -p"))?;
        anyhow::ensure!(
            refresh.coverage >= 1.0,
            "{what}: not surveyed within {REFRESHES}"
        );
        for (part, value, unit, target) in [
            (
                "a node's share, off by",
                off_by(&refresh.by_node, &truth),
                Unit::Points,
                Some(MOST_POINTS),
            ),
            (
                "the sum, off by",
                sum_off_by(&refresh.by_node, &truth),
                Unit::Share,
                None,
            ),
        ] {
            lines.push(Line {
                what: format!("on two nodes, {what}: {part}"),
                spread: Spread::of(&[value]).context("no figure")?,
                unit,
                target,
            });
        }
    }
    Ok(lines)
}

fn script() -> String {
    let case = |(_, arguments): &(&str, &str)| {
        format!(
            "echo '{NEXT}'
workload place --no-wait --hold 1200 --directory /tmp/files {arguments} > /tmp/placed &
pid=$!
until grep -q '\"done\":true' /tmp/placed; do kill -0 $pid || exit 1; sleep 0.2; done
numawatch refresh-placement --pid $pid --count {REFRESHES} | tail -n 1
numastat -p $pid || exit 1
kill $pid
wait $pid
"
        )
    };
    let cases: String = CASES.iter().map(case).collect();
    // The last process was ended by a signal.
    format!("mkdir -p /tmp/files\n{cases}exit 0\n")
}
