//! Touches, second rung: where the kernel refuses fentry, the same from tracepoints alone, on Linux 6.2 and later.
//!
//! Traces (BTF-typed or raw) the page-fault, page-allocation and RSS-accounting tracepoints, and follows each thread
//! through them: an allocation of user memory waits until the kernel accounts for it as anonymous (a first touch) or as
//! file or shared memory (a map). A copy on write changes no account, so it is told by the fault's error code. Nothing is
//! traced where a fault or a system call ends, which would slow down every system call of the host: what was begun
//! counts only within the same one, as `Me::moment` tells. Produces `TouchRow`: first touches exactly; of maps only
//! pages that the thread itself brought into page cache or shared memory. Not seen: maps of pages that were there already,
//! hugetlb, and swap-ins from the swap cache.

use agent_ebpf::{NO_NODE, Thread, may_count};
use aya_ebpf::macros::{btf_tracepoint, raw_tracepoint};
use aya_ebpf::programs::{BtfTracePointContext, RawTracePointContext};

use crate::kernel::{self, Me};
use crate::rows::{self, Current};
use crate::twins::tracepoint;

/// `__GFP_HIGHMEM | __GFP_HARDWALL`: an allocation for user space. The same bits on all kernels since 5.10.
const GFP_USER_MEMORY: u32 = 0x0010_0002;
/// Page-fault error code: the page was present, and it was a write.
const PRESENT_AND_WRITE: u64 = 3;
/// `enum { MM_FILEPAGES, MM_ANONPAGES, MM_SWAPENTS, MM_SHMEMPAGES }`, unchanged since 4.5.
const MM_FILEPAGES: u32 = 0;
const MM_ANONPAGES: u32 = 1;
const MM_SWAPENTS: u32 = 2;
const MM_SHMEMPAGES: u32 = 3;

/// The pending pages' account has not come, nor that of swap.
const SWAP_NONE: u32 = 0;
/// That of swap came first.
const SWAP_FIRST: u32 = 1;
/// They are counted as first touches.
const SWAP_COUNTED: u32 = 2;

tracepoint! {
    /// `page_fault_user(unsigned long address, struct pt_regs *, unsigned long error_code)`, x86, all kernels.
    fn page_fault_user, raw_page_fault_user(error_code: u64 = 2)
    begin_fault(error_code)
}

tracepoint! {
    /// `page_fault_kernel(…)`, the same for the kernel's accesses to user memory.
    fn page_fault_kernel, raw_page_fault_kernel(error_code: u64 = 2)
    begin_fault(error_code)
}

#[inline(always)]
fn begin_fault(error_code: u64) {
    // All others show in the account.
    if error_code & PRESENT_AND_WRITE != PRESENT_AND_WRITE {
        return;
    }
    let me = Me::get();
    if let Some((_, thread)) = rows::current_thread(me) {
        // SAFETY: this thread's own state.
        unsafe { (*thread).copying_at = me.instruction() };
    }
}

/// `mm_page_alloc(struct page *, unsigned int order, gfp_t, int migratetype)`, all kernels.
#[btf_tracepoint]
pub(crate) fn mm_page_alloc(ctx: BtfTracePointContext) -> i32 {
    let page: *const u8 = ctx.arg(0);
    allocated(ctx.arg(1), ctx.arg(2), || kernel::typed_page_node(page));
    0
}

/// The same by raw tracepoint.
#[raw_tracepoint]
pub(crate) fn raw_mm_page_alloc(ctx: RawTracePointContext) -> i32 {
    let page: *const u8 = ctx.arg(0);
    allocated(ctx.arg(1), ctx.arg(2), || kernel::page_node(page));
    0
}

tracepoint! {
    /// `rss_stat(struct mm_struct *, int member[, long count])`. Batched before 6.2, where this rung can't stand.
    fn rss_stat, raw_rss_stat(mm: *const u8 = 0, member: u32 = 1)
    accounted(mm, member)
}

