//! The catalogue's rules: names, no point for what isn't known, and the document.

mod points;

use super::*;
use crate::cgroup::{Cgroup, CgroupMemoryKind};
use crate::devices::tests::device;
use crate::devices::{Device, DeviceKind, DeviceUse, DeviceUseSource};
use crate::finding::{Cleared, Confidence, Finding, Severity};
use crate::mapping::MemoryClass;
use crate::policy::Placing;
use crate::process::{
    ByNode, HintCounter, MemoryKind, Migrations, Moves, NodePages, Pinned, Placement, TouchCounter,
    Touches,
};
use crate::snapshot::{AgentCost, Coverage, Host, Lost, SCHEMA_VERSION};
use crate::time::Timestamp;
use crate::topology::{Node, NodeId, Topology};
use crate::verdict::{RemoteShare, ShareSignal, Verdict};
use std::collections::{BTreeMap, BTreeSet};
use std::time::UNIX_EPOCH;

pub(crate) fn unknown_process() -> Process {
    Process {
        pid: 42,
        start_time: 7,
        tracked_since: Timestamp(UNIX_EPOCH),
        parent_pid: None,
        name: "llama-server".into(),
        executable: None,
        command: "llama-server -m model.gguf".into(),
        other_uid: None,
        engine: None,
        role: None,
        rank: None,
        model: None,
        alive: true,
        cpu_time_ns_by_node: None,
        moves: Moves::default(),
        touches: Touches::default(),
        migrations: Migrations::default(),
        scan_time_ns: None,
        scan_cpu_time_ns: None,
        pinned: Pinned::default(),
        driver_allocated_pages: NodePages::default(),
        placement: Placement::default(),
        resident_bytes: None,
        policy: None,
        cpus_allowed: None,
        placing: Placing::default(),
        remote_share: RemoteShare::default(),
        verdict: Verdict::Unknown,
        verdict_reason: None,
        findings: Vec::new(),
        findings_cleared: Vec::new(),
        devices: Vec::new(),
        devices_reason: None,
        threads: Vec::new(),
    }
}

fn finding() -> Finding {
    Finding {
        id: "memory-away-from-gpu".to_owned(),
        pid: Some(42),
        severity: Severity::Fail,
        confidence: Confidence::High,
        summary: String::new(),
        evidence: Vec::new(),
        advice: Vec::new(),
        hints: Vec::new(),
        unless: String::new(),
    }
}

fn cleared() -> Cleared {
    Cleared {
        id: "memory-away-from-gpu".to_owned(),
        severity: Severity::Warn,
    }
}

fn used(label: &str, node: Option<NodeId>) -> DeviceUse {
    DeviceUse {
        address: format!("0000:3b:00.{}", label.trim_start_matches("GPU")),
        kind: DeviceKind::Gpu,
        label: label.to_owned(),
        node,
        source: DeviceUseSource::OpenFiles,
    }
}

/// Two nodes with CPUs and one of memory only, and a NIC.
fn topology() -> Topology {
    let node = |id, cpus: &[u32]| Node {
        id,
        cpus: cpus.to_vec(),
        memory_total_bytes: Some(1 << 30),
        memory_free_bytes: Some(1 << 20),
        cpu_busy: Some(0.25),
        ..Node::default()
    };
    Topology {
        nodes: vec![node(0, &[0, 1]), node(8, &[2, 3]), node(9, &[])],
        devices: vec![Device {
            kind: DeviceKind::Nic,
            label: "NIC0".to_owned(),
            ..device("0000:86:00.0")
        }],
        ..Topology::default()
    }
}

