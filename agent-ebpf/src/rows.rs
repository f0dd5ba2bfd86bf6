//! The maps, and how a program finds the row that it may write.
//!
//! All hash maps are preallocated: allocating from a program can deadlock before Linux 6.1. The user side sets their sizes
//! from the machine before load; what finds no room is counted.

use agent_ebpf::{
    BalanceRow, Cpu, DeviceRow, LOST_KINDS, Lost, NO_NODE, NODE_IDS, RowKey, SLOT_UNKNOWN, SLOTS,
    SchedRow, Thread, TouchRow, Tracked,
};
use aya_ebpf::bindings::BPF_ANY;
use aya_ebpf::macros::map;
use aya_ebpf::maps::{Array, HashMap, PerCpuArray, RingBuf};
use core::ptr::{addr_of, read_volatile, write_volatile};

use crate::kernel;

#[map]
pub(crate) static TRACKED: HashMap<u32, Tracked> = HashMap::with_max_entries(4096, 0);
#[map]
pub(crate) static THREADS: HashMap<u32, Thread> = HashMap::with_max_entries(16384, 0);
#[map]
pub(crate) static SCHED: HashMap<RowKey, SchedRow> = HashMap::with_max_entries(16384, 0);
#[map]
pub(crate) static TOUCH: HashMap<RowKey, TouchRow> = HashMap::with_max_entries(16384, 0);
#[map]
pub(crate) static BALANCE: HashMap<RowKey, BalanceRow> = HashMap::with_max_entries(16384, 0);
#[map]
pub(crate) static DEVICE: HashMap<RowKey, DeviceRow> = HashMap::with_max_entries(4096, 0);
#[map]
pub(crate) static CPUS: PerCpuArray<Cpu> = PerCpuArray::with_max_entries(1, 0);
#[map]
pub(crate) static NEWS: RingBuf = RingBuf::with_byte_size(64 * 1024, 0);
/// Which counters the tracepoint programs of the second rung may write: the first rung may stand for some of them.
#[map]
static MAY_COUNT: Array<u32> = Array::with_max_entries(1, 0);
/// 1 once a thread's state found no room: from then on not every thread that appears was just born.
#[map]
static THREADS_WERE_FULL: Array<u32> = Array::with_max_entries(1, 0);
#[map]
static LOST: PerCpuArray<u64> = PerCpuArray::with_max_entries(LOST_KINDS, 0);

#[unsafe(no_mangle)]
static SLOT_OF: [u8; NODE_IDS * NODE_IDS] = [SLOT_UNKNOWN as u8; NODE_IDS * NODE_IDS];

/// Hides from the compiler what it knows of a value, so that the bounds check after it stays for the verifier, which
/// doesn't know it.
#[inline(always)]
fn opaque(value: u32) -> u32 {
    // SAFETY: a valid reference.
    unsafe { read_volatile(&raw const value) }
}

/// Which counter of a row on `cpu_node` counts pages of `memory_node`.
#[inline(always)]
pub(crate) fn slot(cpu_node: u32, memory_node: u32) -> usize {
    if cpu_node >= NODE_IDS as u32 || memory_node >= NODE_IDS as u32 {
        return SLOT_UNKNOWN;
    }
    let index =
        opaque(cpu_node * NODE_IDS as u32 + memory_node) as usize & (NODE_IDS * NODE_IDS - 1);
    // SAFETY: in bounds by the mask; volatile, since the user side sets the table before load.
    unsafe { read_volatile(addr_of!(SLOT_OF).cast::<u8>().add(index)).into() }
}

/// Adds to one slot of a counter array.
///
/// # Safety
/// `counters` points to `SLOTS` counters of a map value.
#[inline(always)]
pub(crate) unsafe fn add(counters: *mut [u64; SLOTS], slot: usize, n: u64) {
    let slot = opaque(slot as u32) as usize;
    if slot < SLOTS {
        // SAFETY: in bounds by the test above.
        unsafe { *counters.cast::<u64>().add(slot) += n };
    }
}

