//! Which events the self-test makes on this host: on the nodes and CPUs that this process is allowed. Pure.

use crate::host::cpulist;
use model::topology::{Node, NodeId, Topology};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Pages of 4 KiB for each pair of nodes.
pub(crate) const PAGES: usize = 512;
/// Pages of shared memory for each pair of nodes.
pub(crate) const SHARED_PAGES: usize = 256;
/// Pages that stay resident on each node, so that its placement can be read.
pub(crate) const RESIDENT_PAGES: usize = 256;
/// Pages pinned on each node.
pub(crate) const PINNED_PAGES: usize = 64;
/// Pages that a device's driver allocates on each node.
pub(crate) const DRIVER_PAGES: usize = 512;
/// Pages that go to swap and come back.
pub(crate) const SWAP_PAGES: usize = 64;
/// Pages that are touched while their map is full.
pub(crate) const FULL_PAGES: usize = 256;
/// Pages that NUMA balancing is to move.
pub(crate) const BALANCED_PAGES: usize = 2_048;
/// How often a thread goes round all nodes.
pub(crate) const ROUNDS: usize = 10;
/// CPU time that is burnt on each node, nanoseconds.
pub(crate) const BURN_NS: u64 = 30_000_000;
/// Nodes with pairs of their own in the kernel side's rows.
const MOST_NODES: usize = agent_ebpf::PAIR_NODES;
/// Pairs that are tried; on hosts with many nodes each touches its own and the next.
const MOST_PAIRS: usize = 64;
/// What a node must have free: a page that is bound to a full node is taken from somebody.
const FREE_BYTES: u64 = 64 << 20;

/// A node and those of its CPUs that this process may run on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    /// The node.
    pub(crate) node: NodeId,
    /// Its CPUs, not empty.
    pub(crate) cpus: Vec<u32>,
}

/// See the module's doc.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// Where threads run.
    pub(crate) places: Vec<Place>,
    /// Nodes that memory is bound to.
    pub(crate) memory: Vec<NodeId>,
    /// (index in `places`, memory node).
    pub(crate) pairs: Vec<(usize, NodeId)>,
    /// Where memory lies that is to be moved, and where it is touched from; indices in `places`.
    pub(crate) balance: Option<(usize, usize)>,
    /// Whether pages are pinned: there is a signal that would see it.
    pub(crate) pin: bool,
    /// The device whose driver is asked for buffers.
    pub(crate) driver: Option<PathBuf>,
    /// Whether pages are sent to swap: there is one.
    pub(crate) swap: bool,
}

impl Plan {
    /// For this host, CPUs and nodes as the kernel's lists have them (`Cpus_allowed_list`, `Mems_allowed_list`); a list
    /// that can't be had allows everything.
    pub(crate) fn new(topology: &Topology, cpus: Option<&str>, memory: Option<&str>) -> Self {
        let cpus = cpus.and_then(cpulist::parse);
        let memory = memory.and_then(cpulist::parse);
        let allowed =
            |list: &Option<Vec<u32>>, n: u32| list.as_ref().is_none_or(|l| l.contains(&n));
        let mut nodes: Vec<&Node> = topology.nodes.iter().collect();
        nodes.sort_by_key(|n| (n.cpus.is_empty(), n.id));
        nodes.truncate(MOST_NODES);
        let place = |node: &&Node| Place {
            node: node.id,
            cpus: node
                .cpus
                .iter()
                .copied()
                .filter(|cpu| allowed(&cpus, *cpu))
                .collect(),
        };
        let places: Vec<Place> = nodes
            .iter()
            .map(place)
            .filter(|place| !place.cpus.is_empty())
            .collect();
        let usable = |node: &&&Node| {
            allowed(&memory, node.id)
                && node.memory_free_bytes.is_none_or(|free| free >= FREE_BYTES)
                && node.memory_total_bytes != Some(0)
        };
        let memory: Vec<NodeId> = nodes.iter().filter(usable).map(|n| n.id).collect();
        Self {
            pairs: pairs(&places, &memory),
            balance: balance(&places, &memory),
            places,
            memory,
            pin: false,
            driver: None,
            swap: false,
        }
    }
}

