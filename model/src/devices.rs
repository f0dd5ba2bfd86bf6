//! GPUs, accelerators and RDMA NICs: where each hangs in the machine, and who uses it.

use crate::topology::{NodeId, Topology};
use serde::{Deserialize, Serialize};

/// One PCI device. Source: `/sys/bus/pci/devices/ADDRESS`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// `domain:bus:device.function`, as sysfs writes it: `0000:3b:00.0`.
    pub address: String,
    /// What it is.
    pub kind: DeviceKind,
    /// Its short name in tables: `GPU0`, `NIC0`; numbered within the kind, see [`label`].
    pub label: String,
    /// `NVIDIA`, `AMD`, `Intel`, …; the vendor's id in hex where the name isn't known.
    pub vendor: String,
    /// The product's name, as a driver or NVML tells; `None` where neither does.
    pub name: Option<String>,
    /// The driver that is bound to it.
    pub driver: Option<String>,
    /// Its node; `None` where `numa_node` reads -1: the firmware didn't say, and 0 would be a guess.
    pub node: Option<NodeId>,
    /// The nodes that its own memory is, where it is one (GB200); such a node has no CPUs.
    pub memory_nodes: Vec<NodeId>,
    /// The bridges above it, from the root port down, as sysfs writes their addresses.
    pub bridges: Vec<String>,
    /// The root complex: `pci0000:3a`; `None` where its place in sysfs can't be read.
    pub root_complex: Option<String>,
    /// Names of its device files and interfaces: `renderD128`, `card0`, `nvidia0`, `mlx5_0`.
    pub files: Vec<String>,
    /// Addresses of GPUs at the other end of an NVLink, each once a link; empty where NVML doesn't tell.
    pub nvlinks: Vec<String>,
    /// The same of what is no GPU, an NVSwitch: two GPUs meet there.
    #[serde(default)]
    pub nvswitches: Vec<String>,
    /// Why something above is missing.
    #[serde(default)]
    pub reason: Option<String>,
}

impl Device {
    /// The number in its label: `4` of `GPU4`.
    #[must_use]
    pub fn number(&self) -> &str {
        number(&self.label)
    }

    /// The PCIe switch that it is behind, by its upstream port; `None` behind a root port alone.
    #[must_use]
    pub fn switch(&self) -> Option<&str> {
        // Root port, upstream port, downstream port; of cascaded switches the last.
        let upstream = self.bridges.len().checked_sub(2).filter(|at| *at > 0)?;
        self.bridges.get(upstream).map(String::as_str)
    }

    /// Says why something is missing; earlier reasons stay.
    pub fn lacks(&mut self, why: &str) {
        self.reason = Some(match self.reason.take() {
            Some(reason) => format!("{reason}; {why}"),
            None => why.to_owned(),
        });
    }

    /// Sets the nodes that its memory is, and maps it to the node whose CPUs are nearest where its own has none: on
    /// GB200 a GPU's memory is a node, and CPUs can't be bound to it.
    pub fn settle(&mut self, memory_nodes: &[NodeId], topology: &Topology) {
        self.memory_nodes = memory_nodes.to_vec();
        let has_cpus = |id: NodeId| topology.node(id).is_none_or(|n| !n.cpus.is_empty());
        if let Some(own) = self.node.filter(|own| !has_cpus(*own)) {
            self.memory_nodes.push(own);
            self.node = None;
        }
        self.memory_nodes.sort_unstable();
        self.memory_nodes.dedup();
        if self.node.is_some() || self.memory_nodes.is_empty() {
            return;
        }
        let nearest = |id: &NodeId| topology.nearest_with_cpus(*id);
        self.node = self.memory_nodes.iter().find_map(nearest);
        if self.node.is_none() {
            self.lacks("no node with CPUs is nearest to its memory's");
        }
    }
}

/// The digits at a label's end.
fn number(label: &str) -> &str {
    label.trim_start_matches(|c: char| !c.is_ascii_digit())
}

/// Those who make GPUs that infer, in the order in which their devices are numbered.
const FIRST: [&str; 3] = ["NVIDIA", "AMD", "Intel"];

/// Sorts and numbers each kind: `GPU0`, `ACC0`, `NIC0`. NVIDIA's come first and by address, so that their numbers are
/// `nvidia-smi`'s whatever else is in the machine; a server's own display (ASPEED, Matrox), often at a lower address, is last.
pub fn label(devices: &mut [Device]) {
    let vendor = |d: &Device| FIRST.iter().position(|first| *first == d.vendor);
    // Domains may have five digits, so that text alone doesn't order them.
    let key = |d: &Device| {
        let rank = vendor(d).unwrap_or(FIRST.len());
        (d.kind, rank, d.address.len(), d.address.clone())
    };
    devices.sort_by_key(key);
    let mut next = [0, 0, 0];
    for device in devices {
        let (at, stem) = match device.kind {
            DeviceKind::Gpu => (0, "GPU"),
            DeviceKind::Accelerator => (1, "ACC"),
            DeviceKind::Nic => (2, "NIC"),
        };
        device.label = format!("{stem}{}", next[at]);
        next[at] += 1;
    }
}

/// What a device is, by its PCI class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// A display or 3D controller (0300, 0302, 0380), and AMD's Instinct, which is of class 1200.
    Gpu,
    /// Any other processing accelerator (1200).
    Accelerator,
    /// A network device that does RDMA.
    Nic,
}