fn known_process() -> Process {
    let counter = TouchCounter {
        pages: Some(100),
        local_pages: Some(50),
        same_socket_pages: Some(0),
        cross_socket_pages: Some(30),
        unknown_node_pages: Some(20),
        by_pair: None,
    };
    Process {
        cpu_time_ns_by_node: Some(ByNode::from([(0, 1_500_000_000), (8, 0)])),
        moves: Moves {
            total: Some(10),
            cross_socket: Some(4),
            by_pair: None,
        },
        touches: Touches {
            first_touch: counter.clone(),
            map: counter.clone(),
            hint: HintCounter {
                counter,
                ..HintCounter::default()
            },
            swap_in_pages: None,
        },
        migrations: Migrations {
            pages: Some(5),
            ..Migrations::default()
        },
        scan_time_ns: Some(250_000_000),
        placement: Placement {
            by_node_bytes: Some(ByNode::from([(0, 4096), (8, 8192)])),
            margin_by_node_bytes: Some(ByNode::from([(0, 0), (8, 4096)])),
            by_class: Some(BTreeMap::from([
                (MemoryClass::Weights, ByNode::from([(8, 8192)])),
                (MemoryClass::Heap, ByNode::from([(0, 4096)])),
            ])),
            by_kind: Some(BTreeMap::from([
                (MemoryKind::Anonymous, ByNode::from([(0, 4096)])),
                (MemoryKind::File, ByNode::from([(8, 8192)])),
            ])),
            locked_by_node_bytes: Some(ByNode::from([(8, 4096)])),
            coverage: Some(0.5),
            ..Placement::default()
        },
        remote_share: RemoteShare {
            value: Some(0.25),
            signal: Some(ShareSignal::Estimate),
            ..RemoteShare::default()
        },
        pinned: Pinned {
            reason: None,
            bytes: Some(1 << 20),
            locked_bytes: Some(4096),
            made: NodePages {
                pages: Some(300),
                by_node: Some(ByNode::from([(0, 256), (8, 44)])),
            },
        },
        driver_allocated_pages: NodePages {
            pages: Some(512),
            by_node: Some(ByNode::from([(8, 512)])),
        },
        policy: Some("bind:8".to_owned()),
        placing: Placing {
            cpus_allowed: Some(vec![1, 2, 3]),
            mems_allowed: Some(vec![8]),
            ..Placing::default()
        },
        verdict: Verdict::Mixed,
        findings: vec![finding()],
        findings_cleared: vec![cleared()],
        devices: vec![used("GPU0", Some(8)), used("GPU1", None)],
        ..unknown_process()
    }
}

fn snapshot(processes: Vec<Process>) -> Snapshot {
    Snapshot {
        schema_version: SCHEMA_VERSION,
        taken_at: Timestamp(UNIX_EPOCH),
        monotonic_ns: 0,
        host: Host::default(),
        topology: Topology::default(),
        signals: Vec::new(),
        coverage: Coverage::default(),
        processes,
        cgroups: Vec::new(),
        findings: Vec::new(),
        findings_cleared: Vec::new(),
    }
}

/// One that is known on both versions' kinds, and one that isn't.
fn cgroups() -> Vec<Cgroup> {
    let known = |path: &str, kind| Cgroup {
        path: path.to_owned(),
        memory_by_kind: Some(BTreeMap::from([(kind, ByNode::from([(0, 4096), (8, 0)]))])),
        ..Cgroup::default()
    };
    vec![
        Cgroup {
            path: "/".to_owned(),
            reason: Some("no memory.numa_stat".to_owned()),
            ..Cgroup::default()
        },
        known("/a", CgroupMemoryKind::Kernel),
        known("/b", CgroupMemoryKind::AnonymousAndShared),
    ]
}

fn points(name: &str, process: Process) -> Vec<Point> {
    let snapshot = snapshot(vec![process]);
    metric(name).unwrap().points(&snapshot, &snapshot.processes)
}

#[test]
fn what_is_not_known_has_no_point() {
    let snapshot = snapshot(vec![unknown_process()]);
    for metric in METRICS {
        let points = metric.points(&snapshot, &snapshot.processes);
        // That nothing can be concluded is a verdict too.
        if metric.name != "numawatch.process.verdict" {
            assert_eq!(points, [], "{}", metric.name);
        }
    }
}

