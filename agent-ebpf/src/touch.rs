//! Touches, first rung: pages first touched and pages mapped, per pair of nodes, at the kernel's own accounting.
//!
//! Traces by fentry or kprobe the functions that add a page to an address space's reverse map: each page passes exactly once,
//! whether it was allocated by a write fault, a copy, `MAP_POPULATE`, the stack or the kernel's own access. Produces
//! `TouchRow`. Not seen: pages of shared hugetlb memory that another process allocated.

use agent_ebpf::{Thread, TouchRow};

use crate::kernel;
use crate::rows::{self, Current};
use crate::twins::{entry, exit};

entry! {
    /// New anonymous memory, small or huge, copies included.
    ///
    /// - 5.10: `page_add_new_anon_rmap(struct page *, struct vm_area_struct *, unsigned long address, bool compound)`
    /// - 5.19 to 6.7: `page_add_new_anon_rmap(struct page *, struct vm_area_struct *, unsigned long address)`
    /// - 6.8 and later: `folio_add_new_anon_rmap(struct folio *, struct vm_area_struct *, unsigned long address, …)`
    fn touch_anon, kprobe_touch_anon(folio: *const u8 = 0, vma: *const u8 = 1)
    anon(folio, vma)
}

entry! {
    /// New private hugetlb memory.
    ///
    /// - to 6.7: `hugepage_add_new_anon_rmap(struct page *, struct vm_area_struct *, unsigned long address)`
    /// - 6.8 and later: `hugetlb_add_new_anon_rmap(struct folio *, struct vm_area_struct *, unsigned long address)`
    fn touch_hugetlb, kprobe_touch_hugetlb(folio: *const u8 = 0, vma: *const u8 = 1)
    anon(folio, vma)
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

entry! {
    /// Pages of page cache and shared memory, mapped small.
    ///
    /// - 6.8 and later: `folio_add_file_rmap_ptes(struct folio *, struct page *, int nr_pages, struct vm_area_struct *)`
    fn map_file_ptes, kprobe_map_file_ptes(page: *const u8 = 0, pages: u32 = 2, vma: *const u8 = 3)
    map_file(page, Some(vma), Some(pages.into()))
}

entry! {
    /// Pages of page cache and shared memory, mapped huge.
    ///
    /// - 6.8 and later: `folio_add_file_rmap_pmd(struct folio *, struct page *, struct vm_area_struct *)`
    fn map_file_pmd, kprobe_map_file_pmd(folio: *const u8 = 0, vma: *const u8 = 2)
    map_file(folio, Some(vma), None)
}

entry! {
    /// Pages of page cache and shared memory, small or huge; `page_add_file_rmap` comes through here too.
    ///
    /// - 6.6, 6.7: `folio_add_file_rmap_range(struct folio *, struct page *, unsigned int nr_pages, struct vm_area_struct *,
    ///   bool compound)`
    fn map_file_range, kprobe_map_file_range(folio: *const u8 = 0, pages: u32 = 2, vma: *const u8 = 3, compound: u8 = 4)
    map_file(folio, Some(vma), small(compound, pages.into()))
}

entry! {
    /// Pages of page cache and shared memory, small or huge.
    ///
    /// - 5.19 to 6.5: `page_add_file_rmap(struct page *, struct vm_area_struct *, bool compound)`
    fn map_file_page, kprobe_map_file_page(page: *const u8 = 0, vma: *const u8 = 1, compound: u8 = 2)
    map_file(page, Some(vma), small(compound, 1))
}

entry! {
    /// Pages of page cache and shared memory, small or huge; the mapping isn't told.
    ///
    /// - 5.10 to 5.17: `page_add_file_rmap(struct page *, bool compound)`
    fn map_file_page_5_10, kprobe_map_file_page_5_10(page: *const u8 = 0, compound: u8 = 1)
    map_file(page, None, small(compound, 1))
}

/// The number of pages of a small mapping; `None` for a huge one.
#[inline(always)]
fn small(compound: u8, pages: u64) -> Option<u64> {
    if compound & 1 == 0 { Some(pages) } else { None }
}

/// `pages` as the caller told, or the whole folio.
#[inline(always)]
fn map_file(folio: *const u8, vma: Option<*const u8>, pages: Option<u64>) {
    let Some(current) = Current::get() else {
        return;
    };
    if vma.is_some_and(|vma| !kernel::is_own_vma(vma)) {
        return;
    }
    let Some(thread) = rows::thread(&current) else {
        return;
    };
    // SAFETY: this thread's own state.
    let migrating = unsafe { (*thread).migrating_vma };
    if migrating != 0 && vma.is_none_or(|vma| vma as u64 == migrating) {
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

entry! {
    /// The first allocation of shared hugetlb memory.
    ///
    /// - 5.19 to 6.5: `hugetlb_add_to_page_cache(struct page *, struct address_space *, pgoff_t)`
    /// - later: `hugetlb_add_to_page_cache(struct folio *, struct address_space *, pgoff_t)`
    fn map_hugetlb, kprobe_map_hugetlb(folio: *const u8 = 0)
    map_shared_hugetlb(folio)
}

entry! {
    /// A migration puts a mapping back: `remove_migration_pte(struct folio *, struct vm_area_struct *, …)`, 5.10 and later
    /// (a `struct page *` before 5.18).
    /// It passes through the same accounting as a map, and is no touch.
    fn migration_enter, kprobe_migration_enter(vma: *const u8 = 1)
    migrating(vma as u64)
}

exit! {
    /// The end of the same.
    fn migration_leave, kretprobe_migration_leave()
    migrating(0)
}

#[inline(always)]
fn migrating(vma: u64) {
    let Some(current) = Current::get() else {
        return;
    };
    if let Some(thread) = rows::thread(&current) {
        // SAFETY: this thread's own state. The mapping, and not only that there is one: should the end be missed, maps of
        // other mappings still count.
        unsafe { (*thread).migrating_vma = vma };
    }
}

#[inline(always)]
fn map_shared_hugetlb(folio: *const u8) {
    let Some(current) = Current::get() else {
        return;
    };
    if let Some((node, pages)) = kernel::folio_node_and_pages(folio) {
        mapped(&current, node, pages);
    }
}

entry! {
    /// A fault on a page that was swapped out: `do_swap_page(struct vm_fault *)`, all kernels.
    fn swap_enter, kprobe_swap_enter()
    in_swap(1)
}

exit! {
    /// The end of the same.
    fn swap_leave, kretprobe_swap_leave()
    in_swap(0)
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

entry! {
    /// Anonymous memory that comes back from swap:
    /// `folio_add_anon_rmap_ptes(struct folio *, struct page *, int nr_pages, struct vm_area_struct *, …)`, 6.8 and later.
    fn swap_anon_ptes, kprobe_swap_anon_ptes(pages: u32 = 2, vma: *const u8 = 3)
    swapped_in(vma, pages.into())
}

entry! {
    /// The same: `page_add_anon_rmap(struct page *, struct vm_area_struct *, unsigned long address, …)`, to 6.7.
    fn swap_anon_page, kprobe_swap_anon_page(vma: *const u8 = 1)
    swapped_in(vma, 1)
}

entry! {
    /// The same: `do_page_add_anon_rmap(struct page *, struct vm_area_struct *, unsigned long address, int flags)`, to 5.17.
    fn swap_anon_page_5_10, kprobe_swap_anon_page_5_10(vma: *const u8 = 1)
    swapped_in(vma, 1)
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
