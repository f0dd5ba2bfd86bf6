//! The ABI: what the kernel side writes and the user side reads. Plain `repr(C)` types without implicit padding.
//!
//! A row belongs to one (thread, CPU node) and is written by that thread alone, each field by one program, so that
//! counting needs no atomics and no cache line bounces between sockets. Counters only grow; the user side folds and
//! deletes the rows of threads that have ended.
#![no_std]

/// Nodes that have a counter of their own in a row; nodes beyond are counted by locality.
pub const PAIR_NODES: usize = 16;
/// Counts of a node beyond [`PAIR_NODES`] that is the CPU's own.
pub const SLOT_LOCAL: usize = PAIR_NODES;
/// Counts of nodes beyond [`PAIR_NODES`] on the CPU's socket.
pub const SLOT_SAME_SOCKET: usize = PAIR_NODES + 1;
/// Counts of nodes beyond [`PAIR_NODES`] on other sockets.
pub const SLOT_CROSS_SOCKET: usize = PAIR_NODES + 2;
/// Counts whose memory node the mechanism doesn't tell.
pub const SLOT_UNKNOWN: usize = PAIR_NODES + 3;
/// Length of every per-node counter array.
pub const SLOTS: usize = PAIR_NODES + 4;
/// Node ids that the kernel side can tell apart: 0 to 63.
pub const NODE_IDS: usize = 64;
/// Major numbers of character devices: the kernel hands out none above.
pub const MAJORS: usize = 512;
/// "No node yet" in [`Thread::home_node`], [`Thread::last_node`] and [`Thread::hint_node`].
pub const NO_NODE: u32 = u32::MAX;

/// What a thread counted from the CPUs of one node: the key of every row.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowKey {
    /// Thread id in the kernel's initial pid namespace.
    pub tid: u32,
    /// Node of the CPU that it ran on; for migrated pages the node that they went to.
    pub node: u32,
}

/// A process to watch; map `TRACKED`, keyed by its thread-group id.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tracked {
    /// CLOCK_MONOTONIC nanoseconds at which it began to be tracked. Tells a reused pid from its predecessor.
    pub cookie: u64,
    /// The tracked process that forked it; 0 when the user side asked for it.
    pub parent: u32,
    /// 1 once its last thread has begun to exit.
    pub exited: u32,
}

/// One thread's state between events; map `THREADS`, keyed by tid. What a fault needs stands at its beginning, near each
/// other: it is in no cache when the fault comes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Thread {
    /// [`Tracked::cookie`] of its process.
    pub cookie: u64,
    /// The page fault or system call that allocated `pending_pages`.
    pub pending_at: u64,
    /// The page fault that may copy a page; 0 for none.
    pub copying_at: u64,
    /// Thread-group id.
    pub tgid: u32,
    /// 1 once it has begun to exit, or has given up this tid in an exec.
    pub exited: u32,
    /// Node at its last switch-out.
    pub last_node: u32,
    /// Node of the page in the hinting fault under way, before migration.
    pub hint_node: u32,
    /// Node of the CPU at that moment.
    pub hint_cpu_node: u32,
    /// 1 while `do_swap_page` has yet to map its page.
    pub in_swap: u32,
    /// Pages that a fault or a system call allocated and has not yet accounted for.
    pub pending_pages: u32,
    /// Their node.
    pub pending_node: u32,
    /// 1 while it is in a call on a device's file.
    pub in_driver: u32,
    /// 1 once `pending_pages` are known to come from swap.
    pub pending_swap: u32,
    /// Node of its first switch-out; it never changes.
    pub home_node: u32,
    /// Pads.
    pub reserved: u32,
    /// The kernel's task at its last switch-out; 0 before the first. A thread that executes a program takes over its
    /// leader's tid before it tells so.
    pub task: u64,
    /// On-CPU nanoseconds on `home_node`; those on other nodes are in rows of `SCHED`. A thread that stays costs a switch
    /// one look-up less.
    pub on_cpu_ns: u64,
    /// The scheduler's own account of its run time (`sum_exec_runtime`) up to which it is counted; 0 before its first
    /// switch-out, if it was born since its process is watched.
    pub run_time_ns: u64,
    /// Elapsed nanoseconds in `task_numa_work`.
    pub scan_ns: u64,
    /// On-CPU nanoseconds of the same.
    pub scan_cpu_ns: u64,
    /// Start of the scan under way, 0 when there is none.
    pub scan_began_ns: u64,
    /// The scheduler's account of its run time at that start.
    pub scan_began_run_time_ns: u64,
    /// The clock of that account at that start.
    pub scan_began_account_ns: u64,
    /// The mapping that a migration restores pages of, which is no touch; 0 outside.
    pub migrating_vma: u64,
    /// Where a call under way is to leave the pages that it pins for long; 0 outside.
    pub pinning_pages: u64,
}

