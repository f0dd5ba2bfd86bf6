//! Every session, by name.

use crate::session::{Session, Setting, Watch, set, try_set};

const BALANCING: &str = "/proc/sys/kernel/numa_balancing";

/// Scans the whole address space of a test process several times a second, instead of 256 MB a second at most.
const FAST_SCANS: [Setting; 7] = [
    try_set(
        "/sys/kernel/debug/sched/numa_balancing/scan_delay_ms",
        "100",
    ),
    try_set(
        "/sys/kernel/debug/sched/numa_balancing/scan_period_min_ms",
        "200",
    ),
    try_set(
        "/sys/kernel/debug/sched/numa_balancing/scan_period_max_ms",
        "200",
    ),
    // Before 5.13.
    try_set("/proc/sys/kernel/numa_balancing_scan_delay_ms", "100"),
    try_set("/proc/sys/kernel/numa_balancing_scan_period_min_ms", "200"),
    try_set("/proc/sys/kernel/numa_balancing_scan_period_max_ms", "200"),
    try_set("/sys/kernel/mm/transparent_hugepage/enabled", "madvise"),
];

/// Exact counts, without anything that moves pages meanwhile.
pub const COUNTS: Session = Session {
    name: "counts",
    watch: Watch::Pids,
    options: "",
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
        ("spin", "spin --seconds 3 --cpu-nodes 0,1"),
        ("spin-2", "spin --seconds 1 --threads 2 --cpu-nodes 1"),
        ("pin", "pin --pages 2000 --cpu-node 1 --memory-node 0"),
    ],
};

/// Threads that never sleep, not even while the snapshot is taken.
pub const NEVER_SLEEP: Session = Session {
    name: "never-sleep",
    watch: Watch::Pids,
    options: "",
    settings: &[set(BALANCING, "0")],
    workloads: &[
        (
            "already",
            "spin --seconds 1 --cpu-nodes 1 --keep-spinning --already-spinning",
        ),
        ("moves", "moves --count 1000 --never-sleep"),
        ("spin", "spin --seconds 1 --cpu-nodes 0 --keep-spinning"),
    ],
};

/// NUMA balancing at work on everything that runs.
pub const BALANCING_ALL: Session = Session {
    name: "balancing",
    watch: Watch::All,
    options: "",
    settings: &[
        set(BALANCING, "1"),
        FAST_SCANS[0],
        FAST_SCANS[1],
        FAST_SCANS[2],
        FAST_SCANS[3],
        FAST_SCANS[4],
        FAST_SCANS[5],
        FAST_SCANS[6],
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
            "balance --thp --pages 8192 --memory-node 0 --on 1:1 --again 300 --until-migrated 8000",
        ),
    ],
};

/// NUMA balancing as memory tiering: its faults say nothing about who is remote.
pub const TIERING: Session = Session {
    name: "tiering",
    watch: Watch::Pids,
    options: "",
    settings: &[set(BALANCING, "2")],
    workloads: &[("touch", "touch --pages 2000 --cpu-node 1 --memory-node 0")],
};

/// Pages that come back from swap; needs a swap that is on.
pub const SWAP: Session = Session {
    name: "swap",
    watch: Watch::Pids,
    options: "",
    settings: &[set(BALANCING, "0")],
    workloads: &[("swap", "swap --pages 2000 --cpu-node 1 --memory-node 0")],
};

/// The rungs of a kernel that refuses fentry; there is none for hint touches and scans.
pub const TRACEPOINTS_ONLY: &str = "--mechanism first_touch=tp_btf --mechanism map=tp_btf \
    --mechanism migration=tp_btf --mechanism hint=off --mechanism scan=off";

/// The same from a disk in memory, by tracepoints: the fault itself allocates the page, as at a first touch.
pub const SWAP_IN_MEMORY: Session = Session {
    name: "swap-in-memory",
    options: TRACEPOINTS_ONLY,
    ..SWAP
};

