//! Policies, cpusets and full nodes: each rule is raised, and silent where it must be.

use super::*;
use crate::policy::{Container, OwnPolicy};
use crate::process::MemoryKind;

#[test]
fn policy_is_a_hint() {
    raised("policy-is-a-hint", |p| {
        p.placing.policy = policy(PolicyMode::Preferred, &[1]);
    });
    raised("policy-is-a-hint", |p| {
        p.placing.policy = policy(PolicyMode::Default, &[]);
    });
    silent("policy-is-a-hint", |p| {
        p.placing.policy = policy(PolicyMode::Default, &[]);
        p.placing.cpus_allowed = Some((0..8).collect());
    });
    silent("policy-is-a-hint", |p| {
        p.placing.policy = policy(PolicyMode::Interleave, &[0, 1]);
    });
}

#[test]
fn bound_to_wrong_node() {
    raised("bound-to-wrong-node", |p| {
        p.placing.policy = policy(PolicyMode::Bind, &[0]);
    });
    silent("bound-to-wrong-node", |p| {
        p.placing.policy = policy(PolicyMode::Bind, &[0, 1]);
    });
}

#[test]
fn mappings_bound_elsewhere() {
    let own = |mode, nodes: &[u32], bytes| {
        Some(vec![OwnPolicy {
            policy: policy(mode, nodes).unwrap(),
            mappings: 2,
            by_node_bytes: ByNode::from([(nodes[0], bytes)]),
        }])
    };
    for mode in [PolicyMode::Bind, PolicyMode::Preferred] {
        raised("mappings-bound-elsewhere", |p| {
            p.placement.own_policies = own(mode, &[0], GIB / 4);
        });
    }
    raised("mappings-bound-elsewhere", |p| {
        p.devices.clear();
        p.placement.own_policies = own(PolicyMode::Bind, &[0], GIB / 4);
    });
    silent("mappings-bound-elsewhere", |p| {
        p.placement.own_policies = own(PolicyMode::Bind, &[1], GIB / 4);
    });
    silent("mappings-bound-elsewhere", |p| {
        p.placement.own_policies = own(PolicyMode::Interleave, &[0, 1], GIB / 4);
    });
    silent("mappings-bound-elsewhere", |p| {
        p.placement.own_policies = own(PolicyMode::Bind, &[0], GIB / 100);
    });
    silent("mappings-bound-elsewhere", |p| {
        p.placement.own_policies = None;
    });
}

#[test]
fn memory_from_before_bind() {
    raised("memory-from-before-bind", |p| {
        p.placement.by_node_bytes = memory(&[(0, GIB), (1, GIB)]);
    });
    silent("memory-from-before-bind", |p| {
        p.placement.by_node_bytes = memory(&[(0, GIB), (1, GIB)]);
        p.placing.policy = policy(PolicyMode::Default, &[]);
    });
}

#[test]
fn a_bind_to_the_wrong_node_is_told_alone() {
    let bound_to_node_0 = |p: &mut Process| p.placing.policy = policy(PolicyMode::Bind, &[0]);
    raised("bound-to-wrong-node", bound_to_node_0);
    silent("memory-from-before-bind", bound_to_node_0);
}

#[test]
fn page_cache_is_no_memory_from_before_the_bind() {
    let by_kind = |file: u32, anonymous: u32| {
        let kind = |node| memory(&[(node, GIB)]).unwrap_or_default();
        Some(BTreeMap::from([
            (MemoryKind::File, kind(file)),
            (MemoryKind::Anonymous, kind(anonymous)),
        ]))
    };
    silent("memory-from-before-bind", |p| {
        p.placement.by_node_bytes = memory(&[(0, GIB), (1, GIB)]);
        p.placement.by_kind = by_kind(0, 1);
    });
    raised("memory-from-before-bind", |p| {
        p.placement.by_node_bytes = memory(&[(0, GIB), (1, GIB)]);
        p.placement.by_kind = by_kind(1, 0);
    });
}

#[test]
fn a_cpuset_is_widened_by_whoever_made_it() {
    let container = |runtime: &str, pod_uid: Option<&str>| Container {
        id: "4f1d".to_owned(),
        runtime: Some(runtime.to_owned()),
        pod_uid: pod_uid.map(str::to_owned),
    };
    for (cgroup, container, command, hint) in [
        (
            "/docker/4f1d",
            Some(container("docker", None)),
            "docker update --cpuset-mems 1 --cpuset-cpus 4-7 4f1d",
            "pinned",
        ),
        (
            "/kubepods/podu/4f1d",
            Some(container("containerd", Some("u"))),
            "",
            "kubelet",
        ),
        (
            "/system.slice/containerd/4f1d",
            Some(container("containerd", None)),
            "",
            "mems 1 and cpus 4-7",
        ),
        (
            "/system.slice/llm.service",
            None,
            "systemctl set-property llm.service AllowedMemoryNodes=1 AllowedCPUs=4-7",
            "",
        ),
        (
            "/tenant",
            None,
            "echo 1 > /sys/fs/cgroup/tenant/cpuset.mems",
            "cgroup v1",
        ),
        ("/a b;reboot", None, "", "cpuset.mems 1"),
    ] {
        let mut found = raised("cpuset-forbids-gpu-node", |p| {
            p.placing.cpuset_mems = Some(vec![0]);
            p.placing.cgroup = Some(cgroup.to_owned());
            p.placing.container.clone_from(&container);
        });
        found.advice.push(String::new());
        assert_eq!(found.advice[0], command, "{cgroup}");
        assert_eq!(found.hints.is_empty(), hint.is_empty(), "{cgroup}");
        assert!(found.hints.concat().contains(hint), "{:?}", found.hints);
    }
}

#[test]
fn cpuset_forbids_gpu_node() {
    raised("cpuset-forbids-gpu-node", |p| {
        p.placing.cpuset_mems = Some(vec![0]);
    });
    raised("cpuset-forbids-gpu-node", |p| {
        p.placing.cpuset_cpus = Some(vec![0, 1]);
    });
    silent("cpuset-forbids-gpu-node", |p| {
        p.placing.cpuset_mems = Some(vec![0, 1]);
        p.placing.cpuset_cpus = Some(vec![1, 7]);
    });
}

#[test]
fn node_is_full() {
    let with = |free: u64, foreign: u64| {
        let mut now = snapshot(10, vec![process()]);
        now.topology.nodes[1].memory_free_bytes = Some(free);
        now.topology.nodes[1].numastat = Some(NumaStat {
            foreign,
            ..NumaStat::default()
        });
        ids(&now)
    };
    assert_eq!(with(GIB, 0), ["node-is-full"]);
    assert_eq!(with(32 * GIB, 1_000), ["node-is-full"]);
    assert_eq!(with(32 * GIB, 100), Vec::<String>::new());
}

#[test]
fn little_free_memory_alone_is_no_warning() {
    let mut now = snapshot(10, vec![process()]);
    now.topology.nodes[1].memory_free_bytes = Some(GIB);
    let view = View {
        now: &now,
        past: &Past::default(),
        thresholds: &Thresholds::default(),
        cache_bytes: None,
    };
    let severities: Vec<_> = findings(&view).iter().map(|f| f.severity).collect();
    assert_eq!(severities, [Severity::Info]);
}
