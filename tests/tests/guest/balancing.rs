//! NUMA balancing at work: hint touches, migrations and scans, beside the kernel's own counters.

use model::process::Process;
use model::verdict::Verdict;
use tests::compare::{between, within};
use tests::session::Report;
use tests::vm::Guest;

on_each_kernel!(
    done_when_2_hint_faults_of_all_processes_match_vmstat,
    done_when_2_local_hint_faults_of_all_processes_match_vmstat,
    done_when_2_migrated_pages_of_all_processes_match_vmstat,
    coverage_shows_the_host_s_own_counters,
    what_is_attributed_covers_the_host,
    pages_that_go_over_were_touched_where_they_lay_before,
    migrated_pages_have_the_pair_that_they_went,
    local_touches_are_local,
    a_hint_fault_on_a_huge_page_is_512_pages,
    scans_cost_time,
    a_process_with_its_memory_at_hand_is_local,
);

fn total(report: &Report, count: impl Fn(&Process) -> Option<u64>) -> Option<u64> {
    let processes = report.snapshot().processes;
    processes
        .iter()
        .map(count)
        .collect::<Option<Vec<_>>>()
        .map(|counts| counts.iter().sum())
}

/// Fails unless a sum is what `/proc/vmstat` counted meanwhile; other processes than the workloads go on, and so does
/// the kernel while numawatch starts and prints.
#[track_caller]
fn matches_vmstat(report: &Report, seen: Option<u64>, name: &str, least: u64) {
    let grown = report.vmstat[name];
    assert!(
        grown >= least,
        "{name} grew by {grown} only: no test of anything"
    );
    between(name, seen, grown, report.vmstat_at_most[name], 1.0);
}

fn done_when_2_hint_faults_of_all_processes_match_vmstat(guest: &Guest) {
    let report = guest.session("balancing");
    let seen = total(report, |process| process.touches.hint.faults);
    matches_vmstat(report, seen, "numa_hint_faults", 30_000);
}

fn done_when_2_local_hint_faults_of_all_processes_match_vmstat(guest: &Guest) {
    let report = guest.session("balancing");
    let seen = total(report, |process| process.touches.hint.local_faults);
    matches_vmstat(report, seen, "numa_hint_faults_local", 5000);
}

fn done_when_2_migrated_pages_of_all_processes_match_vmstat(guest: &Guest) {
    let report = guest.session("balancing");
    let seen = total(report, |process| process.migrations.pages);
    matches_vmstat(report, seen, "numa_pages_migrated", 7500);
}

fn coverage_shows_the_host_s_own_counters(guest: &Guest) {
    let report = guest.session("balancing");
    let host = report.snapshot().coverage.host;
    matches_vmstat(report, host.hint_faults, "numa_hint_faults", 30_000);
    matches_vmstat(
        report,
        host.hint_faults_local,
        "numa_hint_faults_local",
        5000,
    );
    matches_vmstat(report, host.migrated_pages, "numa_pages_migrated", 7500);
}

fn what_is_attributed_covers_the_host(guest: &Guest) {
    let report = guest.session("balancing");
    let coverage = report.snapshot().coverage;
    within(
        "hint faults",
        coverage.attributed.hint_faults,
        coverage.host.hint_faults.unwrap_or(0),
        1.0,
    );
    within(
        "local",
        coverage.attributed.hint_faults_local,
        coverage.host.hint_faults_local.unwrap_or(0),
        1.0,
    );
    within(
        "migrated",
        coverage.attributed.migrated_pages,
        coverage.host.migrated_pages.unwrap_or(0),
        1.0,
    );
}

/// `task_numa_fault` is told the node after the migration: who believes it sees local touches only.
fn pages_that_go_over_were_touched_where_they_lay_before(guest: &Guest) {
    let report = guest.session("balancing");
    let hint = report.process(report.workload("one-way").pid).touches.hint;
    let pairs = hint.counter.by_pair.unwrap_or_default();
    let remote: u64 = pairs
        .iter()
        .filter(|pair| (pair.cpu_node, pair.memory_node) == (1, 0))
        .map(|pair| pair.pages)
        .sum();
    assert!(
        remote >= 7500,
        "{remote} pages of node 0 touched from node 1: {pairs:?}"
    );
    assert_eq!(hint.counter.cross_socket_pages, Some(remote));
}

fn migrated_pages_have_the_pair_that_they_went(guest: &Guest) {
    let report = guest.session("balancing");
    let pid = report.workload("one-way").pid;
    let migrations = report.process(pid).migrations;
    let over = migrations
        .by_pair
        .iter()
        .flatten()
        .find(|pair| (pair.from, pair.to) == (0, 1));
    within(
        "pages from node 0 to node 1",
        over.map(|pair| pair.pages),
        migrations.pages.unwrap_or(0),
        1.0,
    );
    let now = report.workload("one-way").truth.processes[0]
        .pages_by_node
        .get(&1)
        .copied()
        .unwrap_or(0);
    within(
        "pages that went to node 1",
        over.map(|pair| pair.pages),
        now,
        2.0,
    );
}

fn local_touches_are_local(guest: &Guest) {
    let report = guest.session("balancing");
    let hint = report.process(report.workload("local").pid).touches.hint;
    let (faults, local) = (hint.faults.unwrap_or(0), hint.local_faults.unwrap_or(0));
    assert!(faults >= 4000, "{faults} hint faults");
    within("local hint faults", Some(local), faults, 2.0);
}

fn a_hint_fault_on_a_huge_page_is_512_pages(guest: &Guest) {
    let report = guest.session("balancing");
    let hint = report.process(report.workload("thp").pid).touches.hint;
    let (faults, pages) = (hint.faults.unwrap_or(0), hint.counter.pages.unwrap_or(0));
    // Some are on the base pages of its own stack and heap.
    assert!(
        pages >= 16 * 512 && pages <= faults * 512,
        "{pages} pages in {faults} faults"
    );
    assert!(pages > faults * 16, "{pages} pages in {faults} faults");
}

fn scans_cost_time(guest: &Guest) {
    let report = guest.session("balancing");
    for workload in ["one-way", "to-and-fro", "local"] {
        let process = report.process(report.workload(workload).pid);
        let cpu: u64 = process
            .cpu_time_ns_by_node
            .iter()
            .flat_map(|by_node| by_node.values())
            .sum();
        let scan = process.scan_time_ns;
        assert!(
            scan.is_some_and(|scan| scan > 0),
            "{workload}: {scan:?} ns of scans"
        );
        let on_cpu = process.scan_cpu_time_ns;
        assert!(
            on_cpu.is_some_and(|ns| ns > 0 && ns < cpu),
            "{workload}: {on_cpu:?} ns of scans in {cpu} ns"
        );
    }
}

fn a_process_with_its_memory_at_hand_is_local(guest: &Guest) {
    let report = guest.session("balancing");
    let process = report.process(report.workload("local").pid);
    // Its evidence may be older than the window by now: then it is an estimate, or unknown.
    assert!(
        matches!(process.verdict, Verdict::Local | Verdict::Unknown),
        "{:?} from {:?}",
        process.verdict,
        process.remote_share
    );
}
