//! What NVIDIA's management library (NVML) adds: names, NVLink peers, memory nodes, and who computes on which GPU.
//!
//! The library is loaded at run time and may be missing or fail; then there is a reason and everything else goes on.

use model::devices::{Device, DeviceKind};
use model::topology::{NodeId, Topology};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::PciInfo;
use nvml_wrapper::{Device as NvmlDevice, Nvml};
use std::mem::ManuallyDrop;
use std::path::Path;

/// The name that every driver package has; the one without a number is in the packages for developers only.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// More than any GPU has.
const MOST_LINKS: u32 = 36;

/// More GPUs than any host has, and more processes than a GPU has: a library that tells of more is not believed, because to
/// ask for each would take for ever, and room for each more memory than there is.
const MOST_GPUS: u32 = 1_024;
const MOST_PROCESSES: u32 = 65_536;

/// What the library tells of one GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gpu {
    /// As sysfs writes it.
    pub(crate) address: String,
    /// The product's name.
    pub(crate) name: Option<String>,
    /// The GPU's node: of its memory, where that is one; else of the CPUs near it.
    pub(crate) node: Option<NodeId>,
    /// What is at the other end of each active NVLink.
    pub(crate) peers: Vec<String>,
    /// Processes that have a context on it; `None` where it doesn't tell.
    pub(crate) pids: Option<Vec<u32>>,
    /// Why something above is missing.
    pub(crate) reason: Option<String>,
}

/// What the library tells at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The GPUs that answered.
    pub(crate) gpus: Vec<Gpu>,
    /// Why there are none, or not all.
    pub(crate) reason: Option<String>,
}

impl Answer {
    /// No answer.
    pub(crate) fn none(reason: impl Into<String>) -> Self {
        Self {
            gpus: Vec::new(),
            reason: Some(reason.into()),
        }
    }

    /// Whether a process has a context on a GPU; `None` where no list of processes was to be had.
    pub(crate) fn of_process(&self, pid: u32) -> Option<Vec<&str>> {
        let listing = self.gpus.iter().filter(|gpu| gpu.pids.is_some());
        let mut listing = listing.peekable();
        listing.peek()?;
        let has = |gpu: &&Gpu| gpu.pids.as_ref().is_some_and(|pids| pids.contains(&pid));
        Some(
            listing
                .filter(has)
                .map(|gpu| gpu.address.as_str())
                .collect(),
        )
    }
}

/// Whoever can be asked about NVIDIA's GPUs.
pub(crate) trait Gpus {
    /// Every GPU.
    fn ask(&self) -> Answer;
}

/// The loaded library.
pub(crate) struct Library {
    // Its own drop panics where the library lacks `nvmlShutdown`.
    nvml: ManuallyDrop<Nvml>,
}

impl Library {
    /// Loads and initializes the library, or the one at `path`.
    ///
    /// # Errors
    /// Why not, in a few words.
    pub(crate) fn load(path: Option<&Path>) -> Result<Self, String> {
        if cfg!(target_feature = "crt-static") {
            return Err("static build".to_owned());
        }
        let path = path.unwrap_or(Path::new(LIBRARY));
        let loaded = Nvml::builder().lib_path(path.as_os_str()).init();
        let nvml = loaded.map_err(|error| match error {
            // It says which library, and what is wrong with it.
            NvmlError::LibloadingError(error) => error.to_string(),
            error => format!("{}: {}", path.display(), words(&error)),
        })?;
        Ok(Self {
            nvml: ManuallyDrop::new(nvml),
        })
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        if self.nvml.lib().nvmlShutdown.is_ok() {
            // SAFETY: it is dropped once, here, and not used any more.
            unsafe { ManuallyDrop::drop(&mut self.nvml) };
        }
    }
}

