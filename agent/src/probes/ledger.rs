//! The ledger: keeps the sums of every process over threads that come and go, so that no counter falls and none is
//! counted twice. Pure: readings go in, accounts come out.
//!
//! A live thread's account is what its rows said last. A thread that has ended is folded into its process once its rows
//! have been read a last time. A thread that computes without switching is in no row yet: its slice under way is added
//! from the CPU that runs it.

use super::totals::{BySlot, Totals};
use agent_ebpf::{BalanceRow, NO_NODE, RowKey, SchedRow, Thread, TouchRow};
use std::collections::{BTreeMap, HashMap, HashSet};

/// What one tick read from the kernel side's maps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading {
    /// Threads' state by tid.
    pub(crate) threads: Vec<(u32, Thread)>,
    /// Scheduling rows.
    pub(crate) sched: Vec<(RowKey, SchedRow)>,
    /// Page-fault rows.
    pub(crate) touch: Vec<(RowKey, TouchRow)>,
    /// Balancing rows.
    pub(crate) balance: Vec<(RowKey, BalanceRow)>,
    /// Threads that ran throughout the reading.
    pub(crate) running: Vec<Running>,
}

/// A slice under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Running {
    /// Who runs.
    pub(crate) id: ThreadId,
    /// Its thread-group id.
    pub(crate) tgid: u32,
    /// The node of the CPU that runs it.
    pub(crate) node: u32,
    /// The slot of the node of its last switch-out; `None` when that is the same node or none.
    pub(crate) moved_from: Option<usize>,
    /// On-CPU nanoseconds that are in no row yet.
    pub(crate) on_cpu_ns: u64,
}

/// Counts by node of the CPU.
pub(crate) type ByCpuNode = BTreeMap<u32, Totals>;

/// What is known of one thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadAccount {
    /// Thread-group id.
    pub(crate) tgid: u32,
    /// By node of the CPU.
    pub(crate) by_node: ByCpuNode,
    /// Elapsed nanoseconds of scanning.
    pub(crate) scan_ns: u64,
    /// On-CPU nanoseconds of scanning.
    pub(crate) scan_cpu_ns: u64,
}

/// What is known of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessAccount {
    /// By node of the CPU.
    pub(crate) by_node: ByCpuNode,
    /// Elapsed nanoseconds of scanning.
    pub(crate) scan_ns: u64,
    /// On-CPU nanoseconds of scanning.
    pub(crate) scan_cpu_ns: u64,
}

impl ProcessAccount {
    fn add(&mut self, thread: &ThreadAccount) {
        for (node, totals) in &thread.by_node {
            self.by_node.entry(*node).or_default().add(totals);
        }
        self.scan_ns += thread.scan_ns;
        self.scan_cpu_ns += thread.scan_cpu_ns;
    }

    fn raise(&mut self, other: &Self) {
        for (node, totals) in &other.by_node {
            self.by_node.entry(*node).or_default().raise(totals);
        }
        self.scan_ns = self.scan_ns.max(other.scan_ns);
        self.scan_cpu_ns = self.scan_cpu_ns.max(other.scan_cpu_ns);
    }
}

/// A thread of a tracked process: a tid comes back, its process's cookie does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ThreadId {
    /// Thread id.
    pub(crate) tid: u32,
    /// [`agent_ebpf::Tracked::cookie`] of its process.
    pub(crate) cookie: u64,
}

/// The sums. See the module's doc.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    threads: HashMap<ThreadId, ThreadAccount>,
    folded: HashMap<u64, ProcessAccount>,
    published: HashMap<u64, ProcessAccount>,
    running: HashMap<ThreadId, (u32, Totals)>,
}

impl Ledger {
    /// Takes over a reading. A row that a reading missed keeps its last value.
    pub(crate) fn absorb(&mut self, reading: &Reading) {
        for (tid, thread) in &reading.threads {
            let id = ThreadId {
                tid: *tid,
                cookie: thread.cookie,
            };
            let account = self.thread(id, thread.tgid);
            account.scan_ns = thread.scan_ns;
            account.scan_cpu_ns = thread.scan_cpu_ns;
        }
        for (key, row) in &reading.sched {
            self.totals(*key, row.cookie, row.tgid).set_sched(row);
        }
        for (key, row) in &reading.touch {
            self.totals(*key, row.cookie, row.tgid).set_touch(row);
        }
        for (key, row) in &reading.balance {
            self.totals(*key, row.cookie, row.tgid).set_balance(row);
        }
        self.running.clear();
        for running in &reading.running {
            let mut totals = Totals {
                on_cpu_ns: running.on_cpu_ns,
                ..Totals::default()
            };
            if let Some(slot) = running.moved_from {
                totals.moves_from[slot] = 1;
            }
            // A thread that has not switched since it is watched has no row, but it is there.
            self.thread(running.id, running.tgid);
            self.running.insert(running.id, (running.node, totals));
        }
    }

