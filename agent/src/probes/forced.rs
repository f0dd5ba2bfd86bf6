//! What a user may force: which rungs a signal has, and which two signals can't stand on together. Pure.

use super::procfs_signals;
use super::rungs::{Rung, rungs};
use model::signal::{Mechanism, SignalName};
use std::collections::{BTreeMap, BTreeSet};

/// Signals that may stand on one mechanism only; `None`: on none, it is off.
pub(crate) type Forced = BTreeMap<SignalName, Option<Mechanism>>;

/// The mechanisms that a signal can be forced to, best first.
pub(crate) fn mechanisms(signal: SignalName) -> Vec<Mechanism> {
    let mut known: Vec<_> = rungs(signal).iter().map(|rung| rung.mechanism).collect();
    if procfs_signals::tells(signal) {
        known.push(Mechanism::Procfs);
    }
    known.dedup();
    known
}

/// Signals that are to stand on procfs beside others' probes.
pub(crate) fn by_procfs(forced: &Forced) -> BTreeSet<SignalName> {
    forced
        .iter()
        .filter(|(_, mechanism)| **mechanism == Some(Mechanism::Procfs))
        .map(|(signal, _)| *signal)
        // The placement is procfs' anyway.
        .filter(|signal| *signal != SignalName::Placement)
        .collect()
}

/// Why a signal is not what procfs would tell without eBPF, given what it is forced to; `None` when it may be.
pub(crate) fn not_by_procfs(signal: SignalName, forced: &Forced, why: &str) -> Option<String> {
    let option = |rung: &str| format!("--mechanism {}={rung}", signal.as_str());
    match forced.get(&signal)? {
        None => Some(off(signal)),
        Some(Mechanism::Procfs) => None,
        Some(mechanism) => Some(format!("{}: {why}", option(mechanism.as_str()))),
    }
}

/// What to say of a signal that is off.
pub(crate) fn off(signal: SignalName) -> String {
    format!("--mechanism {}={OFF}", signal.as_str())
}

/// How a signal is forced to no mechanism.
pub(crate) const OFF: &str = "off";

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
            Some(mechanism) => Some(rung.mechanism) == *mechanism,
            None => !beside(rung),
        })
        .collect()
}

/// Why two signals can't both be where they are forced to; `None` when all can.
pub(crate) fn clash(forced: &Forced) -> Option<String> {
    forced.iter().find_map(|(signal, mechanism)| {
        let own = rungs(*signal).iter();
        let own = own.filter(|rung| Some(rung.mechanism) == *mechanism);
        let (other, others) =
            forced
                .iter()
                .filter(|(other, _)| *other != signal)
                .find(|(other, others)| {
                    own.clone()
                        .any(|rung| counts_beside(rung, **other, **others))
                })?;
        let option = |signal: &SignalName, mechanism: &Option<Mechanism>| {
            let rung = mechanism.map_or(OFF, Mechanism::as_str);
            format!("{}={rung}", signal.as_str())
        };
        Some(format!(
            "{} and {} would count the same twice; force both to one",
            option(signal, mechanism),
            option(other, others)
        ))
    })
}

/// Whether a rung has the twin of a program that another signal has on this mechanism: both would write the same counters.
fn counts_beside(rung: &Rung, other: SignalName, mechanism: Option<Mechanism>) -> bool {
    Some(rung.mechanism) != mechanism
        && rungs(other)
            .iter()
            .filter(|others| Some(others.mechanism) == mechanism)
            .flat_map(|others| others.hooks)
            .any(|hook| rung.hooks.iter().any(|own| own.typed == hook.typed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Mechanism::{Fentry, Kprobe, Procfs, RawTp, TpBtf};
    use SignalName::{FirstTouch, Hint, Map, Migration, Placement, Sched};

    fn only(forced: &[(SignalName, Mechanism)]) -> Forced {
        forced.iter().map(|(s, m)| (*s, Some(*m))).collect()
    }

    fn standing(signal: SignalName, forced: &[(SignalName, Mechanism)]) -> Vec<Mechanism> {
        let allowed = allowed(signal, &only(forced));
        let mut mechanisms: Vec<_> = allowed.iter().map(|rung| rung.mechanism).collect();
        mechanisms.dedup();
        mechanisms
    }

    #[test]
    fn a_signal_can_be_forced_to_its_own_rungs() {
        for (signal, want) in [
            (Sched, vec![TpBtf, RawTp, Procfs]),
            (FirstTouch, vec![Fentry, Kprobe, TpBtf, RawTp]),
            (Hint, vec![Fentry, Kprobe]),
            (Migration, vec![Fentry, Kprobe, TpBtf, RawTp, Procfs]),
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
            (vec![(Migration, Procfs)], Hint, vec![Fentry, Kprobe]),
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
            let why = clash(&only(&forced));
            assert_eq!(why.is_some(), clashes, "{forced:?}: {why:?}");
        }
        let why = clash(&only(&[(FirstTouch, TpBtf), (Map, RawTp)]));
        assert_eq!(
            why.as_deref(),
            Some("first_touch=tp_btf and map=raw_tp would count the same twice; force both to one")
        );
    }

    #[test]
    fn a_signal_that_is_off_stands_nowhere_and_is_in_nobodys_way() {
        let forced = Forced::from([(Hint, None)]);
        assert!(allowed(Hint, &forced).is_empty());
        let migration: Vec<_> = allowed(Migration, &forced)
            .iter()
            .map(|rung| rung.mechanism)
            .collect();
        assert!(migration.contains(&Fentry) && migration.contains(&RawTp));
        assert_eq!(clash(&forced), None);
    }

    #[test]
    fn what_is_forced_to_a_probe_is_not_told_by_procfs() {
        let forced = Forced::from([(Sched, Some(TpBtf)), (Migration, None)]);
        let why = |signal| not_by_procfs(signal, &forced, "CAP_BPF missing");
        assert_eq!(
            why(Sched).as_deref(),
            Some("--mechanism sched=tp_btf: CAP_BPF missing")
        );
        assert_eq!(why(Migration).as_deref(), Some("--mechanism migration=off"));
        assert_eq!(why(Map), None);
        let procfs = Forced::from([(Sched, Some(Procfs))]);
        assert_eq!(not_by_procfs(Sched, &procfs, "CAP_BPF missing"), None);
        assert_eq!(by_procfs(&procfs), BTreeSet::from([Sched]));
    }
}
