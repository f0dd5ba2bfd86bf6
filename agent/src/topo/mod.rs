//! The machine as it is built: sockets, nodes, devices, and what lies between two of them.

pub(crate) mod text;
mod tree;

use crate::host::nvidia;
use crate::host::nvml::{self, Answer, Gpus, Library};
use crate::host::pci::read_devices;
use crate::host::root::Root;
use crate::host::topology::read_topology;
use model::link::{Matrix, matrix};
use model::topology::Topology;
use serde::Serialize;
use std::path::Path;

/// What `topo --json` prints.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    schema_version: u32,
    /// Packages; `None` where sysfs tells none.
    sockets: Option<usize>,
    /// As in a snapshot.
    topology: Topology,
    /// Between all devices, in the topology's order.
    matrix: Matrix,
    /// NVIDIA's library.
    nvml: Nvml,
    /// Why nodes may be missing.
    nodes_reason: Option<String>,
}

#[derive(Debug, Serialize)]
struct Nvml {
    available: bool,
    reason: Option<String>,
    /// The user named a library, and wants to know what became of it.
    #[serde(skip)]
    named: bool,
}

impl Report {
    /// Reads it. Nothing that can't be read keeps the rest from being shown.
    pub(crate) fn read(root: &Root, library: Option<&Path>) -> Self {
        let answer = if library.is_none() && !nvidia::has_driver(root) {
            Answer::none(nvidia::NO_DRIVER)
        } else {
            match Library::load(library) {
                Ok(library) => library.ask(),
                Err(why) => Answer::none(why),
            }
        };
        Self::with(root, answer, library.is_some())
    }

    fn with(root: &Root, answer: Answer, named: bool) -> Self {
        let mut topology = read_topology(root);
        let read = read_devices(root, &topology);
        topology.devices = read.devices;
        topology.devices_reason = (!read.reasons.is_empty()).then(|| read.reasons.join("; "));
        nvml::add(&mut topology, &answer.gpus);
        Self {
            schema_version: 1,
            sockets: topology.sockets(),
            matrix: matrix(&topology.devices),
            nvml: Nvml {
                available: !answer.gpus.is_empty() || answer.reason.is_none(),
                reason: answer.reason,
                named,
            },
            nodes_reason: topology.nodes_reason.clone(),
            topology,
        }
    }
}
