//! A process's GPUs and accelerators in few characters: `4@1` is GPU 4 on node 1.

use crate::devices::{DeviceUse, DeviceUseSource};
use crate::process::Process;
use crate::topology::{NodeId, Topology};
use std::collections::BTreeMap;

/// It uses none.
const NONE: &str = "-";

/// A device's number as the screen has it; accelerators have an `a` before it.
#[must_use]
pub fn number(label: &str) -> Option<(bool, u32)> {
    let accelerator = label.starts_with("ACC");
    let digits = label
        .strip_prefix("GPU")
        .or_else(|| label.strip_prefix("ACC"))?;
    Some((accelerator, digits.parse().ok()?))
}

/// `0-3,6`.
#[must_use]
pub fn ranges(numbers: &[(bool, u32)]) -> String {
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
#[must_use]
pub fn forms(process: &Process) -> Vec<String> {
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
            None => NONE,
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

/// Whether the machine has any to show.
#[must_use]
pub fn any(topology: &Topology) -> bool {
    topology.devices.iter().any(|d| d.kind.computes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::tests::unknown_process;
    use crate::devices::DeviceKind;

    fn process(devices: &[(&str, Option<NodeId>)], source: DeviceUseSource) -> Process {
        let mut process = unknown_process();
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
}
