//! How metrics are read from a snapshot: a point for each attribute's value, and none for what isn't known.

use super::{
    AttributeValue, CGROUP_PATH, DEVICE_SOURCE, FINDING_ID, FINDING_SEVERITY, HW_ID, HW_NAME,
    HW_TYPE, HW_VENDOR, LOCALITY, LOCALITY_UNKNOWN, MEMORY_CLASS, MEMORY_KIND, MEMORY_POLICY,
    NODE_ID, NODE_UNKNOWN, Point, REMOTE_SHARE_SIGNAL, VERDICT, Value,
};
use crate::cgroup::Cgroup;
use crate::devices::DeviceKind;
use crate::finding::{Cleared, Finding, Severity};
use crate::locality::Locality;
use crate::mapping::MemoryClass;
use crate::process::{ByNode, MemoryKind, Placement, Process, TouchCounter};
use crate::snapshot::Snapshot;
use crate::topology::{Node, NodeId, Topology};
use crate::verdict::{ShareSignal, Verdict};

pub(super) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

pub(super) fn one(value: Option<Value>) -> Vec<Point> {
    value
        .map(|value| Point {
            attributes: Vec::new(),
            value,
        })
        .into_iter()
        .collect()
}

pub(super) fn by_node(numbers: Option<&ByNode>, value: impl Fn(u64) -> Value) -> Vec<Point> {
    numbers
        .into_iter()
        .flatten()
        .map(|(node, number)| Point {
            attributes: vec![(NODE_ID, AttributeValue::Integer(*node))],
            value: value(*number),
        })
        .collect()
}

pub(super) fn by_class(placement: &Placement) -> Vec<Point> {
    let classes = placement.by_class.iter().flatten();
    let of_class = |(class, numbers): (&MemoryClass, &ByNode)| {
        by_word_and_node(MEMORY_CLASS, class.as_str(), numbers)
    };
    classes.flat_map(of_class).collect()
}

pub(super) fn by_kind(placement: &Placement) -> Vec<Point> {
    let kinds = placement.by_kind.iter().flatten();
    let of_kind = |(kind, numbers): (&MemoryKind, &ByNode)| {
        by_word_and_node(MEMORY_KIND, kind.as_str(), numbers)
    };
    kinds.flat_map(of_kind).collect()
}

/// Of each cgroup whose memory is known.
pub(super) fn cgroups(cgroups: &[Cgroup]) -> Vec<Point> {
    let mut points = Vec::new();
    for cgroup in cgroups {
        for (kind, numbers) in cgroup.memory_by_kind.iter().flatten() {
            for mut point in by_word_and_node(MEMORY_KIND, kind.as_str(), numbers) {
                let path = text(cgroup.path.clone());
                point.attributes.insert(0, (CGROUP_PATH, path));
                points.push(point);
            }
        }
    }
    points
}

fn by_word_and_node(name: &'static str, word: &'static str, numbers: &ByNode) -> Vec<Point> {
    let mut points = by_node(Some(numbers), Value::Integer);
    for point in &mut points {
        point.attributes.insert(0, (name, text(word)));
    }
    points
}

/// A point of each of the machine's nodes that has the number.
pub(super) fn each_node(
    topology: &Topology,
    number: impl Fn(&Node) -> Option<Value>,
) -> Vec<Point> {
    let point = |node: &Node| {
        Some(Point {
            attributes: vec![(NODE_ID, AttributeValue::Integer(node.id))],
            value: number(node)?,
        })
    };
    topology.nodes.iter().filter_map(point).collect()
}

/// How many CPUs of each node that has some; no point where it isn't known which it may use.
pub(super) fn cpus_allowed(snapshot: &Snapshot, process: &Process) -> Vec<Point> {
    let Some(allowed) = &process.placing.cpus_allowed else {
        return Vec::new();
    };
    each_node(&snapshot.topology, |node| {
        let here = node
            .cpus
            .iter()
            .filter(|cpu| allowed.binary_search(cpu).is_ok());
        (!node.cpus.is_empty()).then(|| Value::Integer(here.count() as u64))
    })
}

/// 1 of each node on which it may allocate, and 0 of the others.
pub(super) fn memory_allowed(snapshot: &Snapshot, process: &Process) -> Vec<Point> {
    let Some(allowed) = &process.placing.mems_allowed else {
        return Vec::new();
    };
    each_node(&snapshot.topology, |node| {
        Some(Value::Integer(u64::from(allowed.contains(&node.id))))
    })
}

fn text(word: impl Into<std::borrow::Cow<'static, str>>) -> AttributeValue {
    AttributeValue::Text(word.into())
}

fn device_node(node: Option<NodeId>) -> AttributeValue {
    node.map_or_else(|| text(NODE_UNKNOWN), AttributeValue::Integer)
}

