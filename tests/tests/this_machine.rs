//! Known workloads on the machine that runs the tests, whatever rungs it has: what is counted is exact, what isn't says why.
#![allow(
    clippy::expect_used,
    reason = "a helper that cannot go on fails its test"
)]

use model::signal::{Mechanism, SignalName, SignalState};
use std::sync::OnceLock;
use tests::built::tools;
use tests::compare::{cpu_time, cpu_time_between, no_less, pairs, sum};
use tests::play::play;
use tests::session::{Report, Session};
use tests::sessions::{ONE_NODE, ONE_NODE_NEVER_SLEEP, ONE_NODE_SCHED_BY_PROCFS};

fn report() -> &'static Report {
    static REPORT: OnceLock<Report> = OnceLock::new();
    REPORT.get_or_init(|| played(&ONE_NODE))
}

fn played(session: &Session) -> Report {
    play(session, &tools(env!("CARGO_BIN_EXE_workload")))
}

fn is_live(name: SignalName) -> bool {
    report()
        .snapshot()
        .signal(name)
        .is_some_and(model::signal::Signal::is_live)
}

#[track_caller]
fn first_touches(workload: &str) {
    first_touches_of(report(), workload);
}

#[track_caller]
fn first_touches_of(report: &Report, workload: &str) {
    let snapshot = report.snapshot();
    let signal = snapshot.signal(SignalName::FirstTouch);
    assert!(
        signal.is_some_and(model::signal::Signal::is_live),
        "{signal:?}"
    );
    for truth in &report.workload(workload).truth.processes {
        let touched = report.process(truth.pid).touches.first_touch;
        pairs(
            &format!("{workload}, {}: first touches", truth.part),
            &touched,
            &truth.first_touch,
        );
    }
}

#[test]
fn first_touches_are_exact() {
    first_touches("first-touch");
}

#[test]
fn a_huge_page_is_512_first_touches() {
    first_touches("thp");
}

#[test]
fn pages_that_the_kernel_fills_are_first_touches() {
    first_touches("kernel");
}

#[test]
fn pages_that_are_given_back_are_no_first_touches_again() {
    first_touches("given-back");
}

#[test]
fn a_private_copy_of_a_file_page_is_a_first_touch() {
    first_touches("private-file");
}

#[test]
fn pages_that_a_child_copies_are_its_first_touches_once() {
    first_touches("fork");
}

#[test]
fn children_and_grandchildren_are_watched() {
    first_touches("children");
}

#[test]
fn shared_memory_is_no_first_touch() {
    first_touches("memfd");
}

#[track_caller]
fn cpu_time_of_spinning_threads(report: &Report) {
    let truth = &report.workload("spin").truth.processes[0];
    let process = report.process(truth.pid);
    for thread in truth
        .threads
        .iter()
        .filter(|thread| thread.name.starts_with("spin-"))
    {
        let seen = process.threads.iter().find(|seen| seen.tid == thread.tid);
        let seen = seen.and_then(|seen| seen.cpu_time_ns_by_node.as_ref());
        cpu_time(&thread.name, seen, &thread.cpu_time_ns_by_node, 2.0);
    }
}

#[test]
fn cpu_time_matches_the_threads_own_clock() {
    cpu_time_of_spinning_threads(report());
}

#[test]
fn a_signal_by_procfs_stands_beside_probes_of_others() {
    let report = played(&ONE_NODE_SCHED_BY_PROCFS);
    let snapshot = report.snapshot();
    let sched = snapshot.signal(SignalName::Sched);
    assert_eq!(
        sched.and_then(|signal| signal.mechanism),
        Some(Mechanism::Procfs),
        "{sched:?}"
    );
    cpu_time_of_spinning_threads(&report);
    first_touches_of(&report, "first-touch");
    let process = report.process(report.workload("spin").pid);
    assert_eq!(process.moves.total, None, "{:?}", process.moves);
    let placement = snapshot.signal(SignalName::Placement);
    assert!(
        placement.is_some_and(|signal| !signal.is_live()),
        "{placement:?}"
    );
}

#[test]
fn what_procfs_tells_takes_no_room_in_the_maps() {
    let maps = played(&ONE_NODE_SCHED_BY_PROCFS).snapshot().host.maps;
    let sched = maps.iter().find(|map| map.name == "SCHED");
    // No program is there that makes such a row.
    assert_eq!(sched.map(|map| map.used), Some(0), "{maps:?}");
    let touch = maps.iter().find(|map| map.name == "TOUCH");
    assert!(touch.is_some_and(|map| map.used > 0), "{maps:?}");
}

#[test]
fn a_thousand_short_threads_lose_nothing() {
    first_touches("threads");
    let truth = &report().workload("threads").truth.processes[0];
    let seen = report().process(truth.pid).cpu_time_ns_by_node;
    no_less(
        "CPU time",
        seen.as_ref().map(sum),
        truth.process_cpu_time_ns,
    );
}

#[test]
fn exec_by_another_thread_than_the_leader_loses_nothing() {
    let truth = &report().workload("exec").truth.processes[0];
    let process = report().process(truth.pid);
    let asked = truth.first_touch[0].pages;
    let seen = process.touches.first_touch.pages;
    assert!(
        seen.is_some_and(|seen| (asked..asked + 200).contains(&seen)),
        "{seen:?}, not {asked}"
    );
    let seen = process.cpu_time_ns_by_node.as_ref().map(sum);
    no_less("CPU time before and after", seen, truth.process_cpu_time_ns);
}

/// That such a thread is seen at all is the subject; how exact CPU time is, is another test's. A hypervisor that takes
/// a CPU away in the middle of a switch leaves a slice untold until it gives it back.
const IDLE_NO_MORE_PERCENT: f64 = 10.0;

#[test]
fn a_thread_that_computes_without_switching_is_not_idle() {
    let report = played(&ONE_NODE_NEVER_SLEEP);
    for name in ["spin", "already"] {
        let told = report.workload(name);
        let process = report.process(told.pid);
        // Shown if this fails.
        println!("{name}: {:?}, {}", process.threads, report.stderr);
        cpu_time_between(
            name,
            process.cpu_time_ns_by_node.as_ref().map(sum),
            told.watched_cpu_ns,
            told.printed_cpu_ns,
            IDLE_NO_MORE_PERCENT,
        );
    }
}

#[test]
fn what_this_machine_cannot_give_says_why() {
    let snapshot = report().snapshot();
    for name in SignalName::ALL {
        let signal = snapshot.signal(name).expect("every signal is listed");
        assert!(
            signal.state == SignalState::Attached
                || signal.reason.as_ref().is_some_and(|why| why.len() > 10),
            "{signal:?}"
        );
    }
}

#[test]
fn what_is_not_known_is_null_and_no_zero() {
    let process = report().process(report().workload("first-touch").pid);
    let snapshot = report().snapshot();
    let map = snapshot.signal(SignalName::Map).expect("it is listed");
    if map.state != SignalState::Attached {
        // It sees some maps only: none seen is not none made.
        assert_ne!(process.touches.map.pages, Some(0), "{map:?}");
    }
    for (name, count) in [
        (SignalName::Hint, process.touches.hint.faults),
        (SignalName::Migration, process.migrations.pages),
        (SignalName::Scan, process.scan_time_ns),
    ] {
        assert_eq!(
            count.is_some(),
            is_live(name),
            "{}: {count:?}",
            name.as_str()
        );
    }
}

#[test]
fn numawatch_ends_well() {
    let report = report();
    assert_eq!(
        (report.error.as_deref(), report.exit_code),
        (None, Some(0)),
        "{}",
        report.trouble()
    );
}
