//! What `numawatch launch` needs to know before it becomes the command: the GPUs' nodes, the memory that the model takes,
//! and what the machine has.

pub(crate) mod contradiction;
pub(crate) mod elsewhere;
pub(crate) mod engine_flags;
mod gpu;
mod model_files;
mod wrappers;

use crate::host::available::read_available;
use crate::host::cgroup::read_cgroup;
use crate::host::cpulist;
use crate::host::pci::read_devices;
use crate::host::process::{ProcessDir, own_pid};
use crate::host::root::Root;
use crate::host::topology::read_topology;
use anyhow::Result;
use model::launch::{Asked, Gpu, Here, Needs};
use model::topology::{NodeId, Topology};
use std::ffi::OsString;

/// What the user asks for of this machine.
///
/// # Errors
/// For a GPU that isn't there.
pub(crate) fn asked(
    root: &Root,
    topology: &Topology,
    node: Option<NodeId>,
    gpus: &[String],
    needs: Option<u64>,
    command: &[OsString],
) -> Result<Asked> {
    let devices = match gpus {
        [] => Vec::new(),
        _ => read_devices(root, topology).devices,
    };
    let gpus: Vec<Gpu> = gpus
        .iter()
        .map(|id| gpu::gpu_node(&devices, id))
        .collect::<Result<_, _>>()?;
    let said = needs.map(|bytes| Needs {
        bytes,
        why: "--needs".to_owned(),
    });
    Ok(Asked {
        node,
        gpus,
        needs: said.or_else(|| model_files::needs(command)),
    })
}

/// The machine, and what this process's cgroup leaves of it.
pub(crate) fn here(root: &Root) -> Here {
    let topology = read_topology(root);
    let own = ProcessDir::open(root, own_pid(root));
    let status = own.as_ref().ok().and_then(|dir| dir.status().ok());
    let memberships = own.ok().and_then(|dir| dir.read_start("cgroup", 8192).ok());
    Here {
        available: read_available(root, &topology),
        cpuset_cpus: memberships.and_then(|text| read_cgroup(root, &text).cpus),
        mems_allowed: status.and_then(|status| cpulist::parse(&status.memory_allowed?)),
        topology,
    }
}
