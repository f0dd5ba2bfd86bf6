//! NUMA balancing: hinting faults, pages migrated, and the time that scanning takes.
//!
//! Traces by fentry `task_numa_fault`, whose calls are `/proc/vmstat`'s `numa_hint_faults`; the page's node *before* a
//! migration comes from the check that precedes it. `task_numa_work` between entry and exit is the scan. Where fentry is
//! refused, the tracepoint `mm_migrate_pages` still tells migrated pages, without nodes. Produces `BalanceRow` and
//! `Thread::scan_ns`.

use agent_ebpf::{NO_NODE, SLOT_UNKNOWN, may_count};
use aya_ebpf::helpers::generated::bpf_ktime_get_ns;
use aya_ebpf::macros::{btf_tracepoint, fentry, fexit};
use aya_ebpf::programs::{BtfTracePointContext, FEntryContext, FExitContext};

use crate::kernel;
use crate::rows::{self, CPUS, Current};

/// `TNF_MIGRATED`: the page moved. The flags are the same on all kernels since 5.10.
const MIGRATED: u32 = 0x01;
/// `TNF_FAULT_LOCAL`: the page was on the CPU's node.
const FAULT_LOCAL: u32 = 0x08;
/// `TNF_MIGRATE_FAIL`: the page should have moved.
const MIGRATE_FAIL: u32 = 0x10;

/// The page's node before migration: `numa_migrate_check(struct folio *, struct vm_fault *, …)`, 6.12 and later.
#[fentry(function = "numa_migrate_check")]
pub(crate) fn hint_check(ctx: FEntryContext) -> i32 {
    if let Some(current) = Current::get()
        && let Some(node) = kernel::page_node(ctx.arg(0))
    {
        remember(&current, node);
    }
    0
}

/// The same: `numa_migrate_prep(struct page *, struct vm_area_struct *, unsigned long, int page_nid, int *)`, 6.1.
#[fentry(function = "numa_migrate_prep")]
pub(crate) fn hint_prep(ctx: FEntryContext) -> i32 {
    if let Some(current) = Current::get() {
        remember(&current, ctx.arg(3));
    }
    0
}

#[inline(always)]
fn remember(current: &Current, node: u32) {
    if let Some(thread) = rows::thread(current) {
        // SAFETY: this thread's own state.
        unsafe {
            (*thread).hint_node = node;
            (*thread).hint_cpu_node = kernel::cpu_node();
        }
    }
}

/// `task_numa_fault(int last_cpupid, int mem_node, int pages, int flags)`, 5.10 and later.
///
/// `mem_node` is the node *after* a migration; whether the touch was local is in the flags.
#[fentry(function = "task_numa_fault")]
pub(crate) fn hint_fault(ctx: FEntryContext) -> i32 {
    let Some(current) = Current::get() else {
        return 0;
    };
    let Some(thread) = rows::thread(&current) else {
        return 0;
    };
    let memory_node: u32 = ctx.arg(1);
    let pages: u32 = ctx.arg(2);
    let flags: u32 = ctx.arg(3);
    let pages = u64::from(pages);
    // Unless the tracepoint of the second rung counts the same.
    let counts_migration = !rows::may_count(may_count::MIGRATION);
    // SAFETY: this thread's own state.
    let (before, cpu_node) = unsafe {
        let before = (*thread).hint_node;
        (*thread).hint_node = NO_NODE;
        (
            before,
            if before == NO_NODE {
                kernel::cpu_node()
            } else {
                (*thread).hint_cpu_node
            },
        )
    };
    // Without the check's word, a page that moved came from a node that only the flags narrow down.
    let slot = if before != NO_NODE {
        rows::slot(cpu_node, before)
    } else if flags & FAULT_LOCAL != 0 {
        rows::slot(cpu_node, cpu_node)
    } else if flags & MIGRATED == 0 {
        rows::slot(cpu_node, memory_node)
    } else {
        SLOT_UNKNOWN
    };
    if let Some(row) = rows::balance_row(&current, cpu_node) {
        // SAFETY: this thread's own row.
        unsafe {
            (*row).hint_faults += 1;
            if flags & FAULT_LOCAL != 0 {
                (*row).hint_faults_local += 1;
            }
            if flags & MIGRATE_FAIL != 0 && counts_migration {
                (*row).failed_pages += pages;
            }
            rows::add(&raw mut (*row).hint_pages, slot, pages);
        }
    }
    if flags & MIGRATED != 0
        && counts_migration
        && let Some(row) = rows::balance_row(&current, memory_node)
    {
        let from = if before == NO_NODE {
            SLOT_UNKNOWN
        } else {
            rows::slot(memory_node, before)
        };
        // SAFETY: this thread's own row.
        unsafe { rows::add(&raw mut (*row).migrated_from, from, pages) };
    }
    0
}

