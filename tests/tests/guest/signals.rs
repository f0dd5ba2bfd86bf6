//! What the guest's kernel gives, and what it can't, with the reason: no signal is never a zero.

use model::signal::{Mechanism, SignalName, SignalState};
use tests::session::Report;
use tests::vm::Guest;

on_each_kernel!(
    done_when_2_without_balancing_the_hint_signal_is_unavailable_with_that_reason,
    without_balancing_hint_touches_are_null,
    tiering_s_hint_faults_are_no_remote_share,
    counts_stand_on_the_best_rung,
    every_signal_is_listed,
    nothing_was_lost,
    numawatch_ends_well_and_prints_nothing_else,
);

fn signal(report: &Report, name: SignalName) -> model::signal::Signal {
    let snapshot = report.snapshot();
    match snapshot.signal(name) {
        Some(signal) => signal.clone(),
        None => panic!("no signal {}: {:?}", name.as_str(), snapshot.signals),
    }
}

fn done_when_2_without_balancing_the_hint_signal_is_unavailable_with_that_reason(guest: &Guest) {
    let hint = signal(guest.session("counts"), SignalName::Hint);
    assert_eq!(hint.state, SignalState::Unavailable, "{hint:?}");
    let reason = hint.reason.unwrap_or_default();
    assert!(reason.contains("numa_balancing=0"), "{reason}");
}

fn without_balancing_hint_touches_are_null(guest: &Guest) {
    let report = guest.session("counts");
    let hint = report
        .process(report.workload("first-touch").pid)
        .touches
        .hint;
    assert_eq!((hint.faults, hint.counter.pages), (None, None));
}

fn tiering_s_hint_faults_are_no_remote_share(guest: &Guest) {
    let hint = signal(guest.session("tiering"), SignalName::Hint);
    let reason = hint.reason.unwrap_or_default();
    assert!(reason.contains("tiering"), "{:?}: {reason}", hint.state);
    assert_eq!(
        guest.session("tiering").snapshot().host.numa_balancing,
        Some(2)
    );
}

fn counts_stand_on_the_best_rung(guest: &Guest) {
    let report = guest.session("balancing");
    for (name, mechanism) in [
        (SignalName::Sched, Mechanism::TpBtf),
        (SignalName::FirstTouch, Mechanism::Fentry),
        (SignalName::Map, Mechanism::Fentry),
        (SignalName::Hint, Mechanism::Fentry),
        (SignalName::Scan, Mechanism::Fentry),
    ] {
        let signal = signal(report, name);
        assert_eq!(
            (signal.state, signal.mechanism),
            (SignalState::Attached, Some(mechanism)),
            "{signal:?}"
        );
        assert!(signal.target.is_some_and(|target| !target.is_empty()));
    }
}

fn every_signal_is_listed(guest: &Guest) {
    for session in ["counts", "balancing", "tiering"] {
        for name in SignalName::ALL {
            let signal = signal(guest.session(session), name);
            assert!(
                signal.state == SignalState::Attached || signal.reason.is_some(),
                "{signal:?}"
            );
        }
    }
}

fn nothing_was_lost(guest: &Guest) {
    for session in ["counts", "never-sleep", "balancing"] {
        let lost = guest.session(session).snapshot().host.lost;
        assert_eq!((lost.rows, lost.news), (Some(0), Some(0)), "{session}");
    }
}

fn numawatch_ends_well_and_prints_nothing_else(guest: &Guest) {
    for session in ["counts", "never-sleep", "balancing", "tiering", "swap"] {
        let report = guest.session(session);
        assert_eq!(
            (report.error.as_deref(), report.exit_code),
            (None, Some(0)),
            "{}",
            report.trouble()
        );
    }
}
