//! GPUs and accelerators in few characters: `4@1` is GPU 4 on node 1.

use super::format;
use model::devices::{Device, DeviceKind, DeviceUse, DeviceUseSource};
use model::process::Process;
use model::topology::{NodeId, Topology};
use std::collections::BTreeMap;

/// A device's number as the screen has it; accelerators have an `a` before it.
fn number(label: &str) -> Option<(bool, u32)> {
    let accelerator = label.starts_with("ACC");
    let digits = label
        .strip_prefix("GPU")
        .or_else(|| label.strip_prefix("ACC"))?;
    Some((accelerator, digits.parse().ok()?))
}

/// `0-3,6`.
fn ranges(numbers: &[(bool, u32)]) -> String {
    let mut ranges: Vec<(bool, u32, u32)> = Vec::new();
    for (accelerator, n) in numbers {
        match ranges.last_mut() {
            Some((kind, _, last)) if kind == accelerator && *last + 1 == *n => *last = *n,
            _ => ranges.push((*accelerator, *n, *n)),
        }
    }
    let texts: Vec<String> = ranges
        .into_iter()
        .map(|(accelerator, first, last)| {
            let mark = if accelerator { "a" } else { "" };
            match last - first {
                0 => format!("{mark}{first}"),
                _ => format!("{mark}{first}-{last}"),
            }
        })
        .collect();
    texts.join(",")
}

/// A process's GPUs and their nodes, longest form first: `0-3@0 4-7@1`, `8 GPUs`. `?` is an unknown node, or unknown GPUs;
/// `~` stands before what only its environment tells.
pub(crate) fn forms(process: &Process) -> Vec<String> {
    // An unknown node comes last.
    let mut by_node: BTreeMap<(bool, NodeId), Vec<(bool, u32)>> = BTreeMap::new();
    let gpus: Vec<&DeviceUse> = process
        .devices
        .iter()
        .filter(|used| number(&used.label).is_some())
        .collect();
    if gpus.is_empty() {
        let nothing = match process.devices_reason {
            Some(_) => "?",
            None => format::NO_SIGNAL,
        };
        return vec![nothing.to_owned()];
    }
    for used in &gpus {
        let node = (used.node.is_none(), used.node.unwrap_or(0));
        by_node.entry(node).or_default().extend(number(&used.label));
    }
    let hint = gpus
        .iter()
        .all(|used| used.source == DeviceUseSource::Environment);
    let mark = if hint { "~" } else { "" };
    let parts: Vec<String> = by_node
        .into_iter()
        .map(|((unknown, node), mut numbers)| {
            numbers.sort_unstable();
            let node = if unknown {
                "?".to_owned()
            } else {
                node.to_string()
            };
            format!("{mark}{}@{node}", ranges(&numbers))
        })
        .collect();
    let count = gpus.len();
    vec![
        parts.join(" "),
        format!("{mark}{count} GPUs"),
        format!("{mark}{count}×"),
    ]
}

/// A node's GPUs for the strip: `GPU 0 1 2 3`, `GPU 0-7`; `None` where it has none.
pub(crate) fn of_node(topology: &Topology, node: NodeId) -> Option<String> {
    let here = |d: &&Device| d.kind.computes() && d.node == Some(node);
    let mut numbers: Vec<(bool, u32)> = topology
        .devices
        .iter()
        .filter(here)
        .filter_map(|d| number(&d.label))
        .collect();
    numbers.sort_unstable();
    match numbers.len() {
        0 => None,
        1..=4 => {
            let each: Vec<String> = numbers.iter().map(|n| ranges(&[*n])).collect();
            Some(format!("GPU {}", each.join(" ")))
        }
        _ => Some(format!("GPU {}", ranges(&numbers))),
    }
}

/// How many GPUs the machine has.
pub(crate) fn count(topology: &Topology) -> usize {
    let gpus = topology
        .devices
        .iter()
        .filter(|d| d.kind == DeviceKind::Gpu);
    gpus.count()
}

/// Whether there is anything to show in a column of GPUs.
pub(crate) fn any(topology: &Topology) -> bool {
    topology.devices.iter().any(|d| d.kind.computes())
}

/// A process's devices in words, and what told: `GPU4 0000:86:00.0 on node 1 (open files)`.
pub(crate) fn words(process: &Process) -> String {
    let one = |used: &DeviceUse| {
        let node = used
            .node
            .map_or_else(|| "an unknown node".to_owned(), |n| format!("node {n}"));
        let source = match used.source {
            DeviceUseSource::Nvml => "NVML",
            DeviceUseSource::OpenFiles => "open files",
            DeviceUseSource::Environment => "environment, a hint only",
        };
        format!("{} {} on {node} ({source})", used.label, used.address)
    };
    let mut parts: Vec<String> = process.devices.iter().map(one).collect();
    parts.extend(process.devices_reason.clone());
    if parts.is_empty() {
        "none".to_owned()
    } else {
        parts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up;

    fn process(devices: &[(&str, Option<NodeId>)], source: DeviceUseSource) -> Process {
        let mut process = made_up::two_nodes(1).processes.swap_remove(0);
        process.devices = devices
            .iter()
            .map(|(label, node)| DeviceUse {
                address: String::new(),
                kind: if label.starts_with("NIC") {
                    DeviceKind::Nic
                } else {
                    DeviceKind::Gpu
                },
                label: (*label).to_owned(),
                node: *node,
                source,
            })
            .collect();
        process
    }

    #[test]
    fn a_number_and_its_node() {
        use DeviceUseSource::{Environment, OpenFiles};
        let eight: Vec<(String, Option<NodeId>)> =
            (0..8).map(|n| (format!("GPU{n}"), Some(n / 4))).collect();
        let eight: Vec<_> = eight.iter().map(|(l, n)| (l.as_str(), *n)).collect();
        for (devices, source, want) in [
            (&[][..], OpenFiles, "-"),
            (&[("NIC0", Some(0))], OpenFiles, "-"),
            (&[("GPU4", Some(1))], OpenFiles, "4@1"),
            (&[("GPU2", None)], OpenFiles, "2@?"),
            (&[("GPU2", Some(0))], Environment, "~2@0"),
            (&[("ACC1", Some(3))], OpenFiles, "a1@3"),
            (
                &[("GPU9", None), ("GPU10", Some(0)), ("NIC0", None)],
                OpenFiles,
                "10@0 9@?",
            ),
            (&eight, OpenFiles, "0-3@0 4-7@1"),
        ] {
            assert_eq!(forms(&process(devices, source))[0], want, "{devices:?}");
        }
        assert_eq!(forms(&process(&eight, OpenFiles))[1..], ["8 GPUs", "8×"]);
    }

    #[test]
    fn gpus_that_may_not_be_looked_for_are_unknown() {
        let mut process = process(&[], DeviceUseSource::OpenFiles);
        process.devices_reason = Some("permission denied".to_owned());
        assert_eq!(forms(&process), ["?"]);
    }

    #[test]
    fn a_nodes_gpus() {
        let mut topology = made_up::two_nodes(1).topology;
        assert_eq!(of_node(&topology, 1).as_deref(), Some("GPU 4 5 6 7"));
        for device in &mut topology.devices {
            device.node = Some(0);
        }
        assert_eq!(of_node(&topology, 0).as_deref(), Some("GPU 0-7"));
        assert_eq!(of_node(&topology, 1), None);
    }
}
