//! Coverage: what the host's own counters say of NUMA balancing beside what was attributed to processes. Pure.

use model::process::Process;
use model::signal::{Signal, SignalName};
use model::snapshot::{BalancingCounters, Coverage};

/// What was there at the start, and what processes account for that were let go since.
#[derive(Debug, Default)]
pub(super) struct Account {
    at_start: BalancingCounters,
    let_go: BalancingCounters,
}

impl Account {
    /// Begins with the host's counters as they are now.
    pub(super) fn new(at_start: BalancingCounters) -> Self {
        Self {
            at_start,
            let_go: BalancingCounters::default(),
        }
    }

    /// A process is in no later snapshot: its counts are kept.
    pub(super) fn let_go(&mut self, process: &Process) {
        add(&mut self.let_go, process);
    }

    /// Both sides since the start. `processes` are those that were not let go.
    pub(super) fn coverage(
        &self,
        now: &BalancingCounters,
        processes: &[Process],
        signals: &[Signal],
    ) -> Coverage {
        let since =
            |f: fn(&BalancingCounters) -> Option<u64>| f(now)?.checked_sub(f(&self.at_start)?);
        let mut sum = self.let_go;
        for process in processes {
            add(&mut sum, process);
        }
        let live = |name| signals.iter().any(|s| s.name == name && s.is_live());
        let told = |value: Option<u64>, name| live(name).then(|| value.unwrap_or(0));
        Coverage {
            host: BalancingCounters {
                hint_faults: since(|c| c.hint_faults),
                hint_faults_local: since(|c| c.hint_faults_local),
                migrated_pages: since(|c| c.migrated_pages),
            },
            attributed: BalancingCounters {
                hint_faults: told(sum.hint_faults, SignalName::Hint),
                hint_faults_local: told(sum.hint_faults_local, SignalName::Hint),
                migrated_pages: told(sum.migrated_pages, SignalName::Migration),
            },
        }
    }
}

fn add(sum: &mut BalancingCounters, process: &Process) {
    let each = |a: &mut Option<u64>, b: Option<u64>| *a = Some(a.unwrap_or(0) + b.unwrap_or(0));
    each(&mut sum.hint_faults, process.touches.hint.faults);
    each(
        &mut sum.hint_faults_local,
        process.touches.hint.local_faults,
    );
    each(&mut sum.migrated_pages, process.migrations.pages);
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::signal::SignalState;

    fn process(pid: u32, faults: u64) -> Process {
        let json = serde_json::json!({
            "pid": pid, "start_time": 1, "tracked_since": "2026-11-30T00:00:00Z", "parent_pid": null,
            "name": "w", "executable": null, "command": "w", "engine": null, "role": null, "rank": null, "model": null, "alive": true,
            "cpu_time_ns_by_node": null, "moves": {}, "migrations": {"pages": faults},
            "touches": {"first_touch": {}, "map": {}, "hint": {"faults": faults, "local_faults": 0}},
            "scan_time_ns": null, "scan_cpu_time_ns": null, "pinned": {"made": {}}, "driver_allocated_pages": {}, "placement": {}, "resident_bytes": null,
            "policy": null, "cpus_allowed": null, "remote_share": {}, "verdict": "unknown", "threads": [],
        });
        serde_json::from_value(json).unwrap()
    }

    fn hint() -> Signal {
        Signal {
            state: SignalState::Attached,
            ..Signal::unavailable(SignalName::Hint, "")
        }
    }

    #[test]
    fn a_process_that_was_let_go_is_counted_once_and_for_good() {
        let mut account = Account::new(BalancingCounters::default());
        let host = BalancingCounters::default();
        let (one, other) = (process(1, 30_000), process(2, 5));
        let both = account.coverage(&host, &[one.clone(), other.clone()], &[hint()]);
        account.let_go(&one);
        let after = account.coverage(&host, &[other], &[hint()]);
        assert_eq!(both.attributed.hint_faults, Some(30_005));
        assert_eq!(after.attributed.hint_faults, Some(30_005));
    }

    #[test]
    fn without_the_signal_nothing_is_attributed_and_that_is_not_zero() {
        let account = Account::default();
        let coverage = account.coverage(&BalancingCounters::default(), &[process(1, 0)], &[]);
        assert_eq!(coverage.attributed, BalancingCounters::default());
    }
}
