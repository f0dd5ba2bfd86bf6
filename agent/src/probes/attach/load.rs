//! Loads the kernel side, made for the machine: its nodes, the sizes of its maps, the kernel's layout.

use super::AttachError;
use super::words::{is_permission, one_line};
use crate::probes::bounds::Bounds;
use crate::probes::layout::Layout;
use crate::probes::slots::Slots;
use agent_ebpf::MAJORS;
use aya::{Btf, Ebpf, EbpfLoader, VerifierLogLevel, include_bytes_aligned};
use model::topology::Topology;
use std::collections::BTreeMap;

#[cfg(kernel_object)]
static OBJECT: &[u8] = include_bytes_aligned!(env!("NUMAWATCH_EBPF_OBJECT"));
#[cfg(not(kernel_object))]
compile_error!("the kernel side is not built: type `cargo xtask build-ebpf`, then this again");

/// What the kernel side is made for.
pub(crate) struct Host<'a> {
    /// Its nodes.
    pub(crate) topology: &'a Topology,
    /// Which counter of a row is whose.
    pub(crate) slots: &'a Slots,
    /// Sizes of the maps.
    pub(crate) bounds: Bounds,
    /// Major numbers of devices whose drivers allocate memory.
    pub(crate) device_majors: Vec<u32>,
}

/// The maps of rows by name, and their entries: those that were `asked` for, else what the bounds allow.
pub(super) fn entries(bounds: Bounds, asked: &BTreeMap<String, u32>) -> Vec<(&'static str, u32)> {
    let maps = bounds.maps().into_iter();
    maps.map(|(name, entries)| (name, asked.get(name).copied().unwrap_or(entries)))
        .collect()
}

/// Puts maps and programs into the kernel; nothing is attached yet.
pub(super) fn load(
    host: &Host<'_>,
    entries: &[(&str, u32)],
    layout: &Layout,
    btf: &Btf,
) -> Result<Ebpf, AttachError> {
    let table = host.slots.table(host.topology);
    let mut majors = [0u8; MAJORS];
    for major in &host.device_majors {
        if let Some(known) = majors.get_mut(*major as usize) {
            *known = 1;
        }
    }
    let mut loader = EbpfLoader::new();
    loader
        .btf(Some(btf))
        .verifier_log_level(verifier_log_level());
    loader.override_global(agent_ebpf::global::SLOT_OF, table.as_slice(), true);
    loader.override_global(agent_ebpf::global::DEVICE_MAJORS, majors.as_slice(), true);
    for (name, entries) in entries {
        loader.map_max_entries(name, *entries);
    }
    for (name, value) in &layout.globals {
        loader.override_global(name, value, true);
    }
    loader.load(OBJECT).map_err(|error| {
        let text = one_line(&error);
        if is_permission(&error) {
            AttachError::Refused(text)
        } else {
            AttachError::Load(text)
        }
    })
}

/// Asks the verifier to explain a refusal; for whoever changes the kernel side.
const EXPLAIN: &str = "NUMAWATCH_VERIFIER_LOG";

/// None by default: with the log, each load that fails is tried again with ever larger buffers.
fn verifier_log_level() -> VerifierLogLevel {
    if std::env::var_os(EXPLAIN).is_some() {
        VerifierLogLevel::VERBOSE | VerifierLogLevel::STATS
    } else {
        VerifierLogLevel::DISABLE
    }
}
