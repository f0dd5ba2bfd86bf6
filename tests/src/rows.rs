//! What becomes of the rows of 10,000 threads that come and go, in four processes.

use crate::compare::{no_less, pairs, sum};
use crate::session::Report;
use std::collections::BTreeMap;

/// Names of the workloads; the last one gives numawatch the time to see that the threads of the others are gone.
pub const WORKLOADS: [&str; 4] = ["threads-1", "threads-2", "threads-3", "threads-4"];

/// Fails unless the maps hold the rows of threads that live, and no others.
///
/// # Panics
/// Then.
#[track_caller]
pub fn of_dead_threads_are_gone(report: &Report) {
    let snapshot = report.snapshot();
    let alive = snapshot.processes.iter().filter(|process| process.alive);
    let processes = alive.clone().count() as u64;
    let threads: u64 = alive.map(|process| process.threads.len() as u64).sum();
    let with_cpus = |node: &&model::topology::Node| !node.cpus.is_empty();
    let nodes = snapshot.topology.nodes.iter().filter(with_cpus).count() as u64;
    let used: BTreeMap<&str, u64> = snapshot
        .host
        .maps
        .iter()
        .map(|map| (map.name.as_str(), map.used))
        .collect();
    assert_eq!(used["TRACKED"], processes, "{used:?}");
    assert_eq!(used["THREADS"], threads, "{used:?}");
    for map in ["SCHED", "TOUCH", "BALANCE", "DEVICE"] {
        assert!(used[map] <= threads * nodes, "{used:?}: {threads} threads");
    }
    // The threads were there, and there is something to have gone.
    let dead: u64 = WORKLOADS
        .iter()
        .map(|name| report.workload(name).truth.processes[0].dead_threads)
        .sum();
    assert_eq!(dead, 10_000);
    assert_eq!(snapshot.host.lost.rows, Some(0));
}

/// Fails unless every touch of the dead threads and their CPU time are in their process.
///
/// # Panics
/// Then.
#[track_caller]
pub fn of_dead_threads_are_counted(report: &Report) {
    for name in WORKLOADS {
        let truth = &report.workload(name).truth.processes[0];
        let process = report.process(truth.pid);
        pairs(name, &process.touches.first_touch, &truth.first_touch);
        let seen = process.cpu_time_ns_by_node.as_ref().map(sum);
        no_less(name, seen, truth.process_cpu_time_ns);
    }
}
