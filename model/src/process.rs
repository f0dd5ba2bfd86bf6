//! One tracked process: its identity, its counters, where its memory lies, and the verdict on it.
//!
//! Counters only grow while a process is tracked. `None` means that no signal gave the number; it is never a zero.

use crate::devices::DeviceUse;
use crate::finding::{Cleared, Finding};
use crate::mapping::MemoryClass;
use crate::policy::{OwnPolicy, Placing, Policy};
use crate::size::whole;
use crate::time::Timestamp;
use crate::topology::NodeId;
use crate::verdict::{RemoteShare, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A number for each node; serialized with the node's id as a decimal string.
pub type ByNode = BTreeMap<NodeId, u64>;

/// A tracked process. Its identity is (`pid`, `start_time`): pids come back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// Thread-group id in the agent's pid namespace.
    pub pid: u32,
    /// Clock ticks after boot, field 22 of `/proc/PID/stat`.
    pub start_time: u64,
    /// When the counters below began.
    pub tracked_since: Timestamp,
    /// The parent's pid; `None` when it can't be read.
    pub parent_pid: Option<u32>,
    /// Executable's short name (`/proc/PID/comm`).
    pub name: String,
    /// The file name of the program (`/proc/PID/exe`), which a process can't change; `None` when it can't be read.
    pub executable: Option<String>,
    /// The command line as a shell takes it, with quotes where an argument needs them.
    pub command: String,
    /// Its user, where that isn't the one who watches.
    #[serde(default)]
    pub other_uid: Option<u32>,
    /// `vllm`, `sglang`, `llama.cpp`, …; `None` when no rule knows it.
    pub engine: Option<String>,
    /// What it does in the engine: `api-server`, `engine-core`, `worker`, `server`, …
    pub role: Option<String>,
    /// Its rank in the engine's parallel group.
    pub rank: Option<u32>,
    /// The model that it serves, as named on its command line.
    pub model: Option<String>,
    /// False once it has ended; it stays until its last thread is counted, a few snapshots.
    pub alive: bool,
    /// On-CPU nanoseconds by node of the CPU.
    pub cpu_time_ns_by_node: Option<ByNode>,
    /// Threads that changed node.
    pub moves: Moves,
    /// User accesses that the kernel saw.
    pub touches: Touches,
    /// Pages that NUMA balancing moved.
    pub migrations: Migrations,
    /// Elapsed nanoseconds that its threads spent in `task_numa_work`.
    pub scan_time_ns: Option<u64>,
    /// On-CPU nanoseconds of the same.
    pub scan_cpu_time_ns: Option<u64>,
    /// Memory that can't move.
    pub pinned: Pinned,
    /// Pages of 4 KiB that a GPU or RDMA driver allocated for it, within its calls on such a device. A flow: what was
    /// freed since is not taken off.
    pub driver_allocated_pages: NodePages,
    /// Where its resident pages lie.
    pub placement: Placement,
    /// Resident set, bytes (`/proc/PID/statm`).
    pub resident_bytes: Option<u64>,
    /// Its leader's memory policy in numactl's words (`default`, `bind:1`, …).
    pub policy: Option<String>,
    /// CPUs it may run on, as the kernel's list (`0-31,64-95`).
    pub cpus_allowed: Option<String>,
    /// What it may use, and who else decides about it, for programs.
    #[serde(default)]
    pub placing: Placing,
    /// How much of its memory traffic is remote.
    pub remote_share: RemoteShare,
    /// The conclusion, derived from `remote_share`.
    pub verdict: Verdict,
    /// Why it is unknown; `None` where it is not.
    #[serde(default)]
    pub verdict_reason: Option<String>,
    /// What is wrong with it and what to do, the worst first; none of a process that has ended.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// What was found while it was tracked, and is not any more.
    #[serde(default)]
    pub findings_cleared: Vec<Cleared>,
    /// GPUs and other devices that it uses, by label.
    #[serde(default)]
    pub devices: Vec<DeviceUse>,
    /// Why there may be more; `None` where its open files were read.
    #[serde(default)]
    pub devices_reason: Option<String>,
    /// Live threads, ascending by tid.
    pub threads: Vec<Thread>,
}

