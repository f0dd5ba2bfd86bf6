//! The catalogue's rules: names, sums, no point for what isn't known, and the document.

use super::*;
use crate::finding::{Cleared, Confidence, Finding, Severity};
use crate::mapping::MemoryClass;
use crate::policy::Placing;
use crate::process::{
    ByNode, HintCounter, Migrations, Moves, NodePages, Pinned, Placement, TouchCounter, Touches,
};
use crate::snapshot::{AgentCost, Coverage, Host, Lost, SCHEMA_VERSION};
use crate::time::Timestamp;
use crate::topology::Topology;
use crate::verdict::{RemoteShare, ShareSignal, Verdict};
use std::collections::{BTreeMap, BTreeSet};
use std::time::UNIX_EPOCH;

fn unknown_process() -> Process {
    Process {
        pid: 42,
        start_time: 7,
        tracked_since: Timestamp(UNIX_EPOCH),
        parent_pid: None,
        name: "llama-server".into(),
        executable: None,
        command: "llama-server -m model.gguf".into(),
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
            coverage: Some(0.5),
            ..Placement::default()
        },
        remote_share: RemoteShare {
            value: Some(0.25),
            signal: Some(ShareSignal::Estimate),
            ..RemoteShare::default()
        },
        pinned: Pinned {
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
        findings: vec![finding()],
        findings_cleared: vec![cleared()],
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
        findings: Vec::new(),
        findings_cleared: Vec::new(),
    }
}

fn points(name: &str, process: Process) -> Vec<Point> {
    let snapshot = snapshot(vec![process]);
    metric(name).unwrap().points(&snapshot, &snapshot.processes)
}

/// A point's value by one attribute's value, both as text.
fn by(attribute: &str, points: &[Point]) -> Vec<(String, Value)> {
    points
        .iter()
        .map(|point| {
            let (_, value) = point
                .attributes
                .iter()
                .find(|(name, _)| *name == attribute)
                .unwrap();
            let word = match value {
                AttributeValue::Integer(id) => id.to_string(),
                AttributeValue::Text(text) => text.to_string(),
            };
            (word, point.value)
        })
        .collect()
}

fn integers(pairs: &[(&str, u64)]) -> Vec<(String, Value)> {
    pairs
        .iter()
        .map(|(word, n)| ((*word).to_owned(), Value::Integer(*n)))
        .collect()
}

#[test]
fn what_is_not_known_has_no_point() {
    let snapshot = snapshot(vec![unknown_process()]);
    for metric in METRICS {
        assert_eq!(
            metric.points(&snapshot, &snapshot.processes),
            [],
            "{}",
            metric.name
        );
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
                    assert!(
                        listed.values.contains(&text.as_ref()),
                        "{} {name}={text}",
                        metric.name
                    );
                }
            }
        }
    }
}

#[test]
fn localities_add_up_to_all_pages() {
    for name in [
        "numawatch.process.first_touches",
        "numawatch.process.maps",
        "numawatch.process.hint_touches",
    ] {
        assert_eq!(
            by(LOCALITY, &points(name, known_process())),
            integers(&[
                ("local", 50),
                ("same-socket", 0),
                ("cross-socket", 30),
                ("unknown", 20)
            ]),
            "{name}"
        );
    }
}

#[test]
fn pages_without_a_node_are_of_unknown_locality() {
    let mut process = unknown_process();
    process.touches.map.pages = Some(100);
    assert_eq!(
        by(LOCALITY, &points("numawatch.process.maps", process)),
        integers(&[("unknown", 100)])
    );
}

#[test]
fn moves_within_and_across_sockets_add_up_to_all_moves() {
    for (total, cross, want) in [
        (
            Some(10),
            Some(4),
            &[("same-socket", 6), ("cross-socket", 4)][..],
        ),
        (Some(10), None, &[("unknown", 10)]),
        (None, Some(4), &[("cross-socket", 4)]),
        (None, None, &[]),
    ] {
        let mut process = unknown_process();
        process.moves.total = total;
        process.moves.cross_socket = cross;
        let points = points("numawatch.process.thread_moves", process);
        assert_eq!(by(LOCALITY, &points), integers(want), "{total:?} {cross:?}");
    }
}

#[test]
fn numbers_by_node_carry_the_kernels_ids_and_base_units() {
    assert_eq!(
        by(
            NODE_ID,
            &points("numawatch.process.cpu.time", known_process())
        ),
        [
            ("0".to_owned(), Value::Float(1.5)),
            ("8".to_owned(), Value::Float(0.0))
        ]
    );
    assert_eq!(
        by(
            NODE_ID,
            &points("numawatch.process.memory.usage", known_process())
        ),
        integers(&[("0", 4096), ("8", 8192)])
    );
}

#[test]
fn memory_is_told_by_what_it_holds_and_how_sure_it_is() {
    let class = points("numawatch.process.memory.class.usage", known_process());
    assert_eq!(
        by(MEMORY_CLASS, &class),
        integers(&[("weights", 8192), ("heap", 4096)])
    );
    assert_eq!(by(NODE_ID, &class), integers(&[("8", 8192), ("0", 4096)]));
    let margin = points("numawatch.process.memory.margin", known_process());
    assert_eq!(by(NODE_ID, &margin), integers(&[("0", 0), ("8", 4096)]));
    let coverage = points("numawatch.process.memory.coverage", known_process());
    assert_eq!(coverage[0].value, Value::Float(0.5));
}

#[test]
fn a_finding_is_one_and_what_has_cleared_is_zero() {
    let count = points("numawatch.process.finding.count", known_process());
    let id = "memory-away-from-gpu";
    assert_eq!(by(FINDING_ID, &count), integers(&[(id, 1), (id, 0)]));
    assert_eq!(
        by(FINDING_SEVERITY, &count),
        integers(&[("fail", 1), ("warn", 0)])
    );
}

#[test]
fn the_machine_s_findings_are_its_own() {
    let mut snapshot = snapshot(vec![known_process()]);
    let count = metric("numawatch.host.finding.count").unwrap();
    assert_eq!(count.points(&snapshot, &snapshot.processes), []);
    snapshot.findings_cleared.push(Cleared {
        id: "topology-is-hidden".to_owned(),
        severity: Severity::Info,
    });
    assert_eq!(
        by(FINDING_ID, &count.points(&snapshot, &snapshot.processes)),
        integers(&[("topology-is-hidden", 0)])
    );
}

#[test]
fn memory_that_cannot_move_is_told_by_node() {
    let of = |name| points(name, known_process());
    assert_eq!(
        by(NODE_ID, &of("numawatch.process.pins")),
        integers(&[("0", 256), ("8", 44)])
    );
    assert_eq!(
        by(NODE_ID, &of("numawatch.process.driver_allocations")),
        integers(&[("8", 512)])
    );
    let pinned = of("numawatch.process.pinned.usage");
    assert_eq!(pinned[0].value, Value::Integer(1 << 20));
    let locked = of("numawatch.process.locked.usage");
    assert_eq!(locked[0].value, Value::Integer(4096));
}

#[test]
fn an_estimate_says_so() {
    assert_eq!(
        by(
            REMOTE_SHARE_SIGNAL,
            &points("numawatch.process.remote_share", known_process())
        ),
        [("estimate".to_owned(), Value::Float(0.25))]
    );
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
