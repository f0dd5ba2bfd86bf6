//! Findings: from what was seen to what it means, what to type, and when that would be wrong. Pure rules.
//!
//! A rule looks at one process or at the machine, and says nothing where its evidence is missing: no signal is no finding,
//! and `check` tells the difference.

mod machine;
mod memory;
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
pub use subject::{Home, Subject};

/// What the rules look at.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The newest snapshot.
    pub now: &'a Snapshot,
    /// The snapshot at which the span began over which rates are taken; `None` when there is no older one.
    pub before: Option<&'a Snapshot>,
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
    all.sort_by(|a, b| (b.severity, a.pid, &a.id).cmp(&(a.severity, b.pid, &b.id)));
    all
}

/// The findings on one process.
#[must_use]
pub fn of_process(subject: &Subject<'_>) -> Vec<Finding> {
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
        unless: String::new(),
    }
}

impl Finding {
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

    fn unless(mut self, when: &str) -> Self {
        when.clone_into(&mut self.unless);
        self
    }
}
