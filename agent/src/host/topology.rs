//! The NUMA nodes, from `/sys/devices/system/node` and the CPUs' topology files.

use crate::host::cpu_time::read_cpu_times;
use crate::host::error::Error;
use crate::host::pci::without_remedy;
use crate::host::root::{Root, read, read_if_present};
use crate::host::{cpulist, root};
use model::topology::{LOCAL_DISTANCE, Node, NodeId, NumaStat, Topology};
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind::NotFound;
use std::path::{Path, PathBuf};

/// Reads every online node that can be read; `nodes_reason` says why others, or something of them, can't. `cpu_busy` stays
/// `None`: it needs two readings ([`super::cpu_time`]).
///
/// A kernel without NUMA has no `node` directory: it is shown as node 0 with every online CPU and the machine's memory. So
/// is one whose `node` directory shows no node, as where something is mounted over it, but with a reason.
pub(crate) fn read_topology(root: &Root) -> Topology {
    let mut reasons = Vec::new();
    let (online, why) = online_cpus(root);
    reasons.extend(why);
    let (ids, unseen) = node_ids(root);
    let hidden = ids.is_none() && unseen.is_some();
    reasons.extend(unseen);
    let there = ids.as_ref().map_or(1, Vec::len);
    let nodes = match ids {
        Some(ids) => {
            let mut nodes = Vec::new();
            for id in &ids {
                match read_node(root, *id, &ids, online.as_deref()) {
                    Ok(node) => nodes.push(node),
                    Err(error) => reasons.push(without_remedy(&error)),
                }
            }
            nodes
        }
        None => vec![whole_machine(root, online.unwrap_or_default())],
    };
    Topology {
        nodes_hidden: hidden || (nodes.len() < 2 && nodes.len() < there),
        nodes,
        nodes_reason: (!reasons.is_empty()).then(|| reasons.join("; ")),
        ..Topology::default()
    }
}

/// The online CPUs, and why they aren't sysfs's: then they are `/proc/stat`'s; `None` where that is missing too.
pub(crate) fn online_cpus(root: &Root) -> (Option<Vec<u32>>, Option<String>) {
    match list(&root.sys("devices/system/cpu/online")) {
        Ok(cpus) => (Some(cpus), None),
        Err(error) => {
            let times = read_cpu_times(root).unwrap_or_default();
            let cpus = (!times.is_empty()).then(|| times.into_keys().collect());
            (cpus, Some(without_remedy(&error)))
        }
    }
}

/// How many CPUs are online; the nodes' own lists have them too. `None` where one of these is masked as well.
pub(crate) fn count_online_cpus(root: &Root) -> Option<usize> {
    if let (Some(cpus), _) = online_cpus(root) {
        return Some(cpus.len());
    }
    let mut count = 0;
    for id in node_ids(root).0? {
        count += list(&cpulist(root, id)).ok()?.len();
    }
    (count > 0).then_some(count)
}

/// The online nodes, and what was in the way; no list and no reason on a kernel without NUMA.
fn node_ids(root: &Root) -> (Option<Vec<NodeId>>, Option<String>) {
    let folder = root.sys("devices/system/node");
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        // Every kernel has the folder above: without it sysfs isn't there to tell.
        Err(error) if error.kind() == NotFound && root.sys("devices/system").exists() => {
            return (None, None);
        }
        Err(error) => return (None, Some(without_remedy(&Error::io(&folder, error)))),
    };
    let why = match list(&folder.join("online")) {
        Ok(ids) if !ids.is_empty() => return (Some(ids), None),
        Ok(_) => None,
        Err(error) => Some(without_remedy(&error)),
    };
    let id = |entry: fs::DirEntry| {
        let name = entry.file_name();
        name.to_str()?.strip_prefix("node")?.parse().ok()
    };
    let mut ids: Vec<NodeId> = entries.filter_map(Result::ok).filter_map(id).collect();
    if ids.is_empty() {
        return (None, Some(format!("{} has no nodes", folder.display())));
    }
    ids.sort_unstable();
    (Some(ids), why)
}

