//! What is played at each place; `{cpu}`, `{memory}` and `{other}` are the place's nodes.
//!
//! A workload's name is its row in the table.

use crate::session::{Session, Setting, Watch, set, try_set};

const NO_BALANCING: Setting = try_set("/proc/sys/kernel/numa_balancing", "0");
const HUGE_WHERE_ASKED: Setting = set("/sys/kernel/mm/transparent_hugepage/enabled", "madvise");

/// Every kind of memory that every kernel has.
pub const KINDS: Session = Session {
    name: "matrix",
    watch: Watch::Pids,
    options: "",
    settings: &[
        NO_BALANCING,
        HUGE_WHERE_ASKED,
        set(
            "/sys/kernel/mm/transparent_hugepage/shmem_enabled",
            "advise",
        ),
        set(
            "/sys/devices/system/node/node{memory}/hugepages/hugepages-2048kB/nr_hugepages",
            "8",
        ),
    ],
    workloads: &[
        (
            "anonymous 4 KiB",
            "touch --pages 4096 --cpu-node {cpu} --memory-node {memory}",
        ),
        (
            "MAP_POPULATE",
            "touch --kind populate --pages 4096 --cpu-node {cpu} --memory-node {memory}",
        ),
        (
            "read(2) into fresh memory",
            "touch --kind kernel --pages 4096 --cpu-node {cpu} --memory-node {memory}",
        ),
        (
            "mlock",
            "touch --kind mlock --pages 4096 --cpu-node {cpu} --memory-node {memory}",
        ),
        (
            "zero page, then written",
            "touch --kind zero-page --pages 4096 --cpu-node {cpu} --memory-node {memory}",
        ),
        (
            "stack",
            "touch --kind stack --pages 1000 --cpu-node {cpu} --memory-node {memory}",
        ),
        (
            "THP 2 MiB",
            "touch --kind thp --pages 4096 --cpu-node {cpu} --memory-node {memory}",
        ),
        (
            "hugetlb 2 MiB, private",
            "touch --kind hugetlb --pages 2048 --cpu-node {cpu} --memory-node {memory}",
        ),
        (
            "hugetlb 2 MiB, shared",
            "touch --kind hugetlb-shared --pages 2048 --cpu-node {cpu} --memory-node {memory}",
        ),
        (
            "private file, written",
            "touch --kind private-file --pages 4096 --cpu-node {cpu} --memory-node {memory}",
        ),
        (
            "private file, read, then written",
            "touch --kind private-file-read --pages 4096 --cpu-node {cpu} --memory-node {memory}",
        ),
        (
            "copy on write after fork",
            "fork --pages 4096 --cpu-node {cpu} --memory-node {memory} --child-cpu-node {cpu} --child-memory-node {memory}",
        ),
        (
            "tmpfs file, read",
            "touch --kind file --pages 4096 --cpu-node {cpu} --memory-node {memory}",
        ),
        (
            "tmpfs file, written",
            "touch --kind file-write --pages 4096 --cpu-node {cpu} --memory-node {memory}",
        ),
        (
            "page cache, read (fault-around)",
            "touch --kind file --pages 4096 --cpu-node {cpu} --memory-node {memory} --directory /disk",
        ),
        (
            "page cache, written",
            "touch --kind file-write --pages 4096 --cpu-node {cpu} --memory-node {memory} --directory /disk",
        ),
        (
            "shared anonymous",
            "touch --kind shm --pages 4096 --cpu-node {cpu} --memory-node {memory}",
        ),
        (
            "shared anonymous, THP",
            "touch --kind shm-thp --pages 4096 --cpu-node {cpu} --memory-node {memory}",
        ),
        (
            "memfd",
            "touch --kind memfd --pages 4096 --cpu-node {cpu} --memory-node {memory}",
        ),
        (
            "memfd, THP",
            "touch --kind memfd-thp --pages 4096 --cpu-node {cpu} --memory-node {memory}",
        ),
        (
            "io_uring buffers",
            "pin --pages 4096 --buffers 4 --cpu-node {cpu} --memory-node {memory}",
        ),
        (
            "io_uring buffers, THP",
            "pin --thp --pages 4096 --buffers 4 --cpu-node {cpu} --memory-node {memory}",
        ),
        (
            "io_uring buffers, untouched",
            "pin --untouched --pages 4096 --buffers 4 --cpu-node {cpu} --memory-node {memory}",
        ),
        ("threads", "moves --count 1000 --nodes {other},{cpu}"),
        ("computing", "spin --seconds 2 --cpu-nodes {cpu}"),
    ],
};