    /// Takes over rows that were read for a last time; who runs is not looked at.
    pub(crate) fn absorb_last(&mut self, reading: &Reading) {
        let running = std::mem::take(&mut self.running);
        self.absorb(reading);
        self.running = running;
    }

    fn thread(&mut self, id: ThreadId, tgid: u32) -> &mut ThreadAccount {
        let account = self.threads.entry(id).or_default();
        account.tgid = tgid;
        account
    }

    fn totals(&mut self, key: RowKey, cookie: u64, tgid: u64) -> &mut Totals {
        let tgid = u32::try_from(tgid).unwrap_or(0);
        let id = ThreadId {
            tid: key.tid,
            cookie,
        };
        self.thread(id, tgid).by_node.entry(key.node).or_default()
    }

    /// Threads that have ended: those that `is_live` doesn't know. The mark that a thread leaves when it begins to exit is
    /// not enough: it may still tear down a large address space, and the last slice counts.
    /// Retire them a tick later, when that slice is in its row.
    pub(crate) fn ended(&self, is_live: impl Fn(&ThreadId) -> bool) -> Vec<ThreadId> {
        let mut ended: Vec<_> = self
            .threads
            .keys()
            .filter(|id| !is_live(id))
            .copied()
            .collect();
        ended.sort_unstable();
        ended
    }

    /// The nodes on which a thread has rows.
    pub(crate) fn nodes(&self, id: &ThreadId) -> Vec<u32> {
        self.threads
            .get(id)
            .map(|t| t.by_node.keys().copied().collect())
            .unwrap_or_default()
    }

    /// Folds a thread, whose rows are deleted, into its process.
    pub(crate) fn fold(&mut self, id: &ThreadId) {
        if let Some(account) = self.threads.remove(id) {
            self.folded.entry(id.cookie).or_default().add(&account);
        }
        self.running.remove(id);
    }

    /// A process's counters now; never less than what was told before.
    pub(crate) fn process(&mut self, cookie: u64) -> &ProcessAccount {
        let mut now = self.folded.get(&cookie).cloned().unwrap_or_default();
        for (id, account) in self.threads.iter().filter(|(id, _)| id.cookie == cookie) {
            now.add(account);
            if let Some((node, under_way)) = self.running.get(id) {
                now.by_node.entry(*node).or_default().add(under_way);
            }
        }
        let published = self.published.entry(cookie).or_default();
        published.raise(&now);
        published
    }

    /// A live thread's counters, its slice under way included.
    pub(crate) fn live_thread(&self, id: &ThreadId) -> Option<ThreadAccount> {
        let mut account = self.threads.get(id)?.clone();
        if let Some((node, under_way)) = self.running.get(id) {
            account.by_node.entry(*node).or_default().add(under_way);
        }
        Some(account)
    }

    /// Whether a process still has threads that were not folded.
    pub(crate) fn has_threads(&self, cookie: u64) -> bool {
        self.threads.keys().any(|id| id.cookie == cookie)
    }

    /// Forgets a process.
    pub(crate) fn forget(&mut self, cookie: u64) {
        self.folded.remove(&cookie);
        self.published.remove(&cookie);
        self.threads.retain(|id, _| id.cookie != cookie);
    }

    /// Forgets what belongs to no process of `known`: rows of a process that was let go.
    pub(crate) fn retain(&mut self, known: &HashSet<u64>) -> Vec<(ThreadId, Vec<u32>)> {
        let strangers: Vec<_> = self
            .threads
            .iter()
            .filter(|(id, _)| !known.contains(&id.cookie))
            .map(|(id, account)| (*id, account.by_node.keys().copied().collect()))
            .collect();
        for (id, _) in &strangers {
            self.threads.remove(id);
        }
        strangers
    }
}

/// Where a running thread came from: the slot of its last node, when that is another than the CPU's.
pub(crate) fn moved_from(
    last_node: u32,
    node: u32,
    slot_of: impl Fn(u32, u32) -> usize,
) -> Option<usize> {
    (last_node != NO_NODE && last_node != node).then(|| slot_of(node, last_node))
}

/// Sum over all slots.
pub(crate) fn sum(by_slot: &BySlot) -> u64 {
    by_slot.iter().sum()
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
