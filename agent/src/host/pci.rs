//! GPUs, accelerators and RDMA NICs, from `/sys/bus/pci/devices` and NVIDIA's `/proc/driver/nvidia`.
//!
//! Takes a few milliseconds on a host with hundreds of PCI devices; only their `class` is read of most.

use crate::host::error::Error;
use crate::host::nvidia;
use crate::host::root::{Root, read, read_if_present};
use model::devices::{self, Device, DeviceKind};
use model::topology::{NodeId, Topology};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// AMD's graphics.
const AMD: u32 = 0x1002;

/// Vendors by PCI id.
const VENDORS: &[(u32, &str)] = &[
    (0x10de, "NVIDIA"),
    (AMD, "AMD"),
    (0x1022, "AMD"),
    (0x8086, "Intel"),
    (0x15b3, "Mellanox"),
    (0x14e4, "Broadcom"),
    (0x1077, "QLogic"),
    (0x1d0f, "Amazon"),
    (0x1da3, "Habana"),
    (0x19e5, "Huawei"),
    (0x1ae0, "Google"),
    (0x1e52, "Tenstorrent"),
    (0x1af4, "virtio"),
];

/// Displays that compute nothing: of management controllers, and of emulators without a GPU.
const ONLY_DISPLAYS: &[u32] = &[
    0x1a03, // ASPEED
    0x102b, // Matrox
    0x19e5, // Huawei's BMC; its accelerators have another class
    0x1234, // QEMU
    0x1013, // Cirrus, in QEMU
    0x1b36, // QXL
    0x15ad, // VMware
    0x1414, // Hyper-V
    0x80ee, // VirtualBox
];

/// What was found, and why something may be missing.
#[derive(Debug, Default)]
pub(crate) struct Devices {
    /// By kind and address, labelled.
    pub(crate) devices: Vec<Device>,
    /// One line for each thing that couldn't be read and belongs to no device above.
    pub(crate) reasons: Vec<String>,
}

/// Reads every device. What can't be read is missing, with its reason; the rest is there.
pub(crate) fn read_devices(root: &Root, topology: &Topology) -> Devices {
    let mut found = Devices::default();
    let bus = root.sys("bus/pci/devices");
    let entries = match fs::read_dir(&bus) {
        Ok(entries) => entries,
        Err(source) if source.kind() == io::ErrorKind::NotFound => {
            found.reasons.push(format!("{}: not there", bus.display()));
            return found;
        }
        Err(source) => {
            found.reasons.push(without_remedy(&Error::io(&bus, source)));
            return found;
        }
    };
    for entry in entries.filter_map(Result::ok) {
        let address = entry.file_name().to_string_lossy().into_owned();
        match read_device(root, &entry.path(), &address, topology) {
            Ok(device) => found.devices.extend(device),
            Err(error) => found.reasons.push(without_remedy(&error)),
        }
    }
    found.reasons.sort_unstable();
    devices::label(&mut found.devices);
    found
}

/// `None`: it is of no kind that matters, or was taken out meanwhile.
fn read_device(
    root: &Root,
    path: &Path,
    address: &str,
    topology: &Topology,
) -> Result<Option<Device>, Error> {
    let Some(class) = read_if_present(&path.join("class"))? else {
        return Ok(None);
    };
    let class = hex(&class).ok_or_else(|| Error::format(&path.join("class"), "is no number"))?;
    let Some(mut kind) = kind_of(class, path) else {
        return Ok(None);
    };
    let vendor = read(&path.join("vendor"));
    let id = vendor.as_ref().ok().and_then(|text| hex(text));
    // AMD's Instinct has no display and so another class; everyone calls it a GPU.
    if kind == DeviceKind::Accelerator && id == Some(AMD) {
        kind = DeviceKind::Gpu;
    }
    // Whose it is can't be told of an unreadable one: it is shown.
    if kind == DeviceKind::Gpu && id.is_some_and(|id| ONLY_DISPLAYS.contains(&id)) {
        return Ok(None);
    }
    let mut device = Device {
        address: address.to_owned(),
        kind,
        label: String::new(),
        vendor: id.map_or_else(|| "unknown".to_owned(), vendor_name),
        name: text_of(&path.join("product_name")),
        driver: link_name(&path.join("driver")),
        node: None,
        memory_nodes: Vec::new(),
        bridges: Vec::new(),
        root_complex: None,
        files: files(path),
        nvlinks: Vec::new(),
        nvswitches: Vec::new(),
        reason: None,
    };
    if let Err(error) = vendor {
        device.lacks(&without_remedy(&error));
    }
    place(&mut device, path);
    match read_node(path) {
        Ok(node) => device.node = Some(node),
        Err(why) => device.lacks(&why),
    }
    let mut memory_nodes = Vec::new();
    if kind == DeviceKind::Gpu && device.vendor == "NVIDIA" {
        let told = nvidia::read_gpu(root, address);
        device
            .files
            .extend(told.minor.map(|n| format!("nvidia{n}")));
        device.name = device.name.or(told.name);
        memory_nodes.extend(told.memory_node);
        if let Some(why) = told.reason {
            device.lacks(&why);
        }
    }
    device.settle(&memory_nodes, topology);
    Ok(Some(device))
}

