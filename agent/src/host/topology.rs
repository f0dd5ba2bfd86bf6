//! The NUMA nodes, from `/sys/devices/system/node` and the CPUs' topology files.

use crate::host::error::Error;
use crate::host::root::{Root, read, read_if_present};
use crate::host::{cpulist, root};
use model::topology::{LOCAL_DISTANCE, Node, NodeId, NumaStat, Topology};
use std::collections::BTreeMap;
use std::path::Path;

/// Reads every online node. `cpu_busy` stays `None`: it needs two readings ([`super::cpu_time`]).
///
/// A kernel without NUMA has no `node` directory: it is shown as node 0 with every online CPU and
/// the machine's memory. A node whose own files lack something is shown without it.
///
/// # Errors
/// If the lists of nodes and CPUs can't be read.
pub(crate) fn read_topology(root: &Root) -> Result<Topology, Error> {
    let (topology, failed) = read_nodes(root);
    match failed.into_iter().next() {
        Some(error) => Err(error),
        None => Ok(topology),
    }
}

/// As [`read_topology`], but with every node that can be read, and why others can't.
pub(crate) fn read_nodes(root: &Root) -> (Topology, Vec<Error>) {
    let mut topology = Topology::default();
    let mut failed = Vec::new();
    match node_ids(root) {
        Ok((cpus, Some(ids))) => {
            for id in &ids {
                match read_node(root, *id, &ids, &cpus) {
                    Ok(node) => topology.nodes.push(node),
                    Err(error) => failed.push(error),
                }
            }
        }
        Ok((cpus, None)) => match whole_machine(root, cpus) {
            Ok(node) => topology.nodes.push(node),
            Err(error) => failed.push(error),
        },
        Err(error) => failed.push(error),
    }
    (topology, failed)
}

/// The online CPUs, and the nodes; `None` on a kernel without NUMA.
fn node_ids(root: &Root) -> Result<(Vec<u32>, Option<Vec<NodeId>>), Error> {
    let cpus = list(&root.sys("devices/system/cpu/online"))?;
    let online = root.sys("devices/system/node/online");
    let Some(text) = read_if_present(&online)? else {
        return Ok((cpus, None));
    };
    let ids = cpulist::parse(&text).ok_or_else(|| Error::format(&online, "is no list of nodes"))?;
    Ok((cpus, Some(ids)))
}

fn read_node(root: &Root, id: NodeId, ids: &[NodeId], online: &[u32]) -> Result<Node, Error> {
    let directory = root.sys(format!("devices/system/node/node{id}"));
    let mut cpus = list(&directory.join("cpulist"))?;
    cpus.retain(|cpu| online.contains(cpu));
    let meminfo = read_if_present(&directory.join("meminfo"))?.unwrap_or_default();
    Ok(Node {
        id,
        socket: cpus.first().and_then(|cpu| socket(root, *cpu)),
        cpus,
        memory_total_bytes: memory(&meminfo, "MemTotal:"),
        memory_free_bytes: memory(&meminfo, "MemFree:"),
        distances: read_if_present(&directory.join("distance"))?
            .map(|text| distances(&text, ids))
            .unwrap_or_default(),
        numastat: read_if_present(&directory.join("numastat"))?.and_then(|text| numastat(&text)),
        cpu_busy: None,
    })
}

fn whole_machine(root: &Root, cpus: Vec<u32>) -> Result<Node, Error> {
    let meminfo = read(&root.proc("meminfo"))?;
    Ok(Node {
        id: 0,
        socket: cpus.first().and_then(|cpu| socket(root, *cpu)),
        cpus,
        memory_total_bytes: memory(&meminfo, "MemTotal:"),
        memory_free_bytes: memory(&meminfo, "MemFree:"),
        distances: BTreeMap::from([(0, LOCAL_DISTANCE)]),
        numastat: None,
        cpu_busy: None,
    })
}

fn list(path: &Path) -> Result<Vec<u32>, Error> {
    cpulist::parse(&read(path)?).ok_or_else(|| Error::format(path, "is no list of numbers"))
}

/// The package of a CPU; the kernel writes -1 where the firmware doesn't tell.
fn socket(root: &Root, cpu: u32) -> Option<u32> {
    let path = root.sys(format!(
        "devices/system/cpu/cpu{cpu}/topology/physical_package_id"
    ));
    root::read(&path).ok()?.trim().parse().ok()
}

/// Bytes of a line `Node 0 MemTotal:  512 kB` or `MemTotal:  512 kB`.
pub(crate) fn memory(meminfo: &str, name: &str) -> Option<u64> {
    meminfo.lines().find_map(|line| {
        let (_, value) = line.split_once(name)?;
        let kib: u64 = value.trim().strip_suffix(" kB")?.trim().parse().ok()?;
        Some(kib * 1024)
    })
}

/// One distance for each online node, in their order.
fn distances(text: &str, ids: &[NodeId]) -> BTreeMap<NodeId, u32> {
    ids.iter()
        .copied()
        .zip(text.split_ascii_whitespace().map_while(|d| d.parse().ok()))
        .collect()
}