impl Gpus for Library {
    fn ask(&self) -> Answer {
        let count = match self.nvml.device_count() {
            Ok(count) => count,
            Err(error) => return Answer::none(words(&error)),
        };
        if let Err(why) = believed(count, MOST_GPUS, "devices") {
            return Answer::none(why);
        }
        let mut answer = Answer::default();
        for index in 0..count {
            let asked = self.nvml.device_by_index(index);
            match asked.and_then(|device| gpu(&device)) {
                Ok(gpu) => answer.gpus.push(gpu),
                // One that has fallen off the bus takes no other with it.
                Err(error) => answer.reason = Some(format!("GPU {index}: {}", words(&error))),
            }
        }
        answer
    }
}

fn gpu(device: &NvmlDevice<'_>) -> Result<Gpu, NvmlError> {
    let address = address(&device.pci_info()?);
    let list = |count: Result<u32, NvmlError>, list: &dyn Fn() -> Result<_, NvmlError>| {
        let count = count.map_err(|error| format!("NVML: processes: {}", words(&error)))?;
        believed(count, MOST_PROCESSES, "processes")?;
        list().map_err(|error| format!("NVML: processes: {}", words(&error)))
    };
    let compute = list(device.running_compute_processes_count(), &|| {
        device.running_compute_processes()
    });
    let graphics = list(device.running_graphics_processes_count(), &|| {
        device.running_graphics_processes()
    });
    let reason = match (&compute, &graphics) {
        (Err(why), Err(_)) => Some(why.clone()),
        _ => None,
    };
    let pids = reason.is_none().then(|| {
        let lists = compute.into_iter().chain(graphics).flatten();
        let mut pids: Vec<u32> = lists.map(|process| process.pid).collect();
        pids.sort_unstable();
        pids.dedup();
        pids
    });
    let peers = (0..MOST_LINKS)
        .map(|link| device.link_wrapper_for(link))
        .filter(|link| link.is_active().unwrap_or(false))
        .filter_map(|link| link.remote_pci_info().ok())
        .map(|remote| self::address(&remote));
    Ok(Gpu {
        name: device.name().ok(),
        node: device.numa_node_id().ok(),
        peers: peers.collect(),
        pids,
        reason,
        address,
    })
}

/// Whether there can be so many.
fn believed(count: u32, most: u32, what: &str) -> Result<(), String> {
    if count > most {
        return Err(format!("NVML tells of {count} {what}: not believed"));
    }
    Ok(())
}

fn address(pci: &PciInfo) -> String {
    format!("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device)
}

/// The library's reason as part of a line.
fn words(error: &NvmlError) -> String {
    match error {
        NvmlError::FailedToLoadSymbol(what) => format!("it lacks a function: {what}"),
        error => {
            let text = error.to_string();
            text.lines()
                .next()
                .unwrap_or_default()
                .trim_end_matches('.')
                .to_owned()
        }
    }
}

/// Adds what the library tells to what sysfs told of the topology's devices.
pub(crate) fn add(topology: &mut Topology, gpus: &[Gpu]) {
    let mut devices = std::mem::take(&mut topology.devices);
    add_to(&mut devices, gpus, topology);
    topology.devices = devices;
}

fn add_to(devices: &mut [Device], gpus: &[Gpu], topology: &Topology) {
    let known: Vec<String> = devices
        .iter()
        .filter(|d| d.kind == DeviceKind::Gpu)
        .map(|d| d.address.clone())
        .collect();
    for device in devices {
        let Some(gpu) = gpus.iter().find(|g| g.address == device.address) else {
            continue;
        };
        if gpu.name.is_some() {
            device.name.clone_from(&gpu.name);
        }
        // What is no GPU at the other end of an NVLink is a switch.
        let (gpus, switches) = gpu.peers.iter().cloned().partition(|p| known.contains(p));
        device.nvlinks = gpus;
        device.nvswitches = switches;
        if let Some(node) = gpu.node.and_then(|id| topology.node(id)) {
            if node.cpus.is_empty() {
                let mut memory = device.memory_nodes.clone();
                memory.push(node.id);
                device.settle(&memory, topology);
            } else if device.node.is_none() {
                device.node = Some(node.id);
                device.reason = None;
            }
        }
        if let Some(why) = &gpu.reason {
            device.lacks(why);
        }
    }
}

#[cfg(test)]
#[path = "nvml_tests.rs"]
mod tests;
