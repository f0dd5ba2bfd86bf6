//! Devices of whole machines, and of half a sysfs.

use super::*;
use crate::host::fixture::Fixture;
use crate::host::machines;
use crate::host::topology::read_topology;
use model::link::matrix;

fn devices(fixture: &Fixture) -> Devices {
    let root = fixture.root();
    read_devices(&root, &read_topology(&root))
}

/// The matrix, a row a line, and each device's node after it.
fn rows(fixture: &Fixture) -> Vec<String> {
    let found = devices(fixture);
    let matrix = matrix(&found.devices);
    let row = |(device, links): (&Device, &Vec<model::link::Link>)| {
        let links: Vec<String> = links.iter().map(ToString::to_string).collect();
        let node = device
            .node
            .map_or_else(|| "?".to_owned(), |n| n.to_string());
        format!("{} {} @{node}", device.label, links.join(" "))
    };
    found.devices.iter().zip(&matrix.links).map(row).collect()
}

#[test]
fn two_sockets_with_eight_gpus_behind_switches() {
    assert_eq!(
        rows(&machines::two_sockets_eight_gpus()),
        [
            "GPU0 X PIX NODE NODE SYS SYS SYS SYS PXB NODE SYS SYS @0",
            "GPU1 PIX X NODE NODE SYS SYS SYS SYS PXB NODE SYS SYS @0",
            "GPU2 NODE NODE X PIX SYS SYS SYS SYS NODE PXB SYS SYS @0",
            "GPU3 NODE NODE PIX X SYS SYS SYS SYS NODE PXB SYS SYS @0",
            "GPU4 SYS SYS SYS SYS X PIX NODE NODE SYS SYS PXB NODE @1",
            "GPU5 SYS SYS SYS SYS PIX X NODE NODE SYS SYS PXB NODE @1",
            "GPU6 SYS SYS SYS SYS NODE NODE X PIX SYS SYS NODE PXB @1",
            "GPU7 SYS SYS SYS SYS NODE NODE PIX X SYS SYS NODE PXB @1",
            "NIC0 PXB PXB NODE NODE SYS SYS SYS SYS X NODE SYS SYS @0",
            "NIC1 NODE NODE PXB PXB SYS SYS SYS SYS NODE X SYS SYS @0",
            "NIC2 SYS SYS SYS SYS PXB PXB NODE NODE SYS SYS X NODE @1",
            "NIC3 SYS SYS SYS SYS NODE NODE PXB PXB SYS SYS NODE X @1",
        ]
    );
}

#[test]
fn one_socket_with_four_nodes() {
    assert_eq!(
        rows(&machines::one_socket_nps4()),
        [
            "GPU0 X SYS SYS SYS PHB SYS @3",
            "GPU1 SYS X SYS SYS SYS PIX @2",
            "GPU2 SYS SYS X SYS SYS SYS @1",
            "GPU3 SYS SYS SYS X SYS SYS @0",
            "NIC0 PHB SYS SYS SYS X SYS @3",
            "NIC1 SYS PIX SYS SYS SYS X @2",
        ]
    );
}

#[test]
fn two_sockets_with_four_nodes_and_a_gpu_whose_node_nobody_tells() {
    assert_eq!(
        rows(&machines::two_sockets_snc()),
        [
            "GPU0 X NODE SYS SYS ? @0",
            "GPU1 NODE X SYS SYS ? @0",
            "GPU2 SYS SYS X SYS ? @1",
            "GPU3 SYS SYS SYS X ? @2",
            "GPU4 ? ? ? ? X @?",
        ]
    );
}

#[test]
fn gpus_that_are_memory_nodes() {
    let fixture = machines::gb200();
    assert_eq!(
        rows(&fixture),
        [
            "GPU0 X NODE SYS SYS NODE SYS @0",
            "GPU1 NODE X SYS SYS NODE SYS @0",
            "GPU2 SYS SYS X NODE SYS NODE @1",
            "GPU3 SYS SYS NODE X SYS NODE @1",
            "NIC0 NODE NODE SYS SYS X SYS @0",
            "NIC1 SYS SYS NODE NODE SYS X @1",
        ]
    );
    let memory: Vec<_> = devices(&fixture)
        .devices
        .into_iter()
        .map(|d| d.memory_nodes)
        .collect();
    assert_eq!(
        memory,
        [vec![2], vec![10], vec![18], vec![26], vec![], vec![]]
    );
}

#[test]
fn one_node_whose_firmware_tells_nothing() {
    let fixture = machines::one_node();
    assert_eq!(rows(&fixture), ["GPU0 X PHB @?", "GPU1 PHB X @?"]);
    let found = devices(&fixture);
    let reason = found.devices[0].reason.as_deref();
    assert_eq!(reason, Some("numa_node reads -1: the firmware doesn't say"));
}

