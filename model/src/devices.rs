//! GPUs, accelerators and RDMA NICs: where each hangs in the machine, and what lies between two of them.

use crate::topology::NodeId;
use serde::{Deserialize, Serialize};

/// One PCI device. Source: `/sys/bus/pci/devices/ADDRESS`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// `domain:bus:device.function`, as sysfs writes it: `0000:3b:00.0`.
    pub address: String,
    /// What it is.
    pub kind: DeviceKind,
    /// Its short name in tables: `GPU0`, `NIC0`; numbered by address within the kind.
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
    /// The root complex: `pci0000:3a`.
    pub root_complex: String,
    /// Names of its device files and interfaces: `renderD128`, `card0`, `nvidia0`, `mlx5_0`.
    pub files: Vec<String>,
    /// Addresses of NVLink peers, each once a link; empty where NVML doesn't tell.
    pub nvlinks: Vec<String>,
}

/// What a device is, by its PCI class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// A display or 3D controller (0300, 0302, 0380).
    Gpu,
    /// A processing accelerator (1200).
    Accelerator,
    /// A network device that does RDMA.
    Nic,
}

/// A process that has a device open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceUse {
    /// [`Device::address`].
    pub address: String,
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
