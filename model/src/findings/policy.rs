//! Policies and cgroups that put memory elsewhere than it should be.

use super::BYTES;
use super::advice::{AS_IT_RUNS, forbidden};
use super::subject::{Home, Subject, list, named, percent, share_away};
use crate::finding::{Confidence, Finding, Severity};
use crate::policy::{OwnPolicy, PolicyMode};
use crate::process::ByNode;
use crate::size;
use crate::topology::NodeId;

pub(super) fn findings(subject: &Subject<'_>) -> Vec<Finding> {
    [
        is_a_hint(subject),
        wrong_node(subject),
        late_bind(subject),
        own_policies(subject),
        cpuset(subject),
        node_is_full(subject),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn is_a_hint(subject: &Subject<'_>) -> Option<Finding> {
    let placing = &subject.process.placing;
    // A cpuset of one node binds as a policy does.
    if placing
        .mems_allowed
        .as_ref()
        .is_some_and(|mems| mems.len() == 1)
    {
        return None;
    }
    let policy = placing.policy.as_ref()?;
    let (word, severity) = match policy.mode {
        PolicyMode::Preferred | PolicyMode::PreferredMany => ("preferred", Severity::Warn),
        PolicyMode::Default | PolicyMode::Local => {
            // Where its CPUs are bound to some of the nodes, its memory was meant to be there too.
            let confined = subject.cpus_confined_to()?;
            let away = share_away(subject.memory()?, &confined)?;
            let much = away >= subject.view.thresholds.mixed_from;
            (
                "default",
                if much { Severity::Warn } else { Severity::Info },
            )
        }
        _ => return None,
    };
    let summary = format!(
        "its memory policy is {word}: a hint that the kernel leaves when the node is full; bind fails loudly instead"
    );
    let home = subject.home();
    let found = subject
        .finds("policy-is-a-hint", severity, summary)
        .sure(Confidence::Medium)
        .unless("running on with remote memory is better for you than not starting");
    Some(match home {
        Some(home) => found.start_anew(subject, &home),
        None => found,
    })
}

fn wrong_node(subject: &Subject<'_>) -> Option<Finding> {
    let bound = subject.bound_to()?;
    let home = subject.device_home()?;
    if !bound.is_disjoint(&home.nodes) {
        return None;
    }
    let summary = format!(
        "it is bound to {}, and {} is on {}",
        named(&bound),
        home.because,
        named(&home.nodes)
    );
    Some(
        subject
            .finds("bound-to-wrong-node", Severity::Fail, summary)
            .start_anew(subject, &home)
            .unless("the host's memory that it reads has nothing to do with the device"),
    )
}

fn late_bind(subject: &Subject<'_>) -> Option<Finding> {
    let bound = subject.bound_to()?;
    let memory = subject.memory_but_files()?;
    let away = share_away(&memory, &bound)?;
    // Bound to the wrong node, it is the bind that has to change.
    let wrong = |home: Home| home.nodes.is_disjoint(&bound);
    if away < subject.view.thresholds.mixed_from || subject.device_home().is_some_and(wrong) {
        return None;
    }
    let summary = format!(
        "it is bound to {}, and {} of its memory but for files is elsewhere: it was there before the bind, was moved since, is shared, or has a policy of its own",
        named(&bound),
        percent(away)
    );
    let home = Home::without_device(bound, "its policy");
    let found = subject.finds("memory-from-before-bind", Severity::Warn, summary);
    Some(
        found
            .by_node(
                "resident, but for files,",
                &memory,
                BYTES,
                subject.placement_source(),
            )
            .start_anew(subject, &home)
            .advise(format!(
                "migratepages {} all {}{AS_IT_RUNS}",
                subject.pid(),
                list(&home.nodes)
            ))
            .unless("it is shared memory that other processes placed"),
    )
}

fn own_policies(subject: &Subject<'_>) -> Option<Finding> {
    let home = subject.device_home().map(|home| home.nodes);
    let home = home.or_else(|| subject.bound_to())?;
    let elsewhere = |own: &&OwnPolicy| {
        let nodes = &own.policy.nodes;
        !nodes.is_empty() && !nodes.iter().any(|node| home.contains(node))
    };
    let own = subject.process.placement.own_policies.as_ref()?;
    let own: Vec<&OwnPolicy> = own.iter().filter(elsewhere).collect();
    let mappings: u64 = own.iter().map(|own| own.mappings).sum();
    let mut bytes = ByNode::new();
    for (node, more) in own.iter().flat_map(|own| &own.by_node_bytes) {
        *bytes.entry(*node).or_default() += more;
    }
    let sum: u64 = bytes.values().sum();
    let resident = subject.process.resident_bytes.filter(|all| *all > 0)?;
    let much = sum as f64 / resident as f64 >= subject.view.thresholds.mixed_from;
    if !much || !subject.is_evidence(&bytes) {
        return None;
    }
    let policies: Vec<String> = own.iter().map(|own| own.policy.to_string()).collect();
    let plural = if mappings == 1 { "" } else { "s" };
    let summary = format!(
        "{} in {mappings} mapping{plural} has a policy of its own, {}, and not {}: the program set it, and no numactl changes it",
        size::format(sum),
        policies.join(" and "),
        named(&home),
    );
    let found = subject.finds("mappings-bound-elsewhere", Severity::Warn, summary);
    Some(
        found
            .by_node("with a policy of its own", &bytes, BYTES, "numa_maps")
            .hint("look for the engine's own NUMA option, and set it to the same node or off")
            .unless("these are buffers for another device, or for workers on that node"),
    )
}

fn cpuset(subject: &Subject<'_>) -> Option<Finding> {
    let home = subject.device_home()?;
    let what = match forbidden(subject, &home) {
        (true, true) => "memory and CPUs",
        (true, false) => "memory",
        (false, true) => "CPUs",
        (false, false) => return None,
    };
    let summary = format!(
        "its cgroup {} forbids the {what} of {}, where {} is",
        subject.process.placing.cgroup.as_deref().unwrap_or("/"),
        named(&home.nodes),
        home.because
    );
    let found = subject.finds("cpuset-forbids-gpu-node", Severity::Fail, summary);
    Some(
        found
            .widen(subject, &home)
            .unless("the cgroup's bounds keep other tenants apart on purpose: then choose a GPU on an allowed node"),
    )
}

fn node_is_full(subject: &Subject<'_>) -> Option<Finding> {
    let home = subject.device_home().or_else(|| {
        let nodes = subject.bound_to()?;
        Some(Home::without_device(nodes, "its policy"))
    })?;
    let t = subject.view.thresholds;
    let topology = &subject.view.now.topology;
    let full = home.nodes.iter().find_map(|id| {
        let node = topology.node(*id).filter(|node| !node.cpus.is_empty())?;
        let free = node.memory_free_bytes?;
        let total = node.memory_total_bytes.filter(|total| *total > 0)?;
        let share = free as f64 / total as f64;
        let foreign = foreign_rate(subject, *id);
        let refused = foreign.is_some_and(|rate| rate >= t.foreign_per_second);
        // Little free memory alone is usual: page cache fills a node, and gives way.
        let severity = if refused {
            Severity::Warn
        } else {
            Severity::Info
        };
        (share < t.free_share || refused).then_some((*id, free, foreign, severity))
    })?;
    let (node, free, foreign, severity) = full;
    let summary = format!(
        "node {node}, where {} is, has {} MiB free: what does not fit goes elsewhere, or fails under bind",
        home.because,
        free >> 20
    );
    let mut found = subject.finds("node-is-full", severity, summary).number(
        format!("free on node {node}"),
        free as f64,
        "By",
        "nodeN/meminfo",
    );
    if let Some(rate) = foreign {
        found = found.number(
            "allocations meant for it that went elsewhere",
            rate,
            "{page}/s",
            "numastat numa_foreign",
        );
    }
    Some(
        found
            .advise("numastat -m   # what fills it")
            .advise("sync; echo 1 > /proc/sys/vm/drop_caches   # where that is page cache")
            .hint("numawatch launch --needs SIZE starts nothing where it doesn't fit")
            .unless("most of it is page cache, which gives way"),
    )
}

fn foreign_rate(subject: &Subject<'_>, node: NodeId) -> Option<f64> {
    let view = subject.view;
    let (before, read_at) = view.past.foreign(node)?;
    let now = view.now.topology.node(node)?.numastat?.foreign;
    crate::rates::per_second(Some(before), Some(now), view.since(read_at)?)
}