#[inline(always)]
fn allocated(order: u32, gfp: u32, node: impl FnOnce() -> Option<u32>) {
    if gfp & GFP_USER_MEMORY != GFP_USER_MEMORY {
        return;
    }
    let me = Me::get();
    let (Some((current, thread)), Some(node)) = (rows::current_thread(me), node()) else {
        return;
    };
    let pages = 1u32 << (order & 31);
    // SAFETY: this thread's own state.
    unsafe {
        let copying_at = (*thread).copying_at;
        // One fault makes one copy.
        (*thread).copying_at = 0;
        if copying_at != 0 && copying_at == me.instruction() {
            forget(thread);
            count(&current, Kind::FirstTouch, node, pages.into());
        } else {
            (*thread).pending_pages = pages;
            (*thread).pending_node = node;
            (*thread).pending_at = me.moment();
            (*thread).pending_swap = SWAP_NONE;
        }
    }
}

#[inline(always)]
fn accounted(mm: *const u8, member: u32) {
    let me = Me::get();
    let Some((current, thread)) = rows::current_thread(me) else {
        return;
    };
    // SAFETY: this thread's own state.
    let (pages, node, swap) = unsafe {
        let pages = u64::from((*thread).pending_pages);
        // What it does to another address space, as reclaim does, says nothing of its own pages.
        if pages == 0 || !me.has_mm(mm) {
            return;
        }
        let node = (*thread).pending_node;
        let stale = !me.is_still_at((*thread).pending_at);
        let swap = (*thread).pending_swap;
        if member == MM_SWAPENTS && swap == SWAP_NONE {
            (*thread).pending_swap = SWAP_FIRST;
            return;
        }
        if member == MM_ANONPAGES && swap == SWAP_NONE && !stale {
            // Of a page from swap the swap's account may come behind this one.
            (*thread).pending_swap = SWAP_COUNTED;
        } else {
            forget(thread);
        }
        if stale {
            // An allocation that came to nothing, or page cache that a system call filled before.
            return;
        }
        (pages, node, swap)
    };
    let kind = match (member, swap) {
        (MM_SWAPENTS, SWAP_COUNTED) => Kind::SwapInAfterAll,
        (_, SWAP_COUNTED) => return,
        (MM_ANONPAGES, SWAP_FIRST) => Kind::SwapIn,
        (MM_ANONPAGES, _) => Kind::FirstTouch,
        (MM_FILEPAGES | MM_SHMEMPAGES, _) => Kind::Map,
        _ => return,
    };
    count(&current, kind, node, pages);
}

/// # Safety
/// `thread` is the current thread's state.
#[inline(always)]
unsafe fn forget(thread: *mut Thread) {
    // SAFETY: the caller's.
    unsafe {
        (*thread).pending_pages = 0;
        (*thread).pending_node = NO_NODE;
        (*thread).pending_swap = SWAP_NONE;
    }
}

/// What a page that arrived is counted as.
#[derive(Clone, Copy)]
enum Kind {
    FirstTouch,
    Map,
    SwapIn,
    /// Counted as a first touch before.
    SwapInAfterAll,
}

#[inline(always)]
fn count(current: &Current, kind: Kind, node: u32, pages: u64) {
    let asked = match kind {
        Kind::FirstTouch | Kind::SwapIn | Kind::SwapInAfterAll => may_count::FIRST_TOUCH,
        Kind::Map => may_count::MAP,
    };
    if !rows::may_count(asked) {
        return;
    }
    let cpu_node = kernel::cpu_node();
    let Some(row) = rows::touch_row(current, cpu_node) else {
        return;
    };
    // SAFETY: this thread's own row.
    unsafe {
        let counters = match kind {
            Kind::FirstTouch => &raw mut (*row).first_touch,
            Kind::Map => &raw mut (*row).map,
            Kind::SwapIn => {
                (*row).swap_in += pages;
                return;
            }
            Kind::SwapInAfterAll => {
                (*row).swap_in += pages;
                rows::take(
                    &raw mut (*row).first_touch,
                    rows::slot(cpu_node, node),
                    pages,
                );
                return;
            }
        };
        rows::add(counters, rows::slot(cpu_node, node), pages);
    }
}
