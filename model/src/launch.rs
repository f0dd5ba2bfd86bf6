//! Where a command is launched: on one node, with its memory bound to it, or not at all and why.

use crate::list;
use crate::size;
use crate::topology::{NodeId, Topology};
use std::collections::BTreeMap;
use std::fmt;

/// What the user asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// `--node`.
    pub node: Option<NodeId>,
    /// Each `--gpu`.
    pub gpus: Vec<Gpu>,
    /// What must be free on the node.
    pub needs: Option<Needs>,
}

/// A GPU that the command will use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// Its label and address: `GPU0 (0000:3b:00.0)`.
    pub name: String,
    /// Its node; `None` where the firmware doesn't tell.
    pub node: Option<NodeId>,
    /// The number in its label; `None` of one that has none.
    pub number: Option<u32>,
}

/// Memory that must be free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needs {
    /// How much, bytes.
    pub bytes: u64,
    /// What says so: `--needs`, or the model's files.
    pub why: String,
}

/// The machine, as far as the decision needs it.
#[derive(Clone, Debug, Default)]
pub struct Here {
    /// Its nodes.
    pub topology: Topology,
    /// Bytes that are free or in page cache that can be dropped, by node; a node that isn't in it couldn't be read.
    pub available: BTreeMap<NodeId, u64>,
    /// The cgroup's CPUs; `None` without a cpuset.
    pub cpuset_cpus: Option<Vec<u32>>,
    /// Nodes that this process may allocate on; `None` where the kernel doesn't tell.
    pub mems_allowed: Option<Vec<NodeId>>,
}

/// Where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Memory comes from this node only.
    pub memory_node: NodeId,
    /// Threads run on this node: the nearest, where the memory's has no CPUs.
    pub cpu_node: NodeId,
    /// Its CPUs that the cgroup allows, ascending.
    pub cpus: Vec<u32>,
}

impl Plan {
    /// numactl's options for the same.
    #[must_use]
    pub fn numactl(&self) -> [String; 2] {
        [
            format!("--cpunodebind={}", self.cpu_node),
            format!("--membind={}", self.memory_node),
        ]
    }

    /// Whether its node has now what the command needs.
    ///
    /// # Errors
    /// That it hasn't, or that nobody knows.
    pub fn has_room(&self, asked: &Asked, here: &Here) -> Result<(), Refusal> {
        let Some(needs) = asked.needs.as_ref().filter(|needs| needs.bytes > 0) else {
            return Ok(());
        };
        match here.available.get(&self.memory_node) {
            None => Err(Refusal::UnknownFree(self.memory_node, needs.clone())),
            Some(available) if *available < needs.bytes => {
                Err(Refusal::Full(self.memory_node, needs.clone(), *available))
            }
            Some(_) => Ok(()),
        }
    }
}

