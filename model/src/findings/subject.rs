//! One process as the rules see it: where it should be, where its memory and its time are, and what changed.

use super::{Counters, View};
use crate::devices::DeviceUseSource;
use crate::finding::{Finding, Severity};
use crate::policy::PolicyMode;
use crate::process::{ByNode, MemoryKind, Process};
use crate::rates;
use crate::signal::{Signal, SignalName};
use crate::topology::NodeId;
use std::collections::BTreeSet;

/// Bytes of the kernel's smallest page here.
pub(super) const PAGE: u64 = 4096;

/// A process, and what surrounds it.
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    pub(super) view: &'a View<'a>,
    pub(super) process: &'a Process,
    counters: Counters,
    /// The oldest counters within the window, and the nanoseconds since, where these are enough for a rate.
    earlier: Option<(&'a Counters, u64)>,
}

/// The nodes where a process should be, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    /// The nodes.
    pub nodes: BTreeSet<NodeId>,
    /// `GPU0, GPU1`, or `its CPUs`.
    pub because: String,
    /// Whether a device says so.
    pub is_device: bool,
}

impl Home {
    /// Nodes that something else than a device says.
    pub(super) fn without_device(nodes: BTreeSet<NodeId>, because: &str) -> Self {
        Self {
            nodes,
            because: because.to_owned(),
            is_device: false,
        }
    }
}

impl View<'_> {
    /// Nanoseconds from then to now; `None` where they are too few for a rate.
    pub(super) fn since(&self, monotonic_ns: u64) -> Option<u64> {
        let elapsed_ns = self.now.monotonic_ns.checked_sub(monotonic_ns)?;
        (elapsed_ns as f64 >= self.thresholds.evidence_seconds * 1e9).then_some(elapsed_ns)
    }
}

impl<'a> Subject<'a> {
    /// A process of the newest snapshot.
    #[must_use]
    pub fn new(view: &'a View<'a>, process: &'a Process) -> Self {
        Self {
            view,
            process,
            counters: Counters::of(process),
            earlier: view
                .past
                .of(process)
                .and_then(|(counters, read_at)| Some((counters, view.since(read_at)?))),
        }
    }

    /// How many nodes the machine shows.
    pub(crate) fn nodes(&self) -> usize {
        self.view.now.topology.nodes.len()
    }

    /// Whether conclusions may rest on a signal.
    pub(crate) fn trusts(&self, name: SignalName) -> bool {
        self.view.now.signal(name).is_some_and(Signal::is_trusted)
    }

    /// A finding on this process.
    pub(super) fn finds(&self, id: &str, severity: Severity, summary: String) -> Finding {
        super::finding(id, Some(self.pid()), severity, summary)
    }

