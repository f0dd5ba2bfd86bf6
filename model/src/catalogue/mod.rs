//! The metric catalogue: one entry a metric feeds OTLP, the dashboard's columns and docs/metrics.md.
//!
//! Adding a metric is one entry in a file of `entries`. Names follow OpenTelemetry's rules: our namespace, base units, no unit
//! and no `total` in a name, plural only for what is counted. The sum over an attribute's values means something.

mod entries;
mod markdown;
mod points;

pub use entries::METRICS;
pub use markdown::to_markdown;

use crate::process::Process;
use crate::snapshot::Snapshot;
use std::borrow::Cow;

/// The node that ran the CPU time or that holds the memory: an integer, the kernel's id.
pub const NODE_ID: &str = "numawatch.node.id";
/// [`NODE_ID`] of a device whose node nobody tells: it is not node 0.
pub const NODE_UNKNOWN: &str = "unknown";
/// A cgroup's path below its hierarchy's root.
pub const CGROUP_PATH: &str = "numawatch.cgroup.path";
/// What memory is: `anonymous`, `file`, `shared` or `huge`; of a cgroup others too.
pub const MEMORY_KIND: &str = "numawatch.memory.kind";
/// A memory policy in numactl's words: `bind:1`.
pub const MEMORY_POLICY: &str = "numawatch.memory.policy";
/// A device, as OpenTelemetry names it: its PCI address.
pub const HW_ID: &str = "hw.id";
/// A device's name for people, as OpenTelemetry names it: its label.
pub const HW_NAME: &str = "hw.name";
/// What a device is, as OpenTelemetry names it: `gpu`, `network`, and our `accelerator`.
pub const HW_TYPE: &str = "hw.type";
/// A device's vendor, as OpenTelemetry names it.
pub const HW_VENDOR: &str = "hw.vendor";
/// What told that a process uses a device: `nvml`, `open_files` or `environment`.
pub const DEVICE_SOURCE: &str = "numawatch.device.source";
/// The verdict on a process: `local`, `mixed`, `remote` or `unknown`.
pub const VERDICT: &str = "numawatch.verdict";
/// What memory holds: `weights`, `heap`, …
pub const MEMORY_CLASS: &str = "numawatch.memory.class";
/// Which finding: `memory-away-from-gpu`, …
pub const FINDING_ID: &str = "numawatch.finding.id";
/// How bad a finding is: `info`, `warn` or `fail`.
pub const FINDING_SEVERITY: &str = "numawatch.finding.severity";
/// How far a touch or a move went: `local`, `same-socket`, `cross-socket` or [`LOCALITY_UNKNOWN`].
pub const LOCALITY: &str = "numawatch.locality";
/// What a remote share was derived from: `hint` (measured) or `estimate`.
pub const REMOTE_SHARE_SIGNAL: &str = "numawatch.remote_share.signal";
/// The process's id, as OpenTelemetry names it: an integer.
pub const PROCESS_PID: &str = "process.pid";
/// The executable's file name, as OpenTelemetry names it; the process's own name where it can't be read.
pub const PROCESS_EXECUTABLE_NAME: &str = "process.executable.name";

/// [`LOCALITY`] of what was counted without its node: with it, the localities' sum is everything.
pub const LOCALITY_UNKNOWN: &str = "unknown";

/// One metric: what it is called, what it means, and how it is read from a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Dotted name; `numawatch.process.*` has a point a process, `numawatch.cgroup.*` points of each of their
    /// cgroups, `numawatch.host.*` and `numawatch.agent.*` one of the machine and of the agent itself.
    pub name: &'static str,
    /// UCUM: a base unit (`s`, `By`, `1`), or what is counted in braces (`{page}`).
    pub unit: &'static str,
    /// How its points behave over time.
    pub instrument: Instrument,
    /// Whether its points are whole numbers.
    pub number: Number,
    /// One sentence, without the name's own words.
    pub description: &'static str,
    /// Its points' attributes, beside `process.*` where [`Getter::Process`].
    pub attributes: &'static [Attribute],
    /// Whether it can still change.
    pub stability: Stability,
    /// Where its points come from.
    pub getter: Getter,
}

/// How a metric's points behave over time, in OpenTelemetry's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instrument {
    /// Only grows while the process is tracked.
    Counter,
    /// A sum that also falls.
    UpDownCounter,
    /// A value whose sum means nothing.
    Gauge,
}

impl Instrument {
    /// OpenTelemetry's word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::UpDownCounter => "up-down counter",
            Self::Gauge => "gauge",
        }
    }
}

/// The type of a metric's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// [`Value::Integer`].
    Integer,
    /// [`Value::Float`].
    Float,
}

/// How settled a metric is, in OpenTelemetry's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stability {
    /// Name, unit and meaning can still change.
    Development,
    /// A change would be a new metric.
    Stable,
}

impl Stability {
    /// OpenTelemetry's word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Development => "development",
            Self::Stable => "stable",
        }
    }
}

/// An attribute of a metric's points, as documented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Dotted name.
    pub name: &'static str,
    /// Every value that it can have; empty where they can't be listed.
    pub values: &'static [&'static str],
    /// What it tells of a point of this metric.
    pub description: &'static str,
}

/// Where a metric's points come from. No point means not known; it is never a zero.
#[derive(Clone, Copy, Debug)]
pub enum Getter {
    /// Of the host or the agent.
    Host(fn(&Snapshot) -> Vec<Point>),
    /// Of each tracked process.
    Process(fn(&Snapshot, &Process) -> Vec<Point>),
}

/// One value and what tells it from its metric's other values.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Ascending by name.
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// In the metric's unit.
    pub value: Value,
}

/// An attribute's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeValue {
    /// An id.
    Integer(u32),
    /// A word or a name.
    Text(Cow<'static, str>),
}

/// A point's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// Counts and bytes.
    Integer(u64),
    /// Seconds and shares.
    Float(f64),
}

impl Metric {
    /// Every point of the host or the agent, or of all `processes`, with the attributes that identify its process.
    #[must_use]
    pub fn points<'a>(
        &self,
        snapshot: &Snapshot,
        processes: impl IntoIterator<Item = &'a Process>,
    ) -> Vec<Point> {
        match self.getter {
            Getter::Host(read) => read(snapshot),
            Getter::Process(read) => processes
                .into_iter()
                .flat_map(|process| {
                    read(snapshot, process)
                        .into_iter()
                        .map(|point| identified(point, process))
                })
                .collect(),
        }
    }
}

fn identified(mut point: Point, process: &Process) -> Point {
    point.attributes.push((
        PROCESS_EXECUTABLE_NAME,
        AttributeValue::Text(executable(process).to_owned().into()),
    ));
    point
        .attributes
        .push((PROCESS_PID, AttributeValue::Integer(process.pid)));
    point.attributes.sort_by_key(|(name, _)| *name);
    point
}

/// [`PROCESS_EXECUTABLE_NAME`]: a process may rename itself, and then its series would end.
fn executable(process: &Process) -> &str {
    process.executable.as_ref().unwrap_or(&process.name)
}

/// The metric of this name.
#[must_use]
pub fn metric(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|m| m.name == name)
}

#[cfg(test)]
pub(crate) mod tests;
