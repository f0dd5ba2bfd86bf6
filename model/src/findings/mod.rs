//! Findings: from what was seen to what it means, what to type, and when that would be wrong. Pure rules.
//!
//! A rule looks at one process or at the machine, and says nothing where its evidence is missing: no signal is no finding,
//! and `check` tells the difference.

mod advice;
mod machine;
mod memory;
mod past;
mod policy;
mod subject;
#[cfg(test)]
pub(crate) mod tests;
mod threads;

use crate::finding::{Confidence, Evidence, Finding, Severity};
use crate::process::ByNode;
use crate::snapshot::Snapshot;
use crate::thresholds::Thresholds;
use crate::topology::NodeId;
pub use past::{Counters, Past};
use std::cmp::{Ordering, Reverse};
pub use subject::{Home, Subject};

/// The id of every rule, as metrics and documents list them.
pub const IDS: &[&str] = &[
    "balancing-scan-is-dear",
    "bound-to-wrong-node",
    "cpuset-forbids-gpu-node",
    "driver-memory-on-wrong-node",
    "gpus-span-sockets",
    "locked-on-wrong-node",
    "mappings-bound-elsewhere",
    "memory-away-from-gpu",
    "memory-from-before-bind",
    "node-is-full",
    "pages-move-to-and-fro",
    "pinned-before-bind",
    "pinned-on-wrong-node",
    "pinning-buys-little",
    "policy-is-a-hint",
    "replicas-share-a-node",
    "threads-away-from-memory",
    "threads-wander",
    "topology-is-hidden",
    "weights-in-remote-page-cache",
    "worker-affinity-differs",
    "worker-policy-differs",
];

/// What the rules look at.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The newest snapshot.
    pub now: &'a Snapshot,
    /// Earlier ones: growth and rates are since the oldest of them.
    pub past: &'a Past,
    /// From when on a number is worth a word.
    pub thresholds: &'a Thresholds,
    /// The size of the largest cache of one socket, bytes; `None` where sysfs doesn't tell.
    pub cache_bytes: Option<u64>,
}

/// All findings: the worst first, then by process and id.
#[must_use]
pub fn findings(view: &View<'_>) -> Vec<Finding> {
    let mut all: Vec<Finding> = view
        .now
        .processes
        .iter()
        .filter(|process| process.alive)
        .flat_map(|process| of_process(&Subject::new(view, process)))
        .collect();
    all.extend(machine::findings(view));
    drop_contradicted(view, &mut all);
    all.sort_by(Finding::order);
    all
}

/// Findings whose advice others on the same process speak against. Where a GPU says where it belongs all of them say that.
const CONTRADICTED: [(&str, &[&str]); 3] = [
    // Bound where it is, it would share that node for good, or be away from its memory.
    (
        "policy-is-a-hint",
        &["replicas-share-a-node", "threads-away-from-memory"],
    ),
    // The memory is to come to the threads.
    (
        "threads-away-from-memory",
        &["memory-from-before-bind", "weights-in-remote-page-cache"],
    ),
    // Nothing is to be bought by binding, unless something is wrong.
    ("pinning-buys-little", IDS),
];

fn drop_contradicted(view: &View<'_>, all: &mut Vec<Finding>) {
    let has_home = |pid: Option<u32>| {
        let process = view
            .now
            .processes
            .iter()
            .find(|p| p.alive && Some(p.pid) == pid);
        process.is_some_and(|p| Subject::new(view, p).device_home().is_some())
    };
    for (id, by) in CONTRADICTED {
        let by: Vec<Option<u32>> = all
            .iter()
            .filter(|f| f.id != id && by.contains(&f.id.as_str()))
            .map(|f| f.pid)
            .collect();
        let may_stay = |f: &Finding| id != "pinning-buys-little" && has_home(f.pid);
        all.retain(|f| f.id != id || !by.contains(&f.pid) || may_stay(f));
    }
}

/// The findings on one process.
fn of_process(subject: &Subject<'_>) -> Vec<Finding> {
    [
        memory::findings(subject),
        threads::findings(subject),
        policy::findings(subject),
    ]
    .concat()
}

/// Bytes as evidence.
const BYTES: (&str, f64) = ("By", 1.0);
/// Nanoseconds as evidence.
const SECONDS: (&str, f64) = ("s", 1e-9);

/// A finding on its way.
fn finding(id: &str, pid: Option<u32>, severity: Severity, summary: String) -> Finding {
    Finding {
        id: id.to_owned(),
        pid,
        severity,
        confidence: Confidence::High,
        summary,
        evidence: Vec::new(),
        advice: Vec::new(),
        hints: Vec::new(),
        unless: String::new(),
    }
}

impl Finding {
    /// The worst first, then by process and id.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        let key = |f: &Self| (Reverse(f.severity), f.pid);
        (key(self), &self.id).cmp(&(key(other), &other.id))
    }

    fn number(mut self, name: impl Into<String>, value: f64, unit: &str, source: &str) -> Self {
        self.evidence.push(Evidence {
            name: name.into(),
            value,
            unit: unit.to_owned(),
            source: source.to_owned(),
        });
        self
    }

    /// A number a node, in a unit and what one of the numbers is in it.
    fn by_node(self, what: &str, numbers: &ByNode, (unit, one): (&str, f64), source: &str) -> Self {
        let add = |found: Self, (node, n): (&NodeId, &u64)| {
            found.number(
                format!("{what} on node {node}"),
                *n as f64 * one,
                unit,
                source,
            )
        };
        numbers.iter().fold(self, add)
    }

    fn sure(mut self, confidence: Confidence) -> Self {
        self.confidence = confidence;
        self
    }

    fn advise(mut self, line: impl Into<String>) -> Self {
        self.advice.push(line.into());
        self
    }

    fn hint(mut self, line: impl Into<String>) -> Self {
        self.hints.push(line.into());
        self
    }

    fn unless(mut self, when: &str) -> Self {
        when.clone_into(&mut self.unless);
        self
    }
}
