//! The self-test's judgement: events that were made on purpose beside what the live probes saw of them.
//!
//! Whoever makes the events tells the [`Truth`]: where each page lies is `move_pages`' own answer, where a thread ran is
//! `getcpu`'s, CPU time is the thread's own clock's. [`judge`] compares.

use crate::process::{ByNode, Migrations, Moves, Touches};
use crate::signal::{Mechanism, Signal, SignalName, SignalState};
use crate::topology::NodeId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What may be missing or too much of pages that were touched, mapped or pinned, per cent.
pub const PAGES_PERCENT: u64 = 1;
/// Pages that the process may touch beside those that it was told to: its stack, its heap.
pub const PAGES_BESIDE: u64 = 32;
/// And pages of files that the kernel maps around each fault on the program's own code.
pub const MAP_PAGES_BESIDE: u64 = 128;
/// Moves that may be missing or too many: the first placement of a thread is not always seen.
pub const MOVES_BESIDE: u64 = 2;
/// What may be missing or too much of CPU time, per cent.
pub const CPU_PERCENT: u64 = 2;
/// And nanoseconds beside: the clock is read a little before the thread leaves its CPU.
pub const CPU_BESIDE_NS: u64 = 10_000_000;
/// Hint faults and migrations may be more than the pages that were seen to arrive, per cent: some are touched twice.
pub const BALANCING_PERCENT_MORE: u64 = 50;
/// And pages beside: the process's own code and heap are scanned too.
pub const BALANCING_PAGES_BESIDE: u64 = 1_024;

/// Counts by (from, to): (CPU node, memory node) of touches, (node before, node now) of moves and migrations.
pub type Pairs = Vec<Pair>;

/// One count of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// Node of the CPU, or the node before.
    pub from: NodeId,
    /// Node of the memory, or the node now.
    pub to: NodeId,
    /// Pages of 4 KiB, or moves.
    pub count: u64,
}

/// What was done, by whoever did it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truth {
    /// On-CPU nanoseconds by node.
    pub cpu_time_ns_by_node: ByNode,
    /// Nanoseconds of these during which the thread was under way from one node to another.
    pub under_way_ns: u64,
    /// Moves.
    pub moves: Pairs,
    /// Pages that were allocated by a touch.
    pub first_touch: Pairs,
    /// Pages of shared memory that a touch brought into being.
    pub map_new: Pairs,
    /// Pages of shared memory that were there already, and were mapped by a touch.
    pub map_old: Pairs,
    /// Pages that were pinned, by node.
    pub pinned_pages: ByNode,
    /// Bytes that became resident and stayed, by node.
    pub resident_bytes: ByNode,
    /// Pages that NUMA balancing brought from one node to another.
    pub migrated: Pairs,
    /// The largest resident set of the process that did it, bytes.
    pub memory_bytes: Option<u64>,
    /// Kinds of events that could not be made, and why.
    pub not_made: BTreeMap<SignalName, String>,
}

impl Truth {
    /// Takes over what another process did.
    pub fn add(&mut self, other: Self) {
        for (mine, theirs) in [
            (&mut self.cpu_time_ns_by_node, other.cpu_time_ns_by_node),
            (&mut self.pinned_pages, other.pinned_pages),
            (&mut self.resident_bytes, other.resident_bytes),
        ] {
            for (node, n) in theirs {
                *mine.entry(node).or_default() += n;
            }
        }
        for (mine, theirs) in [
            (&mut self.moves, other.moves),
            (&mut self.first_touch, other.first_touch),
            (&mut self.map_new, other.map_new),
            (&mut self.map_old, other.map_old),
            (&mut self.migrated, other.migrated),
        ] {
            for pair in theirs {
                count(mine, pair.from, pair.to, pair.count);
            }
        }
        self.under_way_ns += other.under_way_ns;
        self.memory_bytes = self.memory_bytes.max(other.memory_bytes);
        self.not_made.extend(other.not_made);
    }
}

/// Adds to a pair.
pub fn count(pairs: &mut Pairs, from: NodeId, to: NodeId, count: u64) {
    match pairs.iter_mut().find(|p| (p.from, p.to) == (from, to)) {
        Some(pair) => pair.count += count,
        None => pairs.push(Pair { from, to, count }),
    }
}