/// First touches as a kernel without fentry has them.
pub const TRACEPOINTS: Session = Session {
    name: "tracepoints",
    watch: Watch::Pids,
    options: TRACEPOINTS_ONLY,
    settings: &[
        set(BALANCING, "0"),
        set("/sys/kernel/mm/transparent_hugepage/enabled", "madvise"),
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
            "given-back",
            "touch --kind given-back --pages 2000 --cpu-node 1 --memory-node 0",
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
            "private-file",
            "touch --kind private-file --pages 2000 --cpu-node 1 --memory-node 0",
        ),
        (
            "private-file-read",
            "touch --kind private-file-read --pages 2000 --cpu-node 1 --memory-node 0",
        ),
        (
            "disk-file",
            "touch --kind file --pages 2000 --cpu-node 1 --memory-node 0 --directory /disk",
        ),
        (
            "shm",
            "touch --kind shm --pages 2000 --cpu-node 1 --memory-node 0",
        ),
        (
            "fork",
            "fork --pages 8192 --cpu-node 0 --memory-node 0 --child-cpu-node 1 --child-memory-node 1",
        ),
        (
            "write-child",
            "write-child --pages 2000 --own-pages 1000 --cpu-node 1 --memory-node 0",
        ),
        (
            "threads",
            "threads --count 200 --pages 8 --cpu-node 1 --memory-node 0",
        ),
    ],
};

/// Migrations as a kernel without fentry has them.
pub const TRACEPOINTS_BALANCING: Session = Session {
    name: "tracepoints-balancing",
    watch: Watch::All,
    options: TRACEPOINTS_ONLY,
    settings: BALANCING_ALL.settings,
    workloads: &[(
        "one-way",
        "balance --pages 8192 --memory-node 0 --on 1:1 --again 300 --until-migrated 7500",
    )],
};

/// numawatch as it is where the kernel refuses fentry and has kprobes.
pub const KPROBES_ONLY: &str = "--mechanism first_touch=kprobe --mechanism map=kprobe \
    --mechanism migration=kprobe --mechanism hint=kprobe --mechanism scan=kprobe --mechanism pin=kprobe";

/// Touches and pins as kprobes have them.
pub const KPROBES: Session = Session {
    name: "kprobes",
    watch: Watch::Pids,
    options: KPROBES_ONLY,
    settings: COUNTS.settings,
    workloads: &[
        (
            "first-touch",
            "touch --pages 16384 --cpu-node 1 --memory-node 0",
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
            "file",
            "touch --kind file --pages 2000 --cpu-node 1 --memory-node 0",
        ),
        (
            "shm",
            "touch --kind shm --pages 2000 --cpu-node 1 --memory-node 0",
        ),
        ("fork", "fork --pages 2000 --cpu-node 1 --memory-node 0"),
        ("pin", "pin --pages 2000 --cpu-node 1 --memory-node 0"),
    ],
};

/// NUMA balancing as kprobes have it.
pub const KPROBES_BALANCING: Session = Session {
    name: "kprobes-balancing",
    watch: Watch::All,
    options: KPROBES_ONLY,
    settings: BALANCING_ALL.settings,
    workloads: TRACEPOINTS_BALANCING.workloads,
};

/// Signals whose programs count the same thing, on different rungs.
pub const MIXED_RUNGS: Session = Session {
    name: "mixed-rungs",
    watch: Watch::All,
    options: "--mechanism first_touch=tp_btf --mechanism migration=tp_btf",
    settings: BALANCING_ALL.settings,
    workloads: &[
        (
            "one-way",
            "balance --pages 8192 --memory-node 0 --on 1:1 --again 300 --until-migrated 7500",
        ),
        (
            "shm",
            "touch --kind shm --pages 2000 --cpu-node 1 --memory-node 0",
        ),
    ],
};

/// Memory of each kind on two nodes, in shares that no test would take for halves.
const PLACED: &[(&str, &str)] = &[
    ("anon", "place --part anon:0:8000 --part anon:1:24000"),
    ("thp", "place --part thp:0:8192 --part anon:1:2000"),
    (
        "mixed",
        "place --part anon:0:9000 --part file:1:6000 --part memfd:1:4000 --part memfd:0:1000 --directory /disk",
    ),
    ("hugetlb", "place --part hugetlb:0:1024 --part anon:1:2048"),
    (
        "reserve",
        "place --reserve 40 --reserve-pages 4096 --part anon:1:4096",
    ),
    ("mappings", "place --mappings 20000 --part anon:1:6000"),
    (
        "mlock",
        "touch --kind mlock --pages 4096 --cpu-node 0 --memory-node 1",
    ),
];

/// Where it lies, by a sample.
pub const PLACEMENT: Session = Session {
    name: "placement",
    watch: Watch::Pids,
    options: "",
    settings: COUNTS.settings,
    workloads: PLACED,
};

