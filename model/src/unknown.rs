//! Why a process has no remote share, and so no verdict, in words.

use crate::balancing::Balancing;
use crate::process::Process;
use crate::signal::{Signal, SignalName, SignalState};
use crate::snapshot::Snapshot;
use crate::thresholds::Thresholds;

/// Why hint touches give no share here.
#[must_use]
pub fn why_no_hint(snapshot: &Snapshot) -> String {
    match snapshot.host.balancing() {
        Balancing::Unknown(why) => return format!("hint touches are no share: {why}"),
        Balancing::NotInKernel => {
            return "no hint touches: this kernel has no NUMA balancing".to_owned();
        }
        Balancing::Off => return "no hint touches: NUMA balancing is off".to_owned(),
        Balancing::Tiering { .. } => {
            return "NUMA balancing is tiering, its hint touches are no share".to_owned();
        }
        Balancing::Other(mode) => {
            return format!("hint touches of kernel.numa_balancing={mode} are no share");
        }
        Balancing::On => {}
    }
    match snapshot.signal(SignalName::Hint) {
        Some(hint) if hint.state == SignalState::Unreliable => {
            "hint touches failed their self-test".to_owned()
        }
        Some(hint) if hint.is_live() => "too few hint touches".to_owned(),
        Some(hint) => match &hint.reason {
            Some(reason) => format!("no hint touches: {reason}"),
            None => "no hint signal".to_owned(),
        },
        None => "no hint signal".to_owned(),
    }
}

/// Why neither hint touches nor an estimate gave a share.
#[must_use]
pub fn why_unknown(process: &Process, snapshot: &Snapshot, thresholds: &Thresholds) -> String {
    if let Some(why) = snapshot.topology.hides_nodes() {
        return format!("the machine's nodes can't be read: {why}");
    }
    let hint = why_no_hint(snapshot);
    format!(
        "{hint}; no estimate: {}",
        why_no_estimate(process, snapshot, thresholds)
    )
}

fn why_no_estimate(process: &Process, snapshot: &Snapshot, thresholds: &Thresholds) -> String {
    let failed = |name| {
        let signal = snapshot.signal(name);
        signal.is_some_and(|s: &Signal| s.state == SignalState::Unreliable)
    };
    let placement = &process.placement;
    let Some(by_node) = &placement.by_node_bytes else {
        return match &placement.reason {
            Some(reason) => format!("placement unknown ({reason})"),
            None => "placement unknown".to_owned(),
        };
    };
    if failed(SignalName::Placement) {
        return "the placement failed its self-test".to_owned();
    }
    if let Some(part) = placement.coverage.filter(|part| *part < 1.0) {
        return format!(
            "only {:.0} % of its addresses have been looked at",
            part * 100.0
        );
    }
    if process.cpu_time_ns_by_node.is_none() {
        return "CPU time by node unknown".to_owned();
    }
    if failed(SignalName::Sched) {
        return "CPU time by node failed its self-test".to_owned();
    }
    let bytes = by_node
        .values()
        .fold(0, |sum: u64, n| sum.saturating_add(*n));
    if bytes / 4096 < thresholds.evidence_pages {
        return format!("only {} pages are resident", bytes / 4096);
    }
    if !placement.is_conclusive(thresholds.mixed_from) {
        return "too much of its memory gives no answer, or came since it was looked at".to_owned();
    }
    "it used no CPU time while it was watched: check it under load".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::tests::{process, snapshot};
    use crate::process::ByNode;

    /// A process about which nothing but this is known.
    fn said(change: impl Fn(&mut Snapshot)) -> String {
        let mut snapshot = snapshot(10, vec![process()]);
        snapshot.host.numa_balancing = Some(0);
        change(&mut snapshot);
        why_unknown(&snapshot.processes[0], &snapshot, &Thresholds::default())
    }

    fn fails(snapshot: &mut Snapshot, name: SignalName) {
        for signal in snapshot.signals.iter_mut().filter(|s| s.name == name) {
            signal.state = SignalState::Unreliable;
        }
    }

    #[test]
    fn the_first_thing_that_is_missing_is_named() {
        type Change = fn(&mut Snapshot);
        let cases: [(Change, &str); 12] = [
            (
                |_| {},
                "no hint touches: NUMA balancing is off; no estimate: it used no CPU",
            ),
            (
                |s| {
                    s.topology.nodes.truncate(1);
                    s.topology.nodes_reason = Some("/sys is empty".to_owned());
                    s.topology.nodes_hidden = true;
                },
                "the machine's nodes can't be read: /sys is empty",
            ),
            (
                |s| s.host.numa_balancing = None,
                "this kernel has no NUMA balancing;",
            ),
            (
                |s| {
                    s.host.numa_balancing = None;
                    s.host.numa_balancing_reason = Some("it is masked".to_owned());
                },
                "hint touches are no share: it is masked;",
            ),
            (
                |s| s.host.numa_balancing = Some(2),
                "its hint touches are no share;",
            ),
            (|s| s.host.numa_balancing = Some(1), "too few hint touches;"),
            (
                |s| {
                    s.host.numa_balancing = Some(1);
                    fails(s, SignalName::Hint);
                },
                "hint touches failed their self-test;",
            ),
            (
                |s| {
                    s.processes[0].placement.by_node_bytes = None;
                    s.processes[0].placement.reason = Some("it has ended".to_owned());
                },
                "placement unknown (it has ended)",
            ),
            (
                |s| fails(s, SignalName::Placement),
                "the placement failed its self-test",
            ),
            (
                |s| s.processes[0].cpu_time_ns_by_node = None,
                "CPU time by node unknown",
            ),
            (
                |s| fails(s, SignalName::Sched),
                "CPU time by node failed its self-test",
            ),
            (
                |s| s.processes[0].placement.by_node_bytes = Some(ByNode::from([(0, 63 * 4096)])),
                "only 63 pages are resident",
            ),
        ];
        for (change, want) in cases {
            let text = said(change);
            assert!(text.contains(want), "{want}: {text}");
        }
    }
}
