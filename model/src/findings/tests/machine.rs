//! What is said of the machine as a whole.

use super::*;

#[test]
fn replicas_share_a_node() {
    let second = || Process {
        pid: 43,
        ..process()
    };
    let with = |second: Process, busy: f64| {
        let mut now = snapshot(10, vec![process(), second]);
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
