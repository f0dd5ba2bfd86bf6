//! What the probes cost a host, by estimate: how often the kernel ran them, times what a run was measured to cost.
//!
//! The kernel would count a program's time itself if asked, but that is a privilege more, and dearer than the programs.

/// How often the occasions came at which probes run, since the agent's start, on the whole host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Runs {
    /// Context switches, as the probe counts them; `None` without it.
    pub switches: Option<u64>,
    /// Page faults, `pgfault` in `/proc/vmstat`; `None` where none is probed.
    pub faults: Option<u64>,
}

/// A run at a context switch of a watched thread, nanoseconds: the median in `docs/cost.md`. Others cost less than half.
const SWITCH_NS: u64 = 46;

/// A page fault of a watched thread that touches a page first, nanoseconds: the three tracepoint programs' median there.
/// By fentry it is one program, not three.
const FAULT_NS: u64 = 99;

/// Nanoseconds that probes at context switches and page faults took since the agent's start, all CPUs together, with every
/// run taken for a watched thread's; those at hint faults, pins and in drivers are not in it. `None` if no probe runs.
#[must_use]
pub fn probes_time_ns(runs: Runs) -> Option<u64> {
    let switches = runs.switches.map(|n| n.saturating_mul(SWITCH_NS));
    let faults = runs.faults.map(|n| n.saturating_mul(FAULT_NS));
    match (switches, faults) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_costs_what_was_published() {
        let runs = Runs {
            switches: Some(1_000),
            faults: Some(10),
        };
        assert_eq!(
            probes_time_ns(runs),
            Some(1_000 * SWITCH_NS + 10 * FAULT_NS)
        );
    }

    #[test]
    fn without_probes_nothing_is_known() {
        assert_eq!(probes_time_ns(Runs::default()), None);
    }

    #[test]
    fn the_published_costs_are_those_of_the_document() {
        let median = |row: &str| -> Option<u64> {
            let line = include_str!("../../docs/cost.md")
                .lines()
                .find(|line| line.starts_with(&format!("| {row} ")))?;
            let cell = line.split('|').nth(3)?;
            cell.trim().strip_suffix(" ns")?.trim().parse().ok()
        };
        assert_eq!(median("sched_switch, watched"), Some(SWITCH_NS));
        assert_eq!(median("a first touch, these three"), Some(FAULT_NS));
    }
}
