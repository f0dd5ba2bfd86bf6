//! One session's report as cells of the table: for each signal and kind of memory the rung, the truth, what was seen,
//! and how far apart they are.

use crate::compare::BESIDES;
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

/// Signed, of a value that may lie anywhere from `low` to `high`.
fn percent(seen: u64, low: u64, high: u64) -> f64 {
    let (seen, low, high) = (seen as f64, low as f64, high as f64);
    if seen < low {
        (seen - low) / low * 100.0
    } else if seen > high {
        // What should be nothing and isn't is wrong by all of it.
        (seen - high) / high.max(1.0) * 100.0
    } else {
        0.0
    }
}

/// The one that is farther from 0.
fn worse(one: f64, other: f64) -> f64 {
    if other.abs() > one.abs() { other } else { one }
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

/// Adds one process's pages, pair by pair; `other` are its pages of a kind that it has none of.
fn add_pages(cell: &mut Cell, truth: &[TouchPair], seen: &TouchCounter, other: Option<u64>) {
    cell.expected += truth.iter().map(|pair| pair.pages).sum::<u64>();
    let Some(pairs) = &seen.by_pair else {
        return;
    };
    let mut error = cell.error_percent.unwrap_or(0.0);
    let mut elsewhere: u64 = pairs.iter().map(|pair| pair.pages).sum();
    for want in truth {
        let got: u64 = pairs
            .iter()
            .filter(|pair| (pair.cpu_node, pair.memory_node) == (want.cpu_node, want.memory_node))
            .map(|pair| pair.pages)
            .sum();
        elsewhere -= got;
        *cell.seen.get_or_insert(0) += got;
        // Local pages can't be told from those that a process touches besides: its stack, its report.
        let besides = if want.cpu_node == want.memory_node {
            BESIDES
        } else {
            0
        };
        error = worse(error, percent(got, want.pages, want.pages + besides));
    }
    let strays = elsewhere.saturating_sub(BESIDES) + other.unwrap_or(0).saturating_sub(BESIDES);
    error = worse(error, strays as f64 / cell.expected as f64 * 100.0);
    cell.error_percent = Some(error);
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

/// Node by node, with what is on no node that it should be on as an error.
fn on_nodes(cell: &mut Cell, want: &ByNode, seen: Option<&ByNode>) {
    cell.expected = want.values().sum();
    let Some(seen) = seen else {
        return;
    };
    cell.seen = Some(seen.values().sum());
    let mut error = 0.0;
    for (node, pages) in want {
        let got = seen.get(node).copied().unwrap_or(0);
        error = worse(error, percent(got, *pages, *pages));
    }
    let strays: u64 = seen
        .iter()
        .filter(|(node, _)| !want.contains_key(node))
        .map(|(_, pages)| pages)
        .sum();
    error = worse(error, strays as f64 / cell.expected.max(1) as f64 * 100.0);
    cell.error_percent = Some(error);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn empty() -> Cell {
        Cell {
            signal: "first touch",
            kind: "anonymous 4 KiB".to_owned(),
            rung: Some(Mechanism::Fentry),
            expected: 0,
            seen: None,
            error_percent: None,
            limit_percent: 1.0,
            bounds_percent: 0.0,
        }
    }

    fn pair((cpu_node, memory_node, pages): (u32, u32, u64)) -> TouchPair {
        TouchPair {
            cpu_node,
            memory_node,
            pages,
        }
    }

    fn counter(pairs: &[(u32, u32, u64)]) -> TouchCounter {
        TouchCounter {
            by_pair: Some(pairs.iter().copied().map(pair).collect()),
            ..TouchCounter::default()
        }
    }

    #[test]
    fn pages_are_compared_pair_by_pair() {
        let want = [pair((1, 0, 1000))];
        for (what, seen, other, error) in [
            ("exact", counter(&[(1, 0, 1000)]), None, Some(0.0)),
            ("too few", counter(&[(1, 0, 990)]), None, Some(-1.0)),
            ("too many", counter(&[(1, 0, 1020)]), None, Some(2.0)),
            (
                "its own few",
                counter(&[(1, 0, 1000), (1, 1, 48)]),
                None,
                Some(0.0),
            ),
            ("a wrong pair", counter(&[(1, 1, 1000)]), None, Some(-100.0)),
            (
                "a pair besides",
                counter(&[(1, 0, 1000), (0, 0, 148)]),
                None,
                Some(10.0),
            ),
            (
                "the wrong kind too",
                counter(&[(1, 0, 1000)]),
                Some(1048),
                Some(100.0),
            ),
            ("nothing was said", TouchCounter::default(), None, None),
        ] {
            let mut cell = empty();
            add_pages(&mut cell, &want, &seen, other);
            assert_eq!(cell.error_percent, error, "{what}");
            assert_eq!(cell.expected, 1000, "{what}");
            assert_eq!(
                cell.holds(),
                error.is_some_and(|e| e.abs() <= 1.0),
                "{what}"
            );
        }
    }

    #[test]
    fn local_pages_may_be_some_more() {
        let mut cell = empty();
        add_pages(
            &mut cell,
            &[pair((0, 0, 1000))],
            &counter(&[(0, 0, 1000 + BESIDES)]),
            None,
        );
        assert_eq!(cell.error_percent, Some(0.0));
    }

    #[test]
    fn two_processes_have_the_worse_of_their_errors() {
        let mut cell = empty();
        let want = [pair((1, 0, 1000))];
        add_pages(&mut cell, &want, &counter(&[(1, 0, 950)]), None);
        add_pages(&mut cell, &want, &counter(&[(1, 0, 1010)]), None);
        assert_eq!((cell.expected, cell.seen), (2000, Some(1960)));
        assert_eq!(cell.error_percent, Some(-5.0));
    }

    #[test]
    fn pins_are_compared_node_by_node() {
        let want: ByNode = [(0, 1000)].into();
        for (seen, error) in [
            (Some([(0, 1000)].into()), Some(0.0)),
            (Some([(0, 500)].into()), Some(-50.0)),
            (Some([(0, 1000), (1, 20)].into()), Some(2.0)),
            (Some(ByNode::new()), Some(-100.0)),
            (None, None),
        ] {
            let mut cell = empty();
            on_nodes(&mut cell, &want, seen.as_ref());
            assert_eq!(cell.error_percent, error, "{seen:?}");
        }
    }

    #[test]
    fn what_lies_between_the_bounds_is_exact() {
        for (seen, low, high, error) in [
            (100, 100, 110, 0.0),
            (110, 100, 110, 0.0),
            (90, 100, 110, -10.0),
            (121, 100, 110, 10.0),
            (5, 0, 0, 500.0),
        ] {
            let off = percent(seen, low, high) - error;
            assert!(off.abs() < 1e-9, "{seen} in {low}..{high}: off by {off}");
        }
    }
}
