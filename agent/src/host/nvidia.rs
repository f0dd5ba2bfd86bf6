//! What NVIDIA's kernel driver tells of a GPU in `/proc/driver/nvidia/gpus/ADDRESS`.

use crate::host::error::Error;
use crate::host::pci::without_remedy;
use crate::host::root::{Root, read_if_present};
use model::topology::NodeId;

/// One GPU. All `None` under another driver.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// The product's name.
    pub(crate) name: Option<String>,
    /// The number of its device file: `/dev/nvidia3`. Not its place in any order.
    pub(crate) minor: Option<u32>,
    /// The node that its memory is, where that is one and online.
    pub(crate) memory_node: Option<NodeId>,
    /// Why something is missing.
    pub(crate) reason: Option<String>,
}

/// Why there is no NVML to ask.
pub(crate) const NO_DRIVER: &str = "no NVIDIA driver on this host";

/// Whether the driver is there.
pub(crate) fn has_driver(root: &Root) -> bool {
    root.proc("driver/nvidia/version").exists()
}

/// Reads `information` and `numa_status`.
pub(crate) fn read_gpu(root: &Root, address: &str) -> Told {
    let folder = root.proc(format!("driver/nvidia/gpus/{address}"));
    let mut told = Told::default();
    match read_if_present(&folder.join("information")) {
        Ok(text) => {
            let text = text.unwrap_or_default();
            told.name = value(&text, "Model").map(str::to_owned);
            told.minor = value(&text, "Device Minor").and_then(|n| n.parse().ok());
        }
        Err(error) => told.reason = Some(without_remedy(&error)),
    }
    // Only GPUs whose memory is the host's too have one; others' reads fail, or say -1.
    match read_if_present(&folder.join("numa_status")) {
        Ok(text) => {
            let text = text.unwrap_or_default();
            let online = value(&text, "Status") == Some("online");
            told.memory_node = value(&text, "Node")
                .filter(|_| online)
                .and_then(|n| n.parse().ok());
        }
        Err(error @ Error::Denied { .. }) => told.reason = Some(without_remedy(&error)),
        Err(_) => {}
    }
    told
}

/// The value of a line `Device Minor: \t 3`; the driver writes `Unknown` or question marks for what it can't tell.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let (_, value) = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.trim() == key)?;
    Some(value.trim()).filter(|v| !v.is_empty() && !v.starts_with('?') && *v != "Unknown")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fixture::Fixture;

    const INFORMATION: &str = "Model: \t\t NVIDIA GB200\nIRQ:   \t\t 123\nGPU UUID: \t GPU-????????\n\
                               Bus Location: \t 0008:06:00.0\nDevice Minor: \t 3\nGPU Excluded:\t No\n";

    fn gpu(numa_status: &str) -> Told {
        let folder = "proc/driver/nvidia/gpus/0008:06:00.0";
        let fixture = Fixture::with(&[(&format!("{folder}/information"), INFORMATION)]);
        fixture.file(&format!("{folder}/numa_status"), numa_status);
        read_gpu(&fixture.root(), "0008:06:00.0")
    }

    #[test]
    fn the_minor_and_the_name_are_the_drivers() {
        let told = gpu("Node:      2\nStatus:    online\nAddress:   0\nSize:      0\n");
        assert_eq!(
            told,
            Told {
                name: Some("NVIDIA GB200".to_owned()),
                minor: Some(3),
                memory_node: Some(2),
                reason: None
            }
        );
    }

    #[test]
    fn memory_that_is_no_node_yet_is_none() {
        for status in [
            "Node:      2\nStatus:    offline\n",
            "Node:      -1\nStatus:    disabled\n",
            "Node:      -1\nStatus:    online\n",
            "",
        ] {
            assert_eq!(gpu(status).memory_node, None, "{status:?}");
        }
    }

    #[test]
    fn another_driver_tells_nothing_and_that_is_no_failure() {
        assert_eq!(
            read_gpu(&Fixture::new().root(), "0000:01:00.0"),
            Told::default()
        );
    }
}
