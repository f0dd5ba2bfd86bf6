//! One check of `numawatch doctor`.

use serde::Serialize;

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Outcome {
    /// As it should be.
    Pass,
    /// Something is missing that can be done without, or was not tested.
    Warn,
    /// What numawatch is for can't be had, or can't be trusted.
    Fail,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Check {
    /// Stable.
    pub(crate) id: String,
    /// How it came out.
    pub(crate) outcome: Outcome,
    /// What was found, what it costs, and what to do.
    pub(crate) what: String,
}

/// A check with its parts.
pub(super) fn check(id: impl Into<String>, outcome: Outcome, what: impl Into<String>) -> Check {
    Check {
        id: id.into(),
        outcome,
        what: what.into(),
    }
}
