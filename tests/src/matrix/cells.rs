//! One session's report as cells of the table: for each signal and kind of memory the rung, the truth, what was seen,
//! and how far apart they are.

use super::errors::{add_pages, on_nodes, percent, worse};
use crate::session::{Report, WorkloadReport};
use crate::truth::ProcessTruth;
use model::process::{ByNode, Process, TouchCounter, TouchPair};
use model::signal::{Mechanism, SignalName};
use model::snapshot::Snapshot;

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The signal, and which of its numbers where it has several.
    pub signal: &'static str,
    /// The kind of memory or work.
    pub kind: String,
    /// The rung that the signal stood on; `None` where it stood on none.
    pub rung: Option<Mechanism>,
    /// The truth.
    pub expected: u64,
    /// What numawatch said; `None` where it said nothing.
    pub seen: Option<u64>,
    /// The error, signed, in percent of the truth; of several nodes or processes the worst. `None` where nothing was seen.
    pub error_percent: Option<f64>,
    /// The most that it may be.
    pub limit_percent: f64,
    /// How far apart the bounds are that the truth is known by, in percent; 0 where it is known.
    pub bounds_percent: f64,
}

impl Cell {
    /// Whether the error is within the limit, and the truth known as well as that.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.bounds_percent <= self.limit_percent
            && self
                .error_percent
                .is_some_and(|error| error.abs() <= self.limit_percent)
    }
}

/// The signals' rows, in the table's order, with the most that each may be off, in percent.
pub const LIMITS: [(&str, SignalName, f64); 11] = [
    ("first touch", SignalName::FirstTouch, 1.0),
    ("swap-in", SignalName::FirstTouch, 1.0),
    ("map", SignalName::Map, 1.0),
    ("hint faults", SignalName::Hint, 1.0),
    ("hint faults, local", SignalName::Hint, 1.0),
    ("migrated pages", SignalName::Migration, 1.0),
    ("moves", SignalName::Sched, 1.0),
    ("CPU time", SignalName::Sched, 2.0),
    ("pins made", SignalName::Pin, 1.0),
    ("driver's pages", SignalName::DriverAlloc, 2.0),
    ("locked bytes", SignalName::Placement, 0.0),
];

/// The cells of a session; none for what its workloads gave no truth for.
///
/// # Panics
/// When there is no snapshot, or a process is not in it.
#[must_use]
pub fn cells(report: &Report) -> Vec<Cell> {
    let snapshot = report.snapshot();
    let mut out = Vec::new();
    for (kind, workload) in &report.workloads {
        out.extend(of_workload(kind, workload, report, &snapshot));
    }
    if report.session == super::sessions::BALANCING.name {
        out.extend(of_machine(report, &snapshot));
    }
    out
}

/// A cell without a truth or a sight yet.
fn cell(signal: &'static str, kind: &str, snapshot: &Snapshot) -> Cell {
    let (_, name, limit) = LIMITS
        .into_iter()
        .find(|(row, _, _)| *row == signal)
        .unwrap_or_else(|| panic!("no row {signal}"));
    // Locked bytes are no signal's: they come from the process's status.
    let rung = if signal == "locked bytes" {
        Some(Mechanism::Procfs)
    } else {
        snapshot.signal(name).and_then(|signal| signal.mechanism)
    };
    Cell {
        signal,
        kind: kind.to_owned(),
        rung,
        expected: 0,
        seen: None,
        error_percent: None,
        limit_percent: limit,
        bounds_percent: 0.0,
    }
}

fn of_workload(
    kind: &str,
    workload: &WorkloadReport,
    report: &Report,
    snapshot: &Snapshot,
) -> Vec<Cell> {
    let mut out = Vec::new();
    let with_process: Vec<(&ProcessTruth, Process)> = workload
        .truth
        .processes
        .iter()
        .map(|truth| (truth, report.process(truth.pid)))
        .collect();
    let mut pages = |signal,
                     truth: &dyn Fn(&ProcessTruth) -> Vec<TouchPair>,
                     seen: &dyn Fn(&Process) -> TouchCounter,
                     other: &dyn Fn(&Process) -> TouchCounter| {
        let mut cell = cell(signal, kind, snapshot);
        for (truth, process) in with_process.iter().map(|(t, process)| (truth(t), process)) {
            if truth.is_empty() {
                continue;
            }
            // A process that only maps makes no first touches, and the other way round.
            let alone = workload.truth.processes.len() == 1
                && (workload.truth.processes[0].first_touch.is_empty()
                    || workload.truth.processes[0].map.is_empty());
            let other = if alone { other(process).pages } else { None };
            add_pages(&mut cell, &truth, &seen(process), other);
        }
        if cell.expected > 0 {
            out.push(cell);
        }
    };
    let first = |process: &Process| process.touches.first_touch.clone();
    let map = |process: &Process| process.touches.map.clone();
    // Swap's own pages were touched before, on purpose to be sent away: their row is the other one.
    if report.session != super::sessions::BALANCING.name {
        pages(
            "first touch",
            &|truth| truth.first_touch.clone(),
            &first,
            &map,
        );
        pages("map", &|truth| truth.map.clone(), &map, &first);
    }
    for (truth, process) in &with_process {
        out.extend(swapped_in(kind, truth, process, snapshot));
        out.extend(moved(kind, truth, process, snapshot));
        out.extend(computed(kind, truth, process, report, snapshot));
        out.extend(pinned(kind, truth, process, snapshot));
        out.extend(allocated(kind, truth, process, snapshot));
        if truth.locked_bytes_now > 0 {
            let mut cell = cell("locked bytes", kind, snapshot);
            cell.expected = truth.locked_bytes_now;
            cell.seen = process.pinned.locked_bytes;
            cell.error_percent = cell
                .seen
                .map(|seen| percent(seen, cell.expected, cell.expected));
            out.push(cell);
        }
    }
    out
}

