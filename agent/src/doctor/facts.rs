//! What a check may look at, all in one place, so that judging it needs no host.

use crate::host::capabilities::{Capabilities, read_capabilities};
use crate::host::error::Error;
use crate::host::kernel::read_host;
use crate::host::lockdown::{Security, read_security};
use crate::host::namespaces::{require_host_pids, require_host_users};
use crate::host::root::Root;
use crate::host::surroundings::{Surroundings, read_surroundings};
use crate::host::topology::read_topology;
use model::selftest;
use model::signal::Signal;
use model::snapshot::{Lost, MapUse};
use std::path::{Path, PathBuf};

/// See the module's doc.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// `uname -r`.
    pub(crate) kernel: String,
    /// The kernel's description of itself.
    pub(crate) btf_file: PathBuf,
    /// Why it can't be read; `None` when it can.
    pub(crate) btf_unreadable: Option<String>,
    /// Lockdown and the like.
    pub(crate) security: Security,
    /// This process's.
    pub(crate) capabilities: Capabilities,
    /// `kernel.numa_balancing`.
    pub(crate) numa_balancing: Option<u32>,
    /// Why it can't be read.
    pub(crate) numa_balancing_reason: Option<String>,
    /// Container, virtual machine and the like.
    pub(crate) surroundings: Surroundings,
    /// Why the pids in `/proc` are not the kernel's; `None` when they are.
    pub(crate) foreign_pids: Option<String>,
    /// Why nodes can't be read, or something of them; `None` when all was.
    pub(crate) nodes_reason: Option<String>,
    /// Why its capabilities are not the host's; `None` when they are.
    pub(crate) foreign_users: Option<String>,
    /// How many nodes there are.
    pub(crate) nodes: usize,
    /// Kernel memory of all maps, bytes; `None` when nothing is loaded.
    pub(crate) map_bytes: Option<u64>,
    /// How full the maps are.
    pub(crate) maps: Vec<MapUse>,
    /// What was not counted so far.
    pub(crate) lost: Lost,
    /// Why no eBPF is loaded; `None` when it is.
    pub(crate) refused: Option<String>,
    /// Every signal as it stands.
    pub(crate) signals: Vec<Signal>,
    /// What the self-test found, when it was asked for.
    pub(crate) self_test: Option<selftest::Report>,
}

impl Facts {
    /// What files tell; what the probes tell is left empty.
    ///
    /// # Errors
    /// If a file that every kernel has can't be read.
    pub(crate) fn of_host(root: &Root, btf: &Path) -> Result<Self, Error> {
        let host = read_host(root)?;
        let topology = read_topology(root);
        Ok(Self {
            kernel: host.kernel,
            btf_file: btf.to_owned(),
            btf_unreadable: std::fs::read(btf).err().map(|error| error.to_string()),
            security: read_security(root),
            capabilities: read_capabilities(root)?,
            numa_balancing: host.numa_balancing,
            numa_balancing_reason: host.numa_balancing_reason,
            surroundings: read_surroundings(root),
            foreign_pids: require_host_pids(root).err().map(|error| error.to_string()),
            foreign_users: require_host_users(root)
                .err()
                .map(|error| error.to_string()),
            nodes: topology.nodes.len(),
            nodes_reason: topology.nodes_reason,
            ..Self::default()
        })
    }
}