/// All of them, or so many that every place and every node has its turn.
fn pairs(places: &[Place], memory: &[NodeId]) -> Vec<(usize, NodeId)> {
    let all = places.len() * memory.len() <= MOST_PAIRS;
    let mut pairs = Vec::new();
    for (index, place) in places.iter().enumerate() {
        for (offset, node) in memory.iter().enumerate() {
            let next = (index + 1) % memory.len() == offset;
            if all || place.node == *node || next {
                pairs.push((index, *node));
            }
        }
    }
    pairs
}

/// The first two places that have memory.
fn balance(places: &[Place], memory: &[NodeId]) -> Option<(usize, usize)> {
    let mut with_memory = (0..places.len()).filter(|i| memory.contains(&places[*i].node));
    Some((with_memory.next()?, with_memory.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: NodeId, cpus: &[u32], free_mib: u64) -> Node {
        Node {
            id,
            cpus: cpus.to_vec(),
            memory_total_bytes: Some(free_mib << 21),
            memory_free_bytes: Some(free_mib << 20),
            ..Node::default()
        }
    }

    /// (places, memory nodes, pairs, balanced).
    type Summary = (Vec<NodeId>, Vec<NodeId>, usize, bool);

    fn summary(nodes: Vec<Node>, cpus: Option<&str>, memory: Option<&str>) -> Summary {
        let plan = Plan::new(
            &Topology {
                nodes,
                ..Topology::default()
            },
            cpus,
            memory,
        );
        (
            plan.places.iter().map(|p| p.node).collect(),
            plan.memory,
            plan.pairs.len(),
            plan.balance.is_some(),
        )
    }

    #[test]
    fn every_layout_has_its_events() {
        let two = || vec![node(0, &[0, 1], 500), node(1, &[2, 3], 500)];
        let with = |more: Node| [two(), vec![more]].concat();
        for (name, nodes, cpus, memory, want) in [
            ("two", two(), None, None, (vec![0, 1], vec![0, 1], 4, true)),
            (
                "one",
                vec![node(0, &[0], 500)],
                None,
                None,
                (vec![0], vec![0], 1, false),
            ),
            (
                "memory only",
                with(node(2, &[], 500)),
                None,
                None,
                (vec![0, 1], vec![0, 1, 2], 6, true),
            ),
            (
                "CPU only",
                with(node(2, &[4], 0)),
                None,
                None,
                (vec![0, 1, 2], vec![0, 1], 6, true),
            ),
            (
                "cpuset",
                two(),
                Some("2-3"),
                Some("0-1"),
                (vec![1], vec![0, 1], 2, false),
            ),
            (
                "its memory",
                two(),
                Some("0-3"),
                Some("1"),
                (vec![0, 1], vec![1], 2, false),
            ),
            (
                "a full node",
                vec![node(0, &[0], 500), node(1, &[1], 8)],
                None,
                None,
                (vec![0, 1], vec![0], 2, false),
            ),
            (
                "sparse",
                vec![node(0, &[0], 500), node(8, &[1], 500)],
                None,
                None,
                (vec![0, 8], vec![0, 8], 4, true),
            ),
        ] {
            assert_eq!(summary(nodes, cpus, memory), want, "{name}");
        }
    }

    #[test]
    fn a_place_has_the_allowed_cpus_only() {
        let nodes = vec![node(0, &[0, 1, 2], 500)];
        let plan = Plan::new(
            &Topology {
                nodes,
                ..Topology::default()
            },
            Some("1-2,7"),
            None,
        );
        assert_eq!(plan.places[0].cpus, [1, 2]);
    }

    #[test]
    fn many_nodes_have_bounded_pairs_and_none_is_left_out() {
        let nodes = (0..20).map(|id| node(id, &[id], 500)).collect();
        let plan = Plan::new(
            &Topology {
                nodes,
                ..Topology::default()
            },
            None,
            None,
        );
        assert_eq!(plan.places.len(), MOST_NODES);
        assert!(plan.pairs.len() <= MOST_PAIRS, "{}", plan.pairs.len());
        for node in &plan.memory {
            assert!(plan.pairs.iter().any(|(_, memory)| memory == node));
        }
    }
}
