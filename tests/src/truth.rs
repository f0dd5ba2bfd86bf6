//! What a workload did, in the snapshot's own shape, so that a test lays the two side by side.

use model::process::{ByNode, MovePair, TouchPair};
use serde::{Deserialize, Serialize};

/// The line that a workload prints when it has nothing left to do but to be told where to start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ready {
    /// Always true; tells this line from others.
    pub ready: bool,
    /// The process to watch.
    pub pid: u32,
}

/// The line that a workload prints when it has done its work; it stays alive until it is let go.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Truth {
    /// Always true; tells this line from others.
    pub done: bool,
    /// The subcommand.
    pub workload: String,
    /// The process that said ready, then its descendants in order of birth.
    pub processes: Vec<ProcessTruth>,
    /// From the release to this line.
    pub elapsed_ns: u64,
}

/// What one process did since it was released (or born).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ProcessTruth {
    /// Thread-group id.
    pub pid: u32,
    /// Its parent.
    pub parent_pid: u32,
    /// Its part in the workload: `main`, `child`, `writer`, …
    pub part: String,
    /// Pages that its own faults allocated. Start-up, stacks and the report cost some tens of pages more.
    pub first_touch: Vec<TouchPair>,
    /// Pages of page cache or shared memory that its faults mapped.
    pub map: Vec<TouchPair>,
    /// Pages that came back from swap.
    pub swap_in_pages: u64,
    /// Pages that it pinned for long.
    #[serde(default)]
    pub pinned: Vec<TouchPair>,
    /// Bytes that the kernel says are pinned at the time of the report (`VmPin`); some kernels don't say.
    #[serde(default)]
    pub pinned_bytes_now: u64,
    /// Bytes locked in memory at the time of the report.
    #[serde(default)]
    pub locked_bytes_now: u64,
    /// Pages that a driver allocated for it, inside its calls.
    #[serde(default)]
    pub driver_allocated: Vec<TouchPair>,
    /// Its threads' moves between nodes.
    pub moves: Vec<MovePair>,
    /// `CLOCK_THREAD_CPUTIME_ID` by the node that the thread was bound to meanwhile, dead threads included.
    pub cpu_time_ns_by_node: ByNode,
    /// `CLOCK_PROCESS_CPUTIME_ID`, which knows what a thread spent on its own exit too.
    pub process_cpu_time_ns: u64,
    /// Pages of the touched memory by node at the time of the report, as `move_pages` says.
    pub pages_by_node: ByNode,
    /// Bytes of the touched memory in huge pages, as smaps says.
    pub huge_bytes: u64,
    /// Threads alive at the time of the report, the leader first.
    pub threads: Vec<ThreadTruth>,
    /// Threads that were born and died.
    pub dead_threads: u64,
}

/// What one thread did since it was released.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ThreadTruth {
    /// Thread id.
    pub tid: u32,
    /// Name, as in `comm`.
    pub name: String,
    /// As [`ProcessTruth::cpu_time_ns_by_node`].
    pub cpu_time_ns_by_node: ByNode,
    /// Moves between nodes.
    pub moves: u64,
}

impl ProcessTruth {
    /// Adds a thread's CPU time to the process, and the thread to the list of live ones.
    pub fn add_thread(&mut self, thread: ThreadTruth) {
        self.add_cpu_time(&thread.cpu_time_ns_by_node);
        self.threads.push(thread);
    }

    /// Adds CPU time.
    pub fn add_cpu_time(&mut self, by_node: &ByNode) {
        for (node, ns) in by_node {
            *self.cpu_time_ns_by_node.entry(*node).or_default() += ns;
        }
    }
}

impl Truth {
    /// The first process with this part.
    #[must_use]
    pub fn part(&self, part: &str) -> Option<&ProcessTruth> {
        self.processes.iter().find(|p| p.part == part)
    }
}

/// Pages touched from one node, as pairs.
#[must_use]
pub fn pairs(cpu_node: u32, pages_by_node: &ByNode) -> Vec<TouchPair> {
    pages_by_node
        .iter()
        .map(|(memory_node, pages)| TouchPair {
            cpu_node,
            memory_node: *memory_node,
            pages: *pages,
        })
        .collect()
}
