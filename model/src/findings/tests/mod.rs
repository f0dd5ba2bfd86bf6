//! Each rule with a case that raises it and cases that must not.

mod machine;
mod memory;
mod policy;
mod subject;
mod threads;

use super::*;
use crate::devices::{DeviceKind, DeviceUse, DeviceUseSource};
use crate::mapping::MemoryClass;
use crate::policy::{Placing, Policy, PolicyMode};
use crate::process::{ByNode, MigrationPair, Process, Thread};
use crate::signal::{Mechanism, Signal, SignalName, SignalState};
use crate::snapshot::{Coverage, Host, SCHEMA_VERSION};
use crate::time::Timestamp;
use crate::topology::{Node, NumaStat, Topology};
use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

const GIB: u64 = 1 << 30;

/// Two sockets, a node each with four CPUs and 64 GiB.
fn topology() -> Topology {
    let node = |id: u32| Node {
        id,
        cpus: (id * 4..id * 4 + 4).collect(),
        socket: Some(id),
        memory_total_bytes: Some(64 * GIB),
        memory_free_bytes: Some(32 * GIB),
        distances: [(id, 10), (1 - id, 21)].into(),
        numastat: Some(NumaStat::default()),
        cpu_busy: Some(0.5),
    };
    Topology {
        nodes: vec![node(0), node(1)],
        ..Topology::default()
    }
}

