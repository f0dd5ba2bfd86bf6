//! What a finding is: a conclusion with its evidence, and what to do about it.

use serde::{Deserialize, Serialize};
use std::fmt;

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
    /// What to do where no command does it, a line each.
    #[serde(default)]
    pub hints: Vec<String>,
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

impl Severity {
    /// The word in JSON and in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }

    /// The word on screens, as `check` has it.
    #[must_use]
    pub const fn mark(self) -> &'static str {
        match self {
            Self::Info => "INFO",
            Self::Warn => "WARN",
            Self::Fail => "FAIL",
        }
    }
}

/// A finding that was raised before and is not any more.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cleared {
    /// [`Finding::id`].
    pub id: String,
    /// How bad it was; where it has become worse or better meanwhile, the finding is there with another one.
    pub severity: Severity,
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

impl Confidence {
    /// The word in JSON and on screens.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
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

/// For people: `resident on node 0 56.0 GiB (move_pages)`.
impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            value,
            unit,
            source,
        } = self;
        write!(f, "{name} ")?;
        match unit.as_str() {
            "By" => bytes(*value, f)?,
            "s" => write!(f, "{value:.2} s")?,
            "1" if *value <= 1.0 => write!(f, "{:.1} %", value * 100.0)?,
            "1" => write!(f, "{value:.0}")?,
            unit => {
                // `{page}/s` is told as `pages/s`, `{thread}` as `threads`.
                let words = unit.trim_start_matches('{').replace('}', "s");
                if value.fract() == 0.0 {
                    write!(f, "{value:.0} {words}")?;
                } else {
                    write!(f, "{value:.1} {words}")?;
                }
            }
        }
        write!(f, " ({source})")
    }
}

fn bytes(value: f64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if value < 1024.0 {
        return write!(f, "{value:.0} B");
    }
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let mut scaled = value / 1024.0;
    let mut unit = 0;
    while scaled >= 1023.95 && unit + 1 < units.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    write!(
        f,
        "{scaled:.1} {}",
        units.get(unit).copied().unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_told_in_people_s_units() {
        for (value, unit, want) in [
            (0.0, "By", "0 B"),
            (1023.0, "By", "1023 B"),
            (4096.0, "By", "4.0 KiB"),
            (268_435_456.0, "By", "256.0 MiB"),
            (1_073_741_823.0, "By", "1.0 GiB"),
            (60_129_542_144.0, "By", "56.0 GiB"),
            (1.234, "s", "1.23 s"),
            (0.714, "1", "71.4 %"),
            (2.0, "1", "2"),
            (3.0, "{thread}", "3 threads"),
            (1.0, "{thread}", "1 threads"),
            (48.25, "{move}/s", "48.2 moves/s"),
        ] {
            let evidence = Evidence {
                name: "x".to_owned(),
                value,
                unit: unit.to_owned(),
                source: "src".to_owned(),
            };
            assert_eq!(evidence.to_string(), format!("x {want} (src)"));
        }
    }
}
