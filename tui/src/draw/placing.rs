//! What a process may use, in words: its nodes, its cgroup's bounds and memory, its container.

use super::text;
use crate::app::format;
use model::cgroup::{Cgroup, CgroupMemoryKind};
use model::list;
use model::policy::Placing;
use model::process::{ByNode, Thread};
use model::snapshot::Host;
use std::fmt::Write as _;

/// Nodes that its memory may come from, and the cpuset around it.
pub(crate) fn allowed(placing: &Placing, threads: &[Thread]) -> String {
    let numbers = |noun, list: &Option<Vec<u32>>| {
        list::counted(noun, &format::or_dash(list.as_deref(), list::format))
    };
    let mut said = format!(
        "memory of {}; cpuset: {}, {}",
        numbers("node", &placing.mems_allowed),
        numbers("CPU", &placing.cpuset_cpus),
        numbers("node", &placing.cpuset_mems),
    );
    let cpus = threads
        .iter()
        .filter(|thread| thread.cpus_allowed.is_some());
    let policies = threads.iter().filter(|thread| thread.policy.is_some());
    for (own, what) in [
        (cpus.count(), "other CPUs"),
        (policies.count(), "another memory policy"),
    ] {
        if own > 0 {
            let threads = format::plural(own, "thread", "threads");
            let _ = write!(said, "; {threads} with {what}");
        }
    }
    if let Some(reason) = &placing.reason {
        let _ = write!(said, " ({})", text::clean(reason));
    }
    said
}

/// Its container and pod, or the cgroup of a process of the host.
pub(crate) fn container(placing: &Placing) -> String {
    /// Enough to tell containers apart, as their own tools show them.
    const SHORT: usize = 12;
    let Some(container) = &placing.container else {
        let cgroup = format::or_dash(placing.cgroup.as_deref(), text::clean);
        return format!("none; cgroup {cgroup}");
    };
    let id = text::clean(&container.id);
    let id: String = id.chars().take(SHORT).collect();
    let mut said = match &container.runtime {
        Some(runtime) => format!("{} {id}", text::clean(runtime)),
        None => id,
    };
    if let Some(uid) = &container.pod_uid {
        let _ = write!(said, ", pod {}", text::clean(uid));
    }
    said
}

/// Memory that its cgroup is charged for, by kind and node, and what of it the watched processes have alone.
pub(crate) fn cgroup(cgroup: &Cgroup) -> String {
    let mut said = format!("{}: ", text::clean(&cgroup.path));
    match &cgroup.memory_by_kind {
        Some(kinds) => {
            let held = kinds.iter().filter(|(_, n)| n.values().any(|b| *b > 0));
            let held: Vec<String> = held
                .map(|(kind, nodes)| format!("{} {}", short(*kind), by_node(nodes, "")))
                .collect();
            said.push_str(&if held.is_empty() {
                "nothing".to_owned()
            } else {
                held.join(", ")
            });
        }
        None => said.push_str(format::NO_SIGNAL),
    }
    if let Some(reason) = &cgroup.reason {
        let _ = write!(said, " ({})", text::clean(reason));
    }
    let processes = format::plural(cgroup.pids.len(), "process", "processes");
    let _ = write!(said, "; private anon of {processes} in it ");
    match &cgroup.private_by_node_bytes {
        Some(nodes) => said.push_str(&by_node(nodes, "~")),
        None => said.push_str(format::NO_SIGNAL),
    }
    said
}

/// `0: 1.0 GiB 1: 0 B`, with a mark where the numbers are a sample's.
fn by_node(nodes: &ByNode, mark: &str) -> String {
    let nodes: Vec<String> = nodes
        .iter()
        .map(|(node, bytes)| format!("{node}: {mark}{}", format::bytes(*bytes)))
        .collect();
    nodes.join(" ")
}

/// As the page names the kinds of the process's own memory.
fn short(kind: CgroupMemoryKind) -> &'static str {
    match kind {
        CgroupMemoryKind::Anonymous => "anon",
        CgroupMemoryKind::AnonymousAndShared => "anon and shared",
        CgroupMemoryKind::Unevictable => "locked",
        told => told.as_str(),
    }
}

