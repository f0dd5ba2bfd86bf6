//! A session: workloads under one numawatch, with their kernel settings, and what came of it.

use crate::truth::Truth;
use model::process::Process;
use model::snapshot::Snapshot;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// One run of `numawatch snapshot` over some workloads. They all say ready first, then do their work one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Session {
    /// Its name on the command line and in reports.
    pub name: &'static str,
    /// Which processes numawatch is told to watch.
    pub watch: Watch,
    /// More of its arguments, such as a rung to stand on.
    pub options: &'static str,
    /// Kernel settings, restored afterwards.
    pub settings: &'static [Setting],
    /// Name and arguments of each workload, in order.
    pub workloads: &'static [(&'static str, &'static str)],
}

/// The nodes that a session is played on; `{cpu}`, `{memory}` and `{other}` in its arguments stand for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nodes {
    /// Whose CPUs do the work.
    pub cpu: u32,
    /// Whose memory it is done on.
    pub memory: u32,
    /// Another node with CPUs, if there is one.
    pub other: Option<u32>,
}

impl Nodes {
    /// As the machine of two nodes has them.
    pub const TWO: Self = Self {
        cpu: 1,
        memory: 0,
        other: Some(0),
    };

    /// The text with the nodes in it; `None` where it needs one that isn't there.
    #[must_use]
    pub fn fill(&self, text: &str) -> Option<String> {
        let other = match self.other {
            Some(other) => other.to_string(),
            None if text.contains("{other}") => return None,
            None => String::new(),
        };
        Some(
            text.replace("{cpu}", &self.cpu.to_string())
                .replace("{memory}", &self.memory.to_string())
                .replace("{other}", &other),
        )
    }
}

/// numawatch's selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// `--pid` for each workload.
    Pids,
    /// `--all`.
    All,
}

/// A file of procfs, sysfs or debugfs, and what is written to it.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Absolute path.
    pub path: &'static str,
    /// Value.
    pub value: &'static str,
    /// Whether a kernel without such a file is no failure.
    pub optional: bool,
}

/// A setting that every kernel has.
#[must_use]
pub const fn set(path: &'static str, value: &'static str) -> Setting {
    Setting {
        path,
        value,
        optional: false,
    }
}

/// A setting that some kernels have.
#[must_use]
pub const fn try_set(path: &'static str, value: &'static str) -> Setting {
    Setting {
        path,
        value,
        optional: true,
    }
}

/// What came of a session; the guest prints it as one line.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// The session.
    pub session: String,
    /// `uname -r`.
    pub kernel: String,
    /// What each workload said, by name.
    pub workloads: BTreeMap<String, WorkloadReport>,
    /// The document that numawatch printed.
    pub snapshot: Option<Value>,
    /// Its exit status; `None` when a signal ended it.
    pub exit_code: Option<i32>,
    /// What it wrote to stderr.
    pub stderr: String,
    /// Growth of each counter of `/proc/vmstat` while numawatch surely watched: from the moment when it said so to
    /// the moment when it was told to print.
    pub vmstat: BTreeMap<String, u64>,
    /// The same over all of numawatch's life: more can't have been seen.
    pub vmstat_at_most: BTreeMap<String, u64>,
    /// What went wrong with the session itself.
    pub error: Option<String>,
}

/// What a workload said.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct WorkloadReport {
    /// Its pid.
    pub pid: u32,
    /// Its first report, made before the snapshot was taken.
    pub truth: Truth,
    /// On-CPU nanoseconds of its threads (schedstat) from the moment when numawatch watched to the moment when it
    /// was told to print.
    pub watched_cpu_ns: u64,
    /// The same to the moment when it had printed.
    pub printed_cpu_ns: u64,
    /// Its last report, made after the snapshot was taken, if it makes two.
    pub last_truth: Option<Truth>,
}

impl Report {
    /// The snapshot in the model's types. Panics when there is none: the message says what happened instead.
    ///
    /// # Panics
    /// Without a snapshot that the model can read.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let Some(value) = &self.snapshot else {
            panic!(
                "no snapshot of session {}: {}",
                self.session,
                self.trouble()
            );
        };
        match serde_json::from_value(value.clone()) {
            Ok(snapshot) => snapshot,
            Err(error) => panic!("session {}: not a Snapshot: {error}: {value}", self.session),
        }
    }

    /// A workload's report.
    ///
    /// # Panics
    /// When the workload failed.
    #[must_use]
    pub fn workload(&self, name: &str) -> &WorkloadReport {
        match self.workloads.get(name) {
            Some(report) => report,
            None => panic!(
                "no workload {name} in session {}: {}",
                self.session,
                self.trouble()
            ),
        }
    }

    /// A process in the snapshot.
    ///
    /// # Panics
    /// When it isn't there.
    #[must_use]
    pub fn process(&self, pid: u32) -> Process {
        let mut processes = self.snapshot().processes.into_iter();
        match processes.find(|process| process.pid == pid) {
            Some(process) => process,
            None => panic!("process {pid} is not in the snapshot: {}", self.trouble()),
        }
    }

    /// What a failed test wants to read.
    #[must_use]
    pub fn trouble(&self) -> String {
        format!(
            "kernel {}; error: {}; numawatch exit {:?}; its stderr:\n{}",
            self.kernel,
            self.error.as_deref().unwrap_or("none"),
            self.exit_code,
            self.stderr
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Nodes;

    #[test]
    fn nodes_stand_where_their_names_did() {
        let args = "moves --nodes {cpu},{other} --memory-node {memory}";
        assert_eq!(
            Nodes::TWO.fill(args).as_deref(),
            Some("moves --nodes 1,0 --memory-node 0")
        );
        let one = Nodes {
            cpu: 0,
            memory: 0,
            other: None,
        };
        assert_eq!(one.fill(args), None);
        assert_eq!(one.fill("spin {cpu}").as_deref(), Some("spin 0"));
    }
}
