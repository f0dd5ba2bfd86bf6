//! Lays a snapshot's counters beside the truth, and says what is wrong in a way that can be acted upon.

use model::process::{ByNode, MovePair, TouchCounter, TouchPair};

/// Pages that a process touches besides those it was asked to: stacks, its report, the threads' own.
pub const BESIDES: u64 = 48;

/// Fails unless `got` is within `percent` of `want`.
///
/// # Panics
/// Then.
#[track_caller]
pub fn within(what: &str, got: Option<u64>, want: u64, percent: f64) {
    let slack = want as f64 * percent / 100.0;
    let near = got.is_some_and(|got| (got as f64 - want as f64).abs() <= slack);
    assert!(near, "{what}: {got:?}, not {want} (±{percent} %)");
}

/// Fails unless `got` is at least `low` and at most `high`, both give or take `percent`.
///
/// # Panics
/// Then.
#[track_caller]
pub fn between(what: &str, got: Option<u64>, low: u64, high: u64, percent: f64) {
    let low = low as f64 * (1.0 - percent / 100.0);
    let high = high as f64 * (1.0 + percent / 100.0);
    let inside = got.is_some_and(|got| (low..=high).contains(&(got as f64)));
    assert!(inside, "{what}: {got:?}, not between {low} and {high}");
}

/// As [`between`], of nanoseconds by a clock that ticks.
///
/// # Panics
/// As [`between`].
#[track_caller]
pub fn cpu_time_between(what: &str, got: Option<u64>, low: u64, high: u64, percent: f64) {
    const TICKS_NS: u64 = 12_000_000;
    between(
        what,
        got,
        low.saturating_sub(TICKS_NS),
        high + TICKS_NS,
        percent,
    );
}

/// Fails if CPU time was lost, or if there is more than a process's own clock can have missed when it was read: the
/// report that came after, and the last steps of threads that ended.
///
/// # Panics
/// Then.
#[track_caller]
pub fn no_less(what: &str, got: Option<u64>, process_cpu_time_ns: u64) {
    let missed = process_cpu_time_ns / 16 + 100_000_000;
    cpu_time_between(
        what,
        got,
        process_cpu_time_ns,
        process_cpu_time_ns + missed,
        2.0,
    );
}

/// Fails unless the pairs hold the truth's pages, each pair within 1 % and some stray pages, and hardly any elsewhere.
///
/// # Panics
/// Then.
#[track_caller]
pub fn pairs(what: &str, got: &TouchCounter, want: &[TouchPair]) {
    pairs_besides(what, got, want, BESIDES);
}

/// As [`pairs`], for a process that touches so many pages besides.
///
/// # Panics
/// As [`pairs`].
#[track_caller]
pub fn pairs_besides(what: &str, got: &TouchCounter, want: &[TouchPair], besides: u64) {
    let Some(got) = &got.by_pair else {
        panic!("{what}: no pairs, not {want:?}")
    };
    let pages = |pairs: &[TouchPair], wanted: &TouchPair| -> u64 {
        let same = |pair: &&TouchPair| {
            pair.cpu_node == wanted.cpu_node && pair.memory_node == wanted.memory_node
        };
        pairs.iter().filter(same).map(|pair| pair.pages).sum()
    };
    let mut strays: u64 = got.iter().map(|pair| pair.pages).sum();
    for pair in want {
        let seen = pages(got, pair);
        let least = pair.pages - pair.pages / 100;
        let most = pair.pages + pair.pages / 100 + besides;
        assert!(
            (least..=most).contains(&seen),
            "{what}: {seen} pages, not {pair:?}; all pairs: {got:?}"
        );
        strays -= seen;
    }
    assert!(
        strays <= besides,
        "{what}: {strays} pages where none were touched: {got:?}, not {want:?}"
    );
}

/// Fails unless next to nothing was counted.
///
/// # Panics
/// Then.
#[track_caller]
pub fn hardly_any(what: &str, got: Option<u64>) {
    assert!(
        got.is_some_and(|got| got <= BESIDES),
        "{what}: {got:?}, not next to nothing"
    );
}

/// Fails unless each pair of nodes has its moves, within 1 %.
///
/// # Panics
/// Then.
#[track_caller]
pub fn moves(what: &str, got: Option<&Vec<MovePair>>, want: &[MovePair]) {
    let Some(got) = got else {
        panic!("{what}: none, not {want:?}")
    };
    for pair in want {
        let seen = got
            .iter()
            .find(|seen| (seen.from, seen.to) == (pair.from, pair.to));
        let near = seen.is_some_and(|seen| seen.count.abs_diff(pair.count) <= pair.count / 100);
        assert!(near, "{what}: {got:?}, not {want:?}");
    }
    let other = got.iter().filter(|seen| {
        !want
            .iter()
            .any(|pair| (seen.from, seen.to) == (pair.from, pair.to))
    });
    let other: u64 = other.map(|pair| pair.count).sum();
    assert!(other <= 2, "{what}: {got:?}, not {want:?}");
}

/// Fails unless each node has its CPU time, within `percent` and a scheduler tick's worth.
///
/// # Panics
/// Then.
#[track_caller]
pub fn cpu_time(what: &str, got: Option<&ByNode>, want: &ByNode, percent: f64) {
    let Some(got) = got else {
        panic!("{what}: none, not {want:?}")
    };
    for (node, ns) in want {
        let seen = got.get(node).copied().unwrap_or(0);
        let slack = *ns as f64 * percent / 100.0 + 10e6;
        assert!(
            (seen as f64 - *ns as f64).abs() <= slack,
            "{what}, node {node}: {seen} ns, not {ns}; all: {got:?}"
        );
    }
    let elsewhere: u64 = got
        .iter()
        .filter(|(node, _)| !want.contains_key(node))
        .map(|(_, ns)| ns)
        .sum();
    let all: u64 = want.values().sum();
    assert!(
        elsewhere <= all / 50 + 10_000_000,
        "{what}: {elsewhere} ns on nodes where it never was: {got:?}"
    );
}

/// All nodes together.
#[must_use]
pub fn sum(by_node: &ByNode) -> u64 {
    by_node.values().sum()
}
