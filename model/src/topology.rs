//! The machine's NUMA nodes, and which of them are near each other.

use crate::devices::Device;
use crate::locality::Locality;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A NUMA node's id as the kernel numbers it; ids can be sparse.
pub type NodeId = u32;

/// The distance that the firmware gives a node to itself (ACPI SLIT).
pub const LOCAL_DISTANCE: u32 = 10;

/// Every online node of the machine, by ascending id.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Topology {
    /// Online nodes, ascending by id.
    pub nodes: Vec<Node>,
    /// Why nodes, or something of them, may be missing; `None` where everything was read.
    #[serde(default)]
    pub nodes_reason: Option<String>,
    /// Whether there may be more nodes than the one that is shown, because which there are couldn't be read.
    #[serde(default)]
    pub nodes_hidden: bool,
    /// GPUs, accelerators and RDMA NICs, by kind and address.
    #[serde(default)]
    pub devices: Vec<Device>,
    /// Why devices, or something of them, may be missing; `None` where everything was read.
    #[serde(default)]
    pub devices_reason: Option<String>,
}

/// One NUMA node. Source: `/sys/devices/system/node/nodeN`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// The kernel's id.
    pub id: NodeId,
    /// Online CPUs, ascending; empty for memory-only nodes.
    pub cpus: Vec<u32>,
    /// The package of its CPUs; `None` for nodes without CPUs or where sysfs doesn't tell.
    pub socket: Option<u32>,
    /// `MemTotal` of the node, bytes; 0 for CPU-only nodes.
    pub memory_total_bytes: Option<u64>,
    /// `MemFree` of the node, bytes.
    pub memory_free_bytes: Option<u64>,
    /// SLIT distance to each online node; 10 is local.
    pub distances: BTreeMap<NodeId, u32>,
    /// The allocator's counters since boot, pages.
    pub numastat: Option<NumaStat>,
    /// The share of the node's CPU time that was not idle since the snapshot before, 0 to 1.
    pub cpu_busy: Option<f64>,
}

/// `nodeN/numastat`: page allocations since boot. Names and meaning are the kernel's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumaStat {
    /// Allocated here as intended.
    pub hit: u64,
    /// Allocated here though another node was preferred.
    pub miss: u64,
    /// Intended for here, allocated elsewhere.
    pub foreign: u64,
    /// Allocated here by a process running here.
    pub local: u64,
    /// Allocated here by a process running elsewhere.
    pub other: u64,
}