    /// Fail or warn, by the share of it that is away; nothing below.
    pub(super) fn by_share(&self, away: f64) -> Option<Severity> {
        let t = self.view.thresholds;
        match away {
            away if away >= t.remote_from => Some(Severity::Fail),
            away if away >= t.mixed_from => Some(Severity::Warn),
            _ => None,
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.pid
    }

    /// Where its GPUs are; `None` where it has none, or where they do not tell.
    ///
    /// CUDA opens every GPU that it may see, so open files on GPUs of several nodes do not tell which it uses; NVML does.
    #[must_use]
    pub fn device_home(&self) -> Option<Home> {
        let gpus: Vec<_> = self
            .process
            .devices
            .iter()
            .filter(|d| d.source != DeviceUseSource::Environment && d.kind.computes())
            .filter_map(|d| Some((d, d.node?)))
            // Where the machine's nodes can't be read, a device's is no place to be.
            .filter(|(_, node)| self.view.now.topology.node(*node).is_some())
            .collect();
        let mut nodes: BTreeSet<NodeId> = gpus.iter().map(|(_, node)| *node).collect();
        let told = gpus.iter().all(|(d, _)| d.source == DeviceUseSource::Nvml);
        if nodes.len() > 1 && !told {
            return None;
        }
        // A GPU's own memory may be a node, and is near it.
        let own = self.view.now.topology.devices.iter();
        let own = own.filter(|d| gpus.iter().any(|(gpu, _)| gpu.address == d.address));
        nodes.extend(own.flat_map(|d| d.memory_nodes.iter()));
        let labels: Vec<&str> = gpus.iter().map(|(d, _)| d.label.as_str()).collect();
        (!nodes.is_empty()).then(|| Home {
            nodes,
            because: labels.join(", "),
            is_device: true,
        })
    }

    /// Where its devices are, else where nearly all of its CPU time is spent.
    pub(super) fn home(&self) -> Option<Home> {
        self.device_home().or_else(|| {
            let time = self.cpu_time()?;
            let mixed = self.view.thresholds.mixed_from;
            let (node, _) = time
                .iter()
                .find(|(node, _)| share(&time, |n| n == **node).is_some_and(|s| s > 1.0 - mixed))?;
            Some(Home::without_device(BTreeSet::from([*node]), "its CPUs"))
        })
    }

    /// CPU time by node within the window, or in all where it is too young for one.
    pub(super) fn cpu_time(&self) -> Option<ByNode> {
        let now = self.counters.cpu_time_ns_by_node.as_ref();
        let now = now.filter(|_| self.trusts(SignalName::Sched))?;
        let earlier = self
            .earlier
            .and_then(|(c, _)| c.cpu_time_ns_by_node.as_ref());
        let Some(before) = earlier else {
            return Some(now.clone());
        };
        let grown = |(node, ns): (&NodeId, &u64)| {
            let then = before.get(node).copied().unwrap_or(0);
            (*node, ns.saturating_sub(then))
        };
        Some(now.iter().map(grown).collect())
    }

    /// Resident bytes by node; `None` without enough to conclude from.
    pub(super) fn memory(&self) -> Option<&'a ByNode> {
        let memory = self.process.placement.by_node_bytes.as_ref()?;
        (self.trusts_placement() && self.is_evidence(memory)).then_some(memory)
    }

    /// Whether conclusions may rest on its placement.
    pub(super) fn trusts_placement(&self) -> bool {
        let placement = &self.process.placement;
        self.trusts(SignalName::Placement)
            && placement.is_conclusive(self.view.thresholds.mixed_from)
    }

    /// As [`Self::memory`], without the page cache of files: that lies where whoever read them first had it put.
    pub(super) fn memory_but_files(&self) -> Option<ByNode> {
        let memory = self.memory()?;
        let Some(by_kind) = self.process.placement.by_kind.as_ref() else {
            return Some(memory.clone());
        };
        let mut rest = ByNode::new();
        for (_, by_node) in by_kind
            .iter()
            .filter(|(kind, _)| **kind != MemoryKind::File)
        {
            for (node, bytes) in by_node {
                *rest.entry(*node).or_default() += bytes;
            }
        }
        self.is_evidence(&rest).then_some(rest)
    }

    /// From how many pages on something is evidence.
    pub(crate) fn evidence_pages(&self) -> u64 {
        self.view.thresholds.evidence_pages
    }

    /// Whether this many bytes are enough to conclude from.
    pub(super) fn is_evidence(&self, bytes: &ByNode) -> bool {
        bytes.values().sum::<u64>() / PAGE >= self.view.thresholds.evidence_pages
    }

    /// A second's growth, within the window, of a counter that a signal gives.
    pub(super) fn rate(
        &self,
        signal: SignalName,
        counter: impl Fn(&Counters) -> Option<u64>,
    ) -> Option<f64> {
        let (earlier, elapsed_ns) = self.earlier.filter(|_| self.trusts(signal))?;
        rates::per_second(counter(earlier), counter(&self.counters), elapsed_ns)
    }

    /// The pairs of nodes between which NUMA balancing has moved its pages.
    pub(super) fn migrated(&self) -> impl Iterator<Item = (NodeId, NodeId)> {
        self.counters
            .migrated
            .iter()
            .flatten()
            .map(|(pair, _)| *pair)
    }