/// What the probes saw of the same processes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// On-CPU nanoseconds by node.
    pub cpu_time_ns_by_node: Option<ByNode>,
    /// Moves.
    pub moves: Moves,
    /// Touches.
    pub touches: Touches,
    /// Migrations and hint touches are those of the process that was balanced.
    pub hint: Touches,
    /// As above.
    pub migrations: Migrations,
    /// Nanoseconds of the scan, of the same process.
    pub scan_time_ns: Option<u64>,
    /// Pins made, pages by node.
    pub pinned_pages: Option<ByNode>,
    /// Growth of the placement, bytes by node.
    pub resident_bytes: Option<ByNode>,
}

/// How a signal's test came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every count is within its tolerance.
    Passed,
    /// One isn't: the signal is unreliable.
    Failed,
    /// No event could be made, or there is no signal; the reason says why.
    NotTested,
}

/// One count of a signal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Of what: a pair, a node, or all.
    pub of: String,
    /// `pages`, `moves`, `ns` or `bytes`.
    pub unit: String,
    /// What was done.
    pub expected: u64,
    /// What was seen; `None` when the signal gave no number.
    pub seen: Option<u64>,
    /// Seen less expected.
    pub difference: Option<i64>,
    /// Whether that is within the tolerance.
    pub ok: bool,
}

impl Row {
    /// A number of the row with its unit, as people read it.
    #[must_use]
    pub fn amount(&self, value: Option<u64>) -> String {
        match (value, self.unit.as_str()) {
            (None, _) => "none".to_owned(),
            // A least one, and what was seen of it.
            (Some(ns), "ns") if ns < 10_000 => format!("{ns} ns"),
            (Some(ns), "ns") => format!("{:.1} ms", ns as f64 / 1e6),
            (Some(bytes), "bytes") => format!("{} KiB", bytes >> 10),
            (Some(n), unit) => format!("{n} {unit}"),
        }
    }
}

/// One signal's test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Test {
    /// Which.
    pub signal: SignalName,
    /// How it came out.
    pub verdict: Verdict,
    /// Why it failed or was not made; `None` when it passed.
    pub reason: Option<String>,
    /// What was compared.
    pub rows: Vec<Row>,
}

impl Test {
    /// In one line.
    #[must_use]
    pub fn summary(&self) -> String {
        let reason = self.reason.as_deref().unwrap_or_default();
        match self.verdict {
            Verdict::Passed => {
                let n = self.rows.len();
                let counts = if n == 1 { "count" } else { "counts" };
                format!("passed: {n} {counts} as expected")
            }
            Verdict::Failed => format!("failed: {reason}"),
            Verdict::NotTested => format!("not tested: {reason}"),
        }
    }
}

/// The whole self-test.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// One for each signal.
    pub tests: Vec<Test>,
    /// How long it took, milliseconds.
    pub took_ms: u64,
    /// The largest resident set of a process that made events, bytes.
    pub memory_bytes: Option<u64>,
}

impl Report {
    /// A signal's test.
    #[must_use]
    pub fn test(&self, signal: SignalName) -> Option<&Test> {
        self.tests.iter().find(|test| test.signal == signal)
    }

    /// The signal as it stands after its test: one that failed is unreliable, and says why.
    #[must_use]
    pub fn mark(&self, signal: &Signal) -> Signal {
        let failed = self
            .test(signal.name)
            .filter(|t| t.verdict == Verdict::Failed && signal.is_live());
        let Some(test) = failed else {
            return signal.clone();
        };
        let why = test.reason.as_deref().unwrap_or_default();
        Signal {
            state: SignalState::Unreliable,
            reason: Some(match &signal.reason {
                Some(reason) => format!("self-test: {why}; {reason}"),
                None => format!("self-test: {why}"),
            }),
            ..signal.clone()
        }
    }
}

/// Compares, signal by signal. `signals` are those that were measured by, as they stand under the host's settings.
#[must_use]
pub fn judge(truth: &Truth, seen: &Seen, signals: &[Signal]) -> Vec<Test> {
    signals
        .iter()
        .map(|signal| {
            if !signal.is_live() {
                return not_tested(signal.name, "the signal is unavailable");
            }
            if let Some(why) = truth.not_made.get(&signal.name) {
                return not_tested(signal.name, why);
            }
            let rows = rows(truth, seen, signal);
            if rows.is_empty() {
                return not_tested(signal.name, "no event of this kind was made");
            }
            decided(signal.name, rows)
        })
        .collect()
}

fn not_tested(signal: SignalName, why: &str) -> Test {
    Test {
        signal,
        verdict: Verdict::NotTested,
        reason: Some(why.to_owned()),
        rows: Vec::new(),
    }
}

