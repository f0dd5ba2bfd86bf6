//! How large the kernel side's maps are made: as many threads as the machine can have and the memory allows. Pure.

use agent_ebpf::{BalanceRow, DeviceRow, RowKey, SchedRow, Thread, TouchRow, Tracked};
use std::mem::size_of;

/// What maps may take of kernel memory, bytes, unless asked for otherwise.
pub(crate) const BUDGET: u64 = 32 << 20;
/// What the small maps, their bookkeeping and the programs' constants take.
const APART: u64 = 2 << 20;
/// A hash map's own part of an entry: its header, its share of the buckets and rounding, bytes.
const ENTRY: u64 = 48 + 16 + 16;
/// Nodes that a thread has rows on at once; threads that wander over more are few.
const NODES_OF_A_THREAD: u64 = 4;
/// The fewest and the most threads that are worth having room for.
const THREADS: std::ops::RangeInclusive<u64> = 512..=65_536;

/// What the sizes follow from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    /// Nodes that have CPUs.
    pub(crate) nodes_with_cpus: u64,
    /// `kernel.pid_max`: no more threads than this can be.
    pub(crate) pid_max: u64,
    /// Kernel memory to spend, bytes.
    pub(crate) budget: u64,
}

/// Entries of each map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Processes.
    pub(crate) tracked: u32,
    /// Threads.
    pub(crate) threads: u32,
    /// Rows of scheduling, of touches and of balancing, each.
    pub(crate) rows: u32,
    /// Rows of memory for devices; few threads make those.
    pub(crate) device: u32,
}

impl Bounds {
    /// The largest that fit.
    pub(crate) fn fit(machine: &Machine) -> Self {
        let (fewest, most) = THREADS.into_inner();
        let most = machine.pid_max.clamp(fewest, most);
        let mut threads = fewest;
        while threads * 2 <= most && Self::of(threads * 2, machine).bytes() <= machine.budget {
            threads *= 2;
        }
        Self::of(threads, machine)
    }

    fn of(threads: u64, machine: &Machine) -> Self {
        let each = machine.nodes_with_cpus.clamp(1, NODES_OF_A_THREAD);
        let entries = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        Self {
            tracked: entries(threads.div_ceil(4)),
            threads: entries(threads),
            rows: entries(threads * each),
            device: entries((threads * each).div_ceil(8)),
        }
    }

    /// Kernel memory of all maps, bytes; an upper estimate.
    pub(crate) fn bytes(&self) -> u64 {
        fn entry<K, V>(entries: u32) -> u64 {
            u64::from(entries) * (ENTRY + (size_of::<K>() + size_of::<V>()) as u64)
        }
        APART
            + entry::<u32, Tracked>(self.tracked)
            + entry::<u32, Thread>(self.threads)
            + entry::<RowKey, SchedRow>(self.rows)
            + entry::<RowKey, TouchRow>(self.rows)
            + entry::<RowKey, BalanceRow>(self.rows)
            + entry::<RowKey, DeviceRow>(self.device)
    }

    /// The maps by name, and their entries.
    pub(crate) fn maps(&self) -> [(&'static str, u32); 6] {
        [
            ("TRACKED", self.tracked),
            ("THREADS", self.threads),
            ("SCHED", self.rows),
            ("TOUCH", self.rows),
            ("BALANCE", self.rows),
            ("DEVICE", self.device),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_the_machine_the_budget_is_kept() {
        for nodes_with_cpus in [0, 1, 2, 4, 8, 64] {
            for pid_max in [301, 32_768, 4_194_304] {
                let machine = Machine {
                    nodes_with_cpus,
                    pid_max,
                    budget: BUDGET,
                };
                let bounds = Bounds::fit(&machine);
                assert!(bounds.bytes() <= BUDGET, "{machine:?}: {bounds:?}");
                assert!(bounds.rows >= bounds.threads && bounds.threads >= 512);
            }
        }
    }

    #[test]
    fn nodes_pids_and_memory_decide() {
        for (nodes_with_cpus, pid_max, budget, threads, rows) in [
            (1, 4_194_304, BUDGET, 16_384, 16_384),
            (2, 4_194_304, BUDGET, 8_192, 16_384),
            (8, 4_194_304, BUDGET, 4_096, 16_384),
            (2, 4_194_304, 2 * BUDGET, 16_384, 32_768),
            (2, 2_048, BUDGET, 2_048, 4_096),
            (2, 4_194_304, 0, 512, 1_024),
        ] {
            let bounds = Bounds::fit(&Machine {
                nodes_with_cpus,
                pid_max,
                budget,
            });
            assert_eq!((bounds.threads, bounds.rows), (threads, rows), "{bounds:?}");
        }
    }
}
