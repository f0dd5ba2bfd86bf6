//! A thread that there is no room for until others have ended, on every kernel: what it ran before is lost, and no node gets
//! it later.

use super::guest;
use model::process::ByNode;
use tests::matrix::places::PLACES;
use tests::matrix::sessions::FULL_THREADS;

on_each_kernel!(
    super::Late::at,
    what_ran_without_room_is_lost,
    what_runs_with_room_is_told_where_it_was,
    what_is_lost_is_said,
);

/// The thread that ran on `first` without room, and on `then` with it.
struct Late {
    first: u32,
    then: u32,
    ran: ByNode,
    /// What the others ran, all of it on `first`.
    others: u64,
    /// Of the whole process: the others are never on `then`.
    told: ByNode,
    lost: Option<u64>,
}

impl Late {
    fn at(number: usize) -> Self {
        let place = &PLACES[number];
        let Some(first) = place.nodes.other else {
            panic!("{} has no other node", place.name())
        };
        let report = guest(place).session(FULL_THREADS.name);
        assert_eq!(report.error, None, "{}", report.trouble());
        let truth = &report.workload("late").truth.processes[0];
        let late = truth.threads.iter().find(|thread| thread.name == "late");
        let Some(late) = late else {
            panic!("{truth:?}")
        };
        let told = report.process(truth.pid).cpu_time_ns_by_node;
        Self {
            first,
            then: place.nodes.cpu,
            ran: late.cpu_time_ns_by_node.clone(),
            others: truth.process_cpu_time_ns - late.cpu_time_ns_by_node[&first],
            told: told.unwrap_or_default(),
            lost: report.snapshot().host.lost.rows,
        }
    }

    fn told_on(&self, node: u32) -> u64 {
        self.told.get(&node).copied().unwrap_or(0)
    }
}

fn what_ran_without_room_is_lost(late: &Late) {
    let (ran, told) = (late.ran[&late.first], late.told_on(late.first));
    // The main thread has yet to report and to end.
    assert!(
        told.abs_diff(late.others) <= ran / 5,
        "it ran {ran} ns, the others {}, told {told} ns of all",
        late.others
    );
}

fn what_runs_with_room_is_told_where_it_was(late: &Late) {
    let (ran, told) = (late.ran[&late.then], late.told_on(late.then));
    // Its first slice with room has an unknown start.
    assert!(
        told.abs_diff(ran) <= ran / 10,
        "ran {ran} ns, told {told} ns"
    );
}

fn what_is_lost_is_said(late: &Late) {
    // It leaves the CPU every millisecond.
    let slices = late.ran[&late.first] / 2_000_000;
    assert!(late.lost > Some(slices), "{:?} of {slices}", late.lost);
}
