//! Everything that is known at one tick; the JSON document is this, serialized.

use crate::cgroup::Cgroup;
use crate::finding::{Cleared, Finding};
use crate::process::Process;
use crate::signal::{Signal, SignalName};
use crate::time::Timestamp;
use crate::topology::Topology;
use serde::{Deserialize, Serialize};

/// Changes when a field changes its meaning or goes; new fields don't change it.
pub const SCHEMA_VERSION: u32 = 1;

/// One tick's view of the host. Immutable: consumers share it behind an `Arc`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// When it was taken.
    pub taken_at: Timestamp,
    /// Monotonic nanoseconds of the same instant; rates are differences of these.
    pub monotonic_ns: u64,
    /// The machine and the agent itself.
    pub host: Host,
    /// The machine's nodes.
    pub topology: Topology,
    /// Every signal, in [`SignalName::ALL`]'s order.
    pub signals: Vec<Signal>,
    /// The host's own counters beside what was attributed.
    pub coverage: Coverage,
    /// Tracked processes, ascending by pid.
    pub processes: Vec<Process>,
    /// Cgroups of tracked processes that live, ascending by path.
    #[serde(default)]
    pub cgroups: Vec<Cgroup>,
    /// What is to be known of the machine itself, the worst first; each process has its own.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// What was found of the machine, and is not any more.
    #[serde(default)]
    pub findings_cleared: Vec<Cleared>,
}

impl Snapshot {
    /// The state of one signal; snapshots made by the sampler have all.
    #[must_use]
    pub fn signal(&self, name: SignalName) -> Option<&Signal> {
        self.signals.iter().find(|s| s.name == name)
    }

    /// The findings on the machine and on every process: the worst first, then by process and id.
    #[must_use]
    pub fn all_findings(&self) -> Vec<&Finding> {
        let of_processes = self.processes.iter().flat_map(|p| &p.findings);
        let mut all: Vec<&Finding> = of_processes.chain(&self.findings).collect();
        all.sort_by(|a, b| a.order(b));
        all
    }
}

/// The machine, its kernel's settings, and the agent's own footprint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Host name.
    pub name: String,
    /// `uname -r`.
    pub kernel: String,
    /// Online CPUs; `None` where the files that tell are masked: the topology's `nodes_reason` says which.
    pub cpus: Option<u32>,
    /// `kernel.numa_balancing`: 0 off, 1 on, 2 memory tiering; `None` where the kernel has none, and where it can't be read.
    pub numa_balancing: Option<u32>,
    /// Why it can't be read; `None` where it is known, or known that the kernel has none.
    #[serde(default)]
    pub numa_balancing_reason: Option<String>,
    /// The hypervisor, as the firmware names it; `None` on bare metal.
    #[serde(default)]
    pub hypervisor: Option<String>,
    /// Whether the machine may have more nodes than it shows: a virtual machine with one.
    #[serde(default)]
    pub may_hide_nodes: bool,
    /// What watching costs.
    pub agent: AgentCost,
    /// What was not counted.
    pub lost: Lost,
    /// How full the kernel side's maps were when they were read; empty without eBPF.
    pub maps: Vec<MapUse>,
}

/// The agent's own footprint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentCost {
    /// The agent's pid.
    pub pid: u32,
    /// User and system time since its start, nanoseconds.
    pub cpu_time_ns: Option<u64>,
    /// Its resident set, bytes.
    pub resident_bytes: Option<u64>,
    /// Kernel memory of its maps, bytes (fdinfo `memlock`).
    pub kernel_memory_bytes: Option<u64>,
    /// CPU time of its probes since its start, on all CPUs, nanoseconds; an estimate, see [`crate::cost`].
    #[serde(default)]
    pub probes_time_ns: Option<u64>,
}

/// What was not counted since the agent's start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// Counts not kept because a map of rows was full.
    pub rows: Option<u64>,
    /// News (fork, exec, exit) not delivered because the ring buffer was full.
    pub news: Option<u64>,
    /// Events at which the kernel did not run a program, because one was running on that CPU already.
    pub events: Option<u64>,
    /// Why `events` isn't known.
    pub events_reason: Option<String>,
}

impl Lost {
    /// All that is known to be lost.
    #[must_use]
    pub fn sum(&self) -> u64 {
        let known = [self.rows, self.news, self.events];
        known.into_iter().flatten().fold(0, u64::saturating_add)
    }
}

/// One of the kernel side's maps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapUse {
    /// Its name in the kernel, such as `THREADS`.
    pub name: String,
    /// Entries in use.
    pub used: u64,
    /// Entries that it has room for.
    pub max: u64,
}

impl MapUse {
    /// How full it is, per cent; 100 of one without room.
    #[must_use]
    pub const fn percent(&self) -> u64 {
        match self.used.saturating_mul(100).checked_div(self.max) {
            Some(percent) => percent,
            None => 100,
        }
    }
}

/// Production's own proof: `/proc/vmstat` since the agent's start beside what was attributed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// What the whole host counted.
    pub host: BalancingCounters,
    /// What tracked processes account for; `None` without the signal.
    pub attributed: BalancingCounters,
}

/// NUMA balancing's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BalancingCounters {
    /// `numa_hint_faults`.
    pub hint_faults: Option<u64>,
    /// `numa_hint_faults_local`.
    pub hint_faults_local: Option<u64>,
    /// `numa_pages_migrated`.
    pub migrated_pages: Option<u64>,
}
