//! What counts, and which signals it gives: eBPF, procfs, or both.

use crate::host::capabilities::{WOULD_ADD, read_capabilities};
use crate::host::devices::read_device_majors;
use crate::host::kernel::read_pid_max;
use crate::host::namespaces::{require_host_pids, require_host_users};
use crate::host::root::Root;
use crate::probes::attach::{self, attach};
use crate::probes::beside::Beside;
use crate::probes::bounds::{BUDGET, Bounds, Machine};
use crate::probes::procfs::Procfs;
use crate::probes::procfs_signals;
use crate::probes::reader::Reader;
use crate::probes::slots::Slots;
use crate::probes::source::Source;
use crate::probes::{forced, ladder};
use anyhow::Result;
use model::signal::{Signal, SignalState};
use model::snapshot::Host;
use model::topology::Topology;

/// What counts, and which signals it gives.
pub(super) struct Counting {
    pub(super) source: Source,
    /// Every signal but placement.
    pub(super) signals: Vec<Signal>,
    pub(super) refused: Option<Refused>,
}

/// Why there is no eBPF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// The kernel's word, or what is missing.
    pub(crate) why: String,
    /// What more privilege would add; `None` where it would add nothing.
    pub(crate) would_help: Option<&'static str>,
}

impl Counting {
    /// By eBPF, or by procfs where that can't be had.
    pub(super) fn start(
        root: &Root,
        topology: &Topology,
        slots: &Slots,
        options: &attach::Options,
    ) -> Result<Self> {
        if let Err(foreign) = require_host_users(root) {
            let refused = Refused {
                why: foreign.to_string(),
                would_help: None,
            };
            return Ok(Self::by_procfs(root, topology, options, refused));
        }
        let missing = read_capabilities(root)?.missing_to_trace();
        if !missing.is_empty() {
            let refused = Refused {
                why: format!("{} missing", missing.join(" and ")),
                would_help: Some(WOULD_ADD),
            };
            return Ok(Self::by_procfs(root, topology, options, refused));
        }
        let host = attach::Host {
            topology,
            slots,
            bounds: Bounds::fit(&machine(root, topology)),
            device_majors: read_device_majors(root),
        };
        let attached = require_host_pids(root).map_err(|error| error.to_string());
        let attached = attached.and_then(|()| require_possible_cpus());
        let attached = attached.and_then(|()| attach(&host, options).map_err(|e| e.to_string()));
        let attached = match attached {
            Ok(attached) => attached,
            Err(why) => {
                let would_help = None;
                let refused = Refused { why, would_help };
                return Ok(Self::by_procfs(root, topology, options, refused));
            }
        };
        give_back_memory();
        if let Some(why) = &attached.lifecycle {
            tracing::warn!("children of watched processes are found late: {why}");
        }
        let by_procfs = forced::by_procfs(&options.forced);
        let signals = attached
            .signals
            .iter()
            .map(|signal| {
                if by_procfs.contains(&signal.name) {
                    procfs_signals::signal(root, signal.name, "--mechanism asks for it")
                } else {
                    signal.clone()
                }
            })
            .collect();
        let reader = Box::new(Reader::new(attached, topology, slots.table(topology))?);
        let source = if by_procfs.is_empty() {
            Source::Kernel(reader)
        } else {
            let procfs = Procfs::new(root.clone(), topology);
            Source::Both(reader, Beside::new(procfs, by_procfs))
        };
        Ok(Self {
            source,
            signals,
            refused: None,
        })
    }

    fn by_procfs(
        root: &Root,
        topology: &Topology,
        options: &attach::Options,
        refused: Refused,
    ) -> Self {
        let why = refused.why.clone();
        let signals =
            procfs_signals::signals(root, &why).into_iter().map(
                |signal| match forced::not_by_procfs(signal.name, &options.forced, &why) {
                    Some(why) => Signal::unavailable(signal.name, why),
                    None => signal,
                },
            );
        Self {
            source: Source::Procfs(Procfs::new(root.clone(), topology)),
            signals: signals.collect(),
            refused: Some(refused),
        }
    }
}

/// A map that has an entry for each CPU can be read only by those who know how many CPUs there can be.
fn require_possible_cpus() -> Result<(), String> {
    let possible = aya::util::nr_cpus();
    possible.map(drop).map_err(|(file, error)| {
        format!("can't read {file}, without which the kernel's maps can't be read: {error}")
    })
}

/// Signals as they stand with this host's setting of `kernel.numa_balancing`.
pub(super) fn all_under_balancing(signals: &[Signal], host: &Host) -> Vec<Signal> {
    signals
        .iter()
        .map(|signal| under_balancing(signal, host))
        .collect()
}

/// A signal as it stands with this host's setting of `kernel.numa_balancing`.
fn under_balancing(signal: &Signal, host: &Host) -> Signal {
    // What the user asked for comes before what the host can't.
    if signal.reason.as_deref() == Some(&forced::off(signal.name)) {
        return signal.clone();
    }
    if let Some(why) = ladder::idle(signal.name, host) {
        // What the user can change comes first.
        let reason = match &signal.reason {
            Some(reason) if !signal.is_live() => format!("{why}; {reason}"),
            _ => why.to_owned(),
        };
        return Signal::unavailable(signal.name, reason);
    }
    if !signal.is_live() {
        return signal.clone();
    }
    let mut signal = signal.clone();
    if let Some(caveat) = ladder::caveat(signal.name, host) {
        if signal.state != SignalState::Unreliable {
            signal.state = SignalState::Degraded;
        }
        signal.reason = Some(match signal.reason.take() {
            Some(reason) => format!("{caveat}; {reason}"),
            None => caveat,
        });
    }
    signal
}

/// What the sizes of the kernel side's maps follow from.
fn machine(root: &Root, topology: &Topology) -> Machine {
    let with_cpus = topology.nodes.iter().filter(|node| !node.cpus.is_empty());
    Machine {
        nodes_with_cpus: with_cpus.count() as u64,
        pid_max: read_pid_max(root),
        budget: BUDGET,
    }
}

/// The kernel's BTF took 30 MiB while programs were loaded; the allocator keeps them unless told.
fn give_back_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: no requirements.
    unsafe {
        libc::malloc_trim(0);
    }
}
