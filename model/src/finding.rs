//! What a finding is: a conclusion with its evidence, and what to do about it.

use serde::{Deserialize, Serialize};

/// One conclusion about a process or the machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable, kebab-case: `memory-away-from-gpu`.
    pub id: String,
    /// The process; `None` for the machine.
    pub pid: Option<u32>,
    /// How bad.
    pub severity: Severity,
    /// How sure.
    pub confidence: Confidence,
    /// One line for people.
    pub summary: String,
    /// The numbers that it rests on.
    pub evidence: Vec<Evidence>,
    /// What to type, a command a line; empty when there is nothing to do.
    pub advice: Vec<String>,
    /// When it would be wrong to follow.
    pub unless: String,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know; `check` passes.
    Info,
    /// It may cost.
    Warn,
    /// It costs: `check` fails.
    Fail,
}

/// How sure a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// By a hint or an estimate.
    Low,
    /// By a sample, or by what usually holds.
    Medium,
    /// Measured.
    High,
}

/// A number that a finding rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// What it is: `resident on node 0`.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// `By`, `1` for a share, `{page}`, … as UCUM has it.
    pub unit: String,
    /// Where it is from: `move_pages`, `sched`, `/proc/PID/status`.
    pub source: String,
}
