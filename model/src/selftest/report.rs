//! How the self-test came out, signal by signal, in numbers and in words.

use crate::signal::{Signal, SignalName, SignalState};
use serde::{Deserialize, Serialize};

/// How a signal's test came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every count is within its tolerance.
    Passed,
    /// One isn't: the signal is unreliable.
    Failed,
    /// No event could be made, or there is no signal; the reason says why.
    NotTested,
}

/// One count of a signal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Of what: a pair, a node, or all.
    pub of: String,
    /// `pages`, `moves`, `counts`, `ns` or `bytes`.
    pub unit: String,
    /// What was done.
    pub expected: u64,
    /// What was seen; `None` when the signal gave no number.
    pub seen: Option<u64>,
    /// The least that passes.
    pub at_least: u64,
    /// The most that passes; `None` where any more does.
    pub at_most: Option<u64>,
    /// Seen less expected.
    pub difference: Option<i64>,
    /// Whether what was seen passes.
    pub ok: bool,
}

impl Row {
    /// A number of the row with its unit, as people read it.
    #[must_use]
    pub fn amount(&self, value: Option<u64>) -> String {
        match (value, self.unit.as_str()) {
            (None, _) => "none".to_owned(),
            // A least one, and what was seen of it.
            (Some(ns), "ns") if ns < 10_000 => format!("{ns} ns"),
            (Some(ns), "ns") => format!("{} ms", self.number(ns)),
            (Some(bytes), "bytes") => format!("{} KiB", self.number(bytes)),
            (Some(n), unit) => format!("{n} {unit}"),
        }
    }

    /// In milliseconds, KiB, or the row's unit.
    fn number(&self, value: u64) -> String {
        match self.unit.as_str() {
            "ns" => format!("{:.1}", value as f64 / 1e6),
            "bytes" => (value >> 10).to_string(),
            _ => value.to_string(),
        }
    }

    /// What passes: `23.5 to 44.9` in the unit of [`Self::amount`], and with a unit of its own where there is no most.
    #[must_use]
    pub fn allowed(&self) -> String {
        let least = self.number(self.at_least);
        match self.at_most {
            Some(most) if most == self.at_least => least,
            Some(most) => format!("{least} to {}", self.number(most)),
            None => format!("from {}", self.amount(Some(self.at_least))),
        }
    }
}

/// One signal's test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Test {
    /// Which.
    pub signal: SignalName,
    /// How it came out.
    pub verdict: Verdict,
    /// Why it failed or was not made; `None` when it passed.
    pub reason: Option<String>,
    /// What was compared.
    pub rows: Vec<Row>,
}

impl Test {
    /// In one line.
    #[must_use]
    pub fn summary(&self) -> String {
        words(self.verdict, self.reason.as_deref(), self.rows.len())
    }
}

fn words(verdict: Verdict, reason: Option<&str>, rows: usize) -> String {
    let reason = reason.unwrap_or_default();
    match verdict {
        Verdict::Passed => {
            let counts = if rows == 1 { "count" } else { "counts" };
            format!("passed: {rows} {counts} as expected")
        }
        Verdict::Failed => format!("failed: {reason}"),
        Verdict::NotTested => format!("not tested: {reason}"),
    }
}

/// Whether a count that finds no room is counted as lost: a map of rows was filled up, and pages were touched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FullMap {
    /// How it came out.
    pub verdict: Verdict,
    /// Why it failed or was not made; `None` when it passed.
    pub reason: Option<String>,
    /// What was compared.
    pub row: Option<Row>,
}

impl FullMap {
    /// No map could be filled up.
    #[must_use]
    pub fn not_tested(why: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::NotTested,
            reason: Some(why.into()),
            row: None,
        }
    }

    /// In one line.
    #[must_use]
    pub fn summary(&self) -> String {
        words(self.verdict, self.reason.as_deref(), 1)
    }
}

/// The whole self-test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// One for each signal.
    pub tests: Vec<Test>,
    /// What becomes of counts that find no room.
    pub full_map: FullMap,
    /// How long it took, milliseconds.
    pub took_ms: u64,
    /// The largest resident set of a process that made events, bytes.
    pub memory_bytes: Option<u64>,
}

impl Default for Report {
    fn default() -> Self {
        Self {
            tests: Vec::new(),
            full_map: FullMap::not_tested("there was no self-test"),
            took_ms: 0,
            memory_bytes: None,
        }
    }
}

impl Report {
    /// A signal's test.
    #[must_use]
    pub fn test(&self, signal: SignalName) -> Option<&Test> {
        self.tests.iter().find(|test| test.signal == signal)
    }

    /// The signal as it stands after its test: one that failed is unreliable, and says why.
    #[must_use]
    pub fn mark(&self, signal: &Signal) -> Signal {
        let failed = self
            .test(signal.name)
            .filter(|t| t.verdict == Verdict::Failed && signal.is_live());
        let Some(test) = failed else {
            return signal.clone();
        };
        let why = test.reason.as_deref().unwrap_or_default();
        Signal {
            state: SignalState::Unreliable,
            reason: Some(match &signal.reason {
                Some(reason) => format!("self-test: {why}; {reason}"),
                None => format!("self-test: {why}"),
            }),
            ..signal.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_is_in_the_unit_of_what_was_seen() {
        for (unit, at_least, at_most, want) in [
            ("pages", 507, Some(549), "507 to 549"),
            ("counts", 256, Some(256), "256"),
            ("bytes", 4096, Some(8192), "4 to 8"),
            ("ns", 5_000, Some(44_900_000), "0.0 to 44.9"),
            ("ns", 1, None, "from 1 ns"),
        ] {
            let row = Row {
                of: "node 0".to_owned(),
                unit: unit.to_owned(),
                expected: at_least,
                seen: None,
                at_least,
                at_most,
                difference: None,
                ok: false,
            };
            assert_eq!(row.allowed(), want);
        }
    }
}
