//! How metrics are read from a snapshot: a point for each attribute's value, and none for what isn't known.

use super::{
    AttributeValue, FINDING_ID, FINDING_SEVERITY, LOCALITY, LOCALITY_UNKNOWN, MEMORY_CLASS,
    NODE_ID, Point, REMOTE_SHARE_SIGNAL, Value,
};
use crate::finding::{Cleared, Finding, Severity};
use crate::locality::Locality;
use crate::mapping::MemoryClass;
use crate::process::{ByNode, Placement, Process, TouchCounter};
use crate::verdict::ShareSignal;

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
        let mut points = by_node(Some(numbers), Value::Integer);
        for point in &mut points {
            let word = AttributeValue::Text(class.as_str().into());
            point.attributes.insert(0, (MEMORY_CLASS, word));
        }
        points
    };
    classes.flat_map(of_class).collect()
}

fn at(locality: &'static str, count: u64) -> Point {
    Point {
        attributes: vec![(LOCALITY, AttributeValue::Text(locality.into()))],
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
        attributes: vec![(REMOTE_SHARE_SIGNAL, AttributeValue::Text(signal.into()))],
        value: Value::Float(value),
    }]
}

/// 1 for each that is there, and 0 for what has cleared: a series that only ends would be shown on for minutes.
pub(super) fn findings(found: &[Finding], cleared: &[Cleared]) -> Vec<Point> {
    let point = |id: &String, severity: Severity, count| Point {
        attributes: vec![
            (FINDING_ID, AttributeValue::Text(id.clone().into())),
            (
                FINDING_SEVERITY,
                AttributeValue::Text(severity.as_str().into()),
            ),
        ],
        value: Value::Integer(count),
    };
    let found = found.iter().map(|f| point(&f.id, f.severity, 1));
    let cleared = cleared.iter().map(|c| point(&c.id, c.severity, 0));
    found.chain(cleared).collect()
}
