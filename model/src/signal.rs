//! Whether a measured thing can be trusted, and by what mechanism it is measured.

use serde::{Deserialize, Serialize};

/// The measured things, in the order in which screens list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalName {
    /// On-CPU time per node, and moves of threads between nodes.
    Sched,
    /// Pages that a fault allocated.
    FirstTouch,
    /// Pages that existed and were mapped: page cache and shared memory.
    Map,
    /// NUMA balancing's hinting faults.
    Hint,
    /// Pages that NUMA balancing migrated between nodes.
    Migration,
    /// Time spent in the kernel's scan of the process's address space.
    Scan,
    /// Pages pinned for devices for long (`FOLL_LONGTERM`): they can't move.
    Pin,
    /// Pages that a GPU or RDMA driver allocated for the process.
    DriverAlloc,
    /// Where resident pages lie.
    Placement,
}

impl SignalName {
    /// Every signal.
    pub const ALL: [Self; 9] = [
        Self::Sched,
        Self::FirstTouch,
        Self::Map,
        Self::Hint,
        Self::Migration,
        Self::Scan,
        Self::Pin,
        Self::DriverAlloc,
        Self::Placement,
    ];

    /// The word in JSON, on screens and on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sched => "sched",
            Self::FirstTouch => "first_touch",
            Self::Map => "map",
            Self::Hint => "hint",
            Self::Migration => "migration",
            Self::Scan => "scan",
            Self::Pin => "pin",
            Self::DriverAlloc => "driver_alloc",
            Self::Placement => "placement",
        }
    }
}

/// How far a signal's numbers can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalState {
    /// Measured by its best mechanism.
    Attached,
    /// Measured by a weaker mechanism, which knows less; the reason says what is missing.
    Degraded,
    /// Attached, but its self-test failed.
    Unreliable,
    /// Not measured; the reason says why.
    Unavailable,
}

impl SignalState {
    /// The word in JSON and on screens.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Attached => "attached",
            Self::Degraded => "degraded",
            Self::Unreliable => "unreliable",
            Self::Unavailable => "unavailable",
        }
    }
}

/// By what a signal is measured: a rung of its ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mechanism {
    /// A BTF-typed raw tracepoint.
    TpBtf,
    /// A trampoline at a kernel function's entry or exit.
    Fentry,
    /// A raw tracepoint, whose arguments no BTF vouches for.
    RawTp,
    /// A breakpoint at a kernel function's entry or return.
    Kprobe,
    /// Files in `/proc`.
    Procfs,
}

impl Mechanism {
    /// Every mechanism, best first.
    pub const ALL: [Self; 5] = [
        Self::Fentry,
        Self::TpBtf,
        Self::RawTp,
        Self::Kprobe,
        Self::Procfs,
    ];

    /// The word in JSON and on screens.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TpBtf => "tp_btf",
            Self::Fentry => "fentry",
            Self::RawTp => "raw_tp",
            Self::Kprobe => "kprobe",
            Self::Procfs => "procfs",
        }
    }
}

/// One signal on this host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signal {
    /// Which.
    pub name: SignalName,
    /// How far to trust it.
    pub state: SignalState,
    /// The rung it stands on; `None` when unavailable.
    pub mechanism: Option<Mechanism>,
    /// The kernel functions, tracepoints or files, comma separated; `None` when unavailable.
    pub target: Option<String>,
    /// Why it isn't simply attached, and what it can't see; `None` when attached.
    pub reason: Option<String>,
}

impl Signal {
    /// A signal that this host can't give, and why.
    #[must_use]
    pub fn unavailable(name: SignalName, reason: impl Into<String>) -> Self {
        Self {
            name,
            state: SignalState::Unavailable,
            mechanism: None,
            target: None,
            reason: Some(reason.into()),
        }
    }

    /// Whether it gives numbers at all.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.state != SignalState::Unavailable
    }

    /// Whether conclusions may rest on its numbers: not on those of one that failed its self-test.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        matches!(self.state, SignalState::Attached | SignalState::Degraded)
    }
}