impl Topology {
    /// The node with this id.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.iter().find(|n| n.id == id)
    }

    /// The node that a CPU belongs to.
    #[must_use]
    pub fn node_of_cpu(&self, cpu: u32) -> Option<NodeId> {
        self.nodes
            .iter()
            .find(|n| n.cpus.contains(&cpu))
            .map(|n| n.id)
    }

    /// The package that a node counts to: its own CPUs', else that of the nearest node with CPUs.
    #[must_use]
    pub fn socket_of(&self, id: NodeId) -> Option<u32> {
        let node = self.node(id)?;
        if !node.cpus.is_empty() {
            return node.socket;
        }
        self.nodes
            .iter()
            .filter(|n| !n.cpus.is_empty())
            .min_by_key(|n| (self.distance(id, n.id).unwrap_or(u32::MAX), n.id))
            .and_then(|n| n.socket)
    }

    /// Labels of the GPUs whose own memory a node is.
    #[must_use]
    pub fn gpus_of_memory(&self, node: NodeId) -> Vec<&str> {
        let devices = self.devices.iter();
        let own = devices.filter(|device| device.memory_nodes.contains(&node));
        own.map(|device| device.label.as_str()).collect()
    }

    /// The node with CPUs that is nearest to this one, itself where it has some; `None` where no distance tells one from
    /// the others.
    #[must_use]
    pub fn nearest_with_cpus(&self, id: NodeId) -> Option<NodeId> {
        let with_cpus: Vec<&Node> = self.nodes.iter().filter(|n| !n.cpus.is_empty()).collect();
        match with_cpus.as_slice() {
            [only] => return Some(only.id),
            nodes if nodes.iter().any(|n| n.id == id) => return Some(id),
            _ => {}
        }
        let distance = |n: &&Node| Some((self.distance(id, n.id)?, n.id));
        let mut near: Vec<(u32, NodeId)> = with_cpus.iter().filter_map(distance).collect();
        near.sort_unstable();
        match near.as_slice() {
            [(first, _), (second, _), ..] if first == second => None,
            [(_, node), ..] => Some(*node),
            [] => None,
        }
    }

    /// The distance from one node to another, in the table's own direction.
    #[must_use]
    pub fn distance(&self, from: NodeId, to: NodeId) -> Option<u32> {
        self.node(from)?.distances.get(&to).copied()
    }

    /// How far `to` is from `from`. Where a package is unknown, another node is cross-socket.
    #[must_use]
    pub fn locality(&self, from: NodeId, to: NodeId) -> Locality {
        if from == to {
            return Locality::Local;
        }
        match (self.socket_of(from), self.socket_of(to)) {
            (Some(a), Some(b)) if a == b => Locality::SameSocket,
            (Some(_), Some(_)) => Locality::CrossSocket,
            _ => match self.distance(from, to) {
                Some(d) if d <= LOCAL_DISTANCE => Locality::SameSocket,
                _ => Locality::CrossSocket,
            },
        }
    }

    /// How many packages the nodes' CPUs are on; `None` where sysfs tells no package.
    #[must_use]
    pub fn sockets(&self) -> Option<usize> {
        let mut ids: Vec<u32> = self.nodes.iter().filter_map(|n| n.socket).collect();
        ids.sort_unstable();
        ids.dedup();
        if ids.is_empty() {
            None
        } else {
            Some(ids.len())
        }
    }

    /// Why there may be more nodes here than are shown. Then nothing can be told of what is near and far.
    #[must_use]
    pub fn hides_nodes(&self) -> Option<&str> {
        let why = self.nodes_reason.as_deref().unwrap_or("no reason is known");
        self.nodes_hidden.then_some(why)
    }

    /// Whether the machine may have more nodes than it shows: a virtual machine with one node, whose host decides
    /// where its memory lies and which CPUs run it.
    #[must_use]
    pub fn may_hide_nodes(&self, hypervisor: Option<&str>) -> bool {
        hypervisor.is_some() && self.nodes.len() < 2 && !self.nodes_hidden
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_node_with_cpus() {
        let two = |memory_distances: &[(NodeId, u32)]| Topology {
            nodes: vec![
                node(0, &[0], Some(0), &[(0, 10), (1, 40)]),
                node(1, &[1], Some(1), &[(0, 40), (1, 10)]),
                node(2, &[], None, memory_distances),
            ],
            ..Topology::default()
        };
        for (distances, want) in [
            (&[(0, 80), (1, 120), (2, 10)][..], Some(0)),
            (&[(0, 120), (1, 80), (2, 10)], Some(1)),
            (&[(0, 80), (1, 80), (2, 10)], None),
            (&[], None),
        ] {
            assert_eq!(two(distances).nearest_with_cpus(2), want, "{distances:?}");
        }
        assert_eq!(two(&[]).nearest_with_cpus(1), Some(1));
        let mut one = two(&[]);
        one.nodes.remove(1);
        assert_eq!(one.nearest_with_cpus(2), Some(0), "there is no other");
    }

    fn node(id: NodeId, cpus: &[u32], socket: Option<u32>, distances: &[(NodeId, u32)]) -> Node {
        Node {
            id,
            cpus: cpus.to_vec(),
            socket,
            distances: distances.iter().copied().collect(),
            ..Node::default()
        }
    }

    #[test]
    fn localities_of_two_sockets_with_two_nodes_each_and_a_memory_only_node() {
        let t = Topology {
            devices: Vec::new(),
            nodes: vec![
                node(
                    0,
                    &[0, 1],
                    Some(0),
                    &[(0, 10), (1, 12), (2, 21), (3, 21), (8, 28)],
                ),
                node(
                    1,
                    &[2, 3],
                    Some(0),
                    &[(0, 12), (1, 10), (2, 21), (3, 21), (8, 28)],
                ),
                node(
                    2,
                    &[4, 5],
                    Some(1),
                    &[(0, 21), (1, 21), (2, 10), (3, 12), (8, 17)],
                ),
                node(
                    3,
                    &[6, 7],
                    Some(1),
                    &[(0, 21), (1, 21), (2, 12), (3, 10), (8, 28)],
                ),
                node(8, &[], None, &[(0, 28), (1, 28), (2, 17), (3, 28), (8, 10)]),
            ],
            ..Topology::default()
        };
        for (from, to, want) in [
            (0, 0, Locality::Local),
            (0, 1, Locality::SameSocket),
            (0, 2, Locality::CrossSocket),
            (3, 2, Locality::SameSocket),
            (2, 8, Locality::SameSocket),
            (3, 8, Locality::SameSocket),
            (0, 8, Locality::CrossSocket),
            (8, 8, Locality::Local),
        ] {
            assert_eq!(t.locality(from, to), want, "{from} -> {to}");
        }
        assert_eq!(t.sockets(), Some(2));
    }

    #[test]
    fn only_a_guest_with_one_node_may_hide_others() {
        let one = Topology {
            nodes: vec![node(0, &[0], None, &[])],
            ..Topology::default()
        };
        let two = Topology {
            nodes: vec![node(0, &[0], None, &[]), node(1, &[1], None, &[])],
            ..Topology::default()
        };
        for (topology, hypervisor, want) in [
            (&one, Some("KVM"), true),
            (&two, Some("KVM"), false),
            (&one, None, false),
            (&two, None, false),
        ] {
            assert_eq!(topology.may_hide_nodes(hypervisor), want);
        }
    }

    #[test]
    fn a_node_without_cpus_is_near_one_with() {
        let t = Topology {
            nodes: vec![
                node(0, &[0], None, &[(0, 10), (1, 20), (8, 30)]),
                node(1, &[1], None, &[(0, 20), (1, 10), (8, 12)]),
                node(8, &[], None, &[(0, 30), (1, 12), (8, 10)]),
            ],
            ..Topology::default()
        };
        assert_eq!(t.nearest_with_cpus(8), Some(1));
        assert_eq!(t.nearest_with_cpus(0), Some(0));
        assert_eq!(Topology::default().nearest_with_cpus(0), None);
    }

    #[test]
    fn a_node_of_unknown_package_is_cross_socket() {
        let t = Topology {
            devices: Vec::new(),
            nodes: vec![
                node(0, &[0], None, &[(0, 10), (1, 20)]),
                node(1, &[1], None, &[(0, 20), (1, 10)]),
            ],
            ..Topology::default()
        };
        assert_eq!(t.locality(0, 1), Locality::CrossSocket);
        assert_eq!(t.locality(0, 7), Locality::CrossSocket);
        assert_eq!(t.sockets(), None);
    }
}