fn decided(signal: SignalName, rows: Vec<Row>) -> Test {
    let wrong: Vec<&Row> = rows.iter().filter(|row| !row.ok).collect();
    let reason = wrong.first().map(|row| {
        let more = match wrong.len() {
            1 => String::new(),
            n => format!(", and {} more", n - 1),
        };
        format!(
            "{}: expected {}, saw {}{more}",
            row.of,
            row.amount(Some(row.expected)),
            row.amount(row.seen)
        )
    });
    Test {
        signal,
        verdict: if reason.is_some() {
            Verdict::Failed
        } else {
            Verdict::Passed
        },
        reason,
        rows,
    }
}

fn rows(truth: &Truth, seen: &Seen, signal: &Signal) -> Vec<Row> {
    match signal.name {
        SignalName::Sched => sched(truth, seen, signal.mechanism),
        SignalName::FirstTouch => {
            let touch = &seen.touches.first_touch;
            pages(
                PAGES_BESIDE,
                &truth.first_touch,
                told(touch),
                touch.pages,
                touch.unknown_node_pages,
            )
        }
        SignalName::Map => {
            let touch = &seen.touches.map;
            let mut expected = truth.map_new.clone();
            // The second rung sees only what the process brought in itself.
            if signal.mechanism != Some(Mechanism::TpBtf) {
                for old in &truth.map_old {
                    count(&mut expected, old.from, old.to, old.count);
                }
            }
            pages(
                MAP_PAGES_BESIDE,
                &expected,
                told(touch),
                touch.pages,
                touch.unknown_node_pages,
            )
        }
        SignalName::Hint => {
            // A page that went from one node to another was touched on the other from there.
            let touched: Pairs = truth
                .migrated
                .iter()
                .map(|m| Pair {
                    from: m.to,
                    to: m.from,
                    count: m.count,
                })
                .collect();
            let hint = &seen.hint.hint.counter;
            balanced(&touched, told(hint), hint.pages, "touches")
        }
        SignalName::Migration => {
            let pairs = seen.migrations.by_pair.as_ref().map(|pairs| {
                pairs
                    .iter()
                    .map(|p| Pair {
                        from: p.from,
                        to: p.to,
                        count: p.pages,
                    })
                    .collect()
            });
            balanced(&truth.migrated, pairs, seen.migrations.pages, "to")
        }
        SignalName::Scan => {
            let scanned = truth.migrated.iter().any(|m| m.count > 0);
            // How long it takes nobody else tells: that there was one is known.
            let row = |ns: Option<u64>| {
                row(
                    "the scan, at least",
                    "ns",
                    1,
                    ns,
                    ns.is_some_and(|ns| ns > 0),
                )
            };
            scanned
                .then(|| row(seen.scan_time_ns))
                .into_iter()
                .collect()
        }
        SignalName::Pin => by_node(
            &truth.pinned_pages,
            seen.pinned_pages.as_ref(),
            "pages",
            |n| (n - n * PAGES_PERCENT / 100, n + n * PAGES_PERCENT / 100),
        ),
        SignalName::DriverAlloc => Vec::new(),
        SignalName::Placement => {
            let beside = PAGES_BESIDE * 4096;
            by_node(
                &truth.resident_bytes,
                seen.resident_bytes.as_ref(),
                "bytes",
                |n| {
                    (
                        n - n * PAGES_PERCENT / 100,
                        n + n * PAGES_PERCENT / 100 + beside,
                    )
                },
            )
        }
    }
}

fn sched(truth: &Truth, seen: &Seen, mechanism: Option<Mechanism>) -> Vec<Row> {
    let bounds = |n: u64| {
        let slack = n * CPU_PERCENT / 100 + CPU_BESIDE_NS + truth.under_way_ns;
        (n.saturating_sub(slack), n + slack)
    };
    if mechanism == Some(Mechanism::Procfs) {
        // It knows the last node only, at the moments when it looks.
        let sum = |by_node: &ByNode| by_node.values().sum::<u64>();
        let (expected, seen) = (
            sum(&truth.cpu_time_ns_by_node),
            seen.cpu_time_ns_by_node.as_ref().map(sum),
        );
        return vec![bounded(
            "CPU time on all nodes",
            "ns",
            expected,
            seen,
            bounds(expected),
        )];
    }
    let mut rows = by_node(
        &truth.cpu_time_ns_by_node,
        seen.cpu_time_ns_by_node.as_ref(),
        "ns",
        bounds,
    );
    for pair in &truth.moves {
        let found = seen.moves.by_pair.as_ref().map(|pairs| {
            let same = pairs
                .iter()
                .find(|p| (p.from, p.to) == (pair.from, pair.to));
            same.map_or(0, |p| p.count)
        });
        let (low, high) = (
            pair.count.saturating_sub(MOVES_BESIDE),
            pair.count + MOVES_BESIDE,
        );
        let of = format!("{} to {}", pair.from, pair.to);
        rows.push(bounded(&of, "moves", pair.count, found, (low, high)));
    }
    rows
}

