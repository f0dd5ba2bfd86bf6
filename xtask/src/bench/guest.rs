//! In the guest: programs that this machine refuses, as ratios to an empty program of the same type at the same place.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::figures::{self, Spread};
use super::gauge;
use super::table::{Line, Unit};
use crate::{say, workspace};

/// A load in the guest, and the programs that it runs.
struct Experiment {
    what: &'static str,
    /// Run once a turn.
    load: &'static str,
    mechanisms: &'static [&'static str],
    /// numawatch's program, and the place of its empty one.
    programs: &'static [(&'static str, &'static str)],
}

const TOUCH: &str = "workload touch --pages 8192 --cpu-node 1 --memory-node 0 --no-wait --hold 0";
const MAP: &str = "workload touch --kind memfd --pages 8192 --no-wait --hold 0";
const BALANCE: &str =
    "workload touch --pages 16384 --cpu-node 1 --memory-node 0 --again 4 --no-wait --hold 0";

/// On the default kernel, 6.12.
const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        what: "first touch",
        load: TOUCH,
        mechanisms: &["first_touch=fentry"],
        programs: &[("touch_anon", "fentry:folio_add_new_anon_rmap")],
    },
    Experiment {
        what: "first touch",
        load: TOUCH,
        mechanisms: &["first_touch=kprobe"],
        programs: &[("kprobe_touch_anon", "kprobe:folio_add_new_anon_rmap")],
    },
    Experiment {
        what: "map",
        load: MAP,
        mechanisms: &["map=fentry"],
        programs: &[("map_file_ptes", "fentry:folio_add_file_rmap_ptes")],
    },
    Experiment {
        what: "balancing",
        load: BALANCE,
        mechanisms: &[],
        programs: &[
            ("hint_fault", "fentry:task_numa_fault"),
            ("hint_check", "fentry:numa_migrate_check"),
            ("scan_enter", "fentry:task_numa_work"),
            ("scan_leave", "fexit:task_numa_work"),
        ],
    },
    Experiment {
        what: "balancing",
        load: BALANCE,
        mechanisms: &["hint=kprobe", "migration=kprobe", "scan=kprobe"],
        programs: &[
            ("kprobe_hint_fault", "kprobe:task_numa_fault"),
            ("kprobe_hint_check", "kprobe:numa_migrate_check"),
            ("kprobe_scan_enter", "kprobe:task_numa_work"),
            ("kretprobe_scan_leave", "kretprobe:task_numa_work"),
        ],
    },
];

/// Takes all figures of the guest, one boot each.
pub(crate) fn measure(empty: &Path, turns: u32) -> Result<Vec<Line>> {
    // A folder for the guest's disk.
    let disk = workspace::target().join("bench-disk");
    fs::create_dir_all(&disk).with_context(|| format!("cannot create {}", disk.display()))?;
    fs::copy(empty, disk.join("empty")).context("cannot copy the empty programs")?;
    let mut lines = Vec::new();
    for (number, experiment) in EXPERIMENTS.iter().enumerate() {
        let what = format!("In the guest: {}", experiment.what);
        // The first boot builds what it needs.
        lines.extend(say::step(&what, || {
            one(experiment, &disk, turns, number > 0)
        })?);
    }
    Ok(lines)
}

fn one(experiment: &Experiment, disk: &Path, turns: u32, built: bool) -> Result<Vec<Line>> {
    let this = std::env::current_exe().context("where is this program?")?;
    let mut vm = Command::new(this);
    vm.args(["vm", "--timeout", "900", "--disk"]).arg(disk);
    if built {
        vm.arg("--no-build");
    }
    vm.args(["--", "gauge", "measure", "--statistics", "--warm-up", "0"]);
    vm.args(["--turns", &turns.to_string()]);
    vm.args(["--run", experiment.load]);
    vm.args(["--numawatch", "numawatch", "--watch", "all"]);
    for mechanism in experiment.mechanisms {
        vm.args(["--mechanism", mechanism]);
    }
    vm.args(["--object", "/disk/empty"]);
    for (_, place) in experiment.programs {
        vm.args(["--empty", place]);
    }
    let measured = gauge::run(&mut vm)?;
    let mut lines = Vec::new();
    for (name, place) in experiment.programs {
        let own: Vec<f64> = each(measured.program("numawatch", name)?);
        let empty: Vec<f64> = each(measured.program("empty", place)?);
        let ratios = figures::ratios(&own, &empty);
        let spread = Spread::of(&ratios)
            .with_context(|| format!("{name} did not run under {}", experiment.load))?;
        lines.push(Line {
            what: format!("{}: {name} ({place})", experiment.what),
            spread,
            unit: Unit::Times,
            target: None,
        });
    }
    Ok(lines)
}

fn each(turns: &[figures::Runs]) -> Vec<f64> {
    turns.iter().filter_map(|runs| runs.each()).collect()
}
