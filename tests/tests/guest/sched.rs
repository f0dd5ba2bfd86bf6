//! Moves between nodes, and on-CPU time per node.

use model::process::ByNode;
use tests::compare::{cpu_time, cpu_time_between, moves, no_less, pairs, sum, within};
use tests::rows;
use tests::vm::Guest;

on_each_kernel!(
    done_when_2_a_thousand_moves_are_a_thousand,
    done_when_2_moves_of_a_thread_that_never_sleeps_are_counted,
    done_when_2_cpu_time_per_node_matches_the_threads_own_clock,
    done_when_2_a_thousand_short_threads_lose_no_pages,
    done_when_2_a_thousand_short_threads_lose_no_cpu_time,
    each_thread_has_its_own_moves,
    a_thread_that_computes_without_switching_is_not_idle,
    a_thread_that_computed_before_it_was_watched_is_not_idle,
    a_process_has_the_cpu_time_of_its_threads,
    moves_between_sockets_are_cross_socket,
    ten_thousand_threads_that_come_and_go_leave_no_row,
    ten_thousand_threads_that_come_and_go_are_counted_exactly,
);

fn ten_thousand_threads_that_come_and_go_leave_no_row(guest: &Guest) {
    rows::of_dead_threads_are_gone(guest.session("many-threads"));
}

fn ten_thousand_threads_that_come_and_go_are_counted_exactly(guest: &Guest) {
    rows::of_dead_threads_are_counted(guest.session("many-threads"));
}

#[track_caller]
fn moves_of(guest: &Guest, session: &str, workload: &str) {
    let report = guest.session(session);
    let truth = &report.workload(workload).truth.processes[0];
    let seen = report.process(truth.pid).moves;
    within("moves", seen.total, 1000, 1.0);
    moves("moves by pair", seen.by_pair.as_ref(), &truth.moves);
}

fn done_when_2_a_thousand_moves_are_a_thousand(guest: &Guest) {
    moves_of(guest, "counts", "moves");
    moves_of(guest, "counts", "moves-of-8");
}

fn done_when_2_moves_of_a_thread_that_never_sleeps_are_counted(guest: &Guest) {
    moves_of(guest, "never-sleep", "moves");
}

fn moves_between_sockets_are_cross_socket(guest: &Guest) {
    let report = guest.session("counts");
    let seen = report.process(report.workload("moves").pid).moves;
    assert_eq!(
        seen.cross_socket, seen.total,
        "each node of the guest is a socket"
    );
}

fn each_thread_has_its_own_moves(guest: &Guest) {
    let report = guest.session("counts");
    let truth = &report.workload("moves-of-8").truth.processes[0];
    let process = report.process(truth.pid);
    for thread in truth.threads.iter().filter(|thread| thread.moves > 0) {
        let seen = process.threads.iter().find(|seen| seen.tid == thread.tid);
        let count = seen.and_then(|seen| seen.moves);
        assert!(
            count.is_some_and(|count| count.abs_diff(thread.moves) <= 1),
            "thread {}: {count:?} moves, not {}",
            thread.name,
            thread.moves
        );
        assert_eq!(
            seen.map(|seen| seen.name.as_str()),
            Some(thread.name.as_str())
        );
    }
}

fn done_when_2_cpu_time_per_node_matches_the_threads_own_clock(guest: &Guest) {
    let report = guest.session("counts");
    for workload in ["spin", "spin-2"] {
        let truth = &report.workload(workload).truth.processes[0];
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
}

fn a_process_has_the_cpu_time_of_its_threads(guest: &Guest) {
    let report = guest.session("counts");
    let process = report.process(report.workload("spin").pid);
    let mut of_threads = ByNode::new();
    for (node, ns) in process
        .threads
        .iter()
        .filter_map(|thread| thread.cpu_time_ns_by_node.as_ref())
        .flatten()
    {
        *of_threads.entry(*node).or_default() += ns;
    }
    assert_eq!(process.cpu_time_ns_by_node, Some(of_threads));
}

fn done_when_2_a_thousand_short_threads_lose_no_pages(guest: &Guest) {
    let report = guest.session("counts");
    let truth = &report.workload("threads").truth.processes[0];
    let process = report.process(truth.pid);
    pairs(
        "first touches",
        &process.touches.first_touch,
        &truth.first_touch,
    );
    assert_eq!(truth.dead_threads, 1000);
    assert_eq!(
        process.threads.len(),
        truth.threads.len(),
        "dead threads are no threads: {:?}",
        process.threads
    );
}

fn done_when_2_a_thousand_short_threads_lose_no_cpu_time(guest: &Guest) {
    let report = guest.session("counts");
    let truth = &report.workload("threads").truth.processes[0];
    let seen = report.process(truth.pid).cpu_time_ns_by_node;
    no_less(
        "CPU time",
        seen.as_ref().map(sum),
        truth.process_cpu_time_ns,
    );
}

/// The snapshot is taken while it computes.
#[track_caller]
fn still_computing(guest: &Guest, workload: &str, node: u32) {
    let report = guest.session("never-sleep");
    let told = report.workload(workload);
    let seen = report
        .process(told.pid)
        .cpu_time_ns_by_node
        .unwrap_or_default();
    let seen = seen.get(&node).copied();
    cpu_time_between(
        workload,
        seen,
        told.watched_cpu_ns,
        told.printed_cpu_ns,
        2.0,
    );
}

fn a_thread_that_computes_without_switching_is_not_idle(guest: &Guest) {
    still_computing(guest, "spin", 0);
}

fn a_thread_that_computed_before_it_was_watched_is_not_idle(guest: &Guest) {
    still_computing(guest, "already", 1);
}