/// The file with a node's online CPUs.
fn cpulist(root: &Root, id: NodeId) -> PathBuf {
    root.sys(format!("devices/system/node/node{id}/cpulist"))
}

fn read_node(
    root: &Root,
    id: NodeId,
    ids: &[NodeId],
    online: Option<&[u32]>,
) -> Result<Node, Error> {
    let directory = root.sys(format!("devices/system/node/node{id}"));
    let mut cpus = list(&cpulist(root, id))?;
    cpus.retain(|cpu| online.is_none_or(|online| online.contains(cpu)));
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

fn whole_machine(root: &Root, cpus: Vec<u32>) -> Node {
    let meminfo = read(&root.proc("meminfo")).unwrap_or_default();
    Node {
        id: 0,
        socket: cpus.first().and_then(|cpu| socket(root, *cpu)),
        cpus,
        memory_total_bytes: memory(&meminfo, "MemTotal:"),
        memory_free_bytes: memory(&meminfo, "MemFree:"),
        distances: BTreeMap::from([(0, LOCAL_DISTANCE)]),
        numastat: None,
        cpu_busy: None,
    }
}

/// A list of numbers. The kernel ends one without any by a newline too, so a file of no bytes isn't the kernel's.
fn list(path: &Path) -> Result<Vec<u32>, Error> {
    let text = read(path)?;
    if text.is_empty() {
        let what = "is empty: is something mounted over it?";
        return Err(Error::format(path, what));
    }
    cpulist::parse(&text).ok_or_else(|| Error::format(path, "is no list of numbers"))
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
        let topology = read_topology(&sparse().root());
        let ids: Vec<NodeId> = topology.nodes.iter().map(|n| n.id).collect();
        assert_eq!(ids, [0, 2, 8]);
        assert_eq!(topology.distance(0, 8), Some(28));
        assert_eq!(topology.distance(8, 2), Some(17));
    }

    #[test]
    fn a_memory_only_node_has_no_cpus_and_counts_to_the_nearest_socket() {
        let topology = read_topology(&sparse().root());
        let node = topology.node(8).unwrap();
        assert_eq!((node.cpus.as_slice(), node.socket), (&[][..], None));
        assert_eq!(node.memory_total_bytes, Some(2000 * 1024));
        assert_eq!(node.memory_free_bytes, Some(1000 * 1024));
        assert_eq!(topology.socket_of(8), Some(1));
    }

    #[test]
    fn a_cpu_only_node_has_zero_memory() {
        let topology = read_topology(&sparse().root());
        assert_eq!(topology.node(2).unwrap().memory_total_bytes, Some(0));
    }

    #[test]
    fn an_offline_cpu_is_in_no_node() {
        let topology = read_topology(&sparse().root());
        assert_eq!(topology.node(2).unwrap().cpus, [2, 4]);
    }

    #[test]
    fn numastat_has_the_kernels_five_counters() {
        let topology = read_topology(&sparse().root());
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
        let topology = read_topology(&fixture.root());
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
        let topology = read_topology(&fixture.root());
        assert_eq!(topology.nodes.len(), 1);
        let node = &topology.nodes[0];
        assert_eq!((node.id, node.cpus.as_slice()), (0, &[0, 1][..]));
        assert_eq!(node.memory_total_bytes, Some(4096 * 1024));
        assert_eq!(topology.distance(0, 0), Some(LOCAL_DISTANCE));
        assert_eq!(node.numastat, None);
        assert_eq!(topology.nodes_reason, None);
    }

    #[test]
    fn a_host_whose_files_are_masked_says_which() {
        let stat = (
            "proc/stat",
            "cpu  9 9 9 9 9 9 9 9\ncpu0 1 1 1 1\ncpu3 1 1 1 1\nintr 1\n",
        );
        let online = ("sys/devices/system/cpu/online", "0,3\n");
        let entry = ("sys/devices/system/node/possible", "0-1\n");
        let no_nodes = "devices/system/node has no nodes";
        for (what, files, cpus, wants) in [
            (
                "no sysfs",
                &[][..],
                &[][..],
                &["cpu/online", "can't read"][..],
            ),
            ("no nodes", &[online, entry], &[0, 3], &[no_nodes]),
            (
                "no CPUs, no nodes",
                &[stat, entry],
                &[0, 3],
                &["cpu/online", no_nodes],
            ),
        ] {
            let topology = read_topology(&Fixture::with(files).root());
            let [node] = topology.nodes.as_slice() else {
                panic!("{what}: {topology:?}");
            };
            assert_eq!((node.id, node.cpus.as_slice()), (0, cpus), "{what}");
            let why = topology.hides_nodes().unwrap();
            assert!(wants.iter().all(|want| why.contains(want)), "{what}: {why}");
        }
    }

    #[test]
    fn masked_cpus_are_the_nodes_that_proc_stat_has() {
        let fixture = sparse();
        fixture.unreadable("sys/devices/system/cpu/online");
        let cpus = |fixture: &Fixture| {
            let topology = read_topology(&fixture.root());
            let why = topology.nodes_reason.unwrap();
            assert!(why.contains("devices/system/cpu/online"), "{why}");
            assert!(!topology.nodes_hidden);
            topology
                .nodes
                .into_iter()
                .flat_map(|n| n.cpus)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            cpus(&fixture),
            [0, 1, 2, 3, 4],
            "nothing tells which are online"
        );
        fixture.file("proc/stat", "cpu0 1\ncpu1 1\ncpu2 1\ncpu4 1\n");
        assert_eq!(cpus(&fixture), [0, 1, 2, 4]);
    }

    #[test]
    fn an_empty_file_is_masked_and_no_list_without_numbers() {
        let cpus = |fixture: &Fixture, masked: &str| {
            fixture.file(masked, "");
            let topology = read_topology(&fixture.root());
            let why = topology.nodes_reason.unwrap_or_default();
            let path = masked.strip_prefix("sys/").unwrap();
            let want = format!("{path}: is empty: is something mounted over it?");
            assert!(why.contains(&want), "{why}");
            let cpus = |node: Node| (node.id, node.cpus);
            topology.nodes.into_iter().map(cpus).collect::<Vec<_>>()
        };
        let memory_only = (8, vec![]);
        assert_eq!(
            cpus(&sparse(), "sys/devices/system/cpu/online"),
            [(0, vec![0, 1]), (2, vec![2, 3, 4]), memory_only.clone()]
        );
        assert_eq!(
            cpus(&sparse(), "sys/devices/system/node/node0/cpulist"),
            [(2, vec![2, 4]), memory_only.clone()]
        );
        assert_eq!(
            cpus(&sparse(), "sys/devices/system/node/online"),
            [(0, vec![0, 1]), (2, vec![2, 4]), memory_only]
        );
    }

    #[test]
    fn nodes_are_their_folders_where_the_list_is_missing() {
        let fixture = sparse();
        fixture.unreadable("sys/devices/system/node/online");
        let topology = read_topology(&fixture.root());
        let ids: Vec<NodeId> = topology.nodes.iter().map(|n| n.id).collect();
        assert_eq!(ids, [0, 2, 8]);
        assert!(topology.nodes_reason.unwrap().contains("node/online"));
    }

    #[test]
    fn the_only_node_that_can_be_read_hides_the_others() {
        let fixture = sparse();
        for (other, hidden) in [(2, false), (8, true)] {
            fixture.unreadable(&format!("sys/devices/system/node/node{other}/cpulist"));
            assert_eq!(read_topology(&fixture.root()).nodes_hidden, hidden);
        }
    }
}