    /// Nanoseconds that rates are over; `None` where there is too little time for one.
    pub(super) fn elapsed_ns(&self) -> Option<u64> {
        Some(self.earlier?.1)
    }

    /// Whether its policy binds it.
    pub(crate) fn bound_to(&self) -> Option<BTreeSet<NodeId>> {
        let policy = self.process.placing.policy.as_ref()?;
        (policy.mode == PolicyMode::Bind).then(|| policy.nodes.iter().copied().collect())
    }

    /// The nodes of the CPUs that it may run on, where these are not all nodes with CPUs.
    pub(super) fn cpus_confined_to(&self) -> Option<BTreeSet<NodeId>> {
        let topology = &self.view.now.topology;
        let allowed = self.process.placing.cpus_allowed.as_ref()?;
        let nodes: BTreeSet<NodeId> = allowed
            .iter()
            .filter_map(|cpu| topology.node_of_cpu(*cpu))
            .collect();
        let with_cpus = topology.nodes.iter().filter(|n| !n.cpus.is_empty()).count();
        (!nodes.is_empty() && nodes.len() < with_cpus).then_some(nodes)
    }

    /// Whether its CPUs or its cpuset keep it on some of the nodes.
    pub(super) fn is_confined(&self) -> bool {
        let mems = self.process.placing.mems_allowed.as_ref();
        self.cpus_confined_to().is_some() || mems.is_some_and(|mems| mems.len() < self.nodes())
    }

    /// The source of its placement, for evidence.
    pub(super) fn placement_source(&self) -> &'a str {
        let source = self.process.placement.source.as_deref();
        source.unwrap_or("placement")
    }

    /// The first process of its engine that it descends from, or itself.
    pub(super) fn server(&self) -> &'a Process {
        let processes = &self.view.now.processes;
        let mut first = self.process;
        // A snapshot's processes are no cycle; should they be, the walk ends.
        for _ in 0..processes.len() {
            let parent = processes
                .iter()
                .find(|p| p.alive && Some(p.pid) == first.parent_pid);
            match parent.filter(|p| p.engine.is_some() && p.engine == first.engine) {
                Some(parent) => first = parent,
                None => break,
            }
        }
        first
    }
}

/// A process's command as it can be typed. A stranger's arguments may be anything: where they have control characters, which
/// no terminal shows as they are, what prints them quoted stands in for them.
pub(super) fn typed(process: &Process) -> String {
    // Marks of direction show words in another order than they are pasted in.
    let is_hidden =
        |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if !process.command.is_empty() && !process.command.contains(is_hidden) {
        process.command.clone()
    } else {
        format!(
            "COMMAND   # its own: xargs -0 printf '%q ' < /proc/{}/cmdline",
            process.pid
        )
    }
}

/// The share of the nodes that `is_meant` picks; `None` of nothing.
pub(super) fn share(by_node: &ByNode, is_meant: impl Fn(NodeId) -> bool) -> Option<f64> {
    let total: u64 = by_node.values().sum();
    let meant: u64 = by_node
        .iter()
        .filter(|(node, _)| is_meant(**node))
        .map(|(_, n)| n)
        .sum();
    (total > 0).then(|| meant as f64 / total as f64)
}

/// The share that is on none of these nodes.
pub(super) fn share_away(by_node: &ByNode, home: &BTreeSet<NodeId>) -> Option<f64> {
    share(by_node, |node| !home.contains(&node))
}

/// `node 1`, `nodes 0,1`.
pub(super) fn named(nodes: &BTreeSet<NodeId>) -> String {
    let word = if nodes.len() == 1 { "node" } else { "nodes" };
    format!("{word} {}", list(nodes))
}

/// `0,1`, as numactl reads it.
pub(super) fn list(nodes: &BTreeSet<NodeId>) -> String {
    let nodes: Vec<String> = nodes.iter().map(ToString::to_string).collect();
    nodes.join(",")
}

/// `37 %`.
pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}
