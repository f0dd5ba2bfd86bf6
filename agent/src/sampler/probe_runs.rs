//! How often the occasions came at which probes run. Pure.

use model::cost::Runs;
use model::signal::{Mechanism, Signal, SignalName};

/// From the context switches and the host's page faults since the agent's start: those at which a probe runs.
pub(super) fn probe_runs(switches: Option<u64>, faults: Option<u64>, signals: &[Signal]) -> Runs {
    let probed = |name: SignalName| {
        let signal = signals.iter().find(|s| s.name == name);
        signal.is_some_and(|s| s.is_live() && s.mechanism != Some(Mechanism::Procfs))
    };
    Runs {
        switches: switches.filter(|_| probed(SignalName::Sched)),
        faults: faults.filter(|_| probed(SignalName::FirstTouch) || probed(SignalName::Map)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::signal::SignalState;

    fn signal(name: SignalName, state: SignalState, mechanism: Option<Mechanism>) -> Signal {
        Signal {
            name,
            state,
            mechanism,
            target: None,
            reason: None,
        }
    }

    #[test]
    fn only_what_is_probed_runs() {
        use SignalName::{FirstTouch, Map, Sched};
        let attached = |name, mechanism| signal(name, SignalState::Attached, Some(mechanism));
        let unavailable = |name| signal(name, SignalState::Unavailable, None);
        let cases = [
            (vec![], (None, None)),
            (vec![attached(Sched, Mechanism::Procfs)], (None, None)),
            (vec![attached(Sched, Mechanism::TpBtf)], (Some(7), None)),
            (vec![attached(Map, Mechanism::Kprobe)], (None, Some(9))),
            (
                vec![unavailable(Sched), attached(FirstTouch, Mechanism::Fentry)],
                (None, Some(9)),
            ),
        ];
        for (signals, (switches, faults)) in cases {
            let runs = probe_runs(Some(7), Some(9), &signals);
            assert_eq!(runs, Runs { switches, faults }, "{signals:?}");
        }
    }
}
