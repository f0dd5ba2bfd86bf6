//! Maps of the kernel side that fill up, and rows of threads that are gone, on the machine that runs the tests.
#![allow(
    clippy::expect_used,
    reason = "a helper that cannot go on fails its test"
)]

use std::sync::OnceLock;
use tests::built::tools;
use tests::play::play;
use tests::rows;
use tests::session::{Report, Session};
use tests::sessions::{ONE_NODE_FULL_MAP, ONE_NODE_MANY_THREADS};

fn played(session: &Session) -> Report {
    play(session, &tools(env!("CARGO_BIN_EXE_workload")))
}

#[test]
fn each_count_that_finds_no_room_is_counted_as_lost() {
    let report = played(&ONE_NODE_FULL_MAP);
    let truth = &report.workload("threads").truth.processes[0];
    let told = report.process(truth.pid).touches.first_touch.pages;
    let lost = report.snapshot().host.lost.rows;
    let touched: u64 = truth.first_touch.iter().map(|pair| pair.pages).sum();
    // The main thread has one of three rows; of eight threads with 1,024 pages each, two find room.
    tests::compare::within("pages told", told, touched / 4, 1.0);
    tests::compare::within("counts lost", lost, touched / 4 * 3, 1.0);
}

fn many_threads() -> &'static Report {
    static REPORT: OnceLock<Report> = OnceLock::new();
    REPORT.get_or_init(|| played(&ONE_NODE_MANY_THREADS))
}

#[test]
fn ten_thousand_threads_that_come_and_go_leave_no_row() {
    rows::of_dead_threads_are_gone(many_threads());
}

#[test]
fn ten_thousand_threads_that_come_and_go_are_counted_exactly() {
    rows::of_dead_threads_are_counted(many_threads());
}
