//! What each node could still give to a process that is bound to it.

use crate::host::root::{Root, read_if_present};
use crate::host::topology::memory;
use model::topology::{NodeId, Topology};
use std::collections::BTreeMap;

/// Bytes that are free, or that the kernel frees for whoever asks: the page cache of files (not tmpfs, nor what is
/// locked: those aren't on the lists of file pages), and slabs such as inodes.
///
/// The kernel keeps about a hundredth of a node for itself, which isn't taken off. A node that can't be read isn't in it.
pub(crate) fn read_available(root: &Root, topology: &Topology) -> BTreeMap<NodeId, u64> {
    let of = |id: NodeId| {
        let own = root.sys(format!("devices/system/node/node{id}/meminfo"));
        let text = match read_if_present(&own) {
            Ok(Some(text)) => text,
            // Without NUMA in the kernel the only node is the machine.
            Ok(None) if topology.nodes.len() == 1 => {
                read_if_present(&root.proc("meminfo")).ok().flatten()?
            }
            _ => return None,
        };
        available(&text).map(|bytes| (id, bytes))
    };
    topology
        .nodes
        .iter()
        .filter_map(|node| of(node.id))
        .collect()
}

fn available(meminfo: &str) -> Option<u64> {
    let line = |name: &str| memory(meminfo, name);
    let cache = ["Active(file):", "Inactive(file):", "SReclaimable:"];
    let cache: u64 = cache.into_iter().filter_map(line).sum();
    Some(line("MemFree:")? + cache)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fixture::Fixture;
    use model::topology::Node;

    const NODE: &str = "Node 1 MemTotal:       1000 kB\nNode 1 MemFree:        100 kB\nNode 1 Active:         90 kB\n\
        Node 1 Inactive:         90 kB\nNode 1 Active(anon):         80 kB\nNode 1 Active(file):         10 kB\n\
        Node 1 Inactive(file):         20 kB\nNode 1 Unevictable:         70 kB\nNode 1 FilePages:         60 kB\n\
        Node 1 Shmem:         30 kB\nNode 1 SReclaimable:         3 kB\n";

    fn topology(ids: &[NodeId]) -> Topology {
        let node = |id: &NodeId| Node {
            id: *id,
            ..Node::default()
        };
        Topology {
            nodes: ids.iter().map(node).collect(),
            ..Topology::default()
        }
    }

    #[test]
    fn free_memory_and_what_the_kernel_frees_when_asked() {
        let fixture = Fixture::with(&[("sys/devices/system/node/node1/meminfo", NODE)]);
        // Node 0 can't be read: it isn't there, rather than full.
        assert_eq!(
            read_available(&fixture.root(), &topology(&[0, 1])),
            BTreeMap::from([(1, 133 * 1024)])
        );
    }

    #[test]
    fn a_kernel_without_numa_has_one_node() {
        let fixture = Fixture::with(&[("proc/meminfo", "MemFree: 4 kB\nInactive(file): 2 kB\n")]);
        assert_eq!(
            read_available(&fixture.root(), &topology(&[0])),
            BTreeMap::from([(0, 6 * 1024)])
        );
    }
}