/// Scheduling; map `SCHED`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SchedRow {
    /// [`Tracked::cookie`] of the thread's process.
    pub cookie: u64,
    /// Thread-group id.
    pub tgid: u64,
    /// On-CPU nanoseconds; those on [`Thread::home_node`] are in the thread's own row.
    pub on_cpu_ns: u64,
    /// Moves to this node, by the slot of the node before.
    pub moves_from: [u64; SLOTS],
}

/// Page faults; map `TOUCH`. Pages of 4 KiB by the slot of the page's node.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TouchRow {
    /// [`Tracked::cookie`] of the thread's process.
    pub cookie: u64,
    /// Thread-group id.
    pub tgid: u64,
    /// Pages that came back from swap.
    pub swap_in: u64,
    /// Pages that the fault allocated as private memory.
    pub first_touch: [u64; SLOTS],
    /// Pages of page cache and shared memory that the fault mapped.
    pub map: [u64; SLOTS],
}

/// NUMA balancing; map `BALANCE`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BalanceRow {
    /// [`Tracked::cookie`] of the thread's process.
    pub cookie: u64,
    /// Thread-group id.
    pub tgid: u64,
    /// Hinting faults.
    pub hint_faults: u64,
    /// Those on a page of the CPU's own node.
    pub hint_faults_local: u64,
    /// Pages that should have migrated and didn't.
    pub failed_pages: u64,
    /// Pages of hinting faults, by the slot of the page's node before migration.
    pub hint_pages: [u64; SLOTS],
    /// Pages migrated to this node, by the slot of the node before.
    pub migrated_from: [u64; SLOTS],
}

/// Memory for devices; map `DEVICE`. Pages of 4 KiB by the slot of the page's node.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DeviceRow {
    /// [`Tracked::cookie`] of the thread's process.
    pub cookie: u64,
    /// Thread-group id.
    pub tgid: u64,
    /// Pages that its calls pinned for long.
    pub pinned: [u64; SLOTS],
    /// Pages that a device's driver allocated within its calls.
    pub driver_allocated: [u64; SLOTS],
}

/// What a CPU is doing; map `CPUS`, one a CPU.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// Its context switches since the programs were attached.
    pub switches: u64,
    /// The thread that runs since then, 0 for idle; or the one that is leaving, with [`SWITCHING`].
    pub tid: u64,
}

/// Bit of [`Cpu::tid`]: the thread is leaving, and its last slice may not be in its row yet.
pub const SWITCHING: u64 = 1 << 63;

impl Cpu {
    /// The thread, and whether it is leaving.
    #[must_use]
    pub fn thread(&self) -> (u32, bool) {
        // The low half is the id.
        #[expect(clippy::cast_possible_truncation)]
        let tid = self.tid as u32;
        (tid, self.tid & SWITCHING != 0)
    }
}

/// Indices into the per-CPU map `LOST`: what found no room.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// A row or a thread had no room in its map; its count is lost.
    Row = 0,
    /// A new process had no room in `TRACKED`.
    Process = 1,
    /// News had no room in the ring buffer.
    News = 2,
    /// A tid came back before its predecessor's row was folded.
    Reused = 3,
}

/// How many kinds of [`Lost`] there are.
pub const LOST_KINDS: u32 = 4;

/// Rare events, through the ring buffer `NEWS`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct News {
    /// [`NEWS_FORK`], [`NEWS_EXEC`] or [`NEWS_EXIT`].
    pub kind: u32,
    /// The process that it is about.
    pub tgid: u32,
}

/// A tracked process forked; `tgid` is the child's.
pub const NEWS_FORK: u32 = 1;
/// Any process executed a new program.
pub const NEWS_EXEC: u32 = 2;
/// A tracked process's last thread exits.
pub const NEWS_EXIT: u32 = 3;

/// Bits of the map `MAY_COUNT`: what the programs of a signal's second rung count. They are shared between signals, and
/// one of those may stand on its first rung, whose programs count the same.
pub mod may_count {
    /// First touches and pages from swap.
    pub const FIRST_TOUCH: u32 = 1;
    /// Maps.
    pub const MAP: u32 = 2;
    /// Migrated pages.
    pub const MIGRATION: u32 = 4;
}

