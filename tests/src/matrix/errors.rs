//! How far what numawatch counted is from the truth: in percent, and of pages pair by pair or node by node.

use super::cells::Cell;
use crate::compare::BESIDES;
use model::process::{ByNode, TouchCounter, TouchPair};

/// Signed, of a value that may lie anywhere from `low` to `high`.
pub(super) fn percent(seen: u64, low: u64, high: u64) -> f64 {
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
pub(super) fn worse(one: f64, other: f64) -> f64 {
    if other.abs() > one.abs() { other } else { one }
}

/// Adds one process's pages, pair by pair; `other` are its pages of a kind that it has none of.
pub(super) fn add_pages(
    cell: &mut Cell,
    truth: &[TouchPair],
    seen: &TouchCounter,
    other: Option<u64>,
) {
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

/// Node by node, with what is on no node that it should be on as an error.
pub(super) fn on_nodes(cell: &mut Cell, want: &ByNode, seen: Option<&ByNode>) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use model::signal::Mechanism;

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
