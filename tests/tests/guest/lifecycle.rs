//! Fork, exec and exit: who is watched, and whose the counters are.

use tests::compare::{no_less, pairs, sum};
use tests::vm::Guest;

on_each_kernel!(
    done_when_2_pages_that_a_child_copies_are_its_first_touches_once,
    children_and_grandchildren_of_a_watched_process_are_watched,
    a_child_names_its_parent,
    exec_by_another_thread_than_the_leader_loses_no_pages,
    exec_by_another_thread_than_the_leader_loses_no_cpu_time,
    exec_by_another_thread_than_the_leader_is_no_move,
    exec_by_the_leader_loses_nothing,
    counters_begin_with_the_watching,
);

fn done_when_2_pages_that_a_child_copies_are_its_first_touches_once(guest: &Guest) {
    let report = guest.session("counts");
    let workload = report.workload("fork");
    assert_eq!(workload.truth.processes.len(), 2);
    for truth in &workload.truth.processes {
        let touches = report.process(truth.pid).touches;
        pairs(
            &format!("{}: first touches", truth.part),
            &touches.first_touch,
            &truth.first_touch,
        );
    }
}

fn children_and_grandchildren_of_a_watched_process_are_watched(guest: &Guest) {
    let report = guest.session("counts");
    let workload = report.workload("children");
    assert_eq!(workload.truth.processes.len(), 7);
    for truth in &workload.truth.processes[1..] {
        let process = report.process(truth.pid);
        pairs(
            &format!("{}: first touches", truth.part),
            &process.touches.first_touch,
            &truth.first_touch,
        );
        let seen = process.cpu_time_ns_by_node.as_ref().map(sum);
        no_less("CPU time since birth", seen, truth.process_cpu_time_ns);
    }
}

fn a_child_names_its_parent(guest: &Guest) {
    let report = guest.session("counts");
    for truth in &report.workload("children").truth.processes[1..] {
        assert_eq!(report.process(truth.pid).parent_pid, Some(truth.parent_pid));
    }
}

#[track_caller]
fn exec_loses_no_pages(guest: &Guest, workload: &str) {
    let report = guest.session("counts");
    let truth = &report.workload(workload).truth.processes[0];
    let process = report.process(truth.pid);
    let seen = process.touches.first_touch.pages;
    let asked = truth.first_touch[0].pages;
    // A new program touches data, heap and stack of its own before it gets to work.
    assert!(
        seen.is_some_and(|seen| (asked..asked + 200).contains(&seen)),
        "first touches before and after: {seen:?}, not {asked}"
    );
    assert_eq!(process.threads.len(), 1, "{:?}", process.threads);
    assert_eq!(process.threads[0].tid, truth.pid);
}

#[track_caller]
fn exec_loses_no_cpu_time(guest: &Guest, workload: &str) {
    let report = guest.session("counts");
    let truth = &report.workload(workload).truth.processes[0];
    let seen = report
        .process(truth.pid)
        .cpu_time_ns_by_node
        .as_ref()
        .map(sum);
    no_less("CPU time before and after", seen, truth.process_cpu_time_ns);
}

fn exec_by_another_thread_than_the_leader_loses_no_pages(guest: &Guest) {
    exec_loses_no_pages(guest, "exec");
}

fn exec_by_another_thread_than_the_leader_loses_no_cpu_time(guest: &Guest) {
    exec_loses_no_cpu_time(guest, "exec");
}

fn exec_by_another_thread_than_the_leader_is_no_move(guest: &Guest) {
    let report = guest.session("counts");
    let moves = report.process(report.workload("exec").pid).moves;
    // The thread was born on its leader's node and went to its own: that is one.
    assert!(moves.total.is_some_and(|total| total <= 1), "{moves:?}");
}

fn exec_by_the_leader_loses_nothing(guest: &Guest) {
    exec_loses_no_pages(guest, "exec-leader");
    exec_loses_no_cpu_time(guest, "exec-leader");
}

fn counters_begin_with_the_watching(guest: &Guest) {
    let report = guest.session("counts");
    let snapshot = report.snapshot();
    for process in &snapshot.processes {
        assert!(
            process.tracked_since <= snapshot.taken_at,
            "{} of {}",
            process.pid,
            process.name
        );
    }
}
