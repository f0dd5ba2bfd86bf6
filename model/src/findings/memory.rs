//! Memory on the wrong node: all of it, the weights, and what can't move.

use super::BYTES;
use super::subject::{Home, PAGE, Subject, named, percent, share_away};
use crate::finding::{Confidence, Finding, Severity};
use crate::mapping::MemoryClass;
use crate::process::ByNode;
use crate::signal::SignalName;
use crate::topology::NodeId;
use std::cmp::Reverse;
use std::collections::BTreeSet;

pub(super) fn findings(subject: &Subject<'_>) -> Vec<Finding> {
    [
        away_from_gpu(subject),
        weights(subject),
        pinned(subject),
        driver(subject),
        locked(subject),
        gpus_span_sockets(subject),
        buys_little(subject),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn away_from_gpu(subject: &Subject<'_>) -> Option<Finding> {
    let home = subject.device_home()?;
    let memory = subject.memory()?;
    let away = share_away(memory, &home.nodes)?;
    let severity = subject.by_share(away)?;
    let summary = format!(
        "{} of its memory is away from {} on {}",
        percent(away),
        home.because,
        named(&home.nodes)
    );
    let found = subject.finds("memory-away-from-gpu", severity, summary);
    Some(
        found.by_node("resident", memory, BYTES, subject.placement_source())
            .start_anew(subject, &home)
            .move_as_it_runs(subject, &home, memory)
            .unless("what the GPU reads lies elsewhere than most of the memory, or all of it is in the GPU's own memory"),
    )
}

fn weights(subject: &Subject<'_>) -> Option<Finding> {
    let weights = subject
        .process
        .placement
        .by_class
        .as_ref()?
        .get(&MemoryClass::Weights)?;
    let home = subject.home()?;
    if !subject.trusts_placement() || !subject.is_evidence(weights) {
        return None;
    }
    let away = share_away(weights, &home.nodes)?;
    let severity = subject.by_share(away)?;
    let files = files_away(subject, &home);
    let names = match files.as_slice() {
        [] => String::new(),
        [(file, _)] => format!(": {file}"),
        [(file, _), others @ ..] => format!(": {file} and {} more", others.len()),
    };
    let summary = format!(
        "{} of its weights lie in the page cache away from {} on {}{names}",
        percent(away),
        home.because,
        named(&home.nodes)
    );
    let source = subject.placement_source();
    let mut found = subject
        .finds("weights-in-remote-page-cache", severity, summary)
        .by_node("weights", weights, BYTES, source);
    for (file, by_node) in files.into_iter().take(FILES_AS_EVIDENCE) {
        found = found.by_node(file, by_node, BYTES, source);
    }
    Some(
        found
            .advise("sync; echo 1 > /proc/sys/vm/drop_caches   # once all that map them are stopped: mapped pages stay")
            .start_anew(subject, &home)
            .unless("the weights are copied to GPU memory once and not read from the host again"),
    )
}

/// Files of weights that a finding gives numbers of; each may be dropped from the page cache.
const FILES_AS_EVIDENCE: usize = 3;

/// Files of weights with memory away from home, the one with most of it first.
fn files_away<'a>(subject: &Subject<'a>, home: &Home) -> Vec<(&'a str, &'a ByNode)> {
    let away = |by_node: &ByNode| {
        let away = by_node
            .iter()
            .filter(|(node, _)| !home.nodes.contains(node));
        away.map(|(_, bytes)| *bytes).sum::<u64>()
    };
    let files = subject.process.placement.weights_by_file.iter().flatten();
    let mut files: Vec<(&str, &ByNode)> = files
        .map(|(file, by_node)| (file.as_str(), by_node))
        .filter(|(_, by_node)| away(by_node) > 0)
        .collect();
    files.sort_by_key(|(_, by_node)| Reverse(away(by_node)));
    files
}

fn pinned(subject: &Subject<'_>) -> Option<Finding> {
    let made = subject.process.pinned.made.by_node.as_ref()?;
    let bytes = bytes(made);
    if !subject.trusts(SignalName::Pin) || !subject.is_evidence(&bytes) {
        return None;
    }
    // Pins outside the nodes that it is bound to were made before it was bound.
    if let Some(bound) = subject.bound_to() {
        let away = share_away(&bytes, &bound)?;
        if let Some(severity) = subject.by_share(away) {
            let summary = format!(
                "{} of the memory that it pinned is not on {}, to which it is bound: taken before the bind or under another policy, and it cannot move",
                percent(away),
                named(&bound)
            );
            let found = subject.finds("pinned-before-bind", severity, summary);
            return Some(
                found.by_node("pinned", &bytes, BYTES, "pin")
                    .sure(Confidence::Medium)
                    .hint("bind before the process starts: numawatch launch, or numactl --membind, instead of binding from within")
                    .unless("those buffers are not used for transfers any more: unpinning is not seen"),
            );
        }
    }
    let home = subject.device_home()?;
    let away = share_away(&bytes, &home.nodes)?;
    let severity = subject.by_share(away)?;
    let summary = format!(
        "{} of the memory that it pinned is away from {} on {}, and cannot move",
        percent(away),
        home.because,
        named(&home.nodes)
    );
    let found = subject.finds("pinned-on-wrong-node", severity, summary);
    Some(
        found
            .by_node("pinned", &bytes, BYTES, "pin")
            .start_anew(subject, &home)
            .unless("those buffers serve another device, or were unpinned since: that is not seen"),
    )
}

fn driver(subject: &Subject<'_>) -> Option<Finding> {
    let bytes = bytes(subject.process.driver_allocated_pages.by_node.as_ref()?);
    let home = subject.device_home()?;
    if !subject.trusts(SignalName::DriverAlloc) || !subject.is_evidence(&bytes) {
        return None;
    }
    let away = share_away(&bytes, &home.nodes)?;
    subject.by_share(away)?;
    let summary = format!(
        "{} of what the driver allocated for it is away from {} on {}, and cannot move",
        percent(away),
        home.because,
        named(&home.nodes)
    );
    let found = subject.finds("driver-memory-on-wrong-node", Severity::Warn, summary);
    Some(
        found
            .by_node("allocated by the driver", &bytes, BYTES, "driver_alloc")
            .sure(Confidence::Medium)
            .start_anew(subject, &home)
            .unless("it was freed since: this is a flow, not what is there now"),
    )
}

fn locked(subject: &Subject<'_>) -> Option<Finding> {
    let locked = subject.process.pinned.locked_bytes?;
    let home = subject.device_home()?;
    let sampled = subject.process.placement.locked_by_node_bytes.as_ref();
    let found = match sampled.filter(|_| subject.trusts(SignalName::Placement)) {
        Some(by_node) => locked_by_sample(subject, &home, by_node)?,
        None => locked_at_least(subject, &home, locked)?,
    };
    Some(
        found
            .number("locked", locked as f64, "By", "/proc/PID/status VmLck")
            .start_anew(subject, &home)
            .unless("NUMA balancing is moving it there, or it is not what the GPU reads"),
    )
}

fn locked_by_sample(subject: &Subject<'_>, home: &Home, by_node: &ByNode) -> Option<Finding> {
    let away = share_away(by_node, &home.nodes)?;
    let severity = subject.by_share(away)?;
    if !subject.is_evidence(by_node) {
        return None;
    }
    let summary = format!(
        "{} of its locked memory is away from {} on {}",
        percent(away),
        home.because,
        named(&home.nodes)
    );
    let found = subject.finds("locked-on-wrong-node", severity, summary);
    let found = found.by_node("locked", by_node, BYTES, "kpageflags, move_pages");
    Some(found.sure(Confidence::Medium))
}

/// Where it isn't told which pages are locked it is sure only if more is locked than lies where it should.
fn locked_at_least(subject: &Subject<'_>, home: &Home, locked: u64) -> Option<Finding> {
    let memory = subject.memory()?;
    let total: u64 = memory.values().sum();
    let away = share_away(memory, &home.nodes)?;
    let at_home = (1.0 - away) * total as f64;
    // What is locked need not be resident.
    let locked = locked.min(total);
    let surely_away = locked as f64 - at_home;
    if surely_away / (PAGE as f64) < subject.view.thresholds.evidence_pages as f64 {
        return None;
    }
    let summary = format!(
        "at least {} of its locked memory is away from {} on {}",
        percent(surely_away / locked as f64),
        home.because,
        named(&home.nodes)
    );
    let found = subject.finds("locked-on-wrong-node", Severity::Warn, summary);
    Some(
        found
            .by_node("resident", memory, BYTES, subject.placement_source())
            .sure(Confidence::Medium),
    )
}

/// Devices of several sockets that one process uses, or that an engine's workers use together: told of their server.
fn gpus_span_sockets(subject: &Subject<'_>) -> Option<Finding> {
    if subject.server().pid != subject.pid() {
        return None;
    }
    let topology = &subject.view.now.topology;
    let all = subject.view.now.processes.iter().filter(|p| p.alive);
    let together = all.map(|p| Subject::new(subject.view, p));
    let homes: Vec<Home> = together
        .filter(|other| other.server().pid == subject.pid())
        .filter_map(|other| other.device_home())
        .collect();
    let nodes: BTreeSet<NodeId> = homes.iter().flat_map(|h| h.nodes.iter().copied()).collect();
    let sockets: BTreeSet<u32> = nodes
        .iter()
        .filter_map(|node| topology.socket_of(*node))
        .collect();
    if sockets.len() < 2 {
        return None;
    }
    let labels: BTreeSet<&str> = homes.iter().flat_map(|h| h.because.split(", ")).collect();
    let labels: Vec<&str> = labels.into_iter().collect();
    let whose = if homes.len() > 1 {
        "its workers' devices"
    } else {
        "its devices"
    };
    let summary = format!(
        "{whose} {} are on {} sockets",
        labels.join(", "),
        sockets.len()
    );
    Some(
        subject.finds("gpus-span-sockets", Severity::Warn, summary)
            .number("sockets of its devices", sockets.len() as f64, "1", "numa_node")
            .sure(Confidence::Medium)
            .advise("numawatch topo   # which devices are on one socket")
            .hint("give it devices of one socket: CUDA_VISIBLE_DEVICES")
            .hint("with tensor parallelism every layer makes two all-reduces a token, and each crosses the sockets: 4 x layers x hidden size x bytes a value, per token and link")
            .unless("the devices have NVLink between them, the workers are replicas, or the model does not fit the devices of one socket"),
    )
}

fn buys_little(subject: &Subject<'_>) -> Option<Finding> {
    let view = subject.view;
    // Nothing can be said of what binding would buy where it is bound: what was near may be so because of it.
    if view.now.topology.nodes.len() < 2 || subject.bound_to().is_some() || subject.is_confined() {
        return None;
    }
    let remote = subject.process.remote_share.value?;
    let pages = subject.process.remote_share.pages?;
    let resident: u64 = subject.memory()?.values().sum();
    let fits = view.cache_bytes.filter(|cache| resident <= *cache);
    let away = subject
        .device_home()
        .and_then(|home| share_away(subject.memory()?, &home.nodes));
    let near = remote < view.thresholds.mixed_from
        && pages >= view.thresholds.evidence_pages
        && away.is_none_or(|away| away < view.thresholds.mixed_from);
    let why = match (near, fits) {
        (_, Some(_)) => "all of its memory fits the cache".to_owned(),
        (true, None) => format!("{} of its memory traffic is remote", percent(remote)),
        (false, None) => return None,
    };
    let summary = format!("pinning would buy little here: {why}");
    let mut found = subject
        .finds("pinning-buys-little", Severity::Info, summary)
        .number("remote share", remote, "1", "remote_share")
        .number(
            "resident",
            resident as f64,
            "By",
            subject.placement_source(),
        )
        .sure(Confidence::Medium);
    if let Some(cache) = fits {
        found = found.number("cache", cache as f64, "By", "/sys/devices/system/cpu");
    }
    Some(found.unless("the load was not a usual one while it was watched"))
}

fn bytes(pages: &ByNode) -> ByNode {
    pages.iter().map(|(node, n)| (*node, n * PAGE)).collect()
}
