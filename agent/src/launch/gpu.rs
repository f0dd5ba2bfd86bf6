//! A GPU's node: by its number, its PCI address, or the name of its device file.

use crate::host::root::{Root, read};
use model::launch::Gpu;
use std::fs;
use std::path::{Path, PathBuf};

/// PCI classes of displays and accelerators: VGA, 3D, other display, processing accelerator.
const CLASSES: [&str; 4] = ["0x0300", "0x0302", "0x0380", "0x1200"];

/// Server management chips that draw a console: ASPEED, Matrox.
const CONSOLES: [&str; 2] = ["0x1a03", "0x102b"];

/// Why there is no such GPU.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unknown {
    /// No such number.
    #[error("there is no GPU {id} here: {}", list(found))]
    Number {
        /// As asked.
        id: String,
        /// The addresses that there are.
        found: Vec<String>,
    },
    /// No such device.
    #[error("there is no PCI device {id} here (no {})", path.display())]
    Address {
        /// As asked.
        id: String,
        /// Where it would be.
        path: PathBuf,
    },
    /// No such device file.
    #[error("there is no device {id} here (no {})", path.display())]
    File {
        /// As asked.
        id: String,
        /// Where it would be.
        path: PathBuf,
    },
    /// Something else.
    #[error(
        "{id} names no GPU: write its number (0), its PCI address (0000:3b:00.0) or its device (renderD128)"
    )]
    Name {
        /// As asked.
        id: String,
    },
}

fn list(found: &[String]) -> String {
    if found.is_empty() {
        return "no PCI display or accelerator was found; name a node with --node N".to_owned();
    }
    let numbered = found.iter().enumerate();
    let numbered: Vec<String> = numbered
        .map(|(n, address)| format!("{n} {address}"))
        .collect();
    format!("there are {}", numbered.join(", "))
}

/// Finds a GPU and its node. Numbers count by PCI address, as with `CUDA_DEVICE_ORDER=PCI_BUS_ID`.
///
/// # Errors
/// If there is no such device.
pub(crate) fn gpu_node(root: &Root, id: &str) -> Result<Gpu, Unknown> {
    let devices = root.sys("bus/pci/devices");
    if let Ok(number) = id.parse::<usize>() {
        let found = addresses(&devices);
        return match found.get(number) {
            Some(address) => Ok(gpu(format!("{number} ({address})"), &devices.join(address))),
            None => Err(Unknown::Number {
                id: id.to_owned(),
                found,
            }),
        };
    }
    if let Some(address) = address(id) {
        let path = devices.join(&address);
        if !path.exists() {
            let id = id.to_owned();
            return Err(Unknown::Address { id, path });
        }
        return Ok(gpu(address, &path));
    }
    let file = id.strip_prefix("/dev/dri/").unwrap_or(id);
    if file.starts_with("renderD") || file.starts_with("card") {
        let path = root.sys("class/drm").join(file).join("device");
        if file.contains('/') || !path.exists() {
            let id = id.to_owned();
            return Err(Unknown::File { id, path });
        }
        return Ok(gpu(file.to_owned(), &path));
    }
    Err(Unknown::Name { id: id.to_owned() })
}

fn gpu(name: String, device: &Path) -> Gpu {
    let node = read(&device.join("numa_node")).ok();
    Gpu {
        name,
        // -1: the firmware doesn't tell.
        node: node.and_then(|text| text.trim().parse().ok()),
    }
}

/// Addresses of all GPUs, ascending.
fn addresses(devices: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(devices) else {
        return Vec::new();
    };
    let mut found: Vec<String> = entries
        .filter_map(Result::ok)
        .filter(|entry| is_gpu(&entry.path()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    found.sort();
    found
}

fn is_gpu(device: &Path) -> bool {
    let line = |name: &str| read(&device.join(name)).unwrap_or_default();
    let (class, vendor) = (line("class"), line("vendor"));
    CLASSES.iter().any(|known| class.starts_with(known)) && !CONSOLES.contains(&vendor.trim())
}

/// `3b:00.0`, `0000:3b:00.0` or nvidia-smi's `00000000:3B:00.0`, as sysfs writes it.
fn address(id: &str) -> Option<String> {
    let parts: Vec<&str> = id.split(':').collect();
    let (domain, bus, rest) = match parts[..] {
        [bus, rest] => ("0", bus, rest),
        [domain, bus, rest] => (domain, bus, rest),
        _ => return None,
    };
    let (device, function) = rest.split_once('.')?;
    let hex = |text: &str| u32::from_str_radix(text, 16).ok();
    Some(format!(
        "{:04x}:{:02x}:{:02x}.{:x}",
        hex(domain)?,
        hex(bus)?,
        hex(device)?,
        hex(function)?
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fixture::Fixture;

    fn device(fixture: &Fixture, address: &str, class: &str, vendor: &str, node: &str) {
        for (name, content) in [("class", class), ("vendor", vendor), ("numa_node", node)] {
            let path = format!("sys/bus/pci/devices/{address}/{name}");
            fixture.file(&path, &format!("{content}\n"));
        }
    }

    /// A console, a network card, and three GPUs, the last on a node that the firmware doesn't tell.
    fn host() -> Fixture {
        let fixture = Fixture::new();
        device(&fixture, "0000:02:00.0", "0x030000", "0x1a03", "0");
        device(&fixture, "0000:17:00.0", "0x020000", "0x15b3", "0");
        device(&fixture, "0000:3b:00.0", "0x030200", "0x10de", "0");
        device(&fixture, "0000:af:00.0", "0x038000", "0x1002", "1");
        device(&fixture, "0001:01:00.0", "0x120000", "0x8086", "-1");
        let drm = fixture.root().sys("class/drm/renderD128/device");
        fixture.link(
            "sys/class/drm/renderD128/device",
            "../../../bus/pci/devices/0000:af:00.0",
        );
        assert!(drm.exists());
        fixture
    }

    #[test]
    fn each_way_to_name_one() {
        let fixture = host();
        for (id, name, node) in [
            ("0", "0 (0000:3b:00.0)", Some(0)),
            ("1", "1 (0000:af:00.0)", Some(1)),
            ("2", "2 (0001:01:00.0)", None),
            ("0000:3b:00.0", "0000:3b:00.0", Some(0)),
            ("af:00.0", "0000:af:00.0", Some(1)),
            ("00000000:AF:00.0", "0000:af:00.0", Some(1)),
            ("0001:01:00.0", "0001:01:00.0", None),
            ("renderD128", "renderD128", Some(1)),
            ("/dev/dri/renderD128", "renderD128", Some(1)),
        ] {
            let found = gpu_node(&fixture.root(), id).unwrap();
            assert_eq!((found.name.as_str(), found.node), (name, node), "{id}");
        }
    }

    #[test]
    fn one_that_is_not_there_is_told_in_a_line() {
        let fixture = host();
        for (id, words) in [
            ("3", "there are 0 0000:3b:00.0, 1 0000:af:00.0"),
            ("3c:00.0", "no PCI device 3c:00.0"),
            ("renderD129", "no device renderD129"),
            ("card0/../renderD128", "no device card0/../renderD128"),
            ("nvidia", "renderD128"),
            ("", "names no GPU"),
        ] {
            let error = gpu_node(&fixture.root(), id).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
        let error = gpu_node(&Fixture::new().root(), "0").unwrap_err();
        assert!(error.to_string().contains("--node N"), "{error}");
    }
}