/// Moves of threads between nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Moves {
    /// All moves between different nodes.
    pub total: Option<u64>,
    /// Those between sockets.
    pub cross_socket: Option<u64>,
    /// Every pair that occurred.
    pub by_pair: Option<Vec<MovePair>>,
}

/// Threads that ran on one node and then on another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovePair {
    /// The node it had run on.
    pub from: NodeId,
    /// The node it runs on.
    pub to: NodeId,
    /// How often.
    pub count: u64,
}

/// The kinds of touch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Touches {
    /// The fault allocated the page: private memory and private copies.
    pub first_touch: TouchCounter,
    /// The fault mapped a page that the page cache or shared memory holds.
    pub map: TouchCounter,
    /// NUMA balancing had unmapped the page to learn who uses it.
    pub hint: HintCounter,
    /// Pages that came back from swap; not part of the kinds above.
    pub swap_in_pages: Option<u64>,
}

/// Pages of 4 KiB touched, by how far away they were.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TouchCounter {
    /// All pages, those of unknown node included.
    pub pages: Option<u64>,
    /// Pages on the toucher's node.
    pub local_pages: Option<u64>,
    /// Pages on another node of its socket.
    pub same_socket_pages: Option<u64>,
    /// Pages on another socket.
    pub cross_socket_pages: Option<u64>,
    /// Pages whose node the mechanism doesn't tell.
    pub unknown_node_pages: Option<u64>,
    /// Every pair that occurred; on hosts with over 16 nodes only the first 16 have pairs.
    pub by_pair: Option<Vec<TouchPair>>,
}

/// [`TouchCounter`] with the number of faults beside: a huge page is one fault of 512 pages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HintCounter {
    /// The pages.
    #[serde(flatten)]
    pub counter: TouchCounter,
    /// Faults, as `/proc/vmstat`'s `numa_hint_faults` counts them.
    pub faults: Option<u64>,
    /// Local ones, as `numa_hint_faults_local` counts them.
    pub local_faults: Option<u64>,
}

/// Pages touched from one node on another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TouchPair {
    /// The node of the CPU that touched.
    pub cpu_node: NodeId,
    /// The node of the page.
    pub memory_node: NodeId,
    /// Pages of 4 KiB.
    pub pages: u64,
}

/// Pages that NUMA balancing moved between nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Migrations {
    /// Pages migrated.
    pub pages: Option<u64>,
    /// Pages that should have been, and weren't.
    pub failed_pages: Option<u64>,
    /// Every pair that the mechanism told.
    pub by_pair: Option<Vec<MigrationPair>>,
}

/// Pages that went from one node to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigrationPair {
    /// The node they lay on.
    pub from: NodeId,
    /// The node they lie on now.
    pub to: NodeId,
    /// Pages of 4 KiB.
    pub pages: u64,
}

/// Pages of 4 KiB by the node that they lie on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodePages {
    /// All pages, those of unknown node included.
    pub pages: Option<u64>,
    /// By node; on hosts with over 16 nodes the first 16 only.
    pub by_node: Option<ByNode>,
}

/// Memory that can't move, or not by itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pinned {
    /// Memory pinned for devices now, bytes, as the drivers account for it (`VmPin`); some don't.
    pub bytes: Option<u64>,
    /// Memory locked by `mlock` now, bytes (`VmLck`).
    pub locked_bytes: Option<u64>,
    /// Why either is missing of a process that has memory.
    #[serde(default)]
    pub reason: Option<String>,
    /// Long-term pins made while it is watched. A flow: what was unpinned since is not taken off.
    pub made: NodePages,
}

