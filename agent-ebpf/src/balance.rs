//! NUMA balancing: hinting faults, pages migrated, and the time that scanning takes.
//!
//! Traces by fentry or kprobe `task_numa_fault`, whose calls are `/proc/vmstat`'s `numa_hint_faults`; the page's node *before* a
//! migration comes from the check that precedes it. `task_numa_work` between entry and exit is the scan. Where fentry is
//! refused, the tracepoint `mm_migrate_pages` still tells migrated pages, without nodes. Produces `BalanceRow` and
//! `Thread::scan_ns`.

use agent_ebpf::{NO_NODE, SLOT_UNKNOWN, may_count};
use aya_ebpf::helpers::generated::bpf_ktime_get_ns;

use crate::kernel;
use crate::rows::{self, Current};
use crate::twins::{entry, exit, tracepoint};

/// `TNF_MIGRATED`: the page moved. The flags are the same on all kernels since 5.10.
const MIGRATED: u32 = 0x01;
/// `TNF_FAULT_LOCAL`: the page was on the CPU's node.
const FAULT_LOCAL: u32 = 0x08;
/// `TNF_MIGRATE_FAIL`: the page should have moved.
const MIGRATE_FAIL: u32 = 0x10;

entry! {
    /// The page's node before migration: `numa_migrate_check(struct folio *, struct vm_fault *, …)`, 6.12 and later.
    fn hint_check, kprobe_hint_check(folio: *const u8 = 0)
    remember_page(folio)
}

entry! {
    /// The same: `numa_migrate_prep(struct page *, struct vm_area_struct *, unsigned long, int page_nid, int *)`, 6.1.
    fn hint_prep, kprobe_hint_prep(page_node: u32 = 3)
    remember(page_node)
}

entry! {
    /// The same, only of pages that are about to move, which are those that `task_numa_fault` doesn't tell:
    /// `migrate_misplaced_page(struct page *, struct vm_area_struct *, int node)`, 5.10.
    fn hint_misplaced, kprobe_hint_misplaced(page: *const u8 = 0)
    remember_page(page)
}

/// The same of huge pages: `migrate_misplaced_transhuge_page(struct mm_struct *, struct vm_area_struct *, pmd_t *,
/// pmd_t entry, unsigned long address, struct page *, int node)`, 5.10. By kprobe only: fentry refuses the structure
/// among the arguments.
#[aya_ebpf::macros::kprobe]
pub(crate) fn kprobe_hint_misplaced_huge(ctx: aya_ebpf::programs::ProbeContext) -> u32 {
    if let Some(page) = ctx.arg::<*const u8>(5) {
        remember_page(page);
    }
    0
}

#[inline(always)]
fn remember_page(page: *const u8) {
    if let Some(node) = kernel::page_node(page) {
        remember(node);
    }
}

#[inline(always)]
fn remember(node: u32) {
    let Some(current) = Current::get() else {
        return;
    };
    if let Some(thread) = rows::thread(&current) {
        // SAFETY: this thread's own state.
        unsafe {
            (*thread).hint_node = node;
            (*thread).hint_cpu_node = kernel::cpu_node();
        }
    }
}

entry! {
    /// `task_numa_fault(int last_cpupid, int mem_node, int pages, int flags)`, 5.10 and later.
    ///
    /// `mem_node` is the node *after* a migration; whether the touch was local is in the flags.
    fn hint_fault, kprobe_hint_fault(memory_node: u32 = 1, pages: u32 = 2, flags: u32 = 3)
    hint(memory_node, pages.into(), flags)
}

#[inline(always)]
fn hint(memory_node: u32, pages: u64, flags: u32) {
    let Some(current) = Current::get() else {
        return;
    };
    let Some(thread) = rows::thread(&current) else {
        return;
    };
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
}

tracepoint! {
    /// `mm_migrate_pages(unsigned long succeeded, unsigned long failed, …, int reason)` with 7 arguments, to 6.1.
    fn mm_migrate_pages_7, raw_mm_migrate_pages_7(succeeded: u64 = 0, failed: u64 = 1, reason: u32 = 6)
    migrated(succeeded, failed, reason)
}

tracepoint! {
    /// The same with 8 arguments, a count of split folios before the mode and the reason; later kernels.
    fn mm_migrate_pages_8, raw_mm_migrate_pages_8(succeeded: u64 = 0, failed: u64 = 1, reason: u32 = 7)
    migrated(succeeded, failed, reason)
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

entry! {
    /// The scan begins: `task_numa_work(struct callback_head *)`, all kernels.
    fn scan_enter, kprobe_scan_enter()
    scan_begins()
}

exit! {
    /// The scan ends.
    fn scan_leave, kretprobe_scan_leave()
    scan_ends()
}

#[inline(always)]
fn scan_begins() {
    let Some(current) = Current::get() else {
        return;
    };
    if let (Some(thread), Some((run_time, account))) =
        (rows::thread(&current), kernel::current_run_time())
    {
        // SAFETY: this thread's own state, and a helper without arguments.
        unsafe {
            (*thread).scan_began_run_time_ns = run_time;
            (*thread).scan_began_account_ns = account;
            (*thread).scan_began_ns = bpf_ktime_get_ns();
        }
    }
}

/// What ran between two moments is what the scheduler accounted for, and what each moment had run since the account was
/// last brought up to date. The account's clock and the helper's differ by a constant, which drops out.
#[inline(always)]
fn scan_ends() {
    let Some(current) = Current::get() else {
        return;
    };
    if let (Some(thread), Some((run_time, account))) =
        (rows::thread(&current), kernel::current_run_time())
    {
        // SAFETY: this thread's own state, and a helper without arguments.
        unsafe {
            let began = (*thread).scan_began_ns;
            if began == 0 {
                return;
            }
            let elapsed = bpf_ktime_get_ns() - began;
            let accounted = run_time.wrapping_sub((*thread).scan_began_run_time_ns);
            let updated = account.wrapping_sub((*thread).scan_began_account_ns);
            let on_cpu = elapsed.wrapping_add(accounted).wrapping_sub(updated);
            (*thread).scan_ns += elapsed;
            // Interrupts and a hypervisor can make the two clocks differ a little.
            if on_cpu < elapsed {
                (*thread).scan_cpu_ns += on_cpu;
            } else if on_cpu >> 63 == 0 {
                (*thread).scan_cpu_ns += elapsed;
            }
            (*thread).scan_began_ns = 0;
        }
    }
}
