//! Cells that can't be, each with its reason: whoever adds a line here says why no line of the product could do it.

use super::places::Place;
use model::signal::Mechanism;

/// Cells that stay empty.
#[derive(Clone, Copy, Debug)]
pub struct Exception {
    /// The signals' rows; none means all.
    pub signals: &'static [&'static str],
    /// The kinds' rows; none means all.
    pub kinds: &'static [&'static str],
    /// The kernels; none means all.
    pub kernels: &'static [&'static str],
    /// The layouts; none means all.
    pub layouts: &'static [&'static str],
    /// The rungs that numawatch is held to; none means all, and the best too.
    pub forced: &'static [Mechanism],
    /// Why.
    pub reason: &'static str,
}

/// All of them.
pub const EXCEPTIONS: &[Exception] = &[
    Exception {
        signals: &[],
        kinds: &["mTHP 64 KiB"],
        kernels: &["5.10", "6.1"],
        layouts: &[],
        forced: &[],
        reason: "the kernel has no large pages between 4 KiB and 2 MiB before 6.8",
    },
    Exception {
        signals: &["map"],
        kinds: &["hugetlb 2 MiB, shared"],
        kernels: &["5.10"],
        layouts: &[],
        forced: &[],
        reason: "the kernel's BTF names no function that a shared hugetlb page goes through",
    },
    Exception {
        signals: &[
            "hint faults",
            "hint faults, local",
            "migrated pages",
            "moves",
        ],
        kinds: &[],
        kernels: &[],
        layouts: &["1n"],
        forced: &[],
        reason: "one node: nothing can move, and the kernel's NUMA balancing rests",
    },
    Exception {
        signals: &["hint faults, local", "migrated pages"],
        kinds: &[],
        kernels: &[],
        layouts: &["cpu-only"],
        forced: &[],
        reason: "a node without memory: every touch from it is remote, and no page can move to it",
    },
    Exception {
        signals: &["driver's pages"],
        kinds: &[],
        kernels: &[],
        layouts: &[
            "1n",
            "4n2s",
            "memory-only",
            "cpu-only",
            "asymmetric",
            "sparse",
        ],
        forced: &[],
        reason: "the GPU is in the machines of two nodes: its driver's kernel is the larger package",
    },
    Exception {
        signals: &["first touch"],
        kinds: &["hugetlb 2 MiB, private"],
        kernels: &[],
        layouts: &[],
        forced: TRACEPOINTS,
        reason: "hugetlb pages come from a pool, past the tracepoint of page allocation",
    },
    Exception {
        signals: &["swap-in"],
        kinds: &[],
        kernels: &[],
        layouts: &[],
        forced: TRACEPOINTS,
        reason: "pages that were in the swap cache still are not allocated, and the account of RSS doesn't tell how many came",
    },
    Exception {
        signals: &["map"],
        kinds: &[
            "hugetlb 2 MiB, shared",
            "page cache, read (fault-around)",
            "page cache, written",
            "private file, read, then written",
            "tmpfs file, read",
            "tmpfs file, written",
        ],
        kernels: &[],
        layouts: &[],
        forced: TRACEPOINTS,
        reason: "the pages were in page cache, shared memory or the pool before: no tracepoint tells which are mapped",
    },
    Exception {
        signals: &["hint faults", "hint faults, local"],
        kinds: &[],
        kernels: &[],
        layouts: &[],
        forced: TRACEPOINTS,
        reason: "no tracepoint tells a hint fault from others",
    },
    Exception {
        signals: &["pins made"],
        kinds: &[],
        kernels: &[],
        layouts: &[],
        forced: TRACEPOINTS,
        reason: "no tracepoint tells pins",
    },
    Exception {
        signals: &["driver's pages"],
        kinds: &[],
        kernels: &[],
        layouts: &[],
        forced: TRACEPOINTS,
        reason: "the tracepoint of a system call tells its file's number, not whose driver it is",
    },
    Exception {
        signals: &[
            "first touch",
            "swap-in",
            "map",
            "pins made",
            "driver's pages",
        ],
        kinds: &[],
        kernels: &[],
        layouts: &[],
        forced: &[Mechanism::Procfs],
        reason: "procfs has no count of it",
    },
    Exception {
        signals: &["hint faults", "hint faults, local"],
        kinds: &[],
        kernels: &[],
        layouts: &[],
        forced: &[Mechanism::Procfs],
        reason: "procfs has `numa_faults` only, which decays and counts by the node after a migration",
    },
    Exception {
        signals: &["moves"],
        kinds: &[],
        kernels: &[],
        layouts: &[],
        forced: &[Mechanism::Procfs],
        reason: "procfs tells a thread's last CPU at each look, not the moves between looks",
    },
];

const TRACEPOINTS: &[Mechanism] = &[Mechanism::TpBtf, Mechanism::RawTp];

/// Why a cell may be empty; `None` when it may not.
#[must_use]
pub fn reason(place: &Place, signal: &str, kind: &str) -> Option<&'static str> {
    let listed = |list: &[&str], name: &str| list.is_empty() || list.contains(&name);
    EXCEPTIONS
        .iter()
        .find(|exception| {
            listed(exception.signals, signal)
                && listed(exception.kinds, kind)
                && listed(exception.kernels, place.kernel)
                && listed(exception.layouts, place.layout)
                && (exception.forced.is_empty()
                    || place
                        .forced
                        .is_some_and(|rung| exception.forced.contains(&rung)))
        })
        .map(|exception| exception.reason)
}
