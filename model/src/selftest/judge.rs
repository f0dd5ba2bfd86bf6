//! Lays what was seen beside what was done.

use super::events::{Pair, Pairs, Seen, Truth, count};
use super::report::{FullMap, Row, Test, Verdict};
use crate::process::ByNode;
use crate::signal::{Mechanism, Signal, SignalName};

/// What may be missing or too much of pages that were touched, mapped or pinned, per cent.
const PAGES_PERCENT: u64 = 1;
/// Pages that the process may touch beside those that it was told to: its stack, its heap.
const PAGES_BESIDE: u64 = 32;
/// And pages of files that the kernel maps around each fault on the program's own code.
const MAP_PAGES_BESIDE: u64 = 128;
/// Moves that may be missing or too many: the first placement of a thread is not always seen.
const MOVES_BESIDE: u64 = 2;
/// What may be missing or too much of CPU time, per cent.
const CPU_PERCENT: u64 = 2;
/// And nanoseconds beside: the clock is read a little before the thread leaves its CPU.
const CPU_BESIDE_NS: u64 = 10_000_000;
/// Hint faults and migrations may be more than the pages that were seen to arrive, per cent: some are touched twice.
const BALANCING_PERCENT_MORE: u64 = 50;
/// And pages beside: the process's own code and heap are scanned too.
const BALANCING_PAGES_BESIDE: u64 = 1_024;

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

/// Whether touches that found no room were counted, one by one: `touched` pages while a map was full, `lost` counts.
#[must_use]
pub fn full_map(touched: u64, lost: Option<u64>) -> FullMap {
    let row = bounded(
        "without room",
        "counts",
        touched,
        lost,
        some_more(touched, PAGES_BESIDE),
    );
    let (verdict, reason) = verdict_of(std::slice::from_ref(&row));
    FullMap {
        verdict,
        reason,
        row: Some(row),
    }
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
    let (verdict, reason) = verdict_of(&rows);
    Test {
        signal,
        verdict,
        reason,
        rows,
    }
}

fn verdict_of(rows: &[Row]) -> (Verdict, Option<String>) {
    let wrong: Vec<&Row> = rows.iter().filter(|row| !row.ok).collect();
    let Some(row) = wrong.first() else {
        return (Verdict::Passed, None);
    };
    let more = match wrong.len() {
        1 => String::new(),
        n => format!(", and {} more", n - 1),
    };
    let least = if row.at_most.is_none() {
        "at least "
    } else {
        ""
    };
    let reason = format!(
        "{}: expected {least}{}, saw {}{more}",
        row.of,
        row.amount(Some(row.expected)),
        row.amount(row.seen)
    );
    (Verdict::Failed, Some(reason))
}

fn rows(truth: &Truth, seen: &Seen, signal: &Signal) -> Vec<Row> {
    match signal.name {
        SignalName::Sched => sched(truth, seen, signal.mechanism),
        SignalName::FirstTouch => {
            let touch = &seen.touches.first_touch;
            let mut rows = pages(
                PAGES_BESIDE,
                &truth.first_touch,
                told(touch),
                touch.pages,
                touch.unknown_node_pages,
            );
            rows.extend(swap(truth, seen, signal.mechanism));
            rows
        }
        SignalName::Map => {
            let touch = &seen.touches.map;
            let mut expected = truth.map_new.clone();
            // The second rung sees only what the process brought in itself.
            let by_tracepoints = [Some(Mechanism::TpBtf), Some(Mechanism::RawTp)];
            if !by_tracepoints.contains(&signal.mechanism) {
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
            let row = scanned.then(|| row("all nodes", "ns", 1, seen.scan_time_ns, (1, None)));
            row.into_iter().collect()
        }
        SignalName::Pin => by_node(
            &truth.pinned_pages,
            seen.pinned_pages.as_ref(),
            "pages",
            |n| (n - n * PAGES_PERCENT / 100, n + n * PAGES_PERCENT / 100),
        ),
        SignalName::DriverAlloc => by_node(
            &truth.driver_allocated,
            seen.driver_allocated.as_ref(),
            "pages",
            |n| some_more(n, PAGES_BESIDE),
        ),
        SignalName::Placement => {
            let beside = PAGES_BESIDE * 4096;
            by_node(
                &truth.resident_bytes,
                seen.resident_bytes.as_ref(),
                "bytes",
                |n| {
                    let (least, most) = some_more(n, beside);
                    // Of its other pages NUMA balancing may take some from one node to another.
                    (least.saturating_sub(beside), most)
                },
            )
        }
    }
}

/// Pages from swap, where some went there; the tracepoints don't see those that the swap cache still has.
fn swap(truth: &Truth, seen: &Seen, mechanism: Option<Mechanism>) -> Option<Row> {
    let expected = truth.swapped_in;
    let told = matches!(mechanism, Some(Mechanism::Fentry | Mechanism::Kprobe));
    (told && expected > 0).then(|| {
        let found = seen.touches.swap_in_pages;
        let bounds = some_more(expected, PAGES_BESIDE);
        bounded("from swap", "pages", expected, found, bounds)
    })
}

/// From one per cent less to one per cent more, and so many beside.
fn some_more(n: u64, beside: u64) -> (u64, u64) {
    let percent = n * PAGES_PERCENT / 100;
    (n - percent, n + percent + beside)
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
        return vec![bounded("all nodes", "ns", expected, seen, bounds(expected))];
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
    let more = |n: u64| some_more(n, beside);
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
    let (at_least, at_most) = bounds;
    row(of, unit, expected, seen, (at_least, Some(at_most)))
}

fn row(
    of: &str,
    unit: &str,
    expected: u64,
    seen: Option<u64>,
    (at_least, at_most): (u64, Option<u64>),
) -> Row {
    let passes = |seen: u64| at_least <= seen && at_most.is_none_or(|most| seen <= most);
    Row {
        of: of.to_owned(),
        unit: unit.to_owned(),
        expected,
        seen,
        at_least,
        at_most,
        difference: seen.map(|seen| seen.cast_signed().wrapping_sub_unsigned(expected)),
        ok: seen.is_some_and(passes),
    }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
