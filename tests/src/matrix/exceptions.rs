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
];

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
