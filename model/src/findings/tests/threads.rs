//! Threads: each rule is raised, and silent where it must be.

use super::*;

#[test]
fn threads_away_from_memory() {
    raised("threads-away-from-memory", |p| {
        p.cpu_time_ns_by_node = memory(&[(0, 9), (1, 1)]);
    });
    silent("threads-away-from-memory", |p| {
        p.cpu_time_ns_by_node = memory(&[(0, 9), (1, 1)]);
        p.placement.by_node_bytes = memory(&[(0, GIB), (1, GIB)]);
    });
}

#[test]
fn threads_wander() {
    let moves = |p: &mut Process| p.moves.cross_socket = Some(100);
    raised("threads-wander", |p| {
        moves(p);
        p.cpu_time_ns_by_node = memory(&[(0, 5), (1, 5)]);
    });
    silent("threads-wander", moves);
    silent("threads-wander", |p| {
        p.moves.cross_socket = Some(9);
        p.cpu_time_ns_by_node = memory(&[(0, 5), (1, 5)]);
    });
}

#[test]
fn worker_affinity_differs() {
    raised("worker-affinity-differs", |p| {
        p.threads = vec![thread("worker", Some((0..8).collect()))];
    });
    silent("worker-affinity-differs", |p| {
        p.threads = vec![thread("worker", Some(vec![5]))];
    });
    silent("worker-affinity-differs", |p| {
        p.threads = vec![thread("worker", None)];
    });
}

#[test]
fn worker_policy_differs() {
    let with = |own: Option<Policy>| Thread {
        policy: own,
        ..thread("worker", None)
    };
    raised("worker-policy-differs", |p| {
        p.threads = vec![with(policy(PolicyMode::Default, &[]))];
    });
    raised("worker-policy-differs", |p| {
        p.threads = vec![with(policy(PolicyMode::Bind, &[0]))];
    });
    silent("worker-policy-differs", |p| p.threads = vec![with(None)]);
    // Who isn't bound as a whole may bind its threads.
    silent("worker-policy-differs", |p| {
        p.placing.policy = policy(PolicyMode::Default, &[]);
        p.threads = vec![with(policy(PolicyMode::Bind, &[1]))];
    });
}

#[test]
fn balancing_scan_is_dear() {
    raised("balancing-scan-is-dear", |p| {
        p.scan_cpu_time_ns = Some(600_000_000);
    });
    silent("balancing-scan-is-dear", |p| {
        p.scan_cpu_time_ns = Some(400_000_000);
    });
}

#[test]
fn pages_move_to_and_fro() {
    let pairs = |there, back| {
        let pair = |from, to, pages| MigrationPair { from, to, pages };
        Some(vec![pair(0, 1, there), pair(1, 0, back)])
    };
    raised("pages-move-to-and-fro", |p| {
        p.migrations.by_pair = pairs(5_000, 1_000);
    });
    silent("pages-move-to-and-fro", |p| {
        p.migrations.by_pair = pairs(50_000, 999);
    });
}

#[test]
fn threads_are_sent_to_their_memory_but_never_away_from_their_gpu() {
    let advice = |devices: Vec<DeviceUse>| {
        let mut process = process();
        process.devices = devices;
        process.placing.policy = None;
        process.placement.by_node_bytes = memory(&[(0, GIB), (1, 0)]);
        let now = snapshot(10, vec![process]);
        let found = findings_with(&now, None);
        let found = found
            .into_iter()
            .find(|f| f.id == "threads-away-from-memory");
        found.unwrap().advice.concat()
    };
    let taskset = "taskset -apc 0-3 42";
    assert_eq!(advice(vec![gpu(0, Some(0))]), taskset);
    assert_eq!(advice(Vec::new()), taskset);
    let launch = "numawatch launch --gpu 0 -- server -m model.gguf   # once 42 has stopped";
    assert_eq!(advice(vec![gpu(0, Some(1))]), launch);
}