/// Takes back from one slot what was added to it; not from the row of a CPU where it was not.
///
/// # Safety
/// As [`add`].
#[inline(always)]
pub(crate) unsafe fn take(counters: *mut [u64; SLOTS], slot: usize, n: u64) {
    let slot = opaque(slot as u32) as usize;
    if slot < SLOTS {
        // SAFETY: in bounds by the test above.
        unsafe {
            let counter = counters.cast::<u64>().add(slot);
            if *counter >= n {
                *counter -= n;
            }
        }
    }
}

/// Counts something that found no room.
#[inline(always)]
pub(crate) fn lost(kind: Lost) {
    if let Some(count) = LOST.get_ptr_mut(kind as u32) {
        // SAFETY: a per-CPU value.
        unsafe { *count += 1 };
    }
}

/// Whether the second rung counts this; see [`agent_ebpf::may_count`].
#[inline(always)]
pub(crate) fn may_count(what: u32) -> bool {
    MAY_COUNT.get(0).is_some_and(|bits| bits & what != 0)
}

/// The tracked process that the current thread belongs to. Whoever isn't tracked costs this one look-up.
#[inline(always)]
pub(crate) fn tracked(tgid: u32) -> Option<&'static Tracked> {
    // SAFETY: entries are read only.
    unsafe { TRACKED.get(tgid) }
}

/// The current thread, tracked: what every program that counts begins with.
pub(crate) struct Current {
    pub(crate) tgid: u32,
    pub(crate) tid: u32,
    pub(crate) cookie: u64,
}

impl Current {
    /// `None` when its process isn't tracked.
    #[inline(always)]
    pub(crate) fn get() -> Option<Self> {
        let (tgid, tid) = kernel::current();
        Self::of(tgid, tid)
    }

    /// The same, of ids that were read already.
    #[inline(always)]
    pub(crate) fn of(tgid: u32, tid: u32) -> Option<Self> {
        let cookie = tracked(tgid)?.cookie;
        Some(Self { tgid, tid, cookie })
    }
}

/// A value of a row map: it carries its owner, and there is a blank to start from.
pub(crate) trait Row: Sized + 'static {
    /// All counters zero.
    const BLANK: &'static Self;
    fn cookie(&self) -> u64;
    fn own(&mut self, current: &Current);
}

macro_rules! row {
    ($type:ident, $blank:ident, $($field:ident: $value:expr),+) => {
        // In .rodata: too large for the 512 bytes of a program's stack.
        static $blank: $type = $type { cookie: 0, tgid: 0, $($field: $value),+ };
        impl Row for $type {
            const BLANK: &'static Self = &$blank;
            #[inline(always)]
            fn cookie(&self) -> u64 {
                self.cookie
            }
            #[inline(always)]
            fn own(&mut self, current: &Current) {
                self.cookie = current.cookie;
                self.tgid = current.tgid.into();
            }
        }
    };
}
row!(SchedRow, BLANK_SCHED, on_cpu_ns: 0, moves_from: [0; SLOTS]);
row!(TouchRow, BLANK_TOUCH, swap_in: 0, first_touch: [0; SLOTS], map: [0; SLOTS]);
row!(BalanceRow, BLANK_BALANCE, hint_faults: 0, hint_faults_local: 0, failed_pages: 0,
    hint_pages: [0; SLOTS], migrated_from: [0; SLOTS]);
row!(Thread, BLANK_THREAD, pending_at: 0, copying_at: 0, exited: 0, task: 0, on_cpu_ns: 0, run_time_ns: 0, scan_ns: 0, scan_cpu_ns: 0, scan_began_ns: 0,
    scan_began_run_time_ns: 0, scan_began_account_ns: 0, migrating_vma: 0, pinning_pages: 0, last_node: NO_NODE,
    hint_node: NO_NODE, hint_cpu_node: 0, in_swap: 0, pending_pages: 0, pending_node: NO_NODE, in_driver: 0,
    pending_swap: 0, home_node: NO_NODE, reserved: 0);