/// Large pages of 64 KiB, where the kernel has them; huge ones would be given instead.
pub const MTHP: Session = Session {
    name: "matrix-mthp",
    watch: Watch::Pids,
    options: "",
    settings: &[
        NO_BALANCING,
        HUGE_WHERE_ASKED,
        try_set(
            "/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled",
            "madvise",
        ),
        try_set(
            "/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled",
            "never",
        ),
    ],
    workloads: &[(
        "mTHP 64 KiB",
        "touch --kind mthp --pages 4096 --cpu-node {cpu} --memory-node {memory}",
    )],
};

/// Pages that come back from swap; needs a swap that is on.
pub const SWAP: Session = Session {
    name: "matrix-swap",
    watch: Watch::Pids,
    options: "",
    settings: &[NO_BALANCING],
    workloads: &[(
        "swap-in",
        "swap --pages 2000 --cpu-node {cpu} --memory-node {memory}",
    )],
};

/// NUMA balancing at work, beside the kernel's own counters of the whole machine.
pub const BALANCING: Session = Session {
    name: "matrix-balancing",
    watch: Watch::All,
    options: "",
    settings: &[
        set("/proc/sys/kernel/numa_balancing", "1"),
        HUGE_WHERE_ASKED,
        // Until 5.12 these were sysctls.
        try_set("/proc/sys/kernel/numa_balancing_scan_delay_ms", "100"),
        try_set("/proc/sys/kernel/numa_balancing_scan_period_min_ms", "200"),
        try_set("/proc/sys/kernel/numa_balancing_scan_period_max_ms", "200"),
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
    ],
    workloads: &[
        // So many that the few of other processes, while numawatch starts and prints, weigh little.
        (
            "4 KiB",
            "balance --pages 8192 --memory-node {memory} --on {cpu}:1 --again 300 --until-hint-faults 20000",
        ),
        (
            "THP",
            "balance --thp --pages 8192 --memory-node {memory} --on {cpu}:1 --again 300 --until-hint-faults 64",
        ),
        // To have another node, on a machine that has one.
        ("two nodes", "spin --seconds 1 --cpu-nodes {cpu},{other}"),
    ],
};

/// Pages that a GPU's driver allocates.
pub const DRIVER: Session = Session {
    name: "matrix-driver",
    watch: Watch::Pids,
    options: "",
    settings: &[NO_BALANCING],
    workloads: &[(
        "virtio-gpu buffers",
        "drm --pages 8192 --buffers 4 --cpu-node {cpu} --memory-node {memory}",
    )],
};

/// Two threads that go to and fro where there is room for one row of what they do away from home.
pub const FULL_SCHED: Session = Session {
    name: "matrix-full-sched",
    watch: Watch::Pids,
    options: "--map-entries SCHED=1",
    settings: &[NO_BALANCING],
    workloads: &[(
        "moves",
        "moves --count 200 --threads 2 --spin-us 20000 --nodes {other},{cpu}",
    )],
};

/// A thread that begins where there is room for three threads, which others have.
pub const FULL_THREADS: Session = Session {
    name: "matrix-full-threads",
    watch: Watch::Pids,
    // It takes two ticks to give room back, and the workload waits 3 s.
    options: "--map-entries THREADS=3 --interval 500ms",
    settings: &[NO_BALANCING],
    workloads: &[("late", "late --early 2 --nodes {other},{cpu}")],
};

/// Whether it is about full maps, and no row of the table.
#[must_use]
pub fn has_no_row(session: &str) -> bool {
    [FULL_SCHED, FULL_THREADS]
        .iter()
        .any(|full| full.name == session)
}

/// All of them.
pub const ALL: [Session; 7] = [
    KINDS,
    MTHP,
    SWAP,
    BALANCING,
    DRIVER,
    FULL_SCHED,
    FULL_THREADS,
];
