//! What lies between two devices, in the words of `nvidia-smi topo -m`.

use crate::devices::Device;
use serde::Serialize;
use std::fmt;

/// The way from one device to another, nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// The device itself.
    Itself,
    /// So many NVLinks, direct or by NVSwitches.
    NvLink(usize),
    /// At most a single PCIe bridge or switch.
    Pix,
    /// Several PCIe bridges, but no host bridge.
    Pxb,
    /// A PCIe host bridge.
    Phb,
    /// Host bridges within one NUMA node, and what connects them.
    Node,
    /// What connects NUMA nodes.
    Sys,
    /// The place of one of them isn't known, and the answer depends on it.
    Unknown,
}

/// The meaning of each word, for legends.
pub const LEGEND: [(&str, &str); 8] = [
    ("X", "itself"),
    ("NV#", "a bonded set of # NVLinks"),
    ("PIX", "at most a single PCIe bridge or switch"),
    ("PXB", "several PCIe bridges, no host bridge"),
    ("PHB", "a PCIe host bridge, typically the CPU"),
    ("NODE", "between host bridges within a NUMA node"),
    ("SYS", "between NUMA nodes"),
    ("?", "a node or a place in PCIe is unknown"),
];

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self {
            Self::NvLink(links) => return write!(f, "NV{links}"),
            Self::Itself => "X",
            Self::Pix => "PIX",
            Self::Pxb => "PXB",
            Self::Phb => "PHB",
            Self::Node => "NODE",
            Self::Sys => "SYS",
            Self::Unknown => "?",
        };
        f.write_str(word)
    }
}

impl Serialize for Link {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What lies between two devices.
#[must_use]
pub fn link(a: &Device, b: &Device) -> Link {
    if a.address == b.address {
        return Link::Itself;
    }
    match nvlinks(a, b) {
        0 => pcie(a, b),
        links => Link::NvLink(links),
    }
}

/// Direct NVLinks, else those to NVSwitches that both have.
fn nvlinks(a: &Device, b: &Device) -> usize {
    let times = |peers: &[String], address: &str| peers.iter().filter(|p| *p == address).count();
    let direct = times(&a.nvlinks, &b.address).max(times(&b.nvlinks, &a.address));
    if direct > 0 {
        return direct;
    }
    let mut switches: Vec<&str> = a.nvswitches.iter().map(String::as_str).collect();
    switches.sort_unstable();
    switches.dedup();
    let shared = |switch: &str| times(&a.nvswitches, switch).min(times(&b.nvswitches, switch));
    switches.into_iter().map(shared).sum()
}

fn pcie(a: &Device, b: &Device) -> Link {
    match (&a.root_complex, &b.root_complex) {
        (Some(one), Some(other)) if one == other => below_one_host_bridge(a, b),
        (Some(_), Some(_)) => match (a.node, b.node) {
            (Some(one), Some(other)) if one == other => Link::Node,
            (Some(_), Some(_)) => Link::Sys,
            _ => Link::Unknown,
        },
        // One host bridge is on one node: two nodes need no path to be far apart.
        _ => match (a.node, b.node) {
            (Some(one), Some(other)) if one != other => Link::Sys,
            _ => Link::Unknown,
        },
    }
}

fn below_one_host_bridge(a: &Device, b: &Device) -> Link {
    let shared = a.bridges.iter().zip(&b.bridges);
    let shared = shared.take_while(|(one, other)| one == other).count();
    if shared == 0 {
        return Link::Phb;
    }
    // A switch is an upstream port with a downstream port for each device.
    let below = |device: &Device| device.bridges.len().saturating_sub(shared);
    if below(a).max(below(b)) <= 1 {
        Link::Pix
    } else {
        Link::Pxb
    }
}

/// The links between all GPUs, accelerators and NICs, a row each.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Matrix {
    /// Of rows and columns.
    pub labels: Vec<String>,
    /// By row and column.
    pub links: Vec<Vec<Link>>,
}

