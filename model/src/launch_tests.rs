//! The decision, case by case.

use super::*;
use crate::topology::Node;

const GIB: u64 = 1 << 30;

fn node(id: NodeId, cpus: &[u32], memory: u64, distances: &[(NodeId, u32)]) -> Node {
    Node {
        id,
        cpus: cpus.to_vec(),
        memory_total_bytes: Some(memory),
        distances: distances.iter().copied().collect(),
        ..Node::default()
    }
}

/// Two sockets, a node of CPUs alone (2), and one of memory alone (8) near node 1.
fn here() -> Here {
    Here {
        topology: Topology {
            nodes: vec![
                node(0, &[0, 1], 64 * GIB, &[(0, 10), (1, 21), (2, 21), (8, 28)]),
                node(1, &[2, 3], 64 * GIB, &[(0, 21), (1, 10), (2, 21), (8, 12)]),
                node(2, &[4], 0, &[(0, 21), (1, 21), (2, 10), (8, 28)]),
                node(8, &[], 96 * GIB, &[(0, 28), (1, 12), (2, 28), (8, 10)]),
            ],
            ..Topology::default()
        },
        available: BTreeMap::from([(0, 60 * GIB), (1, 12 * GIB), (2, 0)]),
        cpuset_cpus: None,
        mems_allowed: Some(vec![0, 1, 8]),
    }
}

fn gpu(name: &str, node: Option<NodeId>) -> Gpu {
    Gpu {
        name: name.to_owned(),
        node,
        number: None,
    }
}

fn needs(bytes: u64) -> Needs {
    Needs {
        bytes,
        why: "--needs".to_owned(),
    }
}

fn on(node: NodeId) -> Asked {
    Asked {
        node: Some(node),
        ..Asked::default()
    }
}

fn near(gpus: &[Gpu]) -> Asked {
    Asked {
        gpus: gpus.to_vec(),
        ..Asked::default()
    }
}

#[test]
fn where_it_goes() {
    let (a, b) = (gpu("0", Some(1)), gpu("1", Some(1)));
    let unknown = gpu("2", None);
    for (asked, memory, cpu, cpus) in [
        (on(0), 0, 0, &[0, 1][..]),
        (near(std::slice::from_ref(&a)), 1, 1, &[2, 3]),
        (near(&[a.clone(), b]), 1, 1, &[2, 3]),
        // Memory alone: the nearest CPUs.
        (on(8), 8, 1, &[2, 3]),
        // The user knows what the firmware doesn't.
        (
            Asked {
                node: Some(1),
                ..near(&[a, unknown])
            },
            1,
            1,
            &[2, 3],
        ),
    ] {
        let want = Plan {
            memory_node: memory,
            cpu_node: cpu,
            cpus: cpus.to_vec(),
        };
        assert_eq!(plan(&asked, &here()), Ok(want), "{asked:?}");
    }
}

#[test]
fn why_it_goes_nowhere() {
    let (a, b, unknown) = (gpu("0", Some(0)), gpu("1", Some(1)), gpu("2", None));
    for (asked, want) in [
        (Asked::default(), Refusal::Nowhere),
        (
            near(&[a.clone(), unknown.clone()]),
            Refusal::UnknownGpuNode(unknown),
        ),
        (
            near(&[a.clone(), b.clone()]),
            Refusal::GpusApart(a.clone(), b),
        ),
        (
            Asked {
                node: Some(1),
                ..near(std::slice::from_ref(&a))
            },
            Refusal::NotTheGpusNode(a, 1),
        ),
        (on(5), Refusal::NoSuchNode(5, vec![0, 1, 2, 8])),
        (on(2), Refusal::NoMemory(2)),
    ] {
        let refusal = plan(&asked, &here()).unwrap_err();
        assert_eq!(refusal, want);
        assert_eq!(refusal.to_string().lines().count(), 1, "{refusal}");
    }
}

#[test]
fn hidden_nodes_are_no_place_to_launch_on() {
    let mut hidden = here();
    hidden.topology.nodes.truncate(1);
    hidden.topology.nodes_reason = Some("/sys is empty".to_owned());
    hidden.topology.nodes_hidden = true;
    let refusal = plan(&on(0), &hidden).unwrap_err();
    assert_eq!(refusal, Refusal::UnknownNodes("/sys is empty".to_owned()));
}

#[test]
fn a_cgroups_cpuset_narrows_the_cpus() {
    let narrow = Here {
        cpuset_cpus: Some(vec![0, 3]),
        ..here()
    };
    assert_eq!(plan(&on(1), &narrow).map(|plan| plan.cpus), Ok(vec![3]));
}

#[test]
fn a_cgroups_cpuset_that_forbids_the_node_is_named() {
    let memory = Here {
        mems_allowed: Some(vec![0]),
        ..here()
    };
    let refusal = plan(&on(1), &memory).unwrap_err();
    assert_eq!(refusal, Refusal::MemoryForbidden(1, vec![0]));
    assert!(refusal.to_string().contains("cpuset.mems: 0"), "{refusal}");
    let cpus = Here {
        cpuset_cpus: Some(vec![0, 1]),
        ..here()
    };
    let refusal = plan(&on(1), &cpus).unwrap_err();
    assert_eq!(refusal, Refusal::CpusForbidden(1, vec![0, 1]));
    assert!(
        refusal.to_string().contains("cpuset.cpus: 0-1"),
        "{refusal}"
    );
}

#[test]
fn what_must_be_free() {
    let with = |node, bytes| Asked {
        needs: Some(needs(bytes)),
        ..on(node)
    };
    for (asked, want) in [
        (with(1, 12 * GIB), None),
        (with(1, 0), None),
        (
            with(1, 12 * GIB + 1),
            Some(Refusal::Full(1, needs(12 * GIB + 1), 12 * GIB)),
        ),
        // It can't be read, and that is no room.
        (with(8, 1), Some(Refusal::UnknownFree(8, needs(1)))),
        (with(8, 0), None),
    ] {
        let room = plan(&asked, &here()).and_then(|plan| plan.has_room(&asked, &here()));
        assert_eq!(room.err(), want, "{asked:?}");
    }
}

#[test]
fn a_full_node_is_told_in_numbers() {
    let refusal = Refusal::Full(1, needs(60 * GIB), 12 * GIB).to_string();
    assert!(
        refusal.starts_with(
            "node 1 has 12.0 GiB free or in droppable page cache, less than the 60.0 GiB of --needs"
        ),
        "{refusal}"
    );
}

#[test]
fn numactl_is_told_both_nodes() {
    let plan = plan(&on(8), &here()).unwrap();
    assert_eq!(plan.numactl(), ["--cpunodebind=1", "--membind=8"]);
}