/// Why it isn't launched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Neither a GPU nor a node was named.
    Nowhere,
    /// The firmware doesn't tell the GPU's node.
    UnknownGpuNode(Gpu),
    /// Two GPUs on different nodes.
    GpusApart(Gpu, Gpu),
    /// `--node` names another node than the GPU's.
    NotTheGpusNode(Gpu, NodeId),
    /// The machine's nodes can't be read: why.
    UnknownNodes(String),
    /// There is no such node; those that there are.
    NoSuchNode(NodeId, Vec<NodeId>),
    /// A node of CPUs alone.
    NoMemory(NodeId),
    /// The cgroup's cpuset has other nodes.
    MemoryForbidden(NodeId, Vec<NodeId>),
    /// The cgroup's cpuset has other CPUs.
    CpusForbidden(NodeId, Vec<u32>),
    /// No node has CPUs, as far as can be told.
    NoCpus(NodeId),
    /// The node's free memory can't be read.
    UnknownFree(NodeId, Needs),
    /// The node lacks the memory: what it has, bytes.
    Full(NodeId, Needs, u64),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const ALL_THE_SAME: &str = "or --needs 0 to launch all the same";
        let on = |gpu: &Gpu| match gpu.node {
            Some(node) => format!("{} is on node {node}", gpu.name),
            None => format!("{} is on an unknown node", gpu.name),
        };
        match self {
            Self::Nowhere => write!(f, "say where to launch it: --gpu ID or --node N"),
            Self::UnknownGpuNode(gpu) => write!(
                f,
                "{}: the firmware doesn't tell its node (numa_node is -1); name one with --node N",
                gpu.name
            ),
            Self::GpusApart(one, other) => write!(
                f,
                "{}, {}: one process can't be near both; launch one for each, or choose by --node N alone",
                on(one),
                on(other)
            ),
            Self::NotTheGpusNode(gpu, node) => {
                write!(
                    f,
                    "{}, not on node {node}: leave out --gpu or --node",
                    on(gpu)
                )
            }
            Self::UnknownNodes(why) => write!(f, "the machine's nodes can't be read: {why}"),
            Self::NoSuchNode(node, nodes) => write!(
                f,
                "there is no node {node} here; nodes: {}",
                list::format(nodes)
            ),
            Self::NoMemory(node) => write!(f, "node {node} has no memory; choose one that has"),
            Self::MemoryForbidden(node, allowed) => write!(
                f,
                "the cgroup's cpuset forbids memory of node {node} (cpuset.mems: {}): widen it, or choose a node that it has",
                list::format(allowed)
            ),
            Self::CpusForbidden(node, allowed) => write!(
                f,
                "the cgroup's cpuset has none of node {node}'s CPUs (cpuset.cpus: {}): widen it, or choose another node",
                list::format(allowed)
            ),
            Self::NoCpus(node) => write!(f, "no node with CPUs is known near node {node}"),
            Self::UnknownFree(node, needs) => write!(
                f,
                "can't tell whether node {node} has the {} of {} free: choose another node, {ALL_THE_SAME}",
                size::format(needs.bytes),
                needs.why
            ),
            Self::Full(node, needs, available) => write!(
                f,
                "node {node} has {} free or in droppable page cache, less than the {} of {}: free some, choose another node, {ALL_THE_SAME}",
                size::format(*available),
                size::format(needs.bytes),
                needs.why
            ),
        }
    }
}

impl std::error::Error for Refusal {}

/// Decides where the command goes.
///
/// # Errors
/// The first reason not to launch it.
pub fn plan(asked: &Asked, here: &Here) -> Result<Plan, Refusal> {
    let memory_node = memory_node(asked)?;
    let topology = &here.topology;
    if let Some(why) = topology.hides_nodes() {
        return Err(Refusal::UnknownNodes(why.to_owned()));
    }
    let Some(node) = topology.node(memory_node) else {
        let nodes = topology.nodes.iter().map(|n| n.id).collect();
        return Err(Refusal::NoSuchNode(memory_node, nodes));
    };
    if node.memory_total_bytes == Some(0) {
        return Err(Refusal::NoMemory(memory_node));
    }
    if let Some(allowed) = &here.mems_allowed
        && !allowed.contains(&memory_node)
    {
        return Err(Refusal::MemoryForbidden(memory_node, allowed.clone()));
    }
    let cpu_node = topology.nearest_with_cpus(memory_node);
    let cpu_node = cpu_node.ok_or(Refusal::NoCpus(memory_node))?;
    let mut cpus = topology
        .node(cpu_node)
        .map(|node| node.cpus.clone())
        .unwrap_or_default();
    if let Some(allowed) = &here.cpuset_cpus {
        cpus.retain(|cpu| allowed.contains(cpu));
        if cpus.is_empty() {
            return Err(Refusal::CpusForbidden(cpu_node, allowed.clone()));
        }
    }
    Ok(Plan {
        memory_node,
        cpu_node,
        cpus,
    })
}

/// The node that the GPUs and `--node` agree on. `--node` stands in for what the firmware doesn't tell.
fn memory_node(asked: &Asked) -> Result<NodeId, Refusal> {
    let known: Vec<(&Gpu, NodeId)> = asked
        .gpus
        .iter()
        .filter_map(|gpu| Some((gpu, gpu.node?)))
        .collect();
    if let Some(node) = asked.node {
        return match known.iter().find(|(_, of)| *of != node) {
            Some((gpu, _)) => Err(Refusal::NotTheGpusNode((*gpu).clone(), node)),
            None => Ok(node),
        };
    }
    if let Some(unknown) = asked.gpus.iter().find(|gpu| gpu.node.is_none()) {
        return Err(Refusal::UnknownGpuNode(unknown.clone()));
    }
    let (first, node) = *known.first().ok_or(Refusal::Nowhere)?;
    match known.iter().find(|(_, of)| *of != node) {
        Some((other, _)) => Err(Refusal::GpusApart(first.clone(), (*other).clone())),
        None => Ok(node),
    }
}

#[cfg(test)]
#[path = "launch_tests.rs"]
mod tests;
