//! One process with its predecessor: the rates and totals that the screens show.

use model::process::{ByNode, Process, Thread};
use model::rates::per_second;
use model::topology::NodeId;

/// A number for each node that has one, ascending by node.
pub(crate) type Shares = Vec<(NodeId, f64)>;

/// A process, the same one a snapshot earlier, and the time between.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'a> {
    pub(crate) now: &'a Process,
    before: Option<&'a Process>,
    elapsed_ns: u64,
}

impl<'a> Row<'a> {
    pub(crate) fn new(
        now: &'a Process,
        before: Option<&'a Process>,
        elapsed_ns: Option<u64>,
    ) -> Self {
        Self {
            now,
            before,
            elapsed_ns: elapsed_ns.unwrap_or(0),
        }
    }

    /// Growth per second of one counter.
    pub(crate) fn rate(&self, counter: impl Fn(&Process) -> Option<u64>) -> Option<f64> {
        per_second(
            self.before.and_then(&counter),
            counter(self.now),
            self.elapsed_ns,
        )
    }

    /// CPUs' worth of time on each node.
    pub(crate) fn cpu_by_node(&self) -> Option<Shares> {
        cpus(
            self.before?.cpu_time_ns_by_node.as_ref(),
            self.now.cpu_time_ns_by_node.as_ref(),
            self.elapsed_ns,
        )
    }

    /// CPUs' worth of time on each node, of a thread.
    pub(crate) fn thread_cpu_by_node(&self, thread: &Thread) -> Option<Shares> {
        cpus(
            self.thread_before(thread)?.cpu_time_ns_by_node.as_ref(),
            thread.cpu_time_ns_by_node.as_ref(),
            self.elapsed_ns,
        )
    }

    /// Growth per second of one of a thread's counters.
    pub(crate) fn thread_rate(
        &self,
        thread: &Thread,
        counter: impl Fn(&Thread) -> Option<u64>,
    ) -> Option<f64> {
        let before = self.thread_before(thread).and_then(&counter);
        per_second(before, counter(thread), self.elapsed_ns)
    }

    fn thread_before(&self, thread: &Thread) -> Option<&'a Thread> {
        let threads = &self.before?.threads;
        // They are ascending by tid; a reader that broke that rule costs a rate, no more.
        let at = threads.binary_search_by_key(&thread.tid, |t| t.tid).ok()?;
        threads.get(at)
    }

    /// Resident bytes by node.
    pub(crate) fn memory_by_node(&self) -> Option<Shares> {
        self.now.placement.by_node_bytes.as_ref().map(shares)
    }

    /// Resident bytes: of the placement; of the kernel's count without one, and while it is of a part.
    pub(crate) fn memory_total(&self) -> Option<u64> {
        let placement = &self.now.placement;
        let placed = placement.by_node_bytes.as_ref().map(total);
        match placement.seen_percent() {
            Some(_) => self.now.resident_bytes.or(placed),
            None => placed.or(self.now.resident_bytes),
        }
    }
}

fn cpus(before: Option<&ByNode>, now: Option<&ByNode>, elapsed_ns: u64) -> Option<Shares> {
    let (before, now) = (before?, now?);
    now.iter()
        .map(|(node, ns)| {
            // A node that appears now had nothing before.
            let earlier = before.get(node).copied().unwrap_or(0);
            per_second(Some(earlier), Some(*ns), elapsed_ns).map(|rate| (*node, rate / 1e9))
        })
        .collect()
}

/// The numbers as shares of nothing in particular: a bar divides them.
pub(crate) fn shares(by_node: &ByNode) -> Shares {
    by_node.iter().map(|(n, v)| (*n, *v as f64)).collect()
}

/// Their sum; absurd numbers don't overflow it.
pub(crate) fn total(by_node: &ByNode) -> u64 {
    by_node.values().fold(0, |sum, v| sum.saturating_add(*v))
}