/// That the nodes shown may not be all.
pub(crate) fn hidden(host: &Host) -> Option<String> {
    let hypervisor = host.hypervisor.as_deref()?;
    host.may_hide_nodes.then(|| {
        format!(
            "a virtual machine ({}) that shows one node: its host may have more",
            text::clean(hypervisor)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::policy::{Container, Policy};
    use std::collections::BTreeMap;

    fn thread(tid: u32, cpus_allowed: Option<Vec<u32>>) -> Thread {
        Thread {
            tid,
            name: "a".to_owned(),
            cpu_time_ns_by_node: None,
            moves: None,
            scan_time_ns: None,
            cpus_allowed,
            policy: None,
        }
    }

    #[test]
    fn what_it_may_use() {
        let known = Placing {
            mems_allowed: Some(vec![0, 1]),
            cpuset_cpus: Some(vec![0, 1, 2, 8]),
            ..Placing::default()
        };
        let default = Thread {
            policy: Policy::parse("default "),
            ..thread(3, None)
        };
        let threads = [thread(1, None), thread(2, Some(vec![4])), default];
        assert_eq!(
            allowed(&known, &threads),
            "memory of nodes 0-1; cpuset: CPUs 0-2,8, nodes -; 1 thread with other CPUs; \
             1 thread with another memory policy"
        );
    }

    #[test]
    fn where_it_runs() {
        let container_of = |runtime: Option<&str>, pod_uid: Option<&str>| {
            container(&Placing {
                container: Some(Container {
                    id: "0123456789abcdef".to_owned(),
                    runtime: runtime.map(str::to_owned),
                    pod_uid: pod_uid.map(str::to_owned),
                }),
                ..Placing::default()
            })
        };
        assert_eq!(container_of(Some("docker"), None), "docker 0123456789ab");
        assert_eq!(container_of(None, Some("p-1")), "0123456789ab, pod p-1");
        let host = Placing {
            cgroup: Some("/user.slice".to_owned()),
            ..Placing::default()
        };
        assert_eq!(container(&host), "none; cgroup /user.slice");
    }

    #[test]
    fn a_cgroup_s_memory_stands_beside_what_its_processes_have_alone() {
        let nodes = |a, b| ByNode::from([(0, a), (1, b)]);
        let mut known = Cgroup {
            path: "/llm".to_owned(),
            pids: vec![7, 8],
            memory_by_kind: Some(BTreeMap::from([
                (CgroupMemoryKind::Anonymous, nodes(3 << 30, 0)),
                (CgroupMemoryKind::File, nodes(0, 1 << 20)),
                (CgroupMemoryKind::Shared, nodes(0, 0)),
            ])),
            private_by_node_bytes: Some(nodes(2 << 30, 0)),
            ..Cgroup::default()
        };
        assert_eq!(
            cgroup(&known),
            "/llm: anon 0: 3.0 GiB 1: 0 B, file 0: 0 B 1: 1.0 MiB; \
             private anon of 2 processes in it 0: ~2.0 GiB 1: ~0 B"
        );
        known.memory_by_kind = None;
        known.reason = Some("no memory.numa_stat".to_owned());
        known.private_by_node_bytes = None;
        assert_eq!(
            cgroup(&known),
            "/llm: - (no memory.numa_stat); private anon of 2 processes in it -"
        );
    }

    #[test]
    fn a_guest_with_one_node_says_so() {
        let host = |hypervisor: Option<&str>, may_hide_nodes| Host {
            hypervisor: hypervisor.map(str::to_owned),
            may_hide_nodes,
            ..Host::default()
        };
        assert!(hidden(&host(Some("KVM"), true)).is_some_and(|said| said.contains("KVM")));
        assert_eq!(hidden(&host(Some("KVM"), false)), None);
        assert_eq!(hidden(&host(None, false)), None);
    }
}
