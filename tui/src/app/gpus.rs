//! The machine's GPUs and accelerators in few characters, and a process's in words.

use model::devices::{Device, DeviceKind, DeviceUse, DeviceUseSource};
use model::gpus::{number, ranges};
use model::process::Process;
use model::topology::{NodeId, Topology};

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
