//! What is printed of whole machines.

use super::*;
use crate::host::fixture::Fixture;
use crate::host::machines;
use crate::host::nvml::Answer;

const PLAIN: Paint = Paint { colour: false };

fn printed(fixture: &Fixture) -> String {
    let told = Answer::none("static build");
    report(&Report::with(&fixture.root(), told, false), PLAIN)
}

#[test]
fn gpus_whose_memory_is_a_node_stand_below_the_nearest_cpus() {
    let text = printed(&machines::gb200());
    let want = "\
2 sockets, 6 nodes, 144 CPUs, 4 GPUs, 2 RDMA NICs

socket 0
├─ node 0  CPUs 0-71  memory 480.0 GiB, 240.0 GiB free
│  ├─ pci0008:00
│  │  └─ GPU0  0008:01:00.0  NVIDIA GB200, driver nvidia  its memory is node 2  nvidia0
│  ├─ pci0009:00
│  │  └─ GPU1  0009:01:00.0  NVIDIA GB200, driver nvidia  its memory is node 10  nvidia1
│  └─ pci0000:00
│     └─ NIC0  0000:03:00.0  Mellanox, driver mlx5_core  mlx5_0 uverbs0
├─ node 2  no CPUs  memory 184.0 GiB, 92.0 GiB free  memory of GPU0
└─ node 10  no CPUs  memory 184.0 GiB, 92.0 GiB free  memory of GPU1
socket 1
├─ node 1  CPUs 72-143  memory 480.0 GiB, 240.0 GiB free
│  ├─ pci0018:00
│  │  └─ GPU2  0018:01:00.0  NVIDIA GB200, driver nvidia  its memory is node 18  nvidia2
│  ├─ pci0019:00
│  │  └─ GPU3  0019:01:00.0  NVIDIA GB200, driver nvidia  its memory is node 26  nvidia3
│  └─ pci0010:00
│     └─ NIC1  0010:03:00.0  Mellanox, driver mlx5_core  mlx5_1 uverbs1
├─ node 18  no CPUs  memory 184.0 GiB, 92.0 GiB free  memory of GPU2
└─ node 26  no CPUs  memory 184.0 GiB, 92.0 GiB free  memory of GPU3

Distances between nodes
       0   1   2  10  18  26
   0  10  40  80  80 120 120
   1  40  10 120 120  80  80
   2  80 120  10  80 120 120
  10  80 120  80  10 120 120
  18 120  80 120 120  10  80
  26 120  80 120 120  80  10

Between devices
     GPU0 GPU1 GPU2 GPU3 NIC0 NIC1 node
GPU0 X    NODE SYS  SYS  NODE SYS  0
GPU1 NODE X    SYS  SYS  NODE SYS  0
GPU2 SYS  SYS  X    NODE SYS  NODE 1
GPU3 SYS  SYS  NODE X    SYS  NODE 1
NIC0 NODE NODE SYS  SYS  X    SYS  0
NIC1 SYS  SYS  NODE NODE SYS  X    1

X    itself
NODE between host bridges within a NUMA node
SYS  between NUMA nodes

NVML unavailable: static build; NVLinks are not shown
";
    assert_eq!(text, want);
}

#[test]
fn switches_stand_between_root_complexes_and_devices() {
    let text = printed(&machines::two_sockets_eight_gpus());
    let want = "\
└─ node 0  CPUs 0-63,128-191  memory 1024.0 GiB, 512.0 GiB free
   ├─ pci0000:00
   │  ├─ switch 0000:01:00.0
   │  │  ├─ GPU0  0000:07:00.0  NVIDIA A100-SXM4-80GB, driver nvidia  nvidia0
   │  │  └─ GPU1  0000:0f:00.0  NVIDIA A100-SXM4-80GB, driver nvidia  nvidia1
   │  └─ switch 0000:03:00.0
   │     └─ NIC0  0000:0c:00.0  Mellanox, driver mlx5_core  mlx5_0 uverbs0
";
    assert!(text.contains(want), "{text}");
}

#[test]
fn a_device_of_unknown_node_stands_apart_with_its_reason() {
    let text = printed(&machines::one_node());
    let want = "\
unknown node
└─ pci0000:00
   ├─ GPU0  0000:01:00.0  NVIDIA GeForce RTX 5090, driver nvidia  nvidia0
";
    assert!(text.contains(want), "{text}");
    assert!(text.contains("GPU0: numa_node reads -1"), "{text}");
}

#[test]
fn nodes_that_cannot_be_read_take_no_device_with_them() {
    let fixture = machines::two_sockets_snc();
    fixture.unreadable("sys/devices/system/node/node1/cpulist");
    let text = printed(&fixture);
    assert!(
        text.starts_with("2 sockets, 3 nodes, 168 CPUs, 5 GPUs\n"),
        "{text}"
    );
    assert!(
        text.contains("node 1, not online or unreadable\n└─ pci0000:37\n"),
        "{text}"
    );
    assert!(text.contains("nodes: can't read "), "{text}");
    assert!(text.contains("GPU3 SYS  SYS  SYS  X    ?    2\n"), "{text}");
}

#[test]
fn a_machine_without_devices_has_no_matrix() {
    let text = printed(&Fixture::with(&[
        ("sys/devices/system/cpu/online", "0-1\n"),
        ("proc/meminfo", "MemTotal: 4096 kB\nMemFree: 1024 kB\n"),
    ]));
    assert!(
        text.contains("node 0  CPUs 0-1  memory 4 MiB, 1 MiB free"),
        "{text}"
    );
    assert!(
        !text.contains("Between") && !text.contains("NVML"),
        "{text}"
    );
    assert!(
        text.contains("devices: ") && text.contains("not there"),
        "{text}"
    );
}

#[test]
fn a_library_that_the_user_named_is_answered_for_without_a_gpu_too() {
    let machine = Fixture::with(&[("sys/devices/system/cpu/online", "0\n")]);
    for (named, want) in [(true, true), (false, false)] {
        let broken = Answer::none("/x.so: file too short");
        let text = report(&Report::with(&machine.root(), broken, named), PLAIN);
        let told = text.contains("NVML unavailable: /x.so: file too short");
        assert_eq!(told, want, "{text}");
    }
}

#[test]
fn colours_change_no_text() {
    let fixture = machines::two_sockets_eight_gpus();
    let read = Report::with(&fixture.root(), Answer::none("static build"), false);
    let coloured = report(&read, Paint { colour: true });
    let mut stripped = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once('\x1b') {
        stripped.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    stripped.push_str(rest);
    assert_ne!(coloured, stripped);
    assert_eq!(stripped, report(&read, PLAIN));
}
