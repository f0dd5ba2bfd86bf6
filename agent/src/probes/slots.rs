//! Which counter of a kernel row belongs to which node: the table that the kernel side is given, and the way back.

use agent_ebpf::{
    NODE_IDS, PAIR_NODES, SLOT_CROSS_SOCKET, SLOT_LOCAL, SLOT_SAME_SOCKET, SLOT_UNKNOWN,
};
use model::locality::Locality;
use model::topology::{NodeId, Topology};

/// What a slot of a row counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// One node's own.
    Node(NodeId),
    /// All nodes beyond the first [`PAIR_NODES`] of this locality.
    Others(Locality),
    /// The mechanism doesn't tell the node.
    Unknown,
}

/// The assignment of nodes to slots: nodes with CPUs first, then by id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slots {
    dense: Vec<NodeId>,
}

impl Slots {
    /// The first [`PAIR_NODES`] nodes get a slot each.
    pub(crate) fn new(topology: &Topology) -> Self {
        let mut nodes: Vec<_> = topology.nodes.iter().collect();
        nodes.sort_by_key(|n| (n.cpus.is_empty(), n.id));
        Self {
            dense: nodes.iter().take(PAIR_NODES).map(|n| n.id).collect(),
        }
    }

    /// What slot `index` counts.
    pub(crate) fn slot(&self, index: usize) -> Slot {
        match index {
            SLOT_LOCAL => Slot::Others(Locality::Local),
            SLOT_SAME_SOCKET => Slot::Others(Locality::SameSocket),
            SLOT_CROSS_SOCKET => Slot::Others(Locality::CrossSocket),
            _ => self
                .dense
                .get(index)
                .map_or(Slot::Unknown, |id| Slot::Node(*id)),
        }
    }

    /// The slot of every (CPU node, memory node), row by row: the kernel side's global `SLOT_OF`.
    pub(crate) fn table(&self, topology: &Topology) -> Vec<u8> {
        let mut table = vec![byte(SLOT_UNKNOWN); NODE_IDS * NODE_IDS];
        for cpu_node in &topology.nodes {
            for memory_node in &topology.nodes {
                let (from, to) = (cpu_node.id as usize, memory_node.id as usize);
                if from < NODE_IDS && to < NODE_IDS {
                    table[from * NODE_IDS + to] = self.index(topology, cpu_node.id, memory_node.id);
                }
            }
        }
        table
    }

    fn index(&self, topology: &Topology, cpu_node: NodeId, memory_node: NodeId) -> u8 {
        let own = self.dense.iter().position(|id| *id == memory_node);
        byte(
            own.unwrap_or_else(|| match topology.locality(cpu_node, memory_node) {
                Locality::Local => SLOT_LOCAL,
                Locality::SameSocket => SLOT_SAME_SOCKET,
                Locality::CrossSocket => SLOT_CROSS_SOCKET,
            }),
        )
    }
}

fn byte(slot: usize) -> u8 {
    u8::try_from(slot).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::topology::Node;

    fn topology(nodes: &[(NodeId, bool)]) -> Topology {
        Topology {
            nodes: nodes
                .iter()
                .map(|(id, cpus)| Node {
                    id: *id,
                    cpus: if *cpus { vec![*id] } else { vec![] },
                    socket: cpus.then_some(*id),
                    ..Node::default()
                })
                .collect(),
            ..Topology::default()
        }
    }

    #[test]
    fn sparse_ids_get_dense_slots() {
        let t = topology(&[(0, true), (8, true)]);
        let slots = Slots::new(&t);
        let table = slots.table(&t);
        assert_eq!(table[8 * NODE_IDS], 0);
        assert_eq!(table[8 * NODE_IDS + 8], 1);
        assert_eq!(table[3 * NODE_IDS + 8], byte(SLOT_UNKNOWN));
        assert_eq!(slots.slot(1), Slot::Node(8));
        assert_eq!(slots.slot(2), Slot::Unknown);
    }

    #[test]
    fn nodes_without_cpus_come_last_and_beyond_sixteen_only_localities_count() {
        let mut nodes: Vec<_> = (0..17).map(|id| (id, id != 0)).collect();
        nodes.push((63, true));
        let t = topology(&nodes);
        let slots = Slots::new(&t);
        let table = slots.table(&t);
        assert_eq!(slots.slot(0), Slot::Node(1));
        assert_eq!(table[63 * NODE_IDS + 63], byte(SLOT_LOCAL));
        assert_eq!(table[NODE_IDS + 63], byte(SLOT_CROSS_SOCKET));
        assert_eq!(slots.slot(SLOT_LOCAL), Slot::Others(Locality::Local));
    }
}
