//! Where memory lies, by a sample, beside what `numa_maps` says of every page and what the workload knows.

use model::mapping::MemoryClass;
use model::process::{ByNode, MemoryKind, Process};
use tests::vm::Guest;

on_each_kernel!(
    a_sample_is_within_two_points_of_every_page,
    kinds_are_where_every_page_says,
    every_address_was_looked_at,
    a_small_process_is_no_estimate,
    classes_are_what_was_mapped,
    huge_pages_lie_where_they_were_put,
    exact_reads_numa_maps,
    locked_pages_lie_where_they_were_put,
);

const WORKLOADS: [&str; 6] = ["anon", "thp", "mixed", "hugetlb", "reserve", "mappings"];

fn process(guest: &Guest, session: &str, workload: &str) -> Process {
    let report = guest.session(session);
    report.process(report.workload(workload).pid).clone()
}

#[track_caller]
fn known<T>(number: Option<T>) -> T {
    match number {
        Some(number) => number,
        None => panic!("it is not known"),
    }
}

#[track_caller]
fn near(what: &str, sampled: &ByNode, exact: &ByNode, points: f64) {
    let share = |of: &ByNode, node: u32| {
        let all: u64 = of.values().sum();
        of.get(&node).copied().unwrap_or(0) as f64 / all as f64
    };
    for node in [0, 1] {
        let (sampled, exact) = (share(sampled, node), share(exact, node));
        let apart = (sampled - exact).abs();
        assert!(
            apart * 100.0 <= points,
            "{what}, node {node}: {sampled} for {exact}"
        );
    }
}

/// Two runs of a workload map other pages of its libraries, which is more than two points of the small one with two huge
/// pages; where those lie is another test's.
fn a_sample_is_within_two_points_of_every_page(guest: &Guest) {
    for name in WORKLOADS.into_iter().filter(|name| *name != "hugetlb") {
        let sampled = process(guest, "placement", name).placement;
        let exact = process(guest, "placement-exact", name).placement;
        let exact = known(exact.by_node_bytes);
        near(name, &known(sampled.by_node_bytes), &exact, 2.0);
    }
}

/// A kind has fewer answers than the whole: of the 700 of shared memory here one standard deviation is 1.5 points.
fn kinds_are_where_every_page_says(guest: &Guest) {
    let sampled = process(guest, "placement", "mixed").placement;
    let exact = process(guest, "placement-exact", "mixed").placement;
    let (sampled, exact) = (known(sampled.by_kind), known(exact.by_kind));
    for kind in [MemoryKind::Anonymous, MemoryKind::File, MemoryKind::Shared] {
        near(&format!("{kind:?}"), &sampled[&kind], &exact[&kind], 6.0);
    }
}

fn every_address_was_looked_at(guest: &Guest) {
    for name in WORKLOADS {
        let placement = process(guest, "placement", name).placement;
        assert_eq!(placement.coverage, Some(1.0), "{name}: {placement:?}");
        assert_eq!(placement.reason, None, "{name}");
    }
}

/// Of 32,000 pages a sample is asked for; a small process's are all asked for.
fn a_small_process_is_no_estimate(guest: &Guest) {
    let placement = process(guest, "placement", "hugetlb").placement;
    assert!(!placement.is_estimate(), "{placement:?}");
    let placement = process(guest, "placement", "anon").placement;
    assert!(placement.is_estimate(), "{placement:?}");
}

fn classes_are_what_was_mapped(guest: &Guest) {
    let placement = process(guest, "placement", "mixed").placement;
    let classes = known(placement.by_class);
    let shared: u64 = classes[&MemoryClass::Shared].values().sum();
    assert!((4_500..5_500).contains(&(shared / 4096)), "{classes:?}");
    let placement = process(guest, "placement", "anon").placement;
    let classes = known(placement.by_class);
    let large: u64 = classes[&MemoryClass::LargeAnonymous].values().sum();
    assert!(large >= 23_000 * 4096, "{classes:?}");
}

fn huge_pages_lie_where_they_were_put(guest: &Guest) {
    let placement = process(guest, "placement", "hugetlb").placement;
    let kinds = known(placement.by_kind);
    assert_eq!(kinds[&MemoryKind::Huge], ByNode::from([(0, 1_024 * 4096)]));
}

fn exact_reads_numa_maps(guest: &Guest) {
    let source = |session| process(guest, session, "anon").placement.source;
    assert_eq!(source("placement-exact").as_deref(), Some("numa_maps"));
    assert_eq!(source("placement").as_deref(), Some("move_pages"));
}

fn locked_pages_lie_where_they_were_put(guest: &Guest) {
    let locked = |workload| {
        let process = process(guest, "placement", workload);
        (
            process.placement.locked_by_node_bytes,
            process.pinned.locked_bytes,
        )
    };
    let bytes = 4_096 * 4096;
    let by_node = ByNode::from([(1, bytes)]);
    assert_eq!(locked("mlock"), (Some(by_node), Some(bytes)));
    assert_eq!(locked("anon"), (Some(ByNode::new()), Some(0)));
}