impl DeviceKind {
    /// Whether it computes, rather than connects.
    #[must_use]
    pub const fn computes(self) -> bool {
        matches!(self, Self::Gpu | Self::Accelerator)
    }
}

/// A process that has a device open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceUse {
    /// [`Device::address`].
    pub address: String,
    /// [`Device::kind`].
    pub kind: DeviceKind,
    /// [`Device::label`].
    pub label: String,
    /// [`Device::node`].
    pub node: Option<NodeId>,
    /// What told it: `open files`, `nvml`, or `environment`, which is a hint only.
    pub source: DeviceUseSource,
}

/// What told that a process uses a device, the surest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceUseSource {
    /// NVML's list of processes.
    Nvml,
    /// Its open files.
    OpenFiles,
    /// `CUDA_VISIBLE_DEVICES` and its relatives: a hint only.
    Environment,
}

impl DeviceUseSource {
    /// The word in JSON and in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nvml => "nvml",
            Self::OpenFiles => "open_files",
            Self::Environment => "environment",
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::topology::Node;

    /// A GPU of which nothing is known but its address.
    pub(crate) fn device(address: &str) -> Device {
        Device {
            address: address.to_owned(),
            kind: DeviceKind::Gpu,
            label: String::new(),
            vendor: "NVIDIA".to_owned(),
            name: None,
            driver: None,
            node: None,
            memory_nodes: Vec::new(),
            bridges: Vec::new(),
            root_complex: None,
            files: Vec::new(),
            nvlinks: Vec::new(),
            nvswitches: Vec::new(),
            reason: None,
        }
    }

    #[test]
    fn a_servers_own_display_takes_no_gpus_number() {
        let of = |vendor: &str, address| Device {
            vendor: vendor.to_owned(),
            ..device(address)
        };
        let mut devices = [
            of("1a03", "0000:03:00.0"),
            of("AMD", "0000:05:00.0"),
            of("NVIDIA", "0000:c1:00.0"),
            of("NVIDIA", "0000:3b:00.0"),
        ];
        label(&mut devices);
        let named: Vec<_> = devices
            .iter()
            .map(|d| (d.label.as_str(), d.address.as_str()))
            .collect();
        assert_eq!(
            named,
            [
                ("GPU0", "0000:3b:00.0"),
                ("GPU1", "0000:c1:00.0"),
                ("GPU2", "0000:05:00.0"),
                ("GPU3", "0000:03:00.0"),
            ]
        );
    }

    #[test]
    fn labels_are_numbers_by_address_within_a_kind() {
        let mut devices = [
            device("10000:01:00.0"),
            device("0000:c1:00.0"),
            device("0000:3b:00.0"),
            Device {
                kind: DeviceKind::Nic,
                ..device("0000:01:00.0")
            },
            Device {
                kind: DeviceKind::Accelerator,
                ..device("0000:02:00.0")
            },
        ];
        label(&mut devices);
        let named: Vec<_> = devices
            .iter()
            .map(|d| (d.label.as_str(), d.address.as_str(), d.number()))
            .collect();
        assert_eq!(
            named,
            [
                ("GPU0", "0000:3b:00.0", "0"),
                ("GPU1", "0000:c1:00.0", "1"),
                ("GPU2", "10000:01:00.0", "2"),
                ("ACC0", "0000:02:00.0", "0"),
                ("NIC0", "0000:01:00.0", "0"),
            ]
        );
    }

    #[test]
    fn a_gpu_whose_memory_is_a_node_belongs_to_the_nearest_cpus() {
        let node = |id, cpus: &[u32], distances: [(NodeId, u32); 3]| Node {
            id,
            cpus: cpus.to_vec(),
            distances: distances.into(),
            ..Node::default()
        };
        let grace = Topology {
            nodes: vec![
                node(0, &[0], [(0, 10), (1, 40), (2, 80)]),
                node(1, &[1], [(0, 40), (1, 10), (2, 120)]),
                node(2, &[], [(0, 80), (1, 120), (2, 10)]),
            ],
            ..Topology::default()
        };
        for (what, own, memory, want, memory_nodes) in [
            (
                "sysfs has the CPUs' node",
                Some(1),
                &[2][..],
                Some(1),
                &[2][..],
            ),
            ("sysfs has the memory's node", Some(2), &[], Some(0), &[2]),
            ("both have it", Some(2), &[2], Some(0), &[2]),
            ("sysfs has none", None, &[2], Some(0), &[2]),
            ("an ordinary GPU", Some(1), &[], Some(1), &[]),
            ("an unknown node stays so", None, &[], None, &[]),
            ("a node that isn't online", Some(7), &[], Some(7), &[]),
        ] {
            let mut gpu = Device {
                node: own,
                ..device("0008:06:00.0")
            };
            gpu.settle(memory, &grace);
            assert_eq!(
                (gpu.node, gpu.memory_nodes.as_slice()),
                (want, memory_nodes),
                "{what}"
            );
        }
    }

    #[test]
    fn memory_as_near_to_two_nodes_belongs_to_none() {
        let mut gpu = Device {
            node: Some(2),
            ..device("0008:06:00.0")
        };
        let node = |id, cpus: &[u32]| Node {
            id,
            cpus: cpus.to_vec(),
            distances: [(0, 20), (1, 20)].into(),
            ..Node::default()
        };
        let topology = Topology {
            nodes: vec![node(0, &[0]), node(1, &[1]), node(2, &[])],
            ..Topology::default()
        };
        gpu.settle(&[], &topology);
        assert_eq!(gpu.node, None);
        assert!(gpu.reason.is_some());
    }
}