/// `mm_migrate_pages(unsigned long succeeded, unsigned long failed, …, int reason)` with 7 arguments, to 6.1.
#[btf_tracepoint(function = "mm_migrate_pages")]
pub(crate) fn mm_migrate_pages_7(ctx: BtfTracePointContext) -> i32 {
    migrated(ctx.arg(0), ctx.arg(1), ctx.arg(6));
    0
}

/// The same with 8 arguments, a count of split folios before the mode and the reason; later kernels.
#[btf_tracepoint(function = "mm_migrate_pages")]
pub(crate) fn mm_migrate_pages_8(ctx: BtfTracePointContext) -> i32 {
    migrated(ctx.arg(0), ctx.arg(1), ctx.arg(7));
    0
}

#[inline(always)]
fn migrated(succeeded: u64, failed: u64, reason: u32) {
    if reason != kernel::migrate_reason_numa() || !rows::may_count(may_count::MIGRATION) {
        return;
    }
    let Some(current) = Current::get() else {
        return;
    };
    if let Some(row) = rows::balance_row(&current, kernel::cpu_node()) {
        // SAFETY: this thread's own row.
        unsafe {
            rows::add(&raw mut (*row).migrated_from, SLOT_UNKNOWN, succeeded);
            (*row).failed_pages += failed;
        }
    }
}

/// The scan begins: `task_numa_work(struct callback_head *)`, all kernels.
#[fentry(function = "task_numa_work")]
pub(crate) fn scan_enter(_ctx: FEntryContext) -> i32 {
    let Some(current) = Current::get() else {
        return 0;
    };
    if let Some(thread) = rows::thread(&current) {
        // SAFETY: this thread's own state.
        unsafe {
            let now = bpf_ktime_get_ns();
            (*thread).scan_began_ns = now;
            (*thread).scan_began_cpu_ns = cpu_time(thread, now);
        }
    }
    0
}

/// The scan ends.
#[fexit(function = "task_numa_work")]
pub(crate) fn scan_leave(_ctx: FExitContext) -> i32 {
    let Some(current) = Current::get() else {
        return 0;
    };
    if let Some(thread) = rows::thread(&current) {
        // SAFETY: this thread's own state.
        unsafe {
            let began = (*thread).scan_began_ns;
            if began != 0 {
                let now = bpf_ktime_get_ns();
                (*thread).scan_ns += now - began;
                (*thread).scan_cpu_ns +=
                    cpu_time(thread, now).saturating_sub((*thread).scan_began_cpu_ns);
                (*thread).scan_began_ns = 0;
            }
        }
    }
    0
}

/// The thread's on-CPU time up to now: past slices and the one under way.
///
/// # Safety
/// `thread` is the current thread's state.
#[inline(always)]
unsafe fn cpu_time(thread: *const agent_ebpf::Thread, now: u64) -> u64 {
    let Some(cpu) = CPUS.get_ptr(0) else { return 0 };
    // SAFETY: a per-CPU value, and the caller's.
    unsafe {
        let began = (*cpu).switched_at.max((*thread).cookie);
        (*thread).on_cpu_ns + now.saturating_sub(began)
    }
}