/// A server with GPU0 on node 1, whose memory and time are there too, bound there.
pub(crate) fn process() -> Process {
    let document = serde_json::json!({
        "pid": 42, "start_time": 7, "tracked_since": "1970-01-01T00:00:00Z", "parent_pid": 1,
        "name": "server", "executable": "server", "command": "server -m model.gguf",
        "engine": "llama.cpp", "role": "server", "rank": null, "model": null, "alive": true,
        "cpu_time_ns_by_node": {"1": 10_000_000_000_u64},
        "moves": {"total": 0, "cross_socket": 0, "by_pair": []},
        "touches": {"first_touch": {}, "map": {}, "hint": {}, "swap_in_pages": null},
        "migrations": {"pages": 0, "failed_pages": 0, "by_pair": []},
        "scan_time_ns": 0, "scan_cpu_time_ns": 0,
        "pinned": {"bytes": 0, "locked_bytes": 0, "made": {"pages": 0, "by_node": {}}},
        "driver_allocated_pages": {"pages": 0, "by_node": {}},
        "placement": {"by_node_bytes": {"0": 0, "1": GIB}, "by_class": {"weights": {"1": GIB / 2}}, "source": "move_pages"},
        "resident_bytes": GIB, "policy": "bind:1", "cpus_allowed": "4-7",
        "remote_share": {"value": 0.5, "signal": "estimate", "window_s": 30.0, "pages": GIB / 4096},
        "verdict": "remote", "threads": []
    });
    Process {
        placing: Placing {
            policy: policy(PolicyMode::Bind, &[1]),
            cpus_allowed: Some(vec![4, 5, 6, 7]),
            ..Placing::default()
        },
        devices: vec![gpu(0, Some(1))],
        ..serde_json::from_value(document).unwrap()
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the fields are options")]
fn policy(mode: PolicyMode, nodes: &[u32]) -> Option<Policy> {
    Some(Policy {
        mode,
        nodes: nodes.to_vec(),
        flags: Vec::new(),
    })
}

fn gpu(number: u32, node: Option<u32>) -> DeviceUse {
    DeviceUse {
        address: format!("0000:{number:02x}:00.0"),
        kind: DeviceKind::Gpu,
        label: format!("GPU{number}"),
        node,
        source: DeviceUseSource::OpenFiles,
    }
}

pub(crate) fn thread(name: &str, cpus_allowed: Option<Vec<u32>>) -> Thread {
    Thread {
        tid: 43,
        name: name.to_owned(),
        cpu_time_ns_by_node: None,
        moves: None,
        scan_time_ns: None,
        cpus_allowed,
        policy: None,
    }
}

fn attached(name: SignalName) -> Signal {
    Signal {
        name,
        state: SignalState::Attached,
        mechanism: Some(Mechanism::Fentry),
        target: None,
        reason: None,
    }
}

pub(crate) fn snapshot(seconds: u64, processes: Vec<Process>) -> Snapshot {
    Snapshot {
        schema_version: SCHEMA_VERSION,
        taken_at: Timestamp(UNIX_EPOCH + Duration::from_secs(seconds)),
        monotonic_ns: seconds * 1_000_000_000,
        host: Host::default(),
        topology: topology(),
        signals: SignalName::ALL.map(attached).to_vec(),
        coverage: Coverage::default(),
        processes,
        cgroups: Vec::new(),
        findings: Vec::new(),
        findings_cleared: Vec::new(),
    }
}

/// The ids of what is found on a snapshot, ten seconds after the same processes had done nothing yet.
fn ids(now: &Snapshot) -> Vec<String> {
    ids_with(now, None)
}

fn ids_with(now: &Snapshot, cache_bytes: Option<u64>) -> Vec<String> {
    let found = findings_with(now, cache_bytes);
    found.into_iter().map(|f| f.id).collect()
}

fn findings_with(now: &Snapshot, cache_bytes: Option<u64>) -> Vec<Finding> {
    let mut start = process();
    start.cpu_time_ns_by_node = Some(ByNode::new());
    let begun = |now: &Process| Process {
        pid: now.pid,
        ..start.clone()
    };
    let mut past = Past::default();
    past.record(&snapshot(0, now.processes.iter().map(begun).collect()));
    let view = View {
        now,
        past: &past,
        thresholds: &Thresholds::default(),
        cache_bytes,
    };
    let found = findings(&view);
    for finding in &found {
        assert!(
            !finding.summary.is_empty() && !finding.unless.is_empty(),
            "{finding:?}"
        );
        assert!(IDS.contains(&finding.id.as_str()), "{}", finding.id);
        assert!(
            !finding.advice.is_empty()
                || !finding.hints.is_empty()
                || finding.severity == Severity::Info,
            "{finding:?}"
        );
    }
    found
}

/// What is found on one process that is as it should be, but for `change`.
fn found(change: impl FnOnce(&mut Process)) -> Vec<Finding> {
    let mut process = process();
    change(&mut process);
    findings_with(&snapshot(10, vec![process]), None)
}

#[track_caller]
fn raised(id: &str, change: impl FnOnce(&mut Process)) -> Finding {
    let mut found = found(change);
    let at = found.iter().position(|f| f.id == id);
    let at = at.unwrap_or_else(|| panic!("{id} not in {found:?}"));
    found.swap_remove(at)
}

#[track_caller]
fn silent(id: &str, change: impl FnOnce(&mut Process)) {
    let found = found(change);
    assert!(!found.iter().any(|f| f.id == id), "{id} in {found:?}");
}

#[expect(clippy::unnecessary_wraps, reason = "the fields are options")]
fn memory(by_node: &[(u32, u64)]) -> Option<ByNode> {
    Some(by_node.iter().copied().collect())
}

#[test]
fn a_process_as_it_should_be_has_none() {
    assert_eq!(found(|_| ()), []);
}

#[test]
fn without_signals_nothing_is_concluded() {
    let found = found(|p| {
        p.cpu_time_ns_by_node = None;
        p.placement = crate::process::Placement::default();
        p.placing = Placing::default();
        p.pinned = crate::process::Pinned::default();
        p.driver_allocated_pages = crate::process::NodePages::default();
        p.remote_share = crate::verdict::RemoteShare::default();
    });
    assert_eq!(found, []);
}

#[test]
fn the_worst_comes_first() {
    let found = found(|p| {
        p.placing.policy = policy(PolicyMode::Preferred, &[1]);
        p.placement.by_node_bytes = memory(&[(0, GIB), (1, 0)]);
    });
    assert_eq!(found[0].id, "memory-away-from-gpu");
}

/// A signal that failed its self-test raises nothing.
#[test]
fn nothing_rests_on_an_unreliable_signal() {
    type Change = fn(&mut Process);
    let cases: [(&str, SignalName, Change); 7] = [
        ("memory-away-from-gpu", SignalName::Placement, |p| {
            p.placement.by_node_bytes = memory(&[(0, GIB), (1, 0)]);
        }),
        ("pinned-before-bind", SignalName::Pin, |p| {
            p.pinned.made.by_node = memory(&[(0, 1_000)]);
        }),
        (
            "driver-memory-on-wrong-node",
            SignalName::DriverAlloc,
            |p| {
                p.driver_allocated_pages.by_node = memory(&[(0, 1_000)]);
            },
        ),
        ("threads-away-from-memory", SignalName::Sched, |p| {
            p.cpu_time_ns_by_node = memory(&[(0, 9), (1, 1)]);
        }),
        ("threads-wander", SignalName::Sched, |p| {
            p.moves.cross_socket = Some(100);
            p.cpu_time_ns_by_node = memory(&[(0, 5), (1, 5)]);
        }),
        ("balancing-scan-is-dear", SignalName::Scan, |p| {
            p.scan_cpu_time_ns = Some(600_000_000);
        }),
        ("pages-move-to-and-fro", SignalName::Migration, |p| {
            let pair = |from, to| MigrationPair {
                from,
                to,
                pages: 5_000,
            };
            p.migrations.by_pair = Some(vec![pair(0, 1), pair(1, 0)]);
        }),
    ];
    for (id, name, change) in cases {
        let mut process = process();
        change(&mut process);
        let mut now = snapshot(10, vec![process]);
        assert!(ids(&now).contains(&id.to_owned()), "{id}");
        for signal in now.signals.iter_mut().filter(|s| s.name == name) {
            signal.state = SignalState::Unreliable;
        }
        assert!(!ids(&now).contains(&id.to_owned()), "{id}");
    }
}

#[test]
fn docs_have_every_id() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/findings.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, table) = text.split_once("| id | raised when |").unwrap();
    let mut documented: Vec<&str> = table
        .lines()
        .skip(1)
        .take_while(|line| line.starts_with('|'))
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(id, _)| id)
        .collect();
    documented.sort_unstable();
    assert_eq!(documented, IDS);
}