/// The same, of every page.
pub const PLACEMENT_EXACT: Session = Session {
    name: "placement-exact",
    watch: Watch::Pids,
    options: "--exact",
    settings: COUNTS.settings,
    workloads: PLACED,
};

/// Exact counts on any machine: everything on node 0, and no setting is touched.
pub const ONE_NODE: Session = Session {
    name: "one-node",
    watch: Watch::Pids,
    options: "",
    settings: &[],
    workloads: &[
        ("first-touch", "touch --pages 16384"),
        ("thp", "touch --kind thp --pages 4096"),
        ("kernel", "touch --kind kernel --pages 2000"),
        ("given-back", "touch --kind given-back --pages 2000"),
        ("private-file", "touch --kind private-file --pages 2000"),
        ("memfd", "touch --kind memfd --pages 2000"),
        ("fork", "fork --pages 8192"),
        ("children", "children --count 2 --depth 2 --pages 2000"),
        ("exec", "exec --pages 2000 --spin-ms 500"),
        ("threads", "threads --count 1000 --pages 8 --spin-us 1000"),
        ("spin", "spin --seconds 2"),
    ],
};

/// Threads that never sleep, on any machine.
pub const ONE_NODE_NEVER_SLEEP: Session = Session {
    name: "one-node-never-sleep",
    watch: Watch::Pids,
    options: "",
    settings: &[],
    workloads: &[
        ("spin", "spin --seconds 1 --keep-spinning"),
        (
            "already",
            "spin --seconds 1 --keep-spinning --already-spinning",
        ),
    ],
};

/// CPU time by procfs beside others' probes, on any machine.
pub const ONE_NODE_SCHED_BY_PROCFS: Session = Session {
    name: "one-node-sched-by-procfs",
    watch: Watch::Pids,
    options: "--mechanism sched=procfs --mechanism placement=off",
    settings: &[],
    workloads: &[
        ("first-touch", "touch --pages 16384"),
        ("spin", "spin --seconds 2"),
    ],
};

/// 10,000 threads that come and go in four processes; the last workload is the time to see that they are gone.
pub const MANY_THREADS: Session = Session {
    name: "many-threads",
    watch: Watch::Pids,
    options: "",
    settings: &[set(BALANCING, "0")],
    workloads: &[
        (
            "threads-1",
            "threads --count 2500 --pages 8 --spin-us 100 --cpu-node 1 --memory-node 0",
        ),
        (
            "threads-2",
            "threads --count 2500 --pages 8 --spin-us 100 --cpu-node 0 --memory-node 0",
        ),
        (
            "threads-3",
            "threads --count 2500 --pages 8 --spin-us 100 --alive 16 --cpu-node 1 --memory-node 1",
        ),
        (
            "threads-4",
            "threads --count 2500 --pages 8 --spin-us 100 --alive 64 --cpu-node 0 --memory-node 1",
        ),
        ("spin", "spin --seconds 3"),
    ],
};

/// The same on any machine.
pub const ONE_NODE_MANY_THREADS: Session = Session {
    name: "one-node-many-threads",
    watch: Watch::Pids,
    options: "",
    settings: &[],
    workloads: &[
        ("threads-1", "threads --count 2500 --pages 8 --spin-us 100"),
        (
            "threads-2",
            "threads --count 2500 --pages 8 --spin-us 100 --alive 16",
        ),
        (
            "threads-3",
            "threads --count 2500 --pages 8 --spin-us 100 --alive 32",
        ),
        (
            "threads-4",
            "threads --count 2500 --pages 8 --spin-us 100 --alive 64",
        ),
        ("spin", "spin --seconds 3"),
    ],
};

/// Eight threads and a main thread where there is room for the rows of three; no tick gives room back meanwhile.
pub const ONE_NODE_FULL_MAP: Session = Session {
    name: "one-node-full-map",
    watch: Watch::Pids,
    options: "--map-entries TOUCH=3 --interval 600s",
    settings: &[],
    workloads: &[("threads", "threads --count 8 --alive 8 --pages 1024")],
};

/// All that run in a two-node guest.
pub const ALL: &[Session] = &[
    COUNTS,
    MANY_THREADS,
    NEVER_SLEEP,
    BALANCING_ALL,
    TIERING,
    SWAP,
    SWAP_IN_MEMORY,
    TRACEPOINTS,
    TRACEPOINTS_BALANCING,
    MIXED_RUNGS,
    KPROBES,
    KPROBES_BALANCING,
    PLACEMENT,
    PLACEMENT_EXACT,
];
