//! Touches, first rung: pages first touched and pages mapped, per pair of nodes, at the kernel's own accounting.
//!
//! Traces by fentry the functions that add a page to an address space's reverse map: each page passes exactly once,
//! whether it was allocated by a write fault, a copy, `MAP_POPULATE`, the stack or the kernel's own access. Produces
//! `TouchRow`. Not seen: pages of shared hugetlb memory that another process allocated.

use agent_ebpf::{Thread, TouchRow};
use aya_ebpf::macros::{fentry, fexit};
use aya_ebpf::programs::{FEntryContext, FExitContext};

use crate::kernel;
use crate::rows::{self, Current};

/// New anonymous memory, small or huge, copies included.
///
/// - 5.10: `page_add_new_anon_rmap(struct page *, struct vm_area_struct *, unsigned long address, bool compound)`
/// - 5.19 to 6.7: `page_add_new_anon_rmap(struct page *, struct vm_area_struct *, unsigned long address)`
/// - 6.8 and later: `folio_add_new_anon_rmap(struct folio *, struct vm_area_struct *, unsigned long address, …)`
#[fentry(function = "folio_add_new_anon_rmap")]
pub(crate) fn touch_anon(ctx: FEntryContext) -> i32 {
    anon(ctx.arg(0), ctx.arg(1));
    0
}

/// New private hugetlb memory.
///
/// - to 6.7: `hugepage_add_new_anon_rmap(struct page *, struct vm_area_struct *, unsigned long address)`
/// - 6.8 and later: `hugetlb_add_new_anon_rmap(struct folio *, struct vm_area_struct *, unsigned long address)`
#[fentry(function = "hugetlb_add_new_anon_rmap")]
pub(crate) fn touch_hugetlb(ctx: FEntryContext) -> i32 {
    anon(ctx.arg(0), ctx.arg(1));
    0
}

#[inline(always)]
fn anon(folio: *const u8, vma: *const u8) {
    let Some(current) = Current::get() else {
        return;
    };
    if !kernel::is_own_vma(vma) {
        return;
    }
    let Some((node, pages)) = kernel::folio_node_and_pages(folio) else {
        return;
    };
    let Some(thread) = rows::thread(&current) else {
        return;
    };
    if from_swap(&current, thread, pages) {
        return;
    }
    let cpu_node = kernel::cpu_node();
    let Some(row) = rows::touch_row(&current, cpu_node) else {
        return;
    };
    // SAFETY: this thread's own row.
    unsafe {
        rows::add(
            &raw mut (*row).first_touch,
            rows::slot(cpu_node, node),
            pages,
        )
    };
}

/// Pages of page cache and shared memory, mapped small.
///
/// - 6.8 and later: `folio_add_file_rmap_ptes(struct folio *, struct page *, int nr_pages, struct vm_area_struct *)`
#[fentry(function = "folio_add_file_rmap_ptes")]
pub(crate) fn map_file_ptes(ctx: FEntryContext) -> i32 {
    let pages: u32 = ctx.arg(2);
    map_file(ctx.arg(0), ctx.arg(3), Some(pages.into()));
    0
}

/// Pages of page cache and shared memory, mapped huge.
///
/// - 6.8 and later: `folio_add_file_rmap_pmd(struct folio *, struct page *, struct vm_area_struct *)`
#[fentry(function = "folio_add_file_rmap_pmd")]
pub(crate) fn map_file_pmd(ctx: FEntryContext) -> i32 {
    map_file(ctx.arg(0), ctx.arg(2), None);
    0
}

/// Pages of page cache and shared memory, small or huge; `page_add_file_rmap` comes through here too.
///
/// - 6.6, 6.7: `folio_add_file_rmap_range(struct folio *, struct page *, unsigned int nr_pages, struct vm_area_struct *,
///   bool compound)`
#[fentry(function = "folio_add_file_rmap_range")]
pub(crate) fn map_file_range(ctx: FEntryContext) -> i32 {
    let pages: u32 = ctx.arg(2);
    let compound: u8 = ctx.arg(4);
    let pages = if compound & 1 == 0 {
        Some(pages.into())
    } else {
        None
    };
    map_file(ctx.arg(0), ctx.arg(3), pages);
    0
}

/// Pages of page cache and shared memory, small or huge.
///
/// - 5.19 to 6.5: `page_add_file_rmap(struct page *, struct vm_area_struct *, bool compound)`
#[fentry(function = "page_add_file_rmap")]
pub(crate) fn map_file_page(ctx: FEntryContext) -> i32 {
    let compound: u8 = ctx.arg(2);
    let pages = if compound & 1 == 0 { Some(1) } else { None };
    map_file(ctx.arg(0), ctx.arg(1), pages);
    0
}

