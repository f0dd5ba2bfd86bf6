//! Sessions: which workloads run under one numawatch, with which kernel settings, and what came of it.

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
    /// Kernel settings, restored afterwards.
    pub settings: &'static [Setting],
    /// Name and arguments of each workload, in order.
    pub workloads: &'static [(&'static str, &'static str)],
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
    /// `/proc/vmstat` when the workloads were about to begin, and when they had done: growth of each counter.
    pub vmstat: BTreeMap<String, u64>,
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

const fn set(path: &'static str, value: &'static str) -> Setting {
    Setting {
        path,
        value,
        optional: false,
    }
}

const fn try_set(path: &'static str, value: &'static str) -> Setting {
    Setting {
        path,
        value,
        optional: true,
    }
}

const BALANCING: &str = "/proc/sys/kernel/numa_balancing";

/// Scans the whole address space of a test process several times a second, instead of 256 MB a second at most.
const FAST_SCANS: [Setting; 4] = [
    set(
        "/sys/kernel/debug/sched/numa_balancing/scan_delay_ms",
        "100",
    ),
    set(
        "/sys/kernel/debug/sched/numa_balancing/scan_period_min_ms",
        "200",
    ),
    set(
        "/sys/kernel/debug/sched/numa_balancing/scan_period_max_ms",
        "200",
    ),
    try_set("/sys/kernel/mm/transparent_hugepage/enabled", "madvise"),
];

/// Exact counts, without anything that moves pages meanwhile.
pub const COUNTS: Session = Session {
    name: "counts",
    watch: Watch::Pids,
    settings: &[
        set(BALANCING, "0"),
        set("/sys/kernel/mm/transparent_hugepage/enabled", "madvise"),
        set(
            "/sys/kernel/mm/transparent_hugepage/shmem_enabled",
            "advise",
        ),
        set(
            "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages",
            "4",
        ),
    ],
    workloads: &[
        (
            "first-touch",
            "touch --pages 16384 --cpu-node 1 --memory-node 0",
        ),
        (
            "populate",
            "touch --kind populate --pages 2000 --cpu-node 1 --memory-node 0",
        ),
        (
            "kernel",
            "touch --kind kernel --pages 2000 --cpu-node 0 --memory-node 1",
        ),
        (
            "zero-page",
            "touch --kind zero-page --pages 2000 --cpu-node 1 --memory-node 0",
        ),
        (
            "stack",
            "touch --kind stack --pages 1000 --cpu-node 1 --memory-node 0",
        ),
        (
            "thp",
            "touch --kind thp --pages 4096 --cpu-node 1 --memory-node 0",
        ),
        (
            "hugetlb",
            "touch --kind hugetlb --pages 1024 --cpu-node 1 --memory-node 0",
        ),
        (
            "hugetlb-shared",
            "touch --kind hugetlb-shared --pages 1024 --cpu-node 1 --memory-node 0",
        ),
        (
            "private-file",
            "touch --kind private-file --pages 2000 --cpu-node 1 --memory-node 0",
        ),
        (
            "private-file-read",
            "touch --kind private-file-read --pages 2000 --cpu-node 1 --memory-node 0",
        ),
        (
            "file",
            "touch --kind file --pages 2000 --cpu-node 1 --memory-node 0",
        ),
        (
            "disk-file",
            "touch --kind file --pages 2000 --cpu-node 1 --memory-node 0 --directory /disk",
        ),
        (
            "disk-file-write",
            "touch --kind file-write --pages 2000 --cpu-node 0 --memory-node 1 --directory /disk",
        ),
        (
            "file-write",
            "touch --kind file-write --pages 2000 --cpu-node 1 --memory-node 0",
        ),
        (
            "shm",
            "touch --kind shm --pages 2000 --cpu-node 1 --memory-node 0",
        ),
        (
            "memfd",
            "touch --kind memfd --pages 2000 --cpu-node 0 --memory-node 1",
        ),
        (
            "shm-thp",
            "touch --kind shm-thp --pages 2048 --cpu-node 1 --memory-node 0",
        ),
        (
            "shared",
            "shared --pages 2000 --cpu-node 0 --child-cpu-node 1 --memory-node 0",
        ),
        (
            "shared-file",
            "shared --backing file --pages 2000 --cpu-node 0 --child-cpu-node 1 --memory-node 0",
        ),
        (
            "write-child",
            "write-child --pages 2000 --own-pages 1000 --cpu-node 1 --memory-node 0",
        ),
        (
            "fork",
            "fork --pages 8192 --cpu-node 0 --memory-node 0 --child-cpu-node 1 --child-memory-node 1",
        ),
        (
            "children",
            "children --count 2 --depth 2 --pages 2000 --spin-ms 300 --cpu-node 1 --memory-node 0",
        ),
        (
            "exec",
            "exec --pages 2000 --spin-ms 500 --cpu-node 1 --leader-cpu-node 0 --memory-node 0",
        ),
        (
            "exec-leader",
            "exec --leader --pages 2000 --spin-ms 500 --cpu-node 1 --memory-node 0",
        ),
        (
            "threads",
            "threads --count 1000 --pages 8 --spin-us 2000 --cpu-node 1 --memory-node 0",
        ),
        ("moves", "moves --count 1000"),
        ("moves-of-8", "moves --count 1000 --threads 8"),
        ("spin", "spin --seconds 2 --cpu-nodes 0,1"),
        ("spin-2", "spin --seconds 1 --threads 2 --cpu-nodes 1,0"),
    ],
};