/// Where the resident pages lie.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Placement {
    /// Resident bytes by node.
    pub by_node_bytes: Option<ByNode>,
    /// Half the width of the 95 % confidence interval of each; 0 where every page was asked for.
    #[serde(default)]
    pub margin_by_node_bytes: Option<ByNode>,
    /// Resident bytes by kind of memory and node: of a kind without an entry nothing is known, and one of which there is
    /// nothing has an empty one.
    pub by_kind: Option<BTreeMap<MemoryKind, ByNode>>,
    /// Resident bytes by what the mappings hold, and node. `numa_maps` doesn't tell it.
    #[serde(default)]
    pub by_class: Option<BTreeMap<MemoryClass, ByNode>>,
    /// Mappings with a policy of their own, by that policy, those with the most memory first. Only `check` and `snapshot
    /// --exact` ask for it: the kernel looks at every page to tell.
    #[serde(default)]
    pub own_policies: Option<Vec<OwnPolicy>>,
    /// Of the weights, resident bytes by mapped file and node: [`WEIGHTS_FILES`] files at most. `numa_maps` doesn't tell it.
    #[serde(default)]
    pub weights_by_file: Option<BTreeMap<String, ByNode>>,
    /// Bytes locked by `mlock`, by node, from a sample of the pages' flags; empty where nothing is locked. `None` without
    /// CAP_SYS_ADMIN, and where too few of the sampled pages are locked.
    #[serde(default)]
    pub locked_by_node_bytes: Option<ByNode>,
    /// Share of the mapped addresses in which resident pages have been looked for, 0 to 1.
    #[serde(default)]
    pub coverage: Option<f64>,
    /// What told it: `move_pages`, a sample, or `numa_maps`, all pages; `None` when nothing did.
    pub source: Option<String>,
    /// When it was read.
    pub taken_at: Option<Timestamp>,
    /// Why there is none, or why it is old.
    pub reason: Option<String>,
}

/// Files of weights that are told apart, in the order of their addresses: each has its own part of the sample.
pub const WEIGHTS_FILES: usize = 16;

impl Placement {
    /// Whether a share of so much would be seen: all addresses were looked at, and no node's margin is as large a share of
    /// the whole.
    #[must_use]
    pub fn is_conclusive(&self, share: f64) -> bool {
        let Some(by_node) = &self.by_node_bytes else {
            return false;
        };
        let whole: u64 = by_node.values().fold(0, |sum, n| sum.saturating_add(*n));
        let margins = self.margin_by_node_bytes.iter().flat_map(BTreeMap::values);
        let widest = margins.max().copied().unwrap_or(0);
        self.coverage.is_none_or(|part| part >= 1.0) && widest as f64 <= share * whole as f64
    }

    /// How much of the addresses was looked at, per cent, while that isn't all.
    #[must_use]
    pub fn seen_percent(&self) -> Option<u64> {
        let part = self.coverage.filter(|part| *part < 1.0)?;
        Some(whole((part * 100.0).floor()))
    }

    /// Whether it is an estimate from a sample rather than a count.
    #[must_use]
    pub fn is_estimate(&self) -> bool {
        let incomplete = self.coverage.is_some_and(|share| share < 1.0);
        let margins = self.margin_by_node_bytes.as_ref();
        incomplete || margins.is_some_and(|m| m.values().any(|bytes| *bytes > 0))
    }
}

/// Kinds of memory, each resident page in one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryKind {
    /// Private anonymous memory: heap, stacks, KV cache.
    Anonymous,
    /// Page cache of mapped files: weights.
    File,
    /// Shared memory: tmpfs, memfd, System V.
    Shared,
    /// hugetlb pages.
    Huge,
}

impl MemoryKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Anonymous, Self::File, Self::Shared, Self::Huge];

    /// The word in JSON and in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Anonymous => "anonymous",
            Self::File => "file",
            Self::Shared => "shared",
            Self::Huge => "huge",
        }
    }
}

/// A live thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    /// Thread id in the agent's pid namespace.
    pub tid: u32,
    /// `/proc/PID/task/TID/comm`.
    pub name: String,
    /// On-CPU nanoseconds by node of the CPU.
    pub cpu_time_ns_by_node: Option<ByNode>,
    /// Moves between nodes.
    pub moves: Option<u64>,
    /// Elapsed nanoseconds in `task_numa_work`.
    pub scan_time_ns: Option<u64>,
    /// CPUs that it may run on, ascending, where they aren't its process's; `None` where they are, and as long as it
    /// hasn't been asked.
    #[serde(default)]
    pub cpus_allowed: Option<Vec<u32>>,
    /// Its memory policy, where it isn't its process's; `None` where it is, where it can't be read, and as long as it hasn't
    /// been asked.
    #[serde(default)]
    pub policy: Option<Policy>,
}