fn numastat(text: &str) -> Option<NumaStat> {
    let value = |name: &str| {
        text.lines().find_map(|line| {
            let (key, value) = line.split_once(' ')?;
            (key == name).then(|| value.trim().parse().ok())?
        })
    };
    Some(NumaStat {
        hit: value("numa_hit")?,
        miss: value("numa_miss")?,
        foreign: value("numa_foreign")?,
        local: value("local_node")?,
        other: value("other_node")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fixture::Fixture;

    const NODE: &str = "devices/system/node";

    fn node(fixture: &Fixture, id: NodeId, cpus: &str, kib: u64, distance: &str) {
        let file = |name: &str, content: &str| {
            fixture.file(&format!("sys/{NODE}/node{id}/{name}"), content);
        };
        file("cpulist", &format!("{cpus}\n"));
        file(
            "meminfo",
            &format!(
                "Node {id} MemTotal:       {kib} kB\nNode {id} MemFree:        {} kB\n",
                kib / 2
            ),
        );
        file("distance", &format!("{distance}\n"));
        file(
            "numastat",
            "numa_hit 5\nnuma_miss 4\nnuma_foreign 3\ninterleave_hit 9\nlocal_node 2\nother_node 1\n",
        );
    }

    fn package(fixture: &Fixture, cpu: u32, id: i32) {
        fixture.file(
            &format!("sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id"),
            &format!("{id}\n"),
        );
    }

    fn sparse() -> Fixture {
        let fixture = Fixture::with(&[
            ("sys/devices/system/cpu/online", "0-2,4\n"),
            ("sys/devices/system/node/online", "0,2,8\n"),
        ]);
        node(&fixture, 0, "0-1", 1000, "10 21 28");
        node(&fixture, 2, "2-4", 0, "21 10 17");
        node(&fixture, 8, "", 2000, "28 17 10");
        package(&fixture, 0, 0);
        package(&fixture, 2, 1);
        fixture
    }

    #[test]
    fn sparse_ids_keep_their_distances() {
        let topology = read_topology(&sparse().root()).unwrap();
        let ids: Vec<NodeId> = topology.nodes.iter().map(|n| n.id).collect();
        assert_eq!(ids, [0, 2, 8]);
        assert_eq!(topology.distance(0, 8), Some(28));
        assert_eq!(topology.distance(8, 2), Some(17));
    }

    #[test]
    fn a_memory_only_node_has_no_cpus_and_counts_to_the_nearest_socket() {
        let topology = read_topology(&sparse().root()).unwrap();
        let node = topology.node(8).unwrap();
        assert_eq!((node.cpus.as_slice(), node.socket), (&[][..], None));
        assert_eq!(node.memory_total_bytes, Some(2000 * 1024));
        assert_eq!(node.memory_free_bytes, Some(1000 * 1024));
        assert_eq!(topology.socket_of(8), Some(1));
    }

    #[test]
    fn a_cpu_only_node_has_zero_memory() {
        let topology = read_topology(&sparse().root()).unwrap();
        assert_eq!(topology.node(2).unwrap().memory_total_bytes, Some(0));
    }

    #[test]
    fn an_offline_cpu_is_in_no_node() {
        let topology = read_topology(&sparse().root()).unwrap();
        assert_eq!(topology.node(2).unwrap().cpus, [2, 4]);
    }

    #[test]
    fn numastat_has_the_kernels_five_counters() {
        let topology = read_topology(&sparse().root()).unwrap();
        assert_eq!(
            topology.node(0).unwrap().numastat,
            Some(NumaStat {
                hit: 5,
                miss: 4,
                foreign: 3,
                local: 2,
                other: 1
            })
        );
    }

    #[test]
    fn an_unknown_package_is_no_socket() {
        let fixture = sparse();
        package(&fixture, 0, -1);
        package(&fixture, 2, -1);
        let topology = read_topology(&fixture.root()).unwrap();
        assert_eq!(topology.sockets(), None);
    }

    #[test]
    fn a_kernel_without_numa_is_one_node() {
        let fixture = Fixture::with(&[
            ("sys/devices/system/cpu/online", "0-1\n"),
            (
                "proc/meminfo",
                "MemTotal:        4096 kB\nMemFree:         1024 kB\n",
            ),
        ]);
        let topology = read_topology(&fixture.root()).unwrap();
        assert_eq!(topology.nodes.len(), 1);
        let node = &topology.nodes[0];
        assert_eq!((node.id, node.cpus.as_slice()), (0, &[0, 1][..]));
        assert_eq!(node.memory_total_bytes, Some(4096 * 1024));
        assert_eq!(topology.distance(0, 0), Some(LOCAL_DISTANCE));
        assert_eq!(node.numastat, None);
    }

    #[test]
    fn a_host_without_sysfs_says_which_file_is_missing() {
        let error = read_topology(&Fixture::new().root())
            .unwrap_err()
            .to_string();
        assert!(error.contains("devices/system/cpu/online"), "{error}");
    }
}