/// Threads that never sleep, not even while the snapshot is taken.
pub const NEVER_SLEEP: Session = Session {
    name: "never-sleep",
    watch: Watch::Pids,
    settings: &[set(BALANCING, "0")],
    workloads: &[
        ("moves", "moves --count 1000 --never-sleep"),
        ("spin", "spin --seconds 2 --cpu-nodes 0 --keep-spinning"),
        (
            "already",
            "spin --seconds 2 --cpu-nodes 1 --keep-spinning --already-spinning",
        ),
    ],
};

/// NUMA balancing at work on everything that runs.
pub const BALANCING_ALL: Session = Session {
    name: "balancing",
    watch: Watch::All,
    settings: &[
        set(BALANCING, "1"),
        FAST_SCANS[0],
        FAST_SCANS[1],
        FAST_SCANS[2],
        FAST_SCANS[3],
    ],
    workloads: &[
        // Pages that go over once.
        (
            "one-way",
            "balance --pages 8192 --memory-node 0 --on 1:1 --again 300 --until-migrated 7500",
        ),
        // Pages that go to and fro.
        (
            "to-and-fro",
            "balance --pages 8192 --memory-node 0 --on 0:1 --on 1:1 --again 300 --until-hint-faults 30000",
        ),
        // Pages that stay, and are touched from where they are.
        (
            "local",
            "balance --pages 4096 --memory-node 0 --on 0:1 --again 300 --until-hint-faults 8000",
        ),
        // One fault, 512 pages.
        (
            "thp",
            "balance --thp --pages 8192 --memory-node 0 --on 1:1 --again 300 --until-hint-faults 40",
        ),
    ],
};

/// NUMA balancing as memory tiering: its faults say nothing about who is remote.
pub const TIERING: Session = Session {
    name: "tiering",
    watch: Watch::Pids,
    settings: &[set(BALANCING, "2")],
    workloads: &[("touch", "touch --pages 2000 --cpu-node 1 --memory-node 0")],
};

/// Pages that come back from swap; needs a swap that is on.
pub const SWAP: Session = Session {
    name: "swap",
    watch: Watch::Pids,
    settings: &[set(BALANCING, "0")],
    workloads: &[("swap", "swap --pages 2000 --cpu-node 1 --memory-node 0")],
};

/// All that run in a two-node guest.
pub const ALL: &[Session] = &[COUNTS, NEVER_SLEEP, BALANCING_ALL, TIERING, SWAP];
