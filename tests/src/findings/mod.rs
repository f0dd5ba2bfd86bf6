//! Findings raised and cleared: processes that are wrong on purpose, what `numawatch check` says of them, and what it says
//! once somebody has done what it told to type.

mod neighbour;
mod play;
mod start;

use anyhow::Context as _;
use model::check::Report as Checked;
use model::finding::Finding;
use model::process::ByNode;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

pub use play::play;

/// The session's name.
pub const NAME: &str = "findings";

/// Pages of a tenant's own memory: 32 MiB.
pub const PAGES: u64 = 8192;
/// Pages of the tenant that is away from its GPU: 256 MiB.
pub const MANY_PAGES: u64 = 65_536;
/// Pages of the weights' file: 32 MiB.
pub const WEIGHTS_PAGES: u64 = 8192;
/// CPU time of a turn of a tenant's work, nanoseconds.
pub const VISIT_NS: u64 = 2_000_000;
/// The same.
pub const VISIT: Duration = Duration::from_nanos(VISIT_NS);

/// What `workload tenant` says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// Its pid.
    pub pid: u32,
    /// Where its own pages lie, as `move_pages` tells.
    pub pages: ByNode,
    /// Where the pages of its weights lie.
    pub weights: ByNode,
}

/// What came of it; the guest prints it as one line.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// [`NAME`].
    pub session: String,
    /// The tenants by name, wrong on purpose.
    pub raised: BTreeMap<String, Told>,
    /// The same, mended.
    pub mended: BTreeMap<String, Told>,
    /// What those that were mended while they ran said at their end.
    pub at_the_end: BTreeMap<String, Told>,
    /// Each check, by what it is of.
    pub checks: BTreeMap<String, Check>,
    /// The full node as the kernel counts it, before and after its check.
    pub full: Vec<NodeCounts>,
    /// What went wrong with the session itself.
    pub error: Option<String>,
}

/// A node's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeCounts {
    /// Free memory, bytes.
    pub free_bytes: u64,
    /// Allocations meant for it that went elsewhere, pages.
    pub foreign: u64,
}

/// One run of `numawatch check --json`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Check {
    /// Its exit status; `None` when a signal ended it.
    pub exit_code: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// What it wrote to stderr.
    pub stderr: String,
}

impl Check {
    /// What it said.
    ///
    /// # Errors
    /// When that is no report.
    pub fn report(&self) -> anyhow::Result<Checked> {
        serde_json::from_str(&self.stdout).with_context(|| format!("{self:?}"))
    }
}

impl Report {
    /// A check's exit status, and what it said.
    ///
    /// # Panics
    /// When there was none, or it said nothing.
    #[must_use]
    pub fn check(&self, name: &str) -> (Option<i32>, Checked) {
        let Some(check) = self.checks.get(name) else {
            panic!("no check {name}: {:?}", self.error)
        };
        match check.report() {
            Ok(report) => (check.exit_code, report),
            Err(error) => panic!("{error:#}"),
        }
    }
}

/// A process's finding of an id.
#[must_use]
pub fn finding<'a>(checked: &'a Checked, pid: u32, id: &str) -> Option<&'a Finding> {
    let mut findings = checked.findings.iter();
    findings.find(|f| f.pid == Some(pid) && f.id == id)
}