/// OpenTelemetry's word.
fn hw_type(kind: DeviceKind) -> AttributeValue {
    text(match kind {
        DeviceKind::Gpu => "gpu",
        DeviceKind::Accelerator => "accelerator",
        DeviceKind::Nic => "network",
    })
}

/// 1 of each of the machine's devices.
pub(super) fn devices(topology: &Topology) -> Vec<Point> {
    let devices = topology.devices.iter().map(|device| Point {
        attributes: vec![
            (HW_ID, text(device.address.clone())),
            (HW_NAME, text(device.label.clone())),
            (HW_TYPE, hw_type(device.kind)),
            (HW_VENDOR, text(device.vendor.clone())),
            (NODE_ID, device_node(device.node)),
        ],
        value: Value::Integer(1),
    });
    devices.collect()
}

/// 1 of each device that it uses.
pub(super) fn devices_used(process: &Process) -> Vec<Point> {
    let used = process.devices.iter().map(|used| Point {
        attributes: vec![
            (HW_ID, text(used.address.clone())),
            (HW_NAME, text(used.label.clone())),
            (HW_TYPE, hw_type(used.kind)),
            (DEVICE_SOURCE, text(used.source.as_str())),
            (NODE_ID, device_node(used.node)),
        ],
        value: Value::Integer(1),
    });
    used.collect()
}

pub(super) fn policy(process: &Process) -> Vec<Point> {
    let policy = process.policy.iter().map(|policy| Point {
        attributes: vec![(MEMORY_POLICY, text(policy.clone()))],
        value: Value::Integer(1),
    });
    policy.collect()
}

/// 1 of its verdict, and 0 of the others, so that no series ends where the verdict changes.
pub(super) fn verdict(process: &Process) -> Vec<Point> {
    let point = |verdict: Verdict| Point {
        attributes: vec![(VERDICT, text(verdict.as_str()))],
        value: Value::Integer(u64::from(verdict == process.verdict)),
    };
    Verdict::ALL.map(point).into()
}

fn at(locality: &'static str, count: u64) -> Point {
    Point {
        attributes: vec![(LOCALITY, text(locality))],
        value: Value::Integer(count),
    }
}

/// A point a known locality. Where a mechanism tells only the sum, all of it is of unknown locality.
pub(super) fn touches(counter: &TouchCounter) -> Vec<Point> {
    let known = [
        (Locality::Local, counter.local_pages),
        (Locality::SameSocket, counter.same_socket_pages),
        (Locality::CrossSocket, counter.cross_socket_pages),
    ];
    let sum: u64 = known.iter().filter_map(|(_, pages)| *pages).sum();
    let unknown = counter
        .unknown_node_pages
        .or_else(|| counter.pages.and_then(|pages| pages.checked_sub(sum)));
    known
        .into_iter()
        .filter_map(|(locality, pages)| Some(at(locality.as_str(), pages?)))
        .chain(unknown.map(|pages| at(LOCALITY_UNKNOWN, pages)))
        .collect()
}

pub(super) fn moves(process: &Process) -> Vec<Point> {
    let moves = &process.moves;
    match (moves.total, moves.cross_socket) {
        (Some(total), Some(cross)) => vec![
            at(Locality::SameSocket.as_str(), total.saturating_sub(cross)),
            at(Locality::CrossSocket.as_str(), cross),
        ],
        (Some(total), None) => vec![at(LOCALITY_UNKNOWN, total)],
        (None, Some(cross)) => vec![at(Locality::CrossSocket.as_str(), cross)],
        (None, None) => Vec::new(),
    }
}

pub(super) fn remote_share(process: &Process) -> Vec<Point> {
    let share = &process.remote_share;
    let (Some(value), Some(signal)) = (share.value, share.signal) else {
        return Vec::new();
    };
    let signal = match signal {
        ShareSignal::Hint => "hint",
        ShareSignal::Estimate => "estimate",
    };
    vec![Point {
        attributes: vec![(REMOTE_SHARE_SIGNAL, text(signal))],
        value: Value::Float(value),
    }]
}

/// 1 for each that is there, and 0 for what has cleared: a series that only ends would be shown on for minutes.
pub(super) fn findings(found: &[Finding], cleared: &[Cleared]) -> Vec<Point> {
    let point = |id: &String, severity: Severity, count| Point {
        attributes: vec![
            (FINDING_ID, text(id.clone())),
            (FINDING_SEVERITY, text(severity.as_str())),
        ],
        value: Value::Integer(count),
    };
    let found = found.iter().map(|f| point(&f.id, f.severity, 1));
    let cleared = cleared.iter().map(|c| point(&c.id, c.severity, 0));
    found.chain(cleared).collect()
}
