//! Reading the running kernel's structures, at offsets that the user side took from that kernel's BTF.

use aya_ebpf::helpers::generated::{bpf_get_current_task, bpf_get_numa_node_id};
use aya_ebpf::helpers::{bpf_get_current_pid_tgid, bpf_probe_read_kernel};
use core::ptr::{addr_of, read_volatile};

/// Declares globals that the user side sets before load; volatile, since the compiler sees only the zero.
macro_rules! global {
    ($($name:ident),+) => {$(
        #[unsafe(no_mangle)]
        static $name: u32 = 0;
    )+};
}
global!(
    NODE_SHIFT,
    HEAD_BIT,
    ORDER_OFFSET,
    TASK_PID,
    TASK_TGID,
    TASK_MM,
    TASK_RUN_TIME,
    TASK_SIGNAL,
    SIGNAL_LIVE,
    VMA_MM,
    MIGRATE_REASON_NUMA
);

#[inline(always)]
fn load(global: &'static u32) -> u32 {
    // SAFETY: a valid reference.
    unsafe { read_volatile(addr_of!(*global)) }
}

/// Reads a `T` at `offset` bytes from a kernel address; `None` when the address is not mapped.
#[inline(always)]
fn read<T>(base: *const u8, offset: u32) -> Option<T> {
    // SAFETY: the helper checks the address.
    unsafe { bpf_probe_read_kernel(base.add(offset as usize).cast::<T>()) }.ok()
}

/// The current thread: (thread-group id, thread id).
#[inline(always)]
pub(crate) fn current() -> (u32, u32) {
    let id = bpf_get_current_pid_tgid();
    ((id >> 32) as u32, id as u32)
}

/// The node of the CPU that this runs on.
#[inline(always)]
pub(crate) fn cpu_node() -> u32 {
    // SAFETY: no arguments.
    unsafe { bpf_get_numa_node_id() as u32 }
}

/// A task's (thread-group id, thread id).
#[inline(always)]
pub(crate) fn task_ids(task: *const u8) -> Option<(u32, u32)> {
    Some((read(task, load(&TASK_TGID))?, read(task, load(&TASK_PID))?))
}

/// A task's thread id.
#[inline(always)]
pub(crate) fn task_tid(task: *const u8) -> Option<u32> {
    read(task, load(&TASK_PID))
}

/// The scheduler's account of a task's run time: nanoseconds since its birth, without what interrupts and the hypervisor
/// took. Up to date for the leaving task of a context switch.
#[inline(always)]
pub(crate) fn task_run_time(task: *const u8) -> Option<u64> {
    read(task, load(&TASK_RUN_TIME))
}

/// Whether the current thread is its process's last; true only once it has begun to exit.
#[inline(always)]
pub(crate) fn current_is_last_thread() -> bool {
    let task = current_task();
    let Some(signal) = read::<*const u8>(task, load(&TASK_SIGNAL)) else {
        return false;
    };
    read::<i32>(signal, load(&SIGNAL_LIVE)) == Some(0)
}

/// Whether `mm` is the current thread's own address space.
#[inline(always)]
pub(crate) fn is_own_mm(mm: *const u8) -> bool {
    read::<*const u8>(current_task(), load(&TASK_MM)) == Some(mm)
}

/// Whether a mapping belongs to the current thread's own address space.
#[inline(always)]
pub(crate) fn is_own_vma(vma: *const u8) -> bool {
    read::<*const u8>(vma, load(&VMA_MM)).is_some_and(is_own_mm)
}

#[inline(always)]
fn current_task() -> *const u8 {
    // SAFETY: no arguments; always a valid task.
    unsafe { bpf_get_current_task() as *const u8 }
}

/// A page's or folio's node: both begin with the flags word.
#[inline(always)]
pub(crate) fn page_node(page: *const u8) -> Option<u32> {
    let flags: u64 = read(page, 0)?;
    Some((flags >> load(&NODE_SHIFT)) as u32)
}

/// A folio's or head page's node and size in pages of 4 KiB.
#[inline(always)]
pub(crate) fn folio_node_and_pages(folio: *const u8) -> Option<(u32, u64)> {
    let flags: u64 = read(folio, 0)?;
    let node = (flags >> load(&NODE_SHIFT)) as u32;
    if (flags >> load(&HEAD_BIT)) & 1 == 0 {
        return Some((node, 1));
    }
    let order: u8 = read(folio, load(&ORDER_OFFSET))?;
    Some((node, 1 << (order & 31)))
}

/// The reason that NUMA balancing gives.
#[inline(always)]
pub(crate) fn migrate_reason_numa() -> u32 {
    load(&MIGRATE_REASON_NUMA)
}
