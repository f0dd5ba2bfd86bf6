//! The ledger: keeps the sums of every process over threads that come and go, so that no counter falls and none is
//! counted twice. Pure: readings go in, accounts come out.
//!
//! A live thread's account is what its rows said last. A thread that has ended is folded into its process once its rows
//! have been read a last time. A thread that computes without switching is in no row yet: its slice under way is added
//! from the CPU that runs it.

use super::totals::{BySlot, Totals};
use agent_ebpf::{BalanceRow, DeviceRow, NO_NODE, RowKey, SchedRow, Thread, TouchRow};
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
    /// Rows of memory for devices.
    pub(crate) device: Vec<(RowKey, DeviceRow)>,
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

/// One process: its live threads, those folded, and what was told of it.
#[derive(Debug, Default)]
struct Process {
    threads: BTreeMap<u32, LiveThread>,
    folded: ProcessAccount,
    published: ProcessAccount,
}

#[derive(Debug, Default)]
struct LiveThread {
    rows: ThreadAccount,
    published: ByCpuNode,
    /// The node that it runs on, and what is in no row yet.
    running: Option<(u32, Totals)>,
}

impl LiveThread {
    /// Its rows and the slice under way.
    fn now(&self) -> ThreadAccount {
        let mut now = self.rows.clone();
        if let Some((node, under_way)) = &self.running {
            now.by_node.entry(*node).or_default().add(under_way);
        }
        now
    }
}

/// The sums. See the module's doc.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// By cookie.
    processes: HashMap<u64, Process>,
}

impl Ledger {
    /// Takes over a reading. A row that a reading missed keeps its last value.
    pub(crate) fn absorb(&mut self, reading: &Reading) {
        self.absorb_rows(reading);
        for process in self.processes.values_mut() {
            for thread in process.threads.values_mut() {
                thread.running = None;
            }
        }
        for running in &reading.running {
            let mut totals = Totals {
                on_cpu_ns: running.on_cpu_ns,
                ..Totals::default()
            };
            if let Some(slot) = running.moved_from {
                totals.moves_from[slot] = 1;
            }
            // A thread that has not switched since it is watched has no row, but it is there.
            self.thread(running.id, running.tgid).running = Some((running.node, totals));
        }
    }

    /// Takes over rows that were read for a last time; who runs is not looked at.
    pub(crate) fn absorb_rows(&mut self, reading: &Reading) {
        // A row without a cookie is being made.
        for (tid, row) in reading.threads.iter().filter(|(_, row)| row.cookie != 0) {
            let id = ThreadId {
                tid: *tid,
                cookie: row.cookie,
            };
            let rows = &mut self.thread(id, row.tgid).rows;
            rows.scan_ns = row.scan_ns;
            rows.scan_cpu_ns = row.scan_cpu_ns;
            if row.home_node != NO_NODE {
                let home = rows.by_node.entry(row.home_node).or_default();
                home.set_home(row);
            }
        }
        for (key, row) in reading.sched.iter().filter(|(_, row)| row.cookie != 0) {
            self.totals(*key, row.cookie, row.tgid).set_sched(row);
        }
        for (key, row) in reading.touch.iter().filter(|(_, row)| row.cookie != 0) {
            self.totals(*key, row.cookie, row.tgid).set_touch(row);
        }
        for (key, row) in reading.balance.iter().filter(|(_, row)| row.cookie != 0) {
            self.totals(*key, row.cookie, row.tgid).set_balance(row);
        }
        for (key, row) in reading.device.iter().filter(|(_, row)| row.cookie != 0) {
            self.totals(*key, row.cookie, row.tgid).set_device(row);
        }
    }

    fn thread(&mut self, id: ThreadId, tgid: u32) -> &mut LiveThread {
        let process = self.processes.entry(id.cookie).or_default();
        let thread = process.threads.entry(id.tid).or_default();
        thread.rows.tgid = tgid;
        thread
    }

    fn totals(&mut self, key: RowKey, cookie: u64, tgid: u64) -> &mut Totals {
        let tgid = u32::try_from(tgid).unwrap_or(0);
        let id = ThreadId {
            tid: key.tid,
            cookie,
        };
        self.thread(id, tgid)
            .rows
            .by_node
            .entry(key.node)
            .or_default()
    }

    /// Threads that have ended: those that `is_live` doesn't know. The mark that a thread leaves when it begins to exit is
    /// not enough: it may still tear down a large address space, and the last slice counts.
    /// Retire them a tick later, when that slice is in its row.
    pub(crate) fn ended(&self, is_live: impl Fn(&ThreadId) -> bool) -> Vec<ThreadId> {
        let mut ended: Vec<_> = self.ids().filter(|id| !is_live(id)).collect();
        ended.sort_unstable();
        ended
    }

    fn ids(&self) -> impl Iterator<Item = ThreadId> {
        self.processes.iter().flat_map(|(cookie, process)| {
            process.threads.keys().map(|tid| ThreadId {
                tid: *tid,
                cookie: *cookie,
            })
        })
    }

    fn live(&self, id: &ThreadId) -> Option<&LiveThread> {
        self.processes.get(&id.cookie)?.threads.get(&id.tid)
    }

    /// The nodes on which a thread has rows.
    pub(crate) fn nodes(&self, id: &ThreadId) -> Vec<u32> {
        self.live(id)
            .map(|t| t.rows.by_node.keys().copied().collect())
            .unwrap_or_default()
    }

    /// Folds a thread, whose rows are deleted, into its process.
    pub(crate) fn fold(&mut self, id: &ThreadId) {
        let Some(process) = self.processes.get_mut(&id.cookie) else {
            return;
        };
        if let Some(thread) = process.threads.remove(&id.tid) {
            process.folded.add(&thread.rows);
        }
    }

    /// A process's counters now; never less than what was told before.
    pub(crate) fn process(&mut self, cookie: u64) -> &ProcessAccount {
        let process = self.processes.entry(cookie).or_default();
        let mut now = process.folded.clone();
        for thread in process.threads.values() {
            now.add(&thread.now());
        }
        process.published.raise(&now);
        &process.published
    }

    /// A live thread's counters, its slice under way included; never less than what was told before.
    pub(crate) fn live_thread(&mut self, id: &ThreadId) -> Option<ThreadAccount> {
        let thread = self
            .processes
            .get_mut(&id.cookie)?
            .threads
            .get_mut(&id.tid)?;
        let mut now = thread.now();
        for (node, totals) in &now.by_node {
            thread.published.entry(*node).or_default().raise(totals);
        }
        now.by_node.clone_from(&thread.published);
        Some(now)
    }

    /// Whether a process still has threads that were not folded.
    pub(crate) fn has_threads(&self, cookie: u64) -> bool {
        self.processes
            .get(&cookie)
            .is_some_and(|p| !p.threads.is_empty())
    }

    /// Forgets a process.
    pub(crate) fn forget(&mut self, cookie: u64) {
        self.processes.remove(&cookie);
    }

    /// Forgets processes that are not `known`: rows of one that was let go. Returns their threads and those rows' nodes.
    pub(crate) fn retain(&mut self, known: &HashSet<u64>) -> Vec<(ThreadId, Vec<u32>)> {
        let strangers: Vec<_> = self
            .ids()
            .filter(|id| !known.contains(&id.cookie))
            .map(|id| (id, self.nodes(&id)))
            .collect();
        self.processes.retain(|cookie, _| known.contains(cookie));
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