/// The matrix in the devices' own order.
#[must_use]
pub fn matrix(devices: &[Device]) -> Matrix {
    let row = |a: &Device| devices.iter().map(|b| link(a, b)).collect();
    Matrix {
        labels: devices.iter().map(|d| d.label.clone()).collect(),
        links: devices.iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::tests::device;

    /// Its node, root complex, and bridges from the root port down.
    type Place<'a> = (Option<u32>, Option<&'a str>, &'a [&'a str]);

    #[test]
    fn the_way_decides_the_word() {
        let cases: &[(&str, Place<'_>, Place<'_>, Link)] = &[
            (
                "two ports of one switch",
                (Some(0), Some("pci0000:3a"), &["rp", "up", "down0"]),
                (Some(0), Some("pci0000:3a"), &["rp", "up", "down1"]),
                Link::Pix,
            ),
            (
                "two functions of one card",
                (Some(0), Some("pci0000:3a"), &["rp"]),
                (Some(0), Some("pci0000:3a"), &["rp"]),
                Link::Pix,
            ),
            (
                "two switches below a third",
                (Some(0), Some("pci0000:3a"), &["rp", "up", "d0", "u0", "x"]),
                (Some(0), Some("pci0000:3a"), &["rp", "up", "d1", "u1", "y"]),
                Link::Pxb,
            ),
            (
                "a switch, and one below it",
                (Some(0), Some("pci0000:3a"), &["rp", "up", "d0"]),
                (Some(0), Some("pci0000:3a"), &["rp", "up", "d1", "u1", "y"]),
                Link::Pxb,
            ),
            (
                "two root ports of one host bridge",
                (Some(0), Some("pci0000:3a"), &["rp0"]),
                (Some(0), Some("pci0000:3a"), &["rp1"]),
                Link::Phb,
            ),
            (
                "integrated into one host bridge",
                (None, Some("pci0000:00"), &[]),
                (None, Some("pci0000:00"), &[]),
                Link::Phb,
            ),
            (
                "two host bridges of a node",
                (Some(0), Some("pci0000:3a"), &["rp0"]),
                (Some(0), Some("pci0000:5d"), &["rp1"]),
                Link::Node,
            ),
            (
                "two nodes",
                (Some(0), Some("pci0000:3a"), &["rp0"]),
                (Some(1), Some("pci0000:85"), &["rp1"]),
                Link::Sys,
            ),
            (
                "an unknown node: same node or not?",
                (Some(0), Some("pci0000:3a"), &["rp0"]),
                (None, Some("pci0000:85"), &["rp1"]),
                Link::Unknown,
            ),
            (
                "unknown nodes below one switch need none",
                (None, Some("pci0000:3a"), &["rp", "up", "d0"]),
                (None, Some("pci0000:3a"), &["rp", "up", "d1"]),
                Link::Pix,
            ),
            (
                "no path, one node: anything nearer than SYS",
                (Some(0), None, &[]),
                (Some(0), Some("pci0000:3a"), &["rp"]),
                Link::Unknown,
            ),
            (
                "no path, two nodes",
                (Some(0), None, &[]),
                (Some(1), Some("pci0000:85"), &["rp"]),
                Link::Sys,
            ),
            (
                "nothing known",
                (None, None, &[]),
                (None, None, &[]),
                Link::Unknown,
            ),
        ];
        for (what, a, b, want) in cases {
            let make = |address: &str, (node, root, bridges): &Place<'_>| Device {
                node: *node,
                root_complex: root.map(str::to_owned),
                bridges: bridges.iter().map(|b| (*b).to_owned()).collect(),
                ..device(address)
            };
            let (a, b) = (make("0000:01:00.0", a), make("0000:02:00.0", b));
            assert_eq!(link(&a, &b), *want, "{what}");
            assert_eq!(link(&b, &a), *want, "{what}, the other way");
            assert_eq!(link(&a, &a), Link::Itself);
        }
    }

    #[test]
    fn nvlinks_are_counted_direct_or_by_switches() {
        let texts = |peers: &[&str]| peers.iter().map(|p| (*p).to_owned()).collect();
        let gpu = |address: &str, peers: &[&str], switches: &[&str]| Device {
            node: Some(0),
            nvlinks: texts(peers),
            nvswitches: texts(switches),
            ..device(address)
        };
        let (a, b, c) = ("0000:0a:00.0", "0000:0b:00.0", "0000:0c:00.0");
        for (what, one, other, want) in [
            (
                "bridge",
                gpu(a, &[b, b, c], &[]),
                gpu(b, &[a, a], &[]),
                "NV2",
            ),
            ("one side tells", gpu(a, &[b], &[]), gpu(b, &[], &[]), "NV1"),
            ("a common peer", gpu(a, &[c], &[]), gpu(b, &[c], &[]), "?"),
            (
                "switches",
                gpu(a, &[], &["s1", "s1", "s2", "s2"]),
                gpu(b, &[], &["s2", "s1", "s1", "s2"]),
                "NV4",
            ),
            (
                "a dead link",
                gpu(a, &[], &["s1", "s2"]),
                gpu(b, &[], &["s1"]),
                "NV1",
            ),
        ] {
            assert_eq!(link(&one, &other).to_string(), want, "{what}");
            assert_eq!(link(&other, &one).to_string(), want, "{what}");
        }
    }

    #[test]
    fn a_matrix_has_itself_on_its_diagonal() {
        let devices = [device("0000:01:00.0"), device("0000:02:00.0")];
        let json = serde_json::to_value(matrix(&devices)).unwrap();
        assert_eq!(json["links"], serde_json::json!([["X", "?"], ["?", "X"]]));
    }
}
