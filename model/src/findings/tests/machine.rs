//! What is said of the machine as a whole.

use super::*;

#[test]
fn replicas_share_a_node() {
    // Without a device and without a bind: as the first come.
    let free = || {
        let mut process = Process {
            devices: Vec::new(),
            ..process()
        };
        process.placing.policy = None;
        process
    };
    let second = || Process { pid: 43, ..free() };
    let with = |second: Process, busy: f64| {
        let mut now = snapshot(10, vec![free(), second]);
        now.topology.nodes[0].cpu_busy = Some(busy);
        ids(&now)
    };
    assert_eq!(with(second(), 0.01), ["replicas-share-a-node"]);
    assert_eq!(with(second(), 0.5), Vec::<String>::new());
    let child = Process {
        parent_pid: Some(42),
        ..second()
    };
    assert_eq!(with(child, 0.01), Vec::<String>::new());
    let asleep = Process {
        cpu_time_ns_by_node: memory(&[(1, 1_000_000)]),
        ..second()
    };
    assert_eq!(with(asleep, 0.01), Vec::<String>::new());
    let other = Process {
        engine: Some("vllm".into()),
        ..second()
    };
    assert_eq!(with(other, 0.01), Vec::<String>::new());
    let beside_its_gpu = Process {
        devices: vec![gpu(0, Some(1))],
        ..second()
    };
    assert_eq!(with(beside_its_gpu, 0.01), Vec::<String>::new());
}

#[test]
fn no_two_findings_advise_the_opposite() {
    let free = |pid, mode| {
        let mut process = Process {
            pid,
            devices: Vec::new(),
            ..process()
        };
        process.placing.policy = policy(mode, &[1]);
        process
    };
    let now = |mode| {
        let mut now = snapshot(10, vec![free(42, mode), free(43, mode)]);
        now.topology.nodes[0].cpu_busy = Some(0.01);
        now
    };
    let ids_of = |mode, pid| -> Vec<String> {
        let found = findings_with(&now(mode), None).into_iter();
        found.filter(|f| f.pid == Some(pid)).map(|f| f.id).collect()
    };
    // Alone it is a hint; the second one should be on the other node anyway.
    assert_eq!(ids_of(PolicyMode::Preferred, 42), ["policy-is-a-hint"]);
    assert_eq!(ids_of(PolicyMode::Preferred, 43), ["replicas-share-a-node"]);
}

/// Memory on node 0, threads on node 1, no GPU: one of both is to move, and one finding says which.
#[test]
fn memory_and_threads_are_not_sent_past_each_other() {
    let apart = |change: &dyn Fn(&mut Process)| -> Vec<String> {
        let mut process = process();
        process.devices = Vec::new();
        process.placing.policy = policy(PolicyMode::Default, &[]);
        process.placing.cpus_allowed = Some((0..8).collect());
        process.placement.by_node_bytes = memory(&[(0, GIB), (1, 0)]);
        process.placement.by_class = None;
        change(&mut process);
        ids(&snapshot(10, vec![process]))
    };
    let threads = "threads-away-from-memory";
    assert_eq!(apart(&|_| ()), [threads]);
    let bound = apart(&|p| p.placing.policy = policy(PolicyMode::Bind, &[1]));
    assert_eq!(bound, ["memory-from-before-bind"]);
    let weights = apart(&|p| {
        let by_node = memory(&[(0, GIB / 2)]).unwrap_or_default();
        p.placement.by_class = Some([(MemoryClass::Weights, by_node)].into());
    });
    assert_eq!(weights, ["weights-in-remote-page-cache"]);
    let confined = apart(&|p| p.placing.cpus_allowed = Some(vec![4, 5, 6, 7]));
    assert_eq!(confined, [threads]);
}

#[test]
fn topology_is_hidden() {
    let with = |may_hide_nodes| {
        let mut now = snapshot(10, Vec::new());
        now.host.hypervisor = Some("KVM".to_owned());
        now.host.may_hide_nodes = may_hide_nodes;
        ids(&now)
    };
    assert_eq!(with(true), ["topology-is-hidden"]);
    assert_eq!(with(false), Vec::<String>::new());
}