row!(DeviceRow, BLANK_DEVICE, pinned: [0; SLOTS], driver_allocated: [0; SLOTS]);

/// The row of this key, made when it isn't there; `None` (and counted) when the map is full.
#[inline(always)]
fn find<K, V: Row>(map: &HashMap<K, V>, key: &K, current: &Current) -> Option<*mut V> {
    if let Some(row) = map.get_ptr_mut(key) {
        // SAFETY: only this thread writes it.
        let owner = unsafe { (*row).cookie() };
        if owner == current.cookie {
            return Some(row);
        }
        // A program that was preempted while it made this row left it without an owner: it is this thread's.
        if owner == 0 {
            // SAFETY: as above.
            unsafe { (*row).own(current) };
            return Some(row);
        }
        // The tid came back before the user side folded its predecessor's row.
        lost(Lost::Reused);
    }
    if map.insert(key, V::BLANK, u64::from(BPF_ANY)).is_err() {
        lost(Lost::Row);
        return None;
    }
    let row = map.get_ptr_mut(key)?;
    // SAFETY: only this thread writes it.
    unsafe { (*row).own(current) };
    Some(row)
}

/// The current thread's state.
#[inline(always)]
pub(crate) fn thread(current: &Current) -> Option<*mut Thread> {
    let found = find(&THREADS, &current.tid, current);
    if found.is_none()
        && let Some(were_full) = THREADS_WERE_FULL.get_ptr_mut(0)
    {
        // SAFETY: whoever writes it writes the same; once, or its cache line would go from socket to socket.
        unsafe {
            if read_volatile(were_full) == 0 {
                write_volatile(were_full, 1);
            }
        }
    }
    found
}

/// Whether a thread may have run without a state of its own.
#[inline(always)]
pub(crate) fn threads_were_full() -> bool {
    THREADS_WERE_FULL.get(0).is_some_and(|full| *full != 0)
}

/// The current thread with its state, by one look-up instead of two where it has counted before: for programs that run
/// at every fault. A thread's row says itself that its process is tracked, as long as it lives: rows go before their
/// process is let go, and a tid that comes back to another process is marked at its birth. Whoever isn't tracked pays
/// for a second look-up.
#[inline(always)]
pub(crate) fn current_thread(me: kernel::Me) -> Option<(Current, *mut Thread)> {
    let (tgid, tid) = me.ids();
    if let Some(thread) = THREADS.get_ptr_mut(tid) {
        // SAFETY: this thread's own state, or that of its predecessor with this tid.
        let (cookie, owner, exited) =
            unsafe { ((*thread).cookie, (*thread).tgid, (*thread).exited) };
        if owner == tgid && exited == 0 && cookie != 0 {
            return Some((Current { tgid, tid, cookie }, thread));
        }
    }
    let current = Current::of(tgid, tid)?;
    let thread = thread(&current)?;
    Some((current, thread))
}

/// The current thread's scheduling row on a node.
#[inline(always)]
pub(crate) fn sched_row(current: &Current, node: u32) -> Option<*mut SchedRow> {
    find(
        &SCHED,
        &RowKey {
            tid: current.tid,
            node,
        },
        current,
    )
}

/// The current thread's page-fault row on a node.
#[inline(always)]
pub(crate) fn touch_row(current: &Current, node: u32) -> Option<*mut TouchRow> {
    find(
        &TOUCH,
        &RowKey {
            tid: current.tid,
            node,
        },
        current,
    )
}

/// The current thread's balancing row on a node.
#[inline(always)]
pub(crate) fn balance_row(current: &Current, node: u32) -> Option<*mut BalanceRow> {
    find(
        &BALANCE,
        &RowKey {
            tid: current.tid,
            node,
        },
        current,
    )
}

/// The current thread's row of memory for devices, on a node.
#[inline(always)]
pub(crate) fn device_row(current: &Current, node: u32) -> Option<*mut DeviceRow> {
    find(
        &DEVICE,
        &RowKey {
            tid: current.tid,
            node,
        },
        current,
    )
}
