//! What is wrong with the machine, or between processes.

use super::subject::{Home, Subject, share};
use super::{View, finding};
use crate::finding::{Confidence, Finding, Severity};
use crate::process::Process;
use crate::topology::NodeId;
use std::collections::BTreeSet;

pub(super) fn findings(view: &View<'_>) -> Vec<Finding> {
    let mut all = replicas(view);
    all.extend(hidden(view));
    all
}

/// Two servers of one engine at work on one node, while another node with CPUs idles.
fn replicas(view: &View<'_>) -> Vec<Finding> {
    let t = view.thresholds;
    let busy: Vec<(&Process, NodeId)> = view
        .now
        .processes
        .iter()
        .filter(|p| p.alive && p.engine.is_some())
        .filter_map(|process| {
            let subject = Subject::new(view, process);
            // Beside its device it is where it should be.
            if subject.device_home().is_some() {
                return None;
            }
            let time = subject.cpu_time()?;
            let (node, _) = time.iter().max_by_key(|(_, ns)| **ns)?;
            let most = share(&time, |n| n == *node)? > 1.0 - t.mixed_from;
            let ns: u64 = time.values().sum();
            let cpus = ns as f64 / subject.elapsed_ns()? as f64;
            (most && cpus >= t.busy_share).then_some((process, *node))
        })
        .collect();
    let idle = view.now.topology.nodes.iter().find(|n| {
        !n.cpus.is_empty()
            && n.cpu_busy.is_some_and(|busy| busy < t.busy_share / 2.0)
            && !busy.iter().any(|(_, node)| *node == n.id)
    });
    let Some(idle) = idle else {
        return Vec::new();
    };
    let home = Home::without_device(BTreeSet::from([idle.id]), "an idle node");
    let mut found = Vec::new();
    for (i, (process, node)) in busy.iter().enumerate() {
        let first = busy[..i].iter().find(|(other, n)| {
            n == node
                && other.engine == process.engine
                && first_of(view, other) != first_of(view, process)
        });
        let Some((first, _)) = first else { continue };
        let summary = format!(
            "it and process {} compute on node {node}, while node {} idles",
            first.pid, idle.id
        );
        found.push(
            finding(
                "replicas-share-a-node",
                Some(process.pid),
                Severity::Warn,
                summary,
            )
            .number(
                format!("busy, node {}", idle.id),
                idle.cpu_busy.unwrap_or(0.0),
                "1",
                "/proc/stat",
            )
            .sure(Confidence::Medium)
            .start_anew(&Subject::new(view, process), &home)
            .unless("they use devices of that node, or one of them has nothing to do"),
        );
    }
    found
}

/// The watched process that a process descends from, or itself: what has the same one is one engine's, and no replica.
fn first_of<'a>(view: &View<'a>, process: &'a Process) -> u32 {
    let mut first = process;
    // A snapshot's processes are no cycle; should they be, the walk ends.
    for _ in 0..view.now.processes.len() {
        let parent = view
            .now
            .processes
            .iter()
            .find(|p| Some(p.pid) == first.parent_pid);
        match parent {
            Some(parent) => first = parent,
            None => break,
        }
    }
    first.pid
}

fn hidden(view: &View<'_>) -> Option<Finding> {
    let host = &view.now.host;
    let hypervisor = host.hypervisor.as_deref().filter(|_| host.may_hide_nodes)?;
    let summary = format!(
        "this guest of {hypervisor} has one node; its host may have more, and nothing here can tell"
    );
    Some(
        finding("topology-is-hidden", None, Severity::Info, summary)
            .sure(Confidence::Low)
            .hint("on the host: numactl --hardware; give the guest its nodes (libvirt <numa><cell …/></numa>, QEMU -numa node), or pin its vCPUs and memory to one")
            .unless("the guest's vCPUs and memory are on one node of the host already"),
    )
}
