//! The rung of kernels that refuse fentry: first touches stay exact, and what can't be seen is said.

use model::signal::{Mechanism, SignalName, SignalState};
use tests::compare::{between, pairs};
use tests::vm::Guest;

on_kernel_6_12!(
    first_touches_are_exact_without_fentry,
    copies_of_a_parent_s_pages_are_exact_without_fentry,
    mapped_pages_are_no_first_touches_without_fentry,
    short_threads_lose_no_pages_without_fentry,
    pages_from_swap_in_memory_are_no_first_touches_without_fentry,
    a_page_made_in_another_process_s_memory_is_nobody_s_touch_without_fentry,
    migrated_pages_match_vmstat_without_fentry,
    the_weaker_rung_says_what_it_cannot_see,
    signals_on_different_rungs_count_nothing_twice,
);

on_kernel_6_1!(a_kernel_that_cannot_do_it_says_why);

fn pages_from_swap_in_memory_are_no_first_touches_without_fentry(guest: &Guest) {
    crate::touch::swapped(guest, "swap-in-memory");
}

#[track_caller]
fn first_touches(guest: &Guest, workload: &str) {
    let report = guest.session("tracepoints");
    for truth in &report.workload(workload).truth.processes {
        let touched = report.process(truth.pid).touches.first_touch;
        pairs(
            &format!("{workload}, {}", truth.part),
            &touched,
            &truth.first_touch,
        );
    }
}

fn first_touches_are_exact_without_fentry(guest: &Guest) {
    for workload in [
        "first-touch",
        "populate",
        "kernel",
        "given-back",
        "zero-page",
        "stack",
        "thp",
        "private-file",
        "private-file-read",
    ] {
        first_touches(guest, workload);
    }
}

fn copies_of_a_parent_s_pages_are_exact_without_fentry(guest: &Guest) {
    first_touches(guest, "fork");
}

fn mapped_pages_are_no_first_touches_without_fentry(guest: &Guest) {
    first_touches(guest, "disk-file");
    first_touches(guest, "shm");
}

fn short_threads_lose_no_pages_without_fentry(guest: &Guest) {
    first_touches(guest, "threads");
}

fn a_page_made_in_another_process_s_memory_is_nobody_s_touch_without_fentry(guest: &Guest) {
    first_touches(guest, "write-child");
}

fn migrated_pages_match_vmstat_without_fentry(guest: &Guest) {
    migrated_pages_match_vmstat(guest, "tracepoints-balancing");
}

fn signals_on_different_rungs_count_nothing_twice(guest: &Guest) {
    migrated_pages_match_vmstat(guest, "mixed-rungs");
    let report = guest.session("mixed-rungs");
    for workload in ["one-way", "shm"] {
        for truth in &report.workload(workload).truth.processes {
            let touches = report.process(truth.pid).touches;
            let what = format!("{workload}, {}", truth.part);
            pairs(&what, &touches.first_touch, &truth.first_touch);
            pairs(&what, &touches.map, &truth.map);
        }
    }
}

#[track_caller]
fn migrated_pages_match_vmstat(guest: &Guest, session: &str) {
    let report = guest.session(session);
    let processes = report.snapshot().processes;
    let pages: Option<Vec<u64>> = processes
        .iter()
        .map(|process| process.migrations.pages)
        .collect();
    let pages = pages.map(|pages| pages.iter().sum());
    let name = "numa_pages_migrated";
    between(
        name,
        pages,
        report.vmstat[name],
        report.vmstat_at_most[name],
        1.0,
    );
}

fn the_weaker_rung_says_what_it_cannot_see(guest: &Guest) {
    let snapshot = guest.session("tracepoints").snapshot();
    for name in [SignalName::FirstTouch, SignalName::Map] {
        let signal = snapshot
            .signal(name)
            .unwrap_or_else(|| panic!("no {}", name.as_str()));
        assert_eq!(
            (signal.state, signal.mechanism),
            (SignalState::Degraded, Some(Mechanism::TpBtf)),
            "{signal:?}"
        );
        assert!(signal.reason.is_some(), "{signal:?}");
    }
    for name in [SignalName::Hint, SignalName::Scan] {
        let signal = snapshot
            .signal(name)
            .unwrap_or_else(|| panic!("no {}", name.as_str()));
        assert_eq!(signal.state, SignalState::Unavailable, "{signal:?}");
    }
}

fn a_kernel_that_cannot_do_it_says_why(guest: &Guest) {
    let report = guest.session("tracepoints");
    let snapshot = report.snapshot();
    for name in [SignalName::FirstTouch, SignalName::Map] {
        let signal = snapshot
            .signal(name)
            .unwrap_or_else(|| panic!("no {}", name.as_str()));
        assert_eq!(signal.state, SignalState::Unavailable, "{signal:?}");
        assert!(signal.reason.is_some(), "{signal:?}");
    }
    let touches = report.process(report.workload("first-touch").pid).touches;
    assert_eq!(
        (touches.first_touch.pages, touches.map.pages),
        (None, None),
        "null, and no zero"
    );
}