fn told(counter: &crate::process::TouchCounter) -> Option<Pairs> {
    let pairs = counter.by_pair.as_ref()?;
    Some(
        pairs
            .iter()
            .map(|p| Pair {
                from: p.cpu_node,
                to: p.memory_node,
                count: p.pages,
            })
            .collect(),
    )
}

/// Touches by pair, and what is in no pair that was expected.
fn pages(
    beside: u64,
    expected: &Pairs,
    told: Option<Pairs>,
    all: Option<u64>,
    unknown: Option<u64>,
) -> Vec<Row> {
    let more = |n: u64| {
        (
            n - n * PAGES_PERCENT / 100,
            n + n * PAGES_PERCENT / 100 + beside,
        )
    };
    let total: u64 = expected.iter().map(|p| p.count).sum();
    if total == 0 {
        return Vec::new();
    }
    let Some(told) = told else {
        return vec![bounded("all nodes", "pages", total, all, more(total))];
    };
    let mut rows: Vec<Row> = expected
        .iter()
        .map(|pair| {
            let of = format!("{} touches {}", pair.from, pair.to);
            bounded(
                &of,
                "pages",
                pair.count,
                Some(found(&told, pair)),
                more(pair.count),
            )
        })
        .collect();
    let known = |p: &&Pair| expected.iter().any(|e| (e.from, e.to) == (p.from, p.to));
    let elsewhere: u64 = told.iter().filter(|p| !known(p)).map(|p| p.count).sum();
    let elsewhere = elsewhere + unknown.unwrap_or(0);
    rows.push(bounded(
        "any other pair",
        "pages",
        0,
        Some(elsewhere),
        (0, beside),
    ));
    rows
}

/// Pages that NUMA balancing worked on: at least those that were seen to arrive.
fn balanced(expected: &Pairs, told: Option<Pairs>, all: Option<u64>, verb: &str) -> Vec<Row> {
    let more = |n: u64| {
        (
            n - n * PAGES_PERCENT / 100,
            n + n * BALANCING_PERCENT_MORE / 100 + BALANCING_PAGES_BESIDE,
        )
    };
    let total: u64 = expected.iter().map(|p| p.count).sum();
    if total == 0 {
        return Vec::new();
    }
    let Some(told) = told else {
        return vec![bounded("all nodes", "pages", total, all, more(total))];
    };
    expected
        .iter()
        .map(|pair| {
            let of = format!("{} {verb} {}", pair.from, pair.to);
            bounded(
                &of,
                "pages",
                pair.count,
                Some(found(&told, pair)),
                more(pair.count),
            )
        })
        .collect()
}

fn found(told: &Pairs, pair: &Pair) -> u64 {
    told.iter()
        .find(|p| (p.from, p.to) == (pair.from, pair.to))
        .map_or(0, |p| p.count)
}

fn by_node(
    expected: &ByNode,
    seen: Option<&ByNode>,
    unit: &str,
    bounds: impl Fn(u64) -> (u64, u64),
) -> Vec<Row> {
    expected
        .iter()
        .map(|(node, n)| {
            let seen = seen.map(|seen| seen.get(node).copied().unwrap_or(0));
            bounded(&format!("node {node}"), unit, *n, seen, bounds(*n))
        })
        .collect()
}

fn bounded(of: &str, unit: &str, expected: u64, seen: Option<u64>, bounds: (u64, u64)) -> Row {
    let ok = seen.is_some_and(|seen| (bounds.0..=bounds.1).contains(&seen));
    row(of, unit, expected, seen, ok)
}

fn row(of: &str, unit: &str, expected: u64, seen: Option<u64>, ok: bool) -> Row {
    Row {
        of: of.to_owned(),
        unit: unit.to_owned(),
        expected,
        seen,
        difference: seen.map(|seen| seen.cast_signed().wrapping_sub_unsigned(expected)),
        ok,
    }
}

#[cfg(test)]
#[path = "selftest_tests.rs"]
mod tests;
