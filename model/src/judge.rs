//! Draws the conclusions of one snapshot after another: verdicts, findings, and what has cleared.

use crate::finding::{Cleared, Finding};
use crate::findings::{Past, View, findings};
use crate::process::Process;
use crate::signal::SignalName;
use crate::snapshot::Snapshot;
use crate::thresholds::Thresholds;
use crate::unknown::why_unknown;
use crate::verdict::{Verdict, verdict};
use std::collections::{BTreeMap, BTreeSet};

/// What the conclusions rest on beside the snapshot at hand. Whoever shows a snapshot shows its conclusions: nobody else
/// draws any.
#[derive(Clone, Debug, Default)]
pub struct Judge {
    thresholds: Thresholds,
    /// [`View::cache_bytes`].
    cache_bytes: Option<u64>,
    past: Past,
    /// All that was ever raised, by whom it is about.
    raised: BTreeMap<About, BTreeSet<Cleared>>,
}

/// A process by pid and start time; `None` is the machine.
type About = Option<(u32, u64)>;

impl Judge {
    /// With these thresholds, on a machine whose largest cache of one socket has so many bytes.
    #[must_use]
    pub fn new(thresholds: Thresholds, cache_bytes: Option<u64>) -> Self {
        Self {
            thresholds,
            cache_bytes,
            ..Self::default()
        }
    }

    /// From when on a number is worth a word.
    #[must_use]
    pub const fn thresholds(&self) -> &Thresholds {
        &self.thresholds
    }

    /// Adds what follows from a snapshot, and from those before it, to the snapshot.
    pub fn judge(&mut self, snapshot: &mut Snapshot) {
        let mut verdicts = Vec::with_capacity(snapshot.processes.len());
        for process in &snapshot.processes {
            verdicts.push(self.verdict(process, snapshot));
        }
        for (process, (verdict, reason)) in snapshot.processes.iter_mut().zip(verdicts) {
            process.verdict = verdict;
            process.verdict_reason = reason;
        }
        let view = View {
            now: snapshot,
            past: &self.past,
            thresholds: &self.thresholds,
            cache_bytes: self.cache_bytes,
        };
        let mut of: BTreeMap<Option<u32>, Vec<Finding>> = BTreeMap::new();
        for finding in findings(&view) {
            of.entry(finding.pid).or_default().push(finding);
        }
        self.past.record(snapshot);

        let mut raised = std::mem::take(&mut self.raised);
        let mut about = |about: About, found: &[Finding], can_tell: &dyn Fn(&str) -> bool| {
            let mut ever = raised.remove(&about).unwrap_or_default();
            let now: BTreeSet<Cleared> = found.iter().map(Finding::when_cleared).collect();
            let gone = ever.difference(&now);
            // What can't be told now is neither there nor gone.
            let cleared: Vec<Cleared> = gone.filter(|c| can_tell(&c.id)).cloned().collect();
            ever.extend(now);
            if !ever.is_empty() {
                self.raised.insert(about, ever);
            }
            cleared
        };
        let trusted: BTreeSet<SignalName> = snapshot
            .signals
            .iter()
            .filter(|signal| signal.is_trusted())
            .map(|signal| signal.name)
            .collect();
        for process in &mut snapshot.processes {
            // Only the living have findings, so a pid that came back has its own.
            let found = if process.alive {
                of.remove(&Some(process.pid))
            } else {
                None
            };
            process.findings = found.unwrap_or_default();
            let id = Some((process.pid, process.start_time));
            let can_tell = |finding: &str| {
                let signals = needs(finding).iter();
                let mut signals = signals.filter(|name| !trusted.contains(name));
                let rests_on_placement = needs(finding).contains(&SignalName::Placement);
                let placement = &process.placement;
                let placed = !rests_on_placement
                    || !process.alive
                    || placement.is_conclusive(self.thresholds.mixed_from);
                let mapped =
                    finding != "mappings-bound-elsewhere" || placement.own_policies.is_some();
                signals.next().is_none() && placed && mapped
            };
            process.findings_cleared = about(id, &process.findings, &can_tell);
        }
        snapshot.findings = of.remove(&None).unwrap_or_default();
        snapshot.findings_cleared = about(None, &snapshot.findings, &|_| true);
    }