/// The kind of a class (`0x030200`); a network device is one if it does RDMA.
fn kind_of(class: u32, path: &Path) -> Option<DeviceKind> {
    match class >> 8 {
        0x0300 | 0x0302 | 0x0380 => Some(DeviceKind::Gpu),
        0x1200 => Some(DeviceKind::Accelerator),
        0x0200..0x0300 if path.join("infiniband").is_dir() => Some(DeviceKind::Nic),
        _ => None,
    }
}

/// Its root complex and the bridges above it, from where its link in sysfs leads.
fn place(device: &mut Device, path: &Path) {
    let resolved = match fs::canonicalize(path) {
        Ok(resolved) => resolved,
        Err(source) => {
            device.lacks(&without_remedy(&Error::io(path, source)));
            return;
        }
    };
    let parts: Vec<&str> = resolved
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    // Behind Intel's VMD there are two: the inner one is the device's.
    let root = parts.iter().rposition(|part| is_root_complex(part));
    let Some(root) = root else {
        device.lacks("its path in sysfs names no root complex");
        return;
    };
    device.root_complex = Some(parts[root].to_owned());
    let above = parts.get(root + 1..parts.len() - 1).unwrap_or_default();
    device.bridges = above.iter().map(|part| (*part).to_owned()).collect();
}

/// `pci0000:3a`.
fn is_root_complex(part: &str) -> bool {
    let numbers = part.strip_prefix("pci").and_then(|n| n.split_once(':'));
    let is_hex = |n: &str| !n.is_empty() && n.bytes().all(|b| b.is_ascii_hexdigit());
    numbers.is_some_and(|(domain, bus)| is_hex(domain) && is_hex(bus))
}

fn read_node(path: &Path) -> Result<NodeId, String> {
    let path = path.join("numa_node");
    let text = match read_if_present(&path) {
        Ok(Some(text)) => text,
        Ok(None) => return Err("this kernel tells no node of devices".to_owned()),
        Err(error) => return Err(without_remedy(&error)),
    };
    match text.trim().parse::<i64>() {
        Ok(node) if node < 0 => Err(format!("numa_node reads {node}: the firmware doesn't say")),
        Ok(node) => NodeId::try_from(node).map_err(|_| format!("numa_node reads {node}")),
        Err(_) => Err(format!("{}: is no number", path.display())),
    }
}

/// Names of device files and interfaces: the kernel has a folder for each subsystem.
fn files(path: &Path) -> Vec<String> {
    let mut folders: Vec<PathBuf> = ["drm", "accel", "infiniband", "infiniband_verbs"]
        .into_iter()
        .map(|folder| path.join(folder))
        .collect();
    // Older kernels have virtio's GPU below its virtio device.
    let virtio = names(path).into_iter().filter(|n| n.starts_with("virtio"));
    folders.extend(virtio.map(|name| path.join(name).join("drm")));
    let mut files: Vec<String> = folders.iter().flat_map(|folder| names(folder)).collect();
    files.sort_unstable();
    files
}

/// A folder's entries; none of one that isn't there.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries
        .filter_map(Result::ok)
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

fn link_name(path: &Path) -> Option<String> {
    let target = fs::read_link(path).ok()?;
    Some(target.file_name()?.to_string_lossy().into_owned())
}

fn text_of(path: &Path) -> Option<String> {
    let text = read(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn vendor_name(id: u32) -> String {
    let known = VENDORS.iter().find(|(vendor, _)| *vendor == id);
    known.map_or_else(|| format!("{id:04x}"), |(_, name)| (*name).to_owned())
}

/// `0x030200\n`.
fn hex(text: &str) -> Option<u32> {
    u32::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()
}

/// Where several reasons stand in one line the same remedy after each says nothing.
pub(crate) fn without_remedy(error: &Error) -> String {
    match error {
        Error::Denied { path } => format!("{}: permission denied", path.display()),
        other => other.to_string(),
    }
}

#[cfg(test)]
#[path = "pci_tests.rs"]
mod tests;
