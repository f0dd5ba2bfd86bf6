//! What a process may use, in words: its nodes, its cgroup's bounds, its container.

use super::text;
use crate::app::format;
use model::list;
use model::policy::Placing;
use model::process::Thread;
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
    let own = threads
        .iter()
        .filter(|thread| thread.cpus_allowed.is_some())
        .count();
    if own > 0 {
        let threads = format::plural(own, "thread", "threads");
        let _ = write!(said, "; {threads} with other CPUs");
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
    use model::policy::Container;

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
        let threads = [thread(1, None), thread(2, Some(vec![4]))];
        assert_eq!(
            allowed(&known, &threads),
            "memory of nodes 0-1; cpuset: CPUs 0-2,8, nodes -; 1 thread with other CPUs"
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
