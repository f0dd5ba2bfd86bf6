//! First touches and maps: each page once, under the right kind and pair.

use tests::compare::{BESIDES, hardly_any, pairs, pairs_besides, within};
use tests::vm::Guest;

on_each_kernel!(
    done_when_2_first_touches_are_exact_and_in_the_right_pair,
    pages_touched_by_mmap_itself_are_first_touches,
    pages_that_the_kernel_fills_are_first_touches,
    a_zero_page_is_no_touch_and_its_replacement_is_one,
    stack_pages_are_first_touches,
    a_huge_page_is_512_first_touches,
    a_private_hugetlb_page_is_512_first_touches,
    a_private_copy_of_a_file_page_is_a_first_touch_only,
    page_cache_that_is_read_then_copied_is_mapped_and_first_touched,
    page_cache_is_mapped_however_many_pages_a_fault_maps,
    page_cache_of_a_disk_is_mapped_too,
    written_page_cache_is_mapped_once,
    shared_memory_is_mapped_whoever_allocated_it,
    a_huge_page_of_shared_memory_is_512_maps,
    each_process_maps_shared_memory_for_itself,
    each_process_maps_page_cache_for_itself,
    a_page_made_in_another_process_s_memory_is_nobody_s_touch,
    pages_from_swap_are_their_own_count,
    pages_pinned_for_devices_have_their_node,
);

fn pages_pinned_for_devices_have_their_node(guest: &Guest) {
    crate::kprobes::pins_are_exact(guest, "counts");
}

#[track_caller]
fn first_touches(guest: &Guest, workload: &str) {
    let report = guest.session("counts");
    let truth = &report.workload(workload).truth.processes[0];
    let touches = report.process(truth.pid).touches;
    pairs(
        &format!("{workload}: first touches"),
        &touches.first_touch,
        &truth.first_touch,
    );
    hardly_any(&format!("{workload}: maps"), touches.map.pages);
}

#[track_caller]
fn maps(guest: &Guest, workload: &str) {
    let report = guest.session("counts");
    let truth = &report.workload(workload).truth.processes[0];
    let touches = report.process(truth.pid).touches;
    pairs(&format!("{workload}: maps"), &touches.map, &truth.map);
    hardly_any(
        &format!("{workload}: first touches"),
        touches.first_touch.pages,
    );
}

fn done_when_2_first_touches_are_exact_and_in_the_right_pair(guest: &Guest) {
    let report = guest.session("counts");
    let touched = report
        .process(report.workload("first-touch").pid)
        .touches
        .first_touch;
    let pairs = touched.by_pair.unwrap_or_default();
    let pair = pairs
        .iter()
        .find(|pair| (pair.cpu_node, pair.memory_node) == (1, 0));
    within(
        "pages of node 0 touched from node 1",
        pair.map(|pair| pair.pages),
        16_384,
        1.0,
    );
    within(
        "cross-socket pages",
        touched.cross_socket_pages,
        16_384,
        1.0,
    );
    within("all pages", touched.pages, 16_384, 1.0);
    hardly_any("local pages", touched.local_pages);
    hardly_any("same-socket pages", touched.same_socket_pages);
    hardly_any(
        "pages of unknown node",
        touched.unknown_node_pages.or(Some(0)),
    );
}

fn pages_touched_by_mmap_itself_are_first_touches(guest: &Guest) {
    first_touches(guest, "populate");
}

fn pages_that_the_kernel_fills_are_first_touches(guest: &Guest) {
    first_touches(guest, "kernel");
}

fn a_zero_page_is_no_touch_and_its_replacement_is_one(guest: &Guest) {
    first_touches(guest, "zero-page");
}

fn stack_pages_are_first_touches(guest: &Guest) {
    first_touches(guest, "stack");
}

fn a_huge_page_is_512_first_touches(guest: &Guest) {
    first_touches(guest, "thp");
}

fn a_private_hugetlb_page_is_512_first_touches(guest: &Guest) {
    first_touches(guest, "hugetlb");
}

fn a_private_copy_of_a_file_page_is_a_first_touch_only(guest: &Guest) {
    first_touches(guest, "private-file");
}

fn page_cache_that_is_read_then_copied_is_mapped_and_first_touched(guest: &Guest) {
    let report = guest.session("counts");
    let truth = &report.workload("private-file-read").truth.processes[0];
    let touches = report.process(truth.pid).touches;
    pairs("maps", &touches.map, &truth.map);
    pairs("first touches", &touches.first_touch, &truth.first_touch);
}

fn page_cache_is_mapped_however_many_pages_a_fault_maps(guest: &Guest) {
    maps(guest, "file");
}

fn page_cache_of_a_disk_is_mapped_too(guest: &Guest) {
    maps(guest, "disk-file");
    maps(guest, "disk-file-write");
}

fn written_page_cache_is_mapped_once(guest: &Guest) {
    maps(guest, "file-write");
}

fn shared_memory_is_mapped_whoever_allocated_it(guest: &Guest) {
    maps(guest, "shm");
    maps(guest, "memfd");
}

fn a_huge_page_of_shared_memory_is_512_maps(guest: &Guest) {
    maps(guest, "shm-thp");
}

#[track_caller]
fn each_process_maps(guest: &Guest, workload: &str) {
    let report = guest.session("counts");
    for truth in &report.workload(workload).truth.processes {
        let touches = report.process(truth.pid).touches;
        // A forked child maps its program anew too: it got no page tables for that.
        let program = if truth.part == "child" { 512 } else { 0 };
        let what = format!("{}: maps", truth.part);
        pairs_besides(&what, &touches.map, &truth.map, BESIDES + program);
    }
}

fn each_process_maps_shared_memory_for_itself(guest: &Guest) {
    each_process_maps(guest, "shared");
}

fn each_process_maps_page_cache_for_itself(guest: &Guest) {
    each_process_maps(guest, "shared-file");
}

fn a_page_made_in_another_process_s_memory_is_nobody_s_touch(guest: &Guest) {
    let report = guest.session("counts");
    for truth in &report.workload("write-child").truth.processes {
        let touches = report.process(truth.pid).touches;
        pairs(
            &format!("{}: first touches", truth.part),
            &touches.first_touch,
            &truth.first_touch,
        );
    }
}

fn pages_from_swap_are_their_own_count(guest: &Guest) {
    swapped(guest, "swap");
}

/// Of a session whose workload sends pages to swap and takes them back.
#[track_caller]
pub(crate) fn swapped(guest: &Guest, session: &str) {
    let report = guest.session(session);
    let truth = &report.workload("swap").truth.processes[0];
    let touches = report.process(truth.pid).touches;
    within(
        "pages from swap",
        touches.swap_in_pages,
        truth.swap_in_pages,
        1.0,
    );
    pairs("first touches", &touches.first_touch, &truth.first_touch);
}
