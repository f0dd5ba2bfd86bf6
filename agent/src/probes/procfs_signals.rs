//! Which signals procfs gives, and with what reservations.
//!
//! Hint touches are not drawn from `numa_faults`, which decays and counts by the node after a migration.

use super::procfs::tells_migrations;
use crate::host::root::Root;
use model::signal::{Mechanism, Signal, SignalName, SignalState};

/// Whether procfs tells anything of a signal.
pub(crate) fn tells(signal: SignalName) -> bool {
    matches!(
        signal,
        SignalName::Sched | SignalName::Migration | SignalName::Placement
    )
}

/// Every signal but placement, in order; `why` no eBPF can be had.
pub(crate) fn signals(root: &Root, why: &str) -> Vec<Signal> {
    SignalName::ALL
        .into_iter()
        .filter(|name| *name != SignalName::Placement)
        .map(|name| signal(root, name, why))
        .collect()
}

/// What procfs gives of a signal, and `why` no probe gives more.
pub(crate) fn signal(root: &Root, name: SignalName, why: &str) -> Signal {
    let degraded = |name, target: &str, reason: &str| Signal {
        name,
        state: SignalState::Degraded,
        mechanism: Some(Mechanism::Procfs),
        target: Some(target.to_owned()),
        reason: Some(format!("{reason}; {why}")),
    };
    match name {
        SignalName::Sched => degraded(
            name,
            "/proc/PID/task/TID/schedstat, stat",
            "moves are not seen, and CPU time counts to the node of the last CPU at each look, \
             which is exact only while the allowed CPUs lie on one node, and what threads ran between the last look and their end is not \
             counted",
        ),
        SignalName::Migration if tells_migrations(root) => degraded(
            name,
            "/proc/PID/task/TID/sched",
            "pages are counted without their nodes, and not those that failed",
        ),
        SignalName::Migration => Signal::unavailable(
            name,
            format!(
                "this kernel has no /proc/PID/sched that tells of them (CONFIG_SCHED_DEBUG); {why}"
            ),
        ),
        _ => Signal::unavailable(name, format!("needs eBPF; {why}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fixture::Fixture;

    #[test]
    fn there_are_never_hint_touches() {
        let fixture = Fixture::new();
        fixture.file("proc/self/sched", "numa_pages_migrated : 0\n");
        let signals = signals(&fixture.root(), "CAP_BPF is missing");
        let live: Vec<_> = signals
            .iter()
            .filter(|s| s.is_live())
            .map(|s| s.name)
            .collect();
        assert_eq!(live, [SignalName::Sched, SignalName::Migration]);
        assert!(signals.iter().all(|s| s.reason.is_some()));
    }
}