/// What the kernel side must know of the running kernel, handed over before load as globals of these names.
pub mod global {
    /// `[u8; NODE_IDS * NODE_IDS]`: the slot of (CPU node, memory node).
    pub const SLOT_OF: &str = "SLOT_OF";
    /// `u32`: bits to shift a page's flags right by, to get its node.
    pub const NODE_SHIFT: &str = "NODE_SHIFT";
    /// `u32`: the bit of a page's flags that says it heads a compound page.
    pub const HEAD_BIT: &str = "HEAD_BIT";
    /// `u32`: where a compound page's order is, bytes from its head.
    pub const ORDER_OFFSET: &str = "ORDER_OFFSET";
    /// `u32`: offset of `task_struct.pid`.
    pub const TASK_PID: &str = "TASK_PID";
    /// `u32`: offset of `task_struct.tgid`.
    pub const TASK_TGID: &str = "TASK_TGID";
    /// `u32`: offset of `task_struct.mm`.
    pub const TASK_MM: &str = "TASK_MM";
    /// `u32`: offset of `task_struct.min_flt`.
    pub const TASK_MINOR_FAULTS: &str = "TASK_MINOR_FAULTS";
    /// `u32`: offset of `task_struct.maj_flt`.
    pub const TASK_MAJOR_FAULTS: &str = "TASK_MAJOR_FAULTS";
    /// `u32`: offset of `pt_regs.orig_ax`; 0 on machines that aren't x86, and of the four that follow.
    pub const REGS_CALL: &str = "REGS_CALL";
    /// `u32`: offset of `pt_regs.ip`.
    pub const REGS_IP: &str = "REGS_IP";
    /// `u32`: offset of `pt_regs.di`.
    pub const REGS_ARG_1: &str = "REGS_ARG_1";
    /// `u32`: offset of `pt_regs.si`.
    pub const REGS_ARG_2: &str = "REGS_ARG_2";
    /// `u32`: offset of `pt_regs.dx`.
    pub const REGS_ARG_3: &str = "REGS_ARG_3";
    /// `u32`: offset of `task_struct.se.sum_exec_runtime`.
    pub const TASK_RUN_TIME: &str = "TASK_RUN_TIME";
    /// `u32`: offset of `task_struct.se.exec_start`.
    pub const TASK_EXEC_START: &str = "TASK_EXEC_START";
    /// `u32`: offset of `task_struct.nvcsw`.
    pub const TASK_VOLUNTARY_SWITCHES: &str = "TASK_VOLUNTARY_SWITCHES";
    /// `u32`: offset of `task_struct.nivcsw`.
    pub const TASK_INVOLUNTARY_SWITCHES: &str = "TASK_INVOLUNTARY_SWITCHES";
    /// `u32`: offset of `task_struct.signal`.
    pub const TASK_SIGNAL: &str = "TASK_SIGNAL";
    /// `u32`: offset of `signal_struct.live`.
    pub const SIGNAL_LIVE: &str = "SIGNAL_LIVE";
    /// `u32`: offset of `vm_area_struct.vm_mm`.
    pub const VMA_MM: &str = "VMA_MM";
    /// `u32`: the value of `MR_NUMA_MISPLACED`.
    pub const MIGRATE_REASON_NUMA: &str = "MIGRATE_REASON_NUMA";
    /// `[u8; MAJORS]`: 1 for each major number of GPUs', accelerators' and RDMA devices' files.
    pub const DEVICE_MAJORS: &str = "DEVICE_MAJORS";
    /// `u32`: offset of `file.f_inode`.
    pub const FILE_INODE: &str = "FILE_INODE";
    /// `u32`: offset of `inode.i_rdev`.
    pub const INODE_RDEV: &str = "INODE_RDEV";
    /// `u32`: the value of `FOLL_LONGTERM`.
    pub const FOLL_LONGTERM: &str = "FOLL_LONGTERM";
}

#[cfg(feature = "user")]
mod user {
    //! The right to read these types out of map memory: each is plain data, valid for any bytes.
    use super::{BalanceRow, Cpu, DeviceRow, News, RowKey, SchedRow, Thread, TouchRow, Tracked};

    macro_rules! pod {
        ($($type:ty),+) => {$(
            // SAFETY: repr(C), integers only, no implicit padding (asserted below).
            unsafe impl aya::Pod for $type {}
        )+};
    }
    pod!(
        RowKey, Tracked, Thread, SchedRow, TouchRow, BalanceRow, DeviceRow, Cpu, News
    );
}

const _: () = {
    use core::mem::size_of;
    assert!(size_of::<Thread>() == 3 * 8 + 12 * 4 + 10 * 8);
    assert!(size_of::<SchedRow>() == (3 + SLOTS) * 8);
    assert!(size_of::<TouchRow>() == (3 + 2 * SLOTS) * 8);
    assert!(size_of::<BalanceRow>() == (5 + 2 * SLOTS) * 8);
    assert!(size_of::<DeviceRow>() == (2 + 2 * SLOTS) * 8);
};
