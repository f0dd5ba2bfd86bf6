//! The self-test in the guest, where every signal has something to see.

use model::selftest::Verdict;
use model::signal::{SignalName, SignalState};
use tests::self_test::Run;
use tests::vm::Guest;

on_each_kernel!(
    unbroken_the_self_test_fails_nothing_and_leaves_nothing,
    unbroken_every_live_signal_passes,
    a_broken_signal_is_found_and_named,
);

fn runs(guest: &Guest) -> &[Run] {
    let report = guest.self_test();
    assert_eq!(report.error, None, "{report:?}");
    &report.runs
}

fn whole(guest: &Guest) -> &Run {
    match runs(guest).iter().find(|run| run.broken.is_none()) {
        Some(run) => run,
        None => panic!("no whole run"),
    }
}

fn is_live(run: &Run, signal: SignalName) -> bool {
    let signals = &run.document.signals;
    signals.iter().any(|s| s.name == signal && s.is_live())
}

fn unbroken_the_self_test_fails_nothing_and_leaves_nothing(guest: &Guest) {
    let run = whole(guest);
    assert_eq!(run.failed(), [], "{run:?}");
    assert_eq!(run.exit_code, Some(0), "{run:?}");
    for run in runs(guest) {
        assert!(run.left.is_empty(), "{run:?}");
    }
}

fn unbroken_every_live_signal_passes(guest: &Guest) {
    let run = whole(guest);
    for signal in SignalName::ALL {
        if is_live(run, signal) {
            assert_eq!(run.verdict(signal), Verdict::Passed, "{run:?}");
        }
    }
}

fn a_broken_signal_is_found_and_named(guest: &Guest) {
    let mut found = 0;
    for run in runs(guest) {
        let Some(broken) = run.broken else { continue };
        if !is_live(run, broken) || whole(guest).verdict(broken) == Verdict::NotTested {
            continue;
        }
        found += 1;
        let name = broken.as_str();
        assert!(run.failed().contains(&broken), "{name}: {run:?}");
        assert_eq!(run.exit_code, Some(1), "{name}: {run:?}");
        let signal = run.document.signals.iter().find(|s| s.name == broken);
        assert!(
            signal.is_some_and(|s| s.state == SignalState::Unreliable),
            "{name}: {run:?}"
        );
    }
    assert!(found >= 6, "only {found} signals were broken");
}