#[test]
fn a_known_zero_is_a_point() {
    let mut process = unknown_process();
    process.migrations.pages = Some(0);
    let points = points("numawatch.process.page_migrations", process);
    assert_eq!(points.len(), 1);
    assert_eq!(points[0].value, Value::Integer(0));
}

#[test]
fn every_point_has_the_documented_attributes_values_and_number() {
    let mut snapshot = snapshot(vec![known_process()]);
    snapshot.topology = topology();
    snapshot.cgroups = cgroups();
    snapshot.host.agent = AgentCost {
        pid: 1,
        cpu_time_ns: Some(1),
        resident_bytes: Some(1),
        kernel_memory_bytes: Some(1),
        probes_time_ns: Some(1),
    };
    snapshot.host.lost = Lost {
        rows: Some(1),
        news: Some(1),
        events: Some(1),
        events_reason: None,
    };
    snapshot.findings.push(Finding {
        pid: None,
        ..finding()
    });
    for metric in METRICS {
        let points = metric.points(&snapshot, &snapshot.processes);
        assert!(!points.is_empty(), "{} has no point", metric.name);
        let mut documented: BTreeSet<&str> = metric.attributes.iter().map(|a| a.name).collect();
        if let Getter::Process(_) = metric.getter {
            documented.extend([PROCESS_PID, PROCESS_EXECUTABLE_NAME]);
        }
        for point in points {
            let names: Vec<&str> = point.attributes.iter().map(|(name, _)| *name).collect();
            assert!(names.is_sorted(), "{}: {names:?}", metric.name);
            assert_eq!(
                names.into_iter().collect::<BTreeSet<_>>(),
                documented,
                "{}",
                metric.name
            );
            let number = match point.value {
                Value::Integer(_) => Number::Integer,
                Value::Float(_) => Number::Float,
            };
            assert_eq!(number, metric.number, "{}", metric.name);
            for (name, value) in &point.attributes {
                let listed = metric.attributes.iter().find(|a| a.name == *name);
                if let (Some(listed), AttributeValue::Text(text)) = (listed, value) {
                    let any = listed.values.is_empty();
                    assert!(
                        any || listed.values.contains(&text.as_ref()),
                        "{} {name}={text}",
                        metric.name
                    );
                }
            }
        }
    }
}

#[test]
fn names_follow_opentelemetrys_rules() {
    let mut seen = BTreeSet::new();
    for metric in METRICS {
        let name = metric.name;
        assert!(seen.insert(name), "{name} is there twice");
        assert!(name.starts_with("numawatch."), "{name}");
        assert!(
            name.split('.').all(|part| {
                part.starts_with(|c: char| c.is_ascii_lowercase())
                    && !part.ends_with('_')
                    && !part.contains("__")
                    && part
                        .chars()
                        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
            }),
            "{name} is not dotted snake_case"
        );
        let words: Vec<&str> = name.split(['.', '_']).collect();
        for unit in ["total", "seconds", "bytes", "pages", "ratio"] {
            assert!(!words.contains(&unit), "{name} names {unit}");
        }
        let counts = metric.unit.starts_with('{');
        assert!(
            counts || ["s", "By", "1"].contains(&metric.unit),
            "{name}: {} is no base unit",
            metric.unit
        );
        assert!(!metric.unit.ends_with("s}"), "{name}: plural unit");
        assert_eq!(
            name.ends_with('s'),
            counts && metric.instrument == Instrument::Counter,
            "{name}: plural only for what a counter counts"
        );
        assert!(metric.description.ends_with('.'), "{name}");
    }
}

#[test]
fn docs_are_the_catalogue() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/metrics.md");
    if std::env::var_os("NUMAWATCH_WRITE_DOCS").is_some() {
        std::fs::write(path, to_markdown()).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == to_markdown(),
        "docs/metrics.md is not what the catalogue says; \
         type: NUMAWATCH_WRITE_DOCS=1 cargo test -p model catalogue"
    );
}
