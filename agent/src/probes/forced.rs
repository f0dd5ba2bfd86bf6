//! What a user may force: which rungs a signal has, and which two signals can't stand on together. Pure.

use super::rungs::{Rung, rungs};
use model::signal::{Mechanism, SignalName};
use std::collections::BTreeMap;

/// Signals that may stand on one mechanism only.
pub(crate) type Forced = BTreeMap<SignalName, Mechanism>;

/// The mechanisms that a signal can be forced to, best first; the last one is to do without a program.
pub(crate) fn mechanisms(signal: SignalName) -> Vec<Mechanism> {
    let mut known: Vec<_> = rungs(signal).iter().map(|rung| rung.mechanism).collect();
    known.push(Mechanism::Procfs);
    known.dedup();
    known
}

/// The rungs that a signal may be tried on, best first. One that another signal's forced rung would count beside is none.
pub(crate) fn allowed(signal: SignalName, forced: &Forced) -> Vec<&'static Rung> {
    let beside = |rung: &Rung| {
        forced
            .iter()
            .filter(|(other, _)| **other != signal)
            .any(|(other, mechanism)| counts_beside(rung, *other, *mechanism))
    };
    rungs(signal)
        .iter()
        .filter(|rung| match forced.get(&signal) {
            Some(mechanism) => rung.mechanism == *mechanism,
            None => !beside(rung),
        })
        .collect()
}

/// Why two signals can't both be where they are forced to; `None` when all can.
pub(crate) fn clash(forced: &Forced) -> Option<String> {
    forced.iter().find_map(|(signal, mechanism)| {
        let own = rungs(*signal).iter();
        let own = own.filter(|rung| rung.mechanism == *mechanism);
        let (other, others) =
            forced
                .iter()
                .filter(|(other, _)| *other != signal)
                .find(|(other, others)| {
                    own.clone()
                        .any(|rung| counts_beside(rung, **other, **others))
                })?;
        Some(format!(
            "{}={} and {}={} would count the same twice; force both to one",
            signal.as_str(),
            mechanism.as_str(),
            other.as_str(),
            others.as_str()
        ))
    })
}

/// Whether a rung has the twin of a program that another signal has on this mechanism: both would write the same counters.
fn counts_beside(rung: &Rung, other: SignalName, mechanism: Mechanism) -> bool {
    rung.mechanism != mechanism
        && rungs(other)
            .iter()
            .filter(|others| others.mechanism == mechanism)
            .flat_map(|others| others.hooks)
            .any(|hook| rung.hooks.iter().any(|own| own.typed == hook.typed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Mechanism::{Fentry, Kprobe, Procfs, RawTp, TpBtf};
    use SignalName::{FirstTouch, Hint, Map, Migration, Placement, Sched};

    fn standing(signal: SignalName, forced: &[(SignalName, Mechanism)]) -> Vec<Mechanism> {
        let allowed = allowed(signal, &forced.iter().copied().collect());
        let mut mechanisms: Vec<_> = allowed.iter().map(|rung| rung.mechanism).collect();
        mechanisms.dedup();
        mechanisms
    }

    #[test]
    fn a_signal_can_be_forced_to_its_own_rungs() {
        for (signal, want) in [
            (Sched, vec![TpBtf, RawTp, Procfs]),
            (FirstTouch, vec![Fentry, Kprobe, TpBtf, RawTp, Procfs]),
            (Hint, vec![Fentry, Kprobe, Procfs]),
            (Placement, vec![Procfs]),
        ] {
            assert_eq!(mechanisms(signal), want, "{signal:?}");
        }
    }

    #[test]
    fn signals_that_share_programs_stand_on_the_same_twin() {
        for (forced, signal, want) in [
            (vec![], Map, vec![Fentry, Kprobe, TpBtf, RawTp]),
            (vec![(FirstTouch, RawTp)], Map, vec![Fentry, Kprobe, RawTp]),
            (vec![(FirstTouch, TpBtf)], Map, vec![Fentry, Kprobe, TpBtf]),
            (
                vec![(FirstTouch, Kprobe)],
                Map,
                vec![Fentry, Kprobe, TpBtf, RawTp],
            ),
            (vec![(Hint, Kprobe)], Migration, vec![Kprobe, TpBtf, RawTp]),
            (vec![(Migration, TpBtf)], Hint, vec![Fentry, Kprobe]),
            (
                vec![(Hint, Procfs)],
                Migration,
                vec![Fentry, Kprobe, TpBtf, RawTp],
            ),
            (vec![(Map, RawTp)], Map, vec![RawTp]),
        ] {
            assert_eq!(standing(signal, &forced), want, "{forced:?} {signal:?}");
        }
    }

    #[test]
    fn two_twins_of_a_program_are_refused() {
        for (forced, clashes) in [
            (vec![], false),
            (vec![(FirstTouch, TpBtf), (Map, TpBtf)], false),
            (vec![(FirstTouch, TpBtf), (Map, Fentry)], false),
            (vec![(FirstTouch, Fentry), (Map, Kprobe)], false),
            (vec![(FirstTouch, TpBtf), (Map, RawTp)], true),
            (
                vec![(Sched, TpBtf), (FirstTouch, RawTp), (Map, TpBtf)],
                true,
            ),
            (vec![(Hint, Fentry), (Migration, Kprobe)], true),
            (vec![(Hint, Fentry), (Migration, RawTp)], false),
        ] {
            let why = clash(&forced.iter().copied().collect());
            assert_eq!(why.is_some(), clashes, "{forced:?}: {why:?}");
        }
        let why = clash(&[(FirstTouch, TpBtf), (Map, RawTp)].into_iter().collect());
        assert_eq!(
            why.as_deref(),
            Some("first_touch=tp_btf and map=raw_tp would count the same twice; force both to one")
        );
    }
}