    fn verdict(&self, process: &Process, snapshot: &Snapshot) -> (Verdict, Option<String>) {
        let verdict = verdict(&process.remote_share, &self.thresholds);
        let reason =
            (verdict == Verdict::Unknown).then(|| why_unknown(process, snapshot, &self.thresholds));
        (verdict, reason)
    }
}

/// The signals without which nobody can tell whether a finding is there. Those that rest on files alone need none.
fn needs(finding: &str) -> &'static [SignalName] {
    use SignalName::{DriverAlloc, Migration, Pin, Placement, Scan, Sched};
    match finding {
        "memory-away-from-gpu"
        | "weights-in-remote-page-cache"
        | "memory-from-before-bind"
        | "locked-on-wrong-node" => &[Placement],
        "threads-away-from-memory" => &[Placement, Sched],
        "threads-wander" => &[Sched],
        "pinned-before-bind" | "pinned-on-wrong-node" => &[Pin],
        "driver-memory-on-wrong-node" => &[DriverAlloc],
        "balancing-scan-is-dear" => &[Scan],
        "pages-move-to-and-fro" => &[Migration],
        _ => &[],
    }
}

impl Finding {
    fn when_cleared(&self) -> Cleared {
        Cleared {
            id: self.id.clone(),
            severity: self.severity,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Severity;
    use crate::findings::tests::{process, snapshot};
    use crate::process::ByNode;
    use crate::signal::SignalState;

    /// A server whose GPU is on node 1, with so many per cent of its memory on node 0.
    fn away(percent: u64) -> Process {
        let mut process = process();
        let by_node = ByNode::from([(0, percent << 24), (1, (100 - percent) << 24)]);
        process.placement.by_node_bytes = Some(by_node);
        process
    }

    fn judged(judge: &mut Judge, seconds: u64, process: Process) -> Process {
        let mut snapshot = snapshot(seconds, vec![process]);
        judge.judge(&mut snapshot);
        snapshot.processes.remove(0)
    }

    fn ids(process: &Process) -> Vec<&str> {
        process.findings.iter().map(|f| f.id.as_str()).collect()
    }

    fn cleared(process: &Process) -> Vec<(&str, Severity)> {
        let cleared = process.findings_cleared.iter();
        cleared.map(|c| (c.id.as_str(), c.severity)).collect()
    }

    #[test]
    fn a_snapshot_gets_its_verdict_and_its_findings_worst_first() {
        let mut process = away(60);
        process.verdict = Verdict::Unknown;
        let process = judged(&mut Judge::default(), 10, process);
        assert_eq!(process.verdict, Verdict::Remote);
        assert_eq!(process.verdict_reason, None);
        assert_eq!(
            ids(&process),
            ["memory-away-from-gpu", "memory-from-before-bind"]
        );
        assert_eq!(process.findings[0].severity, Severity::Fail);
    }

    #[test]
    fn an_unknown_verdict_says_why() {
        let mut process = away(0);
        process.remote_share.value = None;
        let process = judged(&mut Judge::default(), 10, process);
        assert_eq!(process.verdict, Verdict::Unknown);
        let reason = process.verdict_reason.unwrap();
        assert!(reason.contains("no hint touches"), "{reason}");
    }

    #[test]
    fn what_is_mended_is_cleared_with_the_severity_that_it_had() {
        let mut judge = Judge::default();
        let worse = judged(&mut judge, 1, away(60));
        assert_eq!(cleared(&worse), []);
        let better = judged(&mut judge, 2, away(20));
        assert_eq!(cleared(&better), [("memory-away-from-gpu", Severity::Fail)]);
        let well = judged(&mut judge, 3, away(0));
        assert_eq!(ids(&well), [""; 0]);
        let all = [
            ("memory-away-from-gpu", Severity::Warn),
            ("memory-away-from-gpu", Severity::Fail),
            ("memory-from-before-bind", Severity::Warn),
        ];
        assert_eq!(cleared(&well), all);
        let again = judged(&mut judge, 4, away(60));
        assert_eq!(cleared(&again), [("memory-away-from-gpu", Severity::Warn)]);
    }

    #[test]
    fn what_cannot_be_told_any_more_has_not_cleared() {
        let mut judge = Judge::default();
        judged(&mut judge, 1, away(60));
        let mut untold = away(60);
        untold.placement.by_node_bytes = None;
        let untold = judged(&mut judge, 2, untold);
        assert_eq!(ids(&untold), [""; 0]);
        assert_eq!(cleared(&untold), []);
        let mut incomplete = away(0);
        incomplete.placement.coverage = Some(0.5);
        assert_eq!(cleared(&judged(&mut judge, 3, incomplete)), []);
        assert_eq!(cleared(&judged(&mut judge, 4, away(0))).len(), 2);
    }

    #[test]
    fn who_goes_is_forgotten_and_a_reused_pid_begins_anew() {
        let mut judge = Judge::default();
        judged(&mut judge, 1, away(60));
        let mut next = away(0);
        next.start_time += 1;
        assert_eq!(cleared(&judged(&mut judge, 2, next)), []);
        assert_eq!(cleared(&judged(&mut judge, 3, away(0))), []);
    }

    #[test]
    fn the_ended_have_no_findings() {
        let mut judge = Judge::default();
        judged(&mut judge, 1, away(60));
        let mut ended = away(60);
        ended.alive = false;
        let ended = judged(&mut judge, 2, ended);
        assert_eq!(ids(&ended), [""; 0]);
        assert_eq!(ended.findings_cleared.len(), 2);
    }

    #[test]
    fn a_rate_needs_two_snapshots_a_second_apart() {
        let moved = |seconds: u64| {
            let mut process = away(0);
            process.moves.cross_socket = Some(seconds * 10);
            let ns = seconds * 1_000_000_000;
            process.cpu_time_ns_by_node = Some(ByNode::from([(0, ns), (1, ns)]));
            process
        };
        let wanders = |process: &Process| ids(process).contains(&"threads-wander");
        let mut judge = Judge::default();
        assert!(!wanders(&judged(&mut judge, 100, moved(100))));
        let mut snapshot = snapshot(100, vec![moved(101)]);
        snapshot.monotonic_ns += 999_000_000;
        judge.judge(&mut snapshot);
        assert!(!wanders(&snapshot.processes[0]));
        assert!(wanders(&judged(&mut judge, 101, moved(101))));
    }

    #[test]
    fn what_failed_its_self_test_is_no_evidence() {
        let mut snapshot = snapshot(10, vec![away(60)]);
        for signal in &mut snapshot.signals {
            if signal.name == SignalName::Placement {
                signal.state = SignalState::Unreliable;
            }
        }
        Judge::default().judge(&mut snapshot);
        assert_eq!(snapshot.processes[0].findings, []);
    }

    #[test]
    fn the_machine_s_own_stand_beside_the_processes() {
        let mut snapshot = snapshot(10, Vec::new());
        snapshot.topology.nodes.truncate(1);
        snapshot.host.hypervisor = Some("KVM".to_owned());
        snapshot.host.may_hide_nodes = true;
        let mut judge = Judge::default();
        judge.judge(&mut snapshot);
        let ids: Vec<&str> = snapshot.findings.iter().map(|f| f.id.as_str()).collect();
        assert_eq!(ids, ["topology-is-hidden"]);
        assert_eq!(snapshot.all_findings().len(), 1);
        snapshot.host.may_hide_nodes = false;
        judge.judge(&mut snapshot);
        assert_eq!(snapshot.findings, []);
        assert_eq!(snapshot.findings_cleared.len(), 1);
    }
}
