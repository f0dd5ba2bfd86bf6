//! Threads on the wrong node, or on no node for long.

use super::advice::forbidden;
use super::subject::{Home, Subject, named, percent, share, share_away};
use super::{Counters, SECONDS};
use crate::finding::{Confidence, Finding, Severity};
use crate::list;
use crate::policy::{Policy, PolicyMode};
use crate::process::ByNode;
use crate::signal::SignalName;
use crate::topology::NodeId;
use std::collections::BTreeSet;

pub(super) fn findings(subject: &Subject<'_>) -> Vec<Finding> {
    [
        away_from_memory(subject),
        wander(subject),
        workers(subject),
        workers_policy(subject),
        scan(subject),
        to_and_fro(subject),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn away_from_memory(subject: &Subject<'_>) -> Option<Finding> {
    let t = subject.view.thresholds;
    let memory = subject.memory()?;
    let time = subject.cpu_time()?;
    let (node, _) = memory.iter().max_by_key(|(_, bytes)| **bytes)?;
    // Memory without CPUs, such as CXL's or a GPU's, has threads near it at best.
    let near = subject.view.now.topology.nearest_with_cpus(*node)?;
    let there = BTreeSet::from([*node, near]);
    // Memory on several nodes has no place that threads could be away from.
    if share_away(memory, &there)? >= t.mixed_from {
        return None;
    }
    let away = share_away(&time, &there)?;
    let severity = subject.by_share(away)?;
    let summary = format!(
        "its memory is on {}, and its threads ran elsewhere for {} of their time",
        named(&there),
        percent(away)
    );
    let found = subject.finds("threads-away-from-memory", severity, summary);
    let found = found.by_node("CPU time", &time, SECONDS, "sched").number(
        format!("resident on node {node}"),
        memory[node] as f64,
        "By",
        subject.placement_source(),
    );
    let at_memory = Home::without_device(BTreeSet::from([near]), "its memory");
    // Threads belong near their GPU: then it is the memory that is in the wrong place.
    let found = match subject.device_home() {
        Some(home) if !home.nodes.contains(&near) => found.start_anew(subject, &home),
        _ if forbidden(subject, &at_memory).1 => {
            found.hint("its cgroup forbids those CPUs: widen its cpuset first")
        }
        _ => {
            let near = subject.view.now.topology.node(near)?;
            found.move_threads(subject, &near.cpus)
        }
    };
    Some(found.unless("the threads that compute are few, and rarely read memory"))
}

fn wander(subject: &Subject<'_>) -> Option<Finding> {
    let t = subject.view.thresholds;
    let rate = subject.rate(SignalName::Sched, |c| c.cross_socket_moves)?;
    if rate < t.moves_per_second {
        return None;
    }
    let time = subject.cpu_time()?;
    let topology = &subject.view.now.topology;
    // Coming back from a short visit elsewhere is no wandering.
    let most = time
        .keys()
        .filter_map(|node| topology.socket_of(*node))
        .filter_map(|socket| share(&time, |node| topology.socket_of(node) == Some(socket)));
    if most.fold(0.0, f64::max) > 1.0 - t.mixed_from {
        return None;
    }
    let summary = format!("its threads move between sockets {rate:.1} times a second");
    let found = subject
        .finds("threads-wander", Severity::Warn, summary)
        .number("moves between sockets", rate, "{move}/s", "sched");
    let most = |by_node: &ByNode| {
        by_node
            .iter()
            .max_by_key(|(_, n)| **n)
            .map(|(node, _)| *node)
    };
    let home = subject.home().or_else(|| {
        let node = subject.memory().and_then(most).or_else(|| most(&time))?;
        Some(Home::without_device(BTreeSet::from([node]), "most of it"))
    })?;
    Some(
        found
            .by_node("CPU time", &time, SECONDS, "sched")
            .start_anew(subject, &home)
            .unless("the process is meant to use the CPUs of both sockets"),
    )
}

fn workers(subject: &Subject<'_>) -> Option<Finding> {
    let topology = &subject.view.now.topology;
    let nodes_of = |cpus: &[u32]| -> BTreeSet<NodeId> {
        let nodes = cpus.iter().filter_map(|cpu| topology.node_of_cpu(*cpu));
        nodes.collect()
    };
    let own = subject.process.placing.cpus_allowed.as_ref()?;
    let may = nodes_of(own);
    let strays: Vec<_> = subject
        .process
        .threads
        .iter()
        .filter_map(|thread| Some((thread, thread.cpus_allowed.as_ref()?)))
        .filter(|(_, cpus)| !nodes_of(cpus).is_subset(&may))
        .collect();
    let (first, cpus) = strays.first()?;
    let summary = format!(
        "{} of its threads may run outside of the nodes that the process may: {} on {}",
        strays.len(),
        first.name,
        list::cpus(cpus)
    );
    let found = subject
        .finds("worker-affinity-differs", Severity::Warn, summary)
        .number(
            "such threads",
            strays.len() as f64,
            "{thread}",
            "/proc/PID/task/TID/status",
        );
    // Where its GPU is elsewhere it is the process that is in the wrong place.
    let wrong = subject
        .device_home()
        .filter(|home| home.nodes.is_disjoint(&may));
    Some(
        match wrong {
            Some(home) => found.start_anew(subject, &home),
            None => found.move_threads(subject, own),
        }
            .hint("have the engine's runtime set its thread pool's affinity: threads that it starts later do as it says")
            .unless("the engine places its threads itself, one a core, on purpose"),
    )
}

/// Threads inherit the policy of whoever starts them: those that were there before the bind go on without it.
fn workers_policy(subject: &Subject<'_>) -> Option<Finding> {
    let bound = subject.bound_to()?;
    let is_stray = |policy: &&Policy| {
        let binds = policy.mode == PolicyMode::Bind;
        !binds || !policy.nodes.iter().all(|node| bound.contains(node))
    };
    let threads = subject.process.threads.iter();
    let strays: Vec<_> = threads
        .filter_map(|thread| Some((thread, thread.policy.as_ref().filter(is_stray)?)))
        .collect();
    let (first, policy) = strays.first()?;
    let summary = format!(
        "it is bound to {}, and {} of its threads are not: {} has policy {policy}",
        named(&bound),
        strays.len(),
        first.name
    );
    let home = subject
        .device_home()
        .unwrap_or(Home::without_device(bound, "its policy"));
    Some(
        subject
            .finds("worker-policy-differs", Severity::Warn, summary)
            .number(
                "such threads",
                strays.len() as f64,
                "{thread}",
                "/proc/PID/task/TID/numa_maps",
            )
            .start_anew(subject, &home)
            .hint("bind before the first thread starts: threads inherit the policy of whoever starts them")
            .unless("these threads allocate little, or the engine gave them their policy on purpose"),
    )
}

fn scan(subject: &Subject<'_>) -> Option<Finding> {
    let scanned = subject.rate(SignalName::Scan, |c| c.scan_cpu_time_ns)?;
    let time: u64 = subject.cpu_time()?.values().sum();
    let elapsed = subject.elapsed_ns()? as f64 / 1e9;
    let share = scanned * elapsed / time as f64;
    if time == 0 || share < subject.view.thresholds.scan_share {
        return None;
    }
    let summary = format!(
        "NUMA balancing takes {} of its CPU time for scanning",
        percent(share)
    );
    Some(
        subject.finds("balancing-scan-is-dear",
            Severity::Warn,
            summary,
        )
        .number("scanning", share, "1", "scan")
        .advise(
            "echo 0 > /proc/sys/kernel/numa_balancing   # for the whole host, once memory is bound",
        )
        .unless("its memory is not bound, and balancing still brings it where it belongs"),
    )
}

fn to_and_fro(subject: &Subject<'_>) -> Option<Finding> {
    let moved = |counters: &Counters, pair: (NodeId, NodeId)| {
        let migrated = counters.migrated.as_ref()?;
        Some(migrated.get(&pair).copied().unwrap_or(0))
    };
    let rate_of = |pair| subject.rate(SignalName::Migration, |c| moved(c, pair));
    let there_and_back = subject
        .migrated()
        .filter(|(from, to)| from < to)
        .filter_map(|(from, to)| Some(rate_of((from, to))?.min(rate_of((to, from))?)));
    let rate: f64 = there_and_back.sum();
    if rate < subject.view.thresholds.to_and_fro_per_second {
        return None;
    }
    let summary = format!("NUMA balancing moves {rate:.0} pages a second to and fro between nodes");
    Some(
        subject.finds("pages-move-to-and-fro",
            Severity::Warn,
            summary,
        )
        .number("pages there and back", rate, "{page}/s", "migration")
        .sure(Confidence::Medium)
        .hint(
            "bind the process to one node, or its memory to the node of the threads that use it",
        )
        .unless("the load itself went from one node to the other meanwhile"),
    )
}
