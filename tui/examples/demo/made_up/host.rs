//! Made-up nodes, GPUs and signals.

use super::{GIB, id, wander};
use model::devices::{Device, DeviceKind, DeviceUse, DeviceUseSource};
use model::signal::{Mechanism, Signal, SignalName, SignalState};
use model::topology::{Node, NumaStat};

/// One node of so many on so many sockets.
pub(super) fn node(index: usize, sockets: usize, nodes: usize, tick: u64) -> Node {
    let total = 512 * GIB;
    let cpus = 48;
    let per_socket = nodes.div_ceil(sockets.max(1));
    let socket = id(index / per_socket.max(1));
    let used = [412, 133, 287, 64][index % 4] * GIB + (tick % 7) * GIB / 3;
    let first = u32::from(u16::try_from(index * cpus).unwrap_or(0));
    Node {
        id: id(index),
        cpus: (first..first + 48).collect(),
        socket: Some(socket),
        memory_total_bytes: Some(total),
        memory_free_bytes: Some(total - used),
        distances: (0..nodes)
            .map(|other| {
                let same = other / per_socket.max(1) == index / per_socket.max(1);
                let distance = match (other == index, same) {
                    (true, _) => 10,
                    (_, true) => 12,
                    _ => 21,
                };
                (id(other), distance)
            })
            .collect(),
        numastat: Some(NumaStat::default()),
        cpu_busy: Some(wander([0.63, 0.18, 0.42, 0.05][index % 4], tick)),
    }
}

/// The buses of the root complexes, two on each node, each with a switch.
const COMPLEXES: [u8; 4] = [0x3a, 0x5c, 0x85, 0xae];

/// A device at a port of the switch of a root complex.
fn behind(complex: usize, port: u8) -> Device {
    let bus = COMPLEXES[complex % COMPLEXES.len()];
    Device {
        address: format!("0000:{:02x}:00.0", bus + 3 + port),
        kind: DeviceKind::Gpu,
        label: String::new(),
        vendor: "NVIDIA".to_owned(),
        name: None,
        driver: None,
        node: Some(id(complex / 2)),
        memory_nodes: Vec::new(),
        bridges: vec![
            format!("0000:{bus:02x}:01.0"),
            format!("0000:{:02x}:00.0", bus + 1),
            format!("0000:{:02x}:{port:02x}.0", bus + 2),
        ],
        root_complex: Some(format!("pci0000:{bus:02x}")),
        files: Vec::new(),
        nvlinks: Vec::new(),
        nvswitches: Vec::new(),
        reason: None,
    }
}

/// One of eight GPUs, two behind each switch.
pub(super) fn gpu(index: usize) -> Device {
    Device {
        label: format!("GPU{index}"),
        name: Some("NVIDIA H100 80GB HBM3".to_owned()),
        driver: Some("nvidia".to_owned()),
        files: vec![format!("nvidia{index}")],
        ..behind(index / 2, u8::from(index % 2 == 1))
    }
}

/// One of two NICs, behind a switch on each node.
pub(super) fn nic(index: usize) -> Device {
    Device {
        kind: DeviceKind::Nic,
        label: format!("NIC{index}"),
        vendor: "Mellanox".to_owned(),
        name: Some("ConnectX-7".to_owned()),
        driver: Some("mlx5_core".to_owned()),
        files: vec![format!("mlx5_{index}")],
        ..behind(index * 2, 2)
    }
}

/// GPUs that a process has open.
pub(super) fn devices_used(gpus: &[usize]) -> Vec<DeviceUse> {
    let used = |index: &usize| {
        let device = gpu(*index);
        DeviceUse {
            address: device.address,
            kind: device.kind,
            label: device.label,
            node: device.node,
            source: DeviceUseSource::OpenFiles,
        }
    };
    gpus.iter().map(used).collect()
}

/// The signals of a host that refuses some programs, with or without balancing and GPUs.
pub(super) fn signals(balancing: bool, gpus: bool) -> Vec<Signal> {
    let attached = |name, mechanism, target: &str| Signal {
        name,
        state: SignalState::Attached,
        mechanism: Some(mechanism),
        target: Some(target.to_owned()),
        reason: None,
    };
    SignalName::ALL
        .into_iter()
        .map(|name| match name {
            SignalName::Sched => attached(name, Mechanism::TpBtf, "sched_switch"),
            SignalName::FirstTouch => attached(
                name,
                Mechanism::Fentry,
                "do_anonymous_page, do_cow_fault, wp_page_copy",
            ),
            SignalName::Map => Signal {
                state: SignalState::Degraded,
                reason: Some("fentry is refused: maps are counted without their node".to_owned()),
                ..attached(name, Mechanism::TpBtf, "page_fault_user")
            },
            SignalName::Pin => attached(name, Mechanism::Fentry, "gup_fast_fallback"),
            SignalName::DriverAlloc if gpus => attached(
                name,
                Mechanism::Fentry,
                "security_file_ioctl, security_mmap_file, mm_page_alloc",
            ),
            SignalName::DriverAlloc => {
                Signal::unavailable(name, "no GPU or RDMA device on this host")
            }
            SignalName::Placement => {
                attached(name, Mechanism::Procfs, "/proc/PID/pagemap, move_pages")
            }
            _ if !balancing => Signal::unavailable(name, "kernel.numa_balancing is 0"),
            SignalName::Hint => attached(name, Mechanism::Fentry, "task_numa_fault"),
            SignalName::Migration => {
                attached(name, Mechanism::TpBtf, "mm_migrate_pages, sched_move_numa")
            }
            SignalName::Scan => attached(name, Mechanism::Fentry, "task_numa_work"),
        })
        .collect()
}
