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
                match read_node(root, *id, &ids, online.as_deref(), &mut reasons) {
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

/// What a masked file is, by an empty one: the kernel's never are.
const EMPTY: &str = "is empty: is something mounted over it?";

/// A file of a node's; `None` where it isn't there, and, with a reason more, where it is masked.
fn unmasked(path: &Path, reasons: &mut Vec<String>) -> Result<Option<String>, Error> {
    let text = read_if_present(path)?;
    if text.as_deref() == Some("") {
        reasons.push(without_remedy(&Error::format(path, EMPTY)));
    }
    Ok(text.filter(|text| !text.is_empty()))
}

/// `reasons` gets why something of it is missing.
fn read_node(
    root: &Root,
    id: NodeId,
    ids: &[NodeId],
    online: Option<&[u32]>,
    reasons: &mut Vec<String>,
) -> Result<Node, Error> {
    let directory = root.sys(format!("devices/system/node/node{id}"));
    let mut cpus = list(&cpulist(root, id))?;
    cpus.retain(|cpu| online.is_none_or(|online| online.contains(cpu)));
    let mut file = |name: &str| unmasked(&directory.join(name), reasons);
    let meminfo = file("meminfo")?.unwrap_or_default();
    Ok(Node {
        id,
        socket: cpus.first().and_then(|cpu| socket(root, *cpu)),
        cpus,
        memory_total_bytes: memory(&meminfo, "MemTotal:"),
        memory_free_bytes: memory(&meminfo, "MemFree:"),
        distances: file("distance")?
            .map(|text| distances(&text, ids))
            .unwrap_or_default(),
        numastat: file("numastat")?.and_then(|text| numastat(&text)),
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
        return Err(Error::format(path, EMPTY));
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
#[path = "topology_tests.rs"]
mod tests;
