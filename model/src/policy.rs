//! What a process or thread may use: memory policy, CPUs and the cgroup's bounds. Words are numactl's.

use crate::topology::NodeId;
use serde::{Deserialize, Serialize};

/// A memory policy, as `numa_maps` writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// The mode.
    pub mode: PolicyMode,
    /// Its nodes, ascending; empty for `default` and `local`.
    pub nodes: Vec<NodeId>,
}

/// Modes of a memory policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyMode {
    /// On the node of the CPU that touches first.
    Default,
    /// Only on the nodes.
    Bind,
    /// On the nodes while they have room: a hint.
    Preferred,
    /// As `preferred`, with several nodes.
    PreferredMany,
    /// In turn on the nodes.
    Interleave,
    /// In turn, by the nodes' weights.
    WeightedInterleave,
    /// On the node of the CPU, whatever the task's policy.
    Local,
}

/// What a process may use, and who else decides about it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placing {
    /// The task's memory policy; `None` where the kernel has no NUMA or it can't be read.
    pub policy: Option<Policy>,
    /// CPUs that it may run on, ascending (`Cpus_allowed_list`).
    pub cpus_allowed: Option<Vec<u32>>,
    /// Nodes that it may allocate on, ascending (`Mems_allowed_list`).
    pub mems_allowed: Option<Vec<NodeId>>,
    /// The cgroup's effective cpuset; `None` without that controller.
    pub cpuset_cpus: Option<Vec<u32>>,
    /// The same of nodes.
    pub cpuset_mems: Option<Vec<NodeId>>,
    /// The cgroup's path below its root.
    pub cgroup: Option<String>,
    /// The container it runs in.
    pub container: Option<Container>,
    /// Why something above is missing.
    pub reason: Option<String>,
}

/// A container, as its cgroup's path tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// Its id.
    pub id: String,
    /// `docker`, `containerd`, `cri-o`, `podman`, …; `None` where the path doesn't tell.
    pub runtime: Option<String>,
    /// The Kubernetes pod's uid.
    pub pod_uid: Option<String>,
}
