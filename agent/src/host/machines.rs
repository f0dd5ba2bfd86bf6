//! Sysfs trees of real machines, built from public descriptions, for tests. Small: only what numawatch reads.

use crate::host::fixture::Fixture;
use std::fmt::Write as _;

/// NVIDIA's, AMD's, Mellanox' and ASPEED's PCI ids.
const NVIDIA: u32 = 0x10de;
const AMD: u32 = 0x1002;
const MELLANOX: u32 = 0x15b3;
const ASPEED: u32 = 0x1a03;

/// A node's CPUs as a list, its package, and its memory in GiB.
struct Node<'a>(u32, &'a str, Option<u32>, u64);

/// Writes nodes; `distance` is asked for each pair.
fn nodes(fixture: &Fixture, nodes: &[Node<'_>], distance: impl Fn(u32, u32) -> u32) {
    let ids: Vec<String> = nodes.iter().map(|n| n.0.to_string()).collect();
    fixture.file(
        "sys/devices/system/node/online",
        &format!("{}\n", ids.join(",")),
    );
    let mut online = Vec::new();
    for Node(id, cpus, socket, gib) in nodes {
        let file = |name: &str, text: &str| {
            fixture.file(&format!("sys/devices/system/node/node{id}/{name}"), text);
        };
        let kib = gib << 20;
        file("cpulist", &format!("{cpus}\n"));
        file(
            "meminfo",
            &format!(
                "Node {id} MemTotal: {kib} kB\nNode {id} MemFree: {} kB\n",
                kib / 2
            ),
        );
        let mut row = String::new();
        for other in nodes {
            let _ = write!(row, "{} ", distance(*id, other.0));
        }
        file("distance", &format!("{}\n", row.trim_end()));
        if cpus.is_empty() {
            continue;
        }
        online.push(*cpus);
        let first = cpus.split(['-', ',']).next().unwrap_or_default();
        let socket = socket.map_or_else(|| "-1".to_owned(), |s| s.to_string());
        fixture.file(
            &format!("sys/devices/system/cpu/cpu{first}/topology/physical_package_id"),
            &format!("{socket}\n"),
        );
    }
    fixture.file(
        "sys/devices/system/cpu/online",
        &format!("{}\n", online.join(",")),
    );
}

/// One PCI device: its path below `/sys/devices`, its class and vendor, and what `numa_node` reads.
fn pci(fixture: &Fixture, path: &str, class: u32, vendor: u32, node: i32) -> String {
    let folder = format!("sys/devices/{path}");
    let address = path.rsplit('/').next().unwrap_or_default();
    let file = |name: &str, text: &str| fixture.file(&format!("{folder}/{name}"), text);
    file("class", &format!("0x{class:06x}\n"));
    file("vendor", &format!("0x{vendor:04x}\n"));
    file("device", "0x0001\n");
    file("numa_node", &format!("{node}\n"));
    fixture.link(
        &format!("sys/bus/pci/devices/{address}"),
        &format!("../../../devices/{path}"),
    );
    folder
}

/// A GPU under NVIDIA's driver, with its minor.
pub(crate) fn nvidia_gpu(fixture: &Fixture, path: &str, node: i32, minor: u32, model: &str) {
    let folder = pci(fixture, path, 0x03_0200, NVIDIA, node);
    fixture.link(
        &format!("{folder}/driver"),
        "../../../bus/pci/drivers/nvidia",
    );
    let address = path.rsplit('/').next().unwrap_or_default();
    fixture.file("proc/driver/nvidia/version", "NVRM version: made up\n");
    fixture.file(
        &format!("proc/driver/nvidia/gpus/{address}/information"),
        &format!("Model: \t\t {model}\nDevice Minor: \t {minor}\n"),
    );
}

fn amd_gpu(fixture: &Fixture, path: &str, node: i32, render: u32) {
    let folder = pci(fixture, path, 0x12_0000, AMD, node);
    fixture.link(
        &format!("{folder}/driver"),
        "../../../bus/pci/drivers/amdgpu",
    );
    fixture.file(&format!("{folder}/product_name"), "AMD Instinct MI300X\n");
    fixture.file(&format!("{folder}/drm/renderD{render}/dev"), "226:128\n");
}

fn nic(fixture: &Fixture, path: &str, node: i32, number: u32) {
    let folder = pci(fixture, path, 0x02_0700, MELLANOX, node);
    fixture.link(
        &format!("{folder}/driver"),
        "../../../bus/pci/drivers/mlx5_core",
    );
    let names = [
        format!("infiniband/mlx5_{number}"),
        format!("infiniband_verbs/uverbs{number}"),
    ];
    for name in names {
        fixture.file(&format!("{folder}/{name}/node_guid"), "0\n");
    }
}

/// Two sockets, eight GPUs behind switches, four NICs: after the DGX A100's NCCL topology in NVIDIA/nccl issue 1505 and
/// its `nvidia-smi topo -m`. Four switches with two GPUs and a NIC each, two of them on a socket, each below its own host
/// bridge; the NIC is one switch further down. Its VGA is a management controller's.
pub(crate) fn two_sockets_eight_gpus() -> Fixture {
    let fixture = Fixture::new();
    nodes(
        &fixture,
        &[
            Node(0, "0-63,128-191", Some(0), 1024),
            Node(1, "64-127,192-255", Some(1), 1024),
        ],
        |a, b| if a == b { 10 } else { 32 },
    );
    let complexes = [("00", 0), ("40", 0), ("80", 1), ("c0", 1)];
    for (at, (bus, node)) in complexes.into_iter().enumerate() {
        let at = u32::try_from(at).unwrap();
        let base = u32::from_str_radix(bus, 16).unwrap();
        let address =
            |offset: u32, device: u32| format!("0000:{:02x}:{device:02x}.0", base + offset);
        let switch = format!("pci0000:{bus}/{}/{}", address(0, 1), address(1, 0));
        for gpu in 0..2 {
            let path = format!("{switch}/{}/{}", address(2, gpu), address(7 + gpu * 8, 0));
            nvidia_gpu(&fixture, &path, node, at * 2 + gpu, "NVIDIA A100-SXM4-80GB");
        }
        let further = format!(
            "{switch}/{}/{}/{}",
            address(2, 4),
            address(3, 0),
            address(4, 0)
        );
        nic(&fixture, &format!("{further}/{}", address(12, 0)), node, at);
    }
    pci(
        &fixture,
        "pci0000:20/0000:20:01.0/0000:22:00.0",
        0x03_0000,
        ASPEED,
        0,
    );
    fixture
}

/// One socket in NPS4 with an MI300X on each node, each behind a root port of its own host bridge, and two NICs that
/// share a root port with a GPU by a switch: after AMD's EPYC 9004 NPS description (distances 10 and 12).
pub(crate) fn one_socket_nps4() -> Fixture {
    let fixture = Fixture::new();
    let list = ["0-23", "24-47", "48-71", "72-95"];
    let of = |n: u32| Node(n, list[n as usize], Some(0), 192);
    nodes(&fixture, &[of(0), of(1), of(2), of(3)], |a, b| {
        if a == b { 10 } else { 12 }
    });
    amd_gpu(&fixture, "pci0000:60/0000:60:01.1/0000:61:00.0", 0, 128);
    amd_gpu(&fixture, "pci0000:40/0000:40:01.1/0000:41:00.0", 1, 129);
    amd_gpu(
        &fixture,
        "pci0000:20/0000:20:01.1/0000:21:00.0/0000:22:00.0/0000:23:00.0",
        2,
        130,
    );
    amd_gpu(&fixture, "pci0000:00/0000:00:01.1/0000:01:00.0", 3, 131);
    nic(
        &fixture,
        "pci0000:20/0000:20:01.1/0000:21:00.0/0000:22:01.0/0000:24:00.0",
        2,
        0,
    );
    nic(&fixture, "pci0000:00/0000:00:03.1/0000:02:00.0", 3, 1);
    fixture
}

/// Two sockets with SNC-2, four nodes: after a B200 host in sgl-project/sglang pull request 40055, where each root complex
/// has its own node. One GPU's firmware entry is missing: its `numa_node` reads -1.
pub(crate) fn two_sockets_snc() -> Fixture {
    let fixture = Fixture::new();
    let list = [
        "0-27,112-139",
        "28-55,140-167",
        "56-83,168-195",
        "84-111,196-223",
    ];
    let of = |n: u32| Node(n, list[n as usize], Some(n / 2), 512);
    nodes(&fixture, &[of(0), of(1), of(2), of(3)], |a, b| {
        match (a == b, a / 2 == b / 2) {
            (true, _) => 10,
            (_, true) => 12,
            _ => 21,
        }
    });
    let gpus = [
        ("pci0000:15", "0000:15:01.0", "0000:16:00.0", 0),
        ("pci0000:26", "0000:26:01.0", "0000:27:00.0", 0),
        ("pci0000:37", "0000:37:01.0", "0000:38:00.0", 1),
        ("pci0000:97", "0000:97:01.0", "0000:98:00.0", 2),
        ("pci0000:c7", "0000:c7:01.0", "0000:c8:00.0", -1),
    ];
    for (minor, (complex, port, gpu, node)) in (0..).zip(gpus) {
        let path = format!("{complex}/{port}/{gpu}");
        nvidia_gpu(&fixture, &path, node, minor, "NVIDIA B200");
    }
    fixture
}

/// Two Grace CPUs, four GPUs whose memory is a node: after vllm-project/vllm pull request 39361 (nodes 2, 10, 18 and 26)
/// and `bytedance/xpu-perf` issue 129 (eight nodes a GPU, all but the first for MIG; left out here). Each GPU has a PCI
/// domain of its own.
pub(crate) fn gb200() -> Fixture {
    let fixture = Fixture::new();
    let memory = |n: u32| Node(n, "", None, 184);
    let all = [
        Node(0, "0-71", Some(0), 480),
        Node(1, "72-143", Some(1), 480),
        memory(2),
        memory(10),
        memory(18),
        memory(26),
    ];
    let socket = |n: u32| match n {
        0 | 2 | 10 => 0,
        _ => 1,
    };
    nodes(&fixture, &all, |a, b| {
        match (a == b, socket(a) == socket(b)) {
            (true, _) => 10,
            (_, true) => 80,
            (_, false) if a < 2 && b < 2 => 40,
            _ => 120,
        }
    });
    for (minor, (domain, node, memory)) in (0..).zip([
        ("0008", 0, 2),
        ("0009", 0, 10),
        ("0018", 1, 18),
        ("0019", 1, 26),
    ]) {
        let gpu = format!("{domain}:01:00.0");
        let path = format!("pci{domain}:00/{domain}:00:00.0/{gpu}");
        nvidia_gpu(&fixture, &path, node, minor, "NVIDIA GB200");
        fixture.file(
            &format!("proc/driver/nvidia/gpus/{gpu}/numa_status"),
            &format!("Node:      {memory}\nStatus:    online\n"),
        );
    }
    nic(&fixture, "pci0000:00/0000:00:00.0/0000:03:00.0", 0, 0);
    nic(&fixture, "pci0010:00/0010:00:00.0/0010:03:00.0", 1, 1);
    fixture
}

/// A workstation with one node and two GPUs, whose firmware tells no node of devices: after noonghunna/club-3090 issue
/// 1229, where `nvidia-smi topo -m` says PHB.
pub(crate) fn one_node() -> Fixture {
    let fixture = Fixture::new();
    nodes(&fixture, &[Node(0, "0-63", Some(0), 256)], |_, _| 10);
    let model = "NVIDIA GeForce RTX 5090";
    nvidia_gpu(
        &fixture,
        "pci0000:00/0000:00:01.1/0000:01:00.0",
        -1,
        0,
        model,
    );
    nvidia_gpu(
        &fixture,
        "pci0000:00/0000:00:03.1/0000:02:00.0",
        -1,
        1,
        model,
    );
    fixture
}