/// `pages` as the caller told, or the whole folio.
#[inline(always)]
fn map_file(folio: *const u8, vma: *const u8, pages: Option<u64>) {
    let Some(current) = Current::get() else {
        return;
    };
    if !kernel::is_own_vma(vma) {
        return;
    }
    let Some(thread) = rows::thread(&current) else {
        return;
    };
    // SAFETY: this thread's own state.
    if unsafe { (*thread).in_migration } != 0 {
        return;
    }
    let found = match pages {
        Some(pages) => kernel::page_node(folio).map(|node| (node, pages)),
        None => kernel::folio_node_and_pages(folio),
    };
    if let Some((node, pages)) = found {
        mapped(&current, node, pages);
    }
}

#[inline(always)]
fn mapped(current: &Current, node: u32, pages: u64) {
    let cpu_node = kernel::cpu_node();
    let Some(row) = rows::touch_row(current, cpu_node) else {
        return;
    };
    // SAFETY: this thread's own row.
    unsafe { rows::add(&raw mut (*row).map, rows::slot(cpu_node, node), pages) };
}

/// The first allocation of shared hugetlb memory.
///
/// - 5.19 to 6.5: `hugetlb_add_to_page_cache(struct page *, struct address_space *, pgoff_t)`
/// - later: `hugetlb_add_to_page_cache(struct folio *, struct address_space *, pgoff_t)`
#[fentry(function = "hugetlb_add_to_page_cache")]
pub(crate) fn map_hugetlb(ctx: FEntryContext) -> i32 {
    let Some(current) = Current::get() else {
        return 0;
    };
    if let Some((node, pages)) = kernel::folio_node_and_pages(ctx.arg(0)) {
        mapped(&current, node, pages);
    }
    0
}

/// A migration puts a mapping back: `remove_migration_pte(struct folio *, struct vm_area_struct *, …)`, 5.18 and later.
/// It passes through the same accounting as a map, and is no touch.
#[fentry(function = "remove_migration_pte")]
pub(crate) fn migration_enter(_ctx: FEntryContext) -> i32 {
    in_migration(1);
    0
}

/// The end of the same.
#[fexit(function = "remove_migration_pte")]
pub(crate) fn migration_leave(_ctx: FExitContext) -> i32 {
    in_migration(0);
    0
}

#[inline(always)]
fn in_migration(value: u32) {
    let Some(current) = Current::get() else {
        return;
    };
    if let Some(thread) = rows::thread(&current) {
        // SAFETY: this thread's own state.
        unsafe { (*thread).in_migration = value };
    }
}

/// A fault on a page that was swapped out: `do_swap_page(struct vm_fault *)`, all kernels.
#[fentry(function = "do_swap_page")]
pub(crate) fn swap_enter(_ctx: FEntryContext) -> i32 {
    in_swap(1);
    0
}

/// The end of the same.
#[fexit(function = "do_swap_page")]
pub(crate) fn swap_leave(_ctx: FExitContext) -> i32 {
    in_swap(0);
    0
}

#[inline(always)]
fn in_swap(value: u32) {
    let Some(current) = Current::get() else {
        return;
    };
    if let Some(thread) = rows::thread(&current) {
        // SAFETY: this thread's own state.
        unsafe { (*thread).in_swap = value };
    }
}

/// Anonymous memory that comes back from swap:
/// `folio_add_anon_rmap_ptes(struct folio *, struct page *, int nr_pages, struct vm_area_struct *, …)`, 6.8 and later.
#[fentry(function = "folio_add_anon_rmap_ptes")]
pub(crate) fn swap_anon_ptes(ctx: FEntryContext) -> i32 {
    let pages: u32 = ctx.arg(2);
    swapped_in(ctx.arg(3), pages.into());
    0
}

/// The same: `page_add_anon_rmap(struct page *, struct vm_area_struct *, unsigned long address, …)`, to 6.7.
#[fentry(function = "page_add_anon_rmap")]
pub(crate) fn swap_anon_page(ctx: FEntryContext) -> i32 {
    swapped_in(ctx.arg(1), 1);
    0
}

#[inline(always)]
fn swapped_in(vma: *const u8, pages: u64) {
    let Some(current) = Current::get() else {
        return;
    };
    let Some(thread) = rows::thread(&current) else {
        return;
    };
    if kernel::is_own_vma(vma) {
        from_swap(&current, thread, pages);
    }
}

/// Counts pages as swapped in when a swap fault is under way; a copy later in the same fault is a first touch.
#[inline(always)]
fn from_swap(current: &Current, thread: *mut Thread, pages: u64) -> bool {
    // SAFETY: this thread's own rows.
    unsafe {
        if (*thread).in_swap == 0 {
            return false;
        }
        (*thread).in_swap = 0;
        let row: Option<*mut TouchRow> = rows::touch_row(current, kernel::cpu_node());
        if let Some(row) = row {
            (*row).swap_in += pages;
        }
    }
    true
}