fn swapped_in(
    kind: &str,
    truth: &ProcessTruth,
    process: &Process,
    snapshot: &Snapshot,
) -> Option<Cell> {
    let mut cell = cell("swap-in", kind, snapshot);
    cell.expected = truth.swap_in_pages;
    cell.seen = process.touches.swap_in_pages;
    cell.error_percent = cell
        .seen
        .map(|seen| percent(seen, cell.expected, cell.expected));
    (cell.expected > 0).then_some(cell)
}

fn moved(kind: &str, truth: &ProcessTruth, process: &Process, snapshot: &Snapshot) -> Option<Cell> {
    let mut cell = cell("moves", kind, snapshot);
    cell.expected = truth.moves.iter().map(|pair| pair.count).sum();
    if let Some(pairs) = &process.moves.by_pair {
        cell.seen = process.moves.total;
        let mut error = 0.0;
        for want in &truth.moves {
            let got = pairs
                .iter()
                .find(|pair| (pair.from, pair.to) == (want.from, want.to))
                .map_or(0, |pair| pair.count);
            // A thread may be placed on a node first that it never runs on again.
            error = worse(error, percent(got, want.count, want.count + 1));
        }
        cell.error_percent = Some(error);
    }
    (cell.expected > 0).then_some(cell)
}

/// The threads that did nothing but compute, each by its own clock.
fn computed(
    kind: &str,
    truth: &ProcessTruth,
    process: &Process,
    report: &Report,
    snapshot: &Snapshot,
) -> Option<Cell> {
    if report.session != super::sessions::KINDS.name {
        return None;
    }
    let mut cell = cell("CPU time", kind, snapshot);
    for thread in truth
        .threads
        .iter()
        .filter(|thread| thread.name.starts_with("spin-"))
    {
        let seen = process
            .threads
            .iter()
            .find(|seen| seen.tid == thread.tid)
            .and_then(|seen| seen.cpu_time_ns_by_node.as_ref());
        for (node, ns) in &thread.cpu_time_ns_by_node {
            cell.expected += ns;
            if let Some(seen) = seen {
                let got = seen.get(node).copied().unwrap_or(0);
                *cell.seen.get_or_insert(0) += got;
                let error = percent(got, *ns, *ns);
                cell.error_percent = Some(worse(cell.error_percent.unwrap_or(0.0), error));
            }
        }
    }
    (cell.expected > 0).then_some(cell)
}

fn by_node(pairs: &[TouchPair]) -> ByNode {
    let mut by_node = ByNode::new();
    for pair in pairs {
        *by_node.entry(pair.memory_node).or_default() += pair.pages;
    }
    by_node
}

fn pinned(
    kind: &str,
    truth: &ProcessTruth,
    process: &Process,
    snapshot: &Snapshot,
) -> Option<Cell> {
    let mut cell = cell("pins made", kind, snapshot);
    let seen = process.pinned.made.by_node.as_ref();
    on_nodes(&mut cell, &by_node(&truth.pinned), seen);
    (cell.expected > 0).then_some(cell)
}

fn allocated(
    kind: &str,
    truth: &ProcessTruth,
    process: &Process,
    snapshot: &Snapshot,
) -> Option<Cell> {
    let mut cell = cell("driver's pages", kind, snapshot);
    let seen = process.driver_allocated_pages.by_node.as_ref();
    on_nodes(&mut cell, &by_node(&truth.driver_allocated), seen);
    (cell.expected > 0).then_some(cell)
}

/// Events of the whole machine that are a test of anything: some go on whatever a workload does.
const ENOUGH: u64 = 2000;

/// The machine's own counters beside those of all processes together.
fn of_machine(report: &Report, snapshot: &Snapshot) -> Vec<Cell> {
    type Count = fn(&Process) -> Option<u64>;
    let counters: [(&str, &str, Count); 3] = [
        ("hint faults", "numa_hint_faults", |process| {
            process.touches.hint.faults
        }),
        ("hint faults, local", "numa_hint_faults_local", |process| {
            process.touches.hint.local_faults
        }),
        ("migrated pages", "numa_pages_migrated", |process| {
            process.migrations.pages
        }),
    ];
    let of_counter = |(signal, name, count): (&'static str, &str, Count)| {
        let mut cell = cell(signal, "all processes, 4 KiB and THP", snapshot);
        cell.expected = report.vmstat.get(name).copied()?;
        let at_most = report.vmstat_at_most.get(name).copied()?;
        cell.seen = snapshot.processes.iter().map(count).sum::<Option<u64>>();
        // The kernel goes on while numawatch starts and prints: what it counted lies in between.
        cell.error_percent = cell.seen.map(|seen| percent(seen, cell.expected, at_most));
        cell.bounds_percent = percent(at_most, cell.expected, cell.expected);
        (cell.expected >= ENOUGH).then_some(cell)
    };
    counters.into_iter().filter_map(of_counter).collect()
}
