//! A GPU by what people call it: its number, its PCI address, or its device file.

use model::devices::{Device, DeviceKind};
use model::launch::Gpu;

/// Why there is no such GPU.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no GPU {id} here: {}", list(found))]
pub(crate) struct Unknown {
    /// As asked.
    id: String,
    /// Labels and addresses of those that there are.
    found: Vec<String>,
}

fn list(found: &[String]) -> String {
    if found.is_empty() {
        return "no PCI display or accelerator was found; name a node with --node N".to_owned();
    }
    format!("there are {}", found.join(", "))
}

/// Finds a GPU and its node among the machine's devices, by number or label (`0`, `GPU0`, as `numawatch topo` has them),
/// by PCI address, or by the name of a device file (`renderD128`, `/dev/nvidia0`).
///
/// # Errors
/// If there is no such device.
pub(crate) fn gpu_node(devices: &[Device], id: &str) -> Result<Gpu, Unknown> {
    let gpus = || devices.iter().filter(|d| d.kind != DeviceKind::Nic);
    let label = match id.parse::<u32>() {
        Ok(number) => format!("GPU{number}"),
        Err(_) => id.to_ascii_uppercase(),
    };
    let address = address(id);
    let file = id.rsplit_once('/').map_or(id, |(_, file)| file);
    let is_it = |device: &&Device| {
        device.label == label
            || address.as_ref() == Some(&device.address)
            || device.files.iter().any(|name| name == file)
    };
    let Some(device) = gpus().find(is_it) else {
        let found = gpus().map(|d| format!("{} {}", d.label, d.address));
        return Err(Unknown {
            id: id.to_owned(),
            found: found.collect(),
        });
    };
    Ok(Gpu {
        name: format!("{} ({})", device.label, device.address),
        node: device.node,
        number: device
            .label
            .strip_prefix("GPU")
            .and_then(|n| n.parse().ok()),
    })
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
    use model::devices;

    fn device(address: &str, kind: DeviceKind, node: Option<u32>, file: &str) -> Device {
        Device {
            address: address.to_owned(),
            kind,
            label: String::new(),
            vendor: "AMD".to_owned(),
            name: None,
            driver: None,
            node,
            memory_nodes: Vec::new(),
            bridges: Vec::new(),
            root_complex: None,
            files: vec![file.to_owned()],
            nvlinks: Vec::new(),
            nvswitches: Vec::new(),
            reason: None,
        }
    }

    /// A network card, and three GPUs, the last on a node that the firmware doesn't tell.
    fn host() -> Vec<Device> {
        let mut host = vec![
            device("0000:17:00.0", DeviceKind::Nic, Some(0), "mlx5_0"),
            device("0000:3b:00.0", DeviceKind::Gpu, Some(0), "nvidia0"),
            device("0000:af:00.0", DeviceKind::Gpu, Some(1), "renderD128"),
            device("0001:01:00.0", DeviceKind::Gpu, None, "renderD129"),
        ];
        devices::label(&mut host);
        host
    }

    #[test]
    fn each_way_to_name_one() {
        for (id, name, node) in [
            ("0", "GPU0 (0000:3b:00.0)", Some(0)),
            ("GPU1", "GPU1 (0000:af:00.0)", Some(1)),
            ("gpu1", "GPU1 (0000:af:00.0)", Some(1)),
            ("2", "GPU2 (0001:01:00.0)", None),
            ("0000:3b:00.0", "GPU0 (0000:3b:00.0)", Some(0)),
            ("af:00.0", "GPU1 (0000:af:00.0)", Some(1)),
            ("00000000:AF:00.0", "GPU1 (0000:af:00.0)", Some(1)),
            ("0001:01:00.0", "GPU2 (0001:01:00.0)", None),
            ("renderD128", "GPU1 (0000:af:00.0)", Some(1)),
            ("/dev/dri/renderD128", "GPU1 (0000:af:00.0)", Some(1)),
            ("/dev/nvidia0", "GPU0 (0000:3b:00.0)", Some(0)),
        ] {
            let found = gpu_node(&host(), id).unwrap();
            assert_eq!((found.name.as_str(), found.node), (name, node), "{id}");
        }
    }

    #[test]
    fn one_that_is_not_there_is_told_in_a_line_with_those_that_are() {
        for id in [
            "3",
            "3c:00.0",
            "renderD130",
            "NIC0",
            "mlx5_0",
            "17:00.0",
            "",
            "-1",
        ] {
            let error = gpu_node(&host(), id).unwrap_err().to_string();
            assert_eq!(
                error,
                format!(
                    "there is no GPU {id} here: there are GPU0 0000:3b:00.0, GPU1 0000:af:00.0, GPU2 0001:01:00.0"
                )
            );
        }
        let error = gpu_node(&[], "0").unwrap_err().to_string();
        assert!(error.contains("--node N"), "{error}");
    }
}
