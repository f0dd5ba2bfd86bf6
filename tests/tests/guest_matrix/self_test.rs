//! The self-test at every place of the matrix: nothing fails, every live signal is tested, and each that is broken on
//! purpose is found.

use super::guest;
use model::selftest::Verdict;
use model::signal::{SignalName, SignalState};
use tests::matrix::places::{PLACES, Place};
use tests::self_test::Run;

/// A test for each place, named after it.
macro_rules! places {
    ($($test:ident = $number:literal),* $(,)?) => {
        $(#[test] fn $test() { it_is_true_at(&PLACES[$number]); })*
    };
}

places!(
    self_test_at_5_10_2n = 0,
    self_test_at_6_1_2n = 1,
    self_test_at_6_12_2n = 2,
    self_test_at_6_18_2n = 3,
    self_test_at_7_2n = 4,
    self_test_at_6_12_1n = 5,
    self_test_at_6_12_4n2s = 6,
    self_test_at_6_12_memory_only = 7,
    self_test_at_6_12_cpu_only = 8,
    self_test_at_6_12_asymmetric = 9,
    self_test_at_6_12_sparse = 10,
);

fn it_is_true_at(place: &Place) {
    let report = guest(place).self_test();
    assert_eq!(report.error, None, "{report:?}");
    let (wholes, broken): (Vec<&Run>, Vec<&Run>) =
        report.runs.iter().partition(|run| run.broken.is_none());
    let [whole] = wholes[..] else {
        panic!("no whole run: {report:?}")
    };
    passes(place, whole);
    for run in broken {
        finds_its_break(run);
    }
    let left: Vec<&String> = report.runs.iter().flat_map(|run| &run.left).collect();
    assert!(left.is_empty(), "{left:?}");
}

fn passes(place: &Place, run: &Run) {
    assert_eq!((run.exit_code, run.failed()), (Some(0), vec![]), "{run:?}");
    for signal in &run.document.signals {
        let test = run.document.self_test.test(signal.name);
        // Without two nodes nothing can be moved.
        let one_node = place.nodes.other.is_none();
        let needs_two = [SignalName::Hint, SignalName::Migration, SignalName::Scan];
        if signal.is_live() && !(one_node && needs_two.contains(&signal.name)) {
            let verdict = test.map(|test| test.verdict);
            assert_eq!(verdict, Some(Verdict::Passed), "{test:?}");
        }
    }
    let full_map = &run.document.self_test.full_map;
    assert_eq!(full_map.verdict, Verdict::Passed, "{full_map:?}");
    let swapped = run.document.self_test.test(SignalName::FirstTouch);
    let swapped = swapped.is_some_and(|test| test.rows.iter().any(|row| row.of == "from swap"));
    assert!(swapped, "swap is on: {run:?}");
}

fn finds_its_break(run: &Run) {
    let Some(broken) = run.broken else { return };
    assert!(run.failed().contains(&broken), "{broken:?}: {run:?}");
    assert_eq!(run.exit_code, Some(1), "{broken:?}: {run:?}");
    let signals = &run.document.signals;
    let signal = signals.iter().find(|signal| signal.name == broken);
    let state = signal.map(|signal| signal.state);
    assert_eq!(state, Some(SignalState::Unreliable), "{signal:?}");
}
