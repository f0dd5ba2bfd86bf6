//! What the rules remember of the last half minute: the counters whose growth they judge.

use crate::process::{ByNode, Process};
use crate::snapshot::Snapshot;
use crate::topology::NodeId;
use crate::verdict::WINDOW_S;
use std::collections::{BTreeMap, VecDeque};

/// Seconds between two moments that are kept: rates are over 30 to 35 s, and memory is for eight of them at most.
const APART_S: f64 = 5.0;

/// Moments of the last [`WINDOW_S`] seconds, and one before them.
#[derive(Clone, Debug, Default)]
pub struct Past {
    /// Oldest first.
    moments: VecDeque<Moment>,
}

/// What is kept of one snapshot.
#[derive(Clone, Debug)]
struct Moment {
    monotonic_ns: u64,
    /// `numa_foreign` of each node that tells it.
    foreign: ByNode,
    /// By pid and start time.
    processes: BTreeMap<(u32, u64), Counters>,
}

/// Counters of one process, all since tracking began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// On-CPU nanoseconds by node.
    pub cpu_time_ns_by_node: Option<ByNode>,
    /// Moves of its threads between sockets.
    pub cross_socket_moves: Option<u64>,
    /// On-CPU nanoseconds in `task_numa_work`.
    pub scan_cpu_time_ns: Option<u64>,
    /// Pages that NUMA balancing moved, by the nodes from and to which.
    pub migrated: Option<BTreeMap<(NodeId, NodeId), u64>>,
}

impl Counters {
    /// Those of a process now.
    #[must_use]
    pub fn of(process: &Process) -> Self {
        let pairs = process.migrations.by_pair.as_ref();
        Self {
            cpu_time_ns_by_node: process.cpu_time_ns_by_node.clone(),
            cross_socket_moves: process.moves.cross_socket,
            scan_cpu_time_ns: process.scan_cpu_time_ns,
            migrated: pairs.map(|p| p.iter().map(|p| ((p.from, p.to), p.pages)).collect()),
        }
    }
}

impl Past {
    /// Keeps what is worth keeping of a snapshot, and lets go of what the window has left behind.
    pub fn record(&mut self, snapshot: &Snapshot) {
        let now = snapshot.monotonic_ns;
        let age = |moment: &Moment| now.saturating_sub(moment.monotonic_ns) as f64 / 1e9;
        if self.moments.back().is_none_or(|last| age(last) >= APART_S) {
            self.moments.push_back(Moment::of(snapshot));
        }
        while self.moments.get(1).is_some_and(|m| age(m) >= WINDOW_S) {
            self.moments.pop_front();
        }
    }

    /// The oldest counters of a process, and when they were read; a reused pid is another process.
    #[must_use]
    pub fn of(&self, process: &Process) -> Option<(&Counters, u64)> {
        let id = (process.pid, process.start_time);
        let known = |moment: &'_ Moment| moment.processes.contains_key(&id);
        let moment = self.moments.iter().find(|moment| known(moment))?;
        Some((moment.processes.get(&id)?, moment.monotonic_ns))
    }

    /// A node's oldest `numa_foreign`, and when it was read.
    #[must_use]
    pub fn foreign(&self, node: NodeId) -> Option<(u64, u64)> {
        self.moments
            .iter()
            .find_map(|moment| Some((*moment.foreign.get(&node)?, moment.monotonic_ns)))
    }
}

impl Moment {
    fn of(snapshot: &Snapshot) -> Self {
        let nodes = snapshot.topology.nodes.iter();
        Self {
            monotonic_ns: snapshot.monotonic_ns,
            foreign: nodes
                .filter_map(|node| Some((node.id, node.numastat?.foreign)))
                .collect(),
            processes: snapshot
                .processes
                .iter()
                .filter(|process| process.alive)
                .map(|p| ((p.pid, p.start_time), Counters::of(p)))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{process, snapshot};
    use super::*;

    /// A snapshot a second, in which the process has moved as often as there were seconds.
    fn after(seconds: u64) -> Past {
        let mut past = Past::default();
        for second in 0..=seconds {
            let mut process = process();
            process.moves.cross_socket = Some(second);
            past.record(&snapshot(second, vec![process]));
        }
        past
    }

    #[test]
    fn growth_is_over_thirty_to_thirty_five_seconds_once_there_are_as_many() {
        for (seconds, base) in [(0, 0), (3, 0), (34, 0), (35, 5), (36, 5), (100, 70)] {
            let past = after(seconds);
            let (counters, read_at) = past.of(&process()).unwrap();
            assert_eq!(counters.cross_socket_moves, Some(base), "after {seconds} s");
            assert_eq!(read_at, base * 1_000_000_000);
            assert!(past.moments.len() <= 8);
        }
    }

    #[test]
    fn a_process_begins_when_it_is_first_seen_and_a_reused_pid_is_another() {
        let mut past = after(4);
        let mut newcomer = process();
        newcomer.start_time += 1;
        assert_eq!(past.of(&newcomer), None);
        past.record(&snapshot(12, vec![newcomer.clone()]));
        assert_eq!(past.of(&newcomer).unwrap().1, 12_000_000_000);
    }

    #[test]
    fn who_has_ended_is_not_remembered() {
        let mut ended = process();
        ended.alive = false;
        let mut past = Past::default();
        past.record(&snapshot(0, vec![ended]));
        assert_eq!(past.of(&process()), None);
    }
}
