//! Which points a metric has: by which attributes, and what they add up to.

use super::*;

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
fn a_gpu_is_told_with_its_node_and_an_unknown_node_is_not_zero() {
    let used = points("numawatch.process.device.count", known_process());
    assert_eq!(by(HW_NAME, &used), integers(&[("GPU0", 1), ("GPU1", 1)]));
    assert_eq!(by(NODE_ID, &used), integers(&[("8", 1), ("unknown", 1)]));
    let id = by(HW_ID, &used).swap_remove(0).0;
    assert_eq!(id, "0000:3b:00.0");
    assert_eq!(by(DEVICE_SOURCE, &used)[0].0, "open_files");
}

#[test]
fn the_machine_s_devices_and_nodes_are_told() {
    let mut snapshot = snapshot(Vec::new());
    snapshot.topology = topology();
    let of = |name| metric(name).unwrap().points(&snapshot, []);
    let devices = of("numawatch.host.device.count");
    assert_eq!(by(HW_TYPE, &devices), integers(&[("network", 1)]));
    assert_eq!(by(NODE_ID, &devices), integers(&[("unknown", 1)]));
    let (all, free) = (1 << 30, 1 << 20);
    assert_eq!(
        by(NODE_ID, &of("numawatch.host.memory.limit")),
        integers(&[("0", all), ("8", all), ("9", all)])
    );
    assert_eq!(
        by(NODE_ID, &of("numawatch.host.memory.free")),
        integers(&[("0", free), ("8", free), ("9", free)])
    );
    let busy = of("numawatch.host.cpu.utilization");
    assert_eq!(busy[0].value, Value::Float(0.25));
}

#[test]
fn what_a_process_may_use_is_told_by_node() {
    let mut snapshot = snapshot(vec![known_process()]);
    snapshot.topology = topology();
    let of = |name| metric(name).unwrap().points(&snapshot, &snapshot.processes);
    assert_eq!(
        by(NODE_ID, &of("numawatch.process.cpu.allowed")),
        integers(&[("0", 1), ("8", 2)]),
        "a node without CPUs has none to allow"
    );
    assert_eq!(
        by(NODE_ID, &of("numawatch.process.memory.allowed")),
        integers(&[("0", 0), ("8", 1), ("9", 0)])
    );
    assert_eq!(
        by(MEMORY_POLICY, &of("numawatch.process.policy")),
        integers(&[("bind:8", 1)])
    );
}

#[test]
fn a_verdict_is_one_and_the_others_are_zero() {
    let verdict = points("numawatch.process.verdict", known_process());
    assert_eq!(
        by(VERDICT, &verdict),
        integers(&[("local", 0), ("mixed", 1), ("remote", 0), ("unknown", 0)])
    );
    let unknown = points("numawatch.process.verdict", unknown_process());
    assert_eq!(
        by(VERDICT, &unknown)[3],
        ("unknown".to_owned(), Value::Integer(1))
    );
}

#[test]
fn memory_is_told_by_kind_and_what_is_locked_by_node() {
    let kind = points("numawatch.process.memory.kind.usage", known_process());
    assert_eq!(
        by(MEMORY_KIND, &kind),
        integers(&[("anonymous", 4096), ("file", 8192)])
    );
    assert_eq!(by(NODE_ID, &kind), integers(&[("0", 4096), ("8", 8192)]));
    let locked = points("numawatch.process.locked.node.usage", known_process());
    assert_eq!(by(NODE_ID, &locked), integers(&[("8", 4096)]));
}

#[test]
fn words_are_those_of_the_document() {
    for kind in [
        MemoryKind::Anonymous,
        MemoryKind::File,
        MemoryKind::Shared,
        MemoryKind::Huge,
    ] {
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
    }
    for source in [
        DeviceUseSource::Nvml,
        DeviceUseSource::OpenFiles,
        DeviceUseSource::Environment,
    ] {
        assert_eq!(serde_json::to_value(source).unwrap(), source.as_str());
    }
    for verdict in Verdict::ALL {
        assert_eq!(serde_json::to_value(verdict).unwrap(), verdict.as_str());
    }
}

#[test]
fn a_cgroup_has_a_point_a_kind_and_node_where_it_is_known() {
    let mut snapshot = snapshot(Vec::new());
    snapshot.cgroups = cgroups();
    let points = metric("numawatch.cgroup.memory.usage")
        .unwrap()
        .points(&snapshot, []);
    assert_eq!(
        by(CGROUP_PATH, &points),
        integers(&[("/a", 4096), ("/a", 0), ("/b", 4096), ("/b", 0)])
    );
    assert_eq!(
        by(MEMORY_KIND, &points[1..3]),
        integers(&[("kernel", 0), ("anonymous_and_shared", 4096)])
    );
}
