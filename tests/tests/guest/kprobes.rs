//! The rung of kernels that refuse fentry and have kprobes: as exact as the first.

use model::signal::{Mechanism, SignalName, SignalState};
use tests::compare::{between, pairs, within};
use tests::vm::Guest;

on_each_kernel!(
    every_function_is_traced_by_kprobe,
    first_touches_and_maps_are_exact_by_kprobe,
    pins_are_exact_by_kprobe,
    hint_faults_and_migrated_pages_match_vmstat_by_kprobe,
);

fn every_function_is_traced_by_kprobe(guest: &Guest) {
    for (session, names) in [
        (
            "kprobes",
            &[SignalName::FirstTouch, SignalName::Map, SignalName::Pin][..],
        ),
        (
            "kprobes-balancing",
            &[SignalName::Hint, SignalName::Migration, SignalName::Scan],
        ),
    ] {
        let snapshot = guest.session(session).snapshot();
        for name in names {
            let signal = snapshot.signal(*name).map(|s| (s.state, s.mechanism));
            let want = (SignalState::Attached, Some(Mechanism::Kprobe));
            assert_eq!(signal, Some(want), "{:?}", snapshot.signals);
        }
    }
}

fn first_touches_and_maps_are_exact_by_kprobe(guest: &Guest) {
    let report = guest.session("kprobes");
    for workload in ["first-touch", "thp", "hugetlb", "file", "shm", "fork"] {
        for truth in &report.workload(workload).truth.processes {
            let touches = report.process(truth.pid).touches;
            let what = format!("{workload}, {}", truth.part);
            pairs(&what, &touches.first_touch, &truth.first_touch);
            // A forked child maps its program's own pages, in whatever number.
            if !truth.map.is_empty() {
                pairs(&what, &touches.map, &truth.map);
            }
        }
    }
}

fn pins_are_exact_by_kprobe(guest: &Guest) {
    pins_are_exact(guest, "kprobes");
}

/// A pin takes no page but those that it was asked for.
#[track_caller]
pub(crate) fn pins_are_exact(guest: &Guest, session: &str) {
    let report = guest.session(session);
    let truth = &report.workload("pin").truth.processes[0];
    let made = report.process(truth.pid).pinned.made;
    for pair in &truth.pinned {
        let seen = made
            .by_node
            .as_ref()
            .and_then(|by_node| by_node.get(&pair.memory_node));
        within("pinned pages", seen.copied(), pair.pages, 1.0);
    }
    assert!(!truth.pinned.is_empty());
    within(
        "all pinned pages",
        made.pages,
        truth.pinned.iter().map(|pair| pair.pages).sum(),
        1.0,
    );
}

fn hint_faults_and_migrated_pages_match_vmstat_by_kprobe(guest: &Guest) {
    let report = guest.session("kprobes-balancing");
    let processes = report.snapshot().processes;
    let total = |count: fn(&model::process::Process) -> Option<u64>| {
        let counts: Option<Vec<u64>> = processes.iter().map(count).collect();
        counts.map(|counts| counts.iter().sum())
    };
    for (name, seen) in [
        ("numa_hint_faults", total(|p| p.touches.hint.faults)),
        (
            "numa_hint_faults_local",
            total(|p| p.touches.hint.local_faults),
        ),
        ("numa_pages_migrated", total(|p| p.migrations.pages)),
    ] {
        between(
            name,
            seen,
            report.vmstat[name],
            report.vmstat_at_most[name],
            1.0,
        );
    }
}