#[test]
fn a_device_is_described_by_its_folders() {
    let found = devices(&machines::two_sockets_eight_gpus());
    let gpu = &found.devices[5];
    assert_eq!(
        (
            gpu.address.as_str(),
            gpu.vendor.as_str(),
            gpu.name.as_deref(),
            gpu.driver.as_deref()
        ),
        (
            "0000:8f:00.0",
            "NVIDIA",
            Some("NVIDIA A100-SXM4-80GB"),
            Some("nvidia")
        )
    );
    assert_eq!(gpu.root_complex.as_deref(), Some("pci0000:80"));
    assert_eq!(
        gpu.bridges,
        ["0000:80:01.0", "0000:81:00.0", "0000:82:01.0"]
    );
    assert_eq!(gpu.files, ["nvidia5"]);
    assert_eq!(found.devices[8].files, ["mlx5_0", "uverbs0"]);
    let found = devices(&machines::one_socket_nps4());
    assert_eq!(found.devices[0].files, ["renderD131"]);
    assert_eq!(
        found.devices[0].name.as_deref(),
        Some("AMD Instinct MI300X")
    );
}

#[test]
fn a_network_device_without_rdma_and_a_managers_display_are_none() {
    let fixture = Fixture::with(&[
        ("sys/bus/pci/devices/0000:01:00.0/class", "0x020000\n"),
        ("sys/bus/pci/devices/0000:02:00.0/class", "0x030000\n"),
        ("sys/bus/pci/devices/0000:02:00.0/vendor", "0x1a03\n"),
        ("sys/bus/pci/devices/0000:03:00.0/class", "0x010802\n"),
    ]);
    let found = read_devices(&fixture.root(), &Topology::default());
    assert!(
        found.devices.is_empty() && found.reasons.is_empty(),
        "{found:?}"
    );
}

#[test]
fn behind_a_volume_manager_the_inner_root_complex_counts() {
    let fixture = Fixture::new();
    let path = "pci0000:5d/0000:5d:05.5/pci10000:00/10000:00:02.0/10000:01:00.0";
    machines::nvidia_gpu(&fixture, path, 0, 0, "made up");
    let found = read_devices(&fixture.root(), &Topology::default());
    let gpu = &found.devices[0];
    assert_eq!(gpu.root_complex.as_deref(), Some("pci10000:00"));
    assert_eq!(gpu.bridges, ["10000:00:02.0"]);
}

#[test]
fn virtio_has_its_gpu_one_folder_further_on_older_kernels() {
    let folder = "sys/bus/pci/devices/0000:81:00.0";
    let fixture = Fixture::with(&[
        (&format!("{folder}/class"), "0x038000\n"),
        (&format!("{folder}/vendor"), "0x1af4\n"),
        (&format!("{folder}/virtio3/drm/renderD128/dev"), "226:128\n"),
    ]);
    let found = read_devices(&fixture.root(), &Topology::default());
    assert_eq!(found.devices[0].files, ["renderD128"]);
}

#[test]
fn without_pci_the_reason_names_the_folder() {
    let found = read_devices(&Fixture::new().root(), &Topology::default());
    assert!(found.devices.is_empty());
    assert!(
        found.reasons[0].contains("bus/pci/devices: not there"),
        "{:?}",
        found.reasons
    );
}

#[test]
fn half_a_sysfs_shows_the_other_half_and_says_what_is_missing() {
    let fixture = machines::two_sockets_snc();
    let folder = |address: &str| format!("sys/bus/pci/devices/{address}");
    // A folder where a file should be can't be read, by root either.
    fixture.unreadable(&format!("{}/class", folder("0000:16:00.0")));
    fixture.unreadable(&format!("{}/vendor", folder("0000:27:00.0")));
    fixture.unreadable(&format!("{}/numa_node", folder("0000:38:00.0")));
    fixture.unreadable("proc/driver/nvidia/gpus/0000:98:00.0/information");
    fixture.link("sys/bus/pci/devices/0000:ff:00.0", "../../../devices/gone");
    let found = devices(&fixture);
    assert_eq!(found.reasons.len(), 1, "{:?}", found.reasons);
    assert!(
        found.reasons[0].contains("0000:16:00.0/class"),
        "{:?}",
        found.reasons
    );
    let told: Vec<_> = found
        .devices
        .iter()
        .map(|d| {
            (
                d.address.as_str(),
                d.node,
                d.reason.clone().unwrap_or_default(),
            )
        })
        .collect();
    for ((address, node, reason), (want, want_node, why)) in told.iter().zip([
        ("0000:38:00.0", None, "numa_node"),
        ("0000:98:00.0", Some(2), "information"),
        ("0000:c8:00.0", None, "reads -1"),
        ("0000:27:00.0", Some(0), "vendor"),
    ]) {
        assert_eq!((*address, *node), (want, want_node), "{reason}");
        assert!(reason.contains(why), "{address}: {reason}");
    }
    assert_eq!(told.len(), 4);
}

#[test]
fn a_bus_that_cannot_be_listed_says_so() {
    let fixture = Fixture::with(&[("sys/bus/pci/devices", "a file\n")]);
    let found = read_devices(&fixture.root(), &Topology::default());
    assert!(
        found.reasons[0].contains("bus/pci/devices"),
        "{:?}",
        found.reasons
    );
}

#[test]
fn a_refusal_is_said_without_a_remedy_for_processes() {
    let denied = Error::Denied {
        path: "/sys/bus/pci/devices".into(),
    };
    assert_eq!(
        without_remedy(&denied),
        "/sys/bus/pci/devices: permission denied"
    );
}
