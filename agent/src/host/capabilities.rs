//! Which of the capabilities that numawatch can use this process has, and what each missing one costs.

use crate::host::error::Error;
use crate::host::namespaces::require_host_users;
use crate::host::root::{Root, read};

/// Capabilities in effect, as the kernel's mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Capabilities(u64);

/// One that matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Capability {
    /// Its bit in the kernel's mask.
    bit: u32,
    /// Its name, as `capsh` and service files write it.
    pub(crate) name: &'static str,
    /// The last word of its check's id.
    pub(crate) id: &'static str,
    /// What is lost without it.
    pub(crate) costs: &'static str,
}

/// What somebody who may not load eBPF would gain.
pub(crate) const WOULD_ADD: &str = "root, or CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE, would add what this kernel has \
    of moves, first touches, maps, hint touches, migrations by node, scan time, pins, and other users' placement";

/// Loads eBPF.
pub(crate) const BPF: Capability = Capability {
    bit: 39,
    name: "CAP_BPF",
    id: "bpf",
    costs: "no eBPF program loads: CPU time and placement by procfs are all there is",
};
/// Loads tracing programs.
pub(crate) const PERFMON: Capability = Capability {
    bit: 38,
    name: "CAP_PERFMON",
    id: "perfmon",
    costs: "no tracing program loads: CPU time and placement by procfs are all there is",
};
/// Reads other users' processes.
pub(crate) const SYS_PTRACE: Capability = Capability {
    bit: 19,
    name: "CAP_SYS_PTRACE",
    id: "sys_ptrace",
    costs: "placement, policy and GPU devices of other users' processes can't be read",
};
/// Stands in for the first two.
pub(crate) const SYS_ADMIN: Capability = Capability {
    bit: 21,
    name: "CAP_SYS_ADMIN",
    id: "sys_admin",
    costs: "not needed, CAP_BPF and CAP_PERFMON do since Linux 5.8",
};
/// Raises resource limits.
pub(crate) const SYS_RESOURCE: Capability = Capability {
    bit: 24,
    name: "CAP_SYS_RESOURCE",
    id: "sys_resource",
    costs: "RLIMIT_MEMLOCK can't be raised, against which Linux before 5.11 counts maps",
};

/// All of them, the dearest first.
pub(crate) const USED: [Capability; 5] = [BPF, PERFMON, SYS_PTRACE, SYS_ADMIN, SYS_RESOURCE];

impl Capabilities {
    /// These and no others.
    #[cfg(test)]
    pub(crate) fn of(capabilities: &[Capability]) -> Self {
        Self(capabilities.iter().fold(0, |mask, c| mask | 1 << c.bit))
    }

    /// Whether this one is in effect.
    pub(crate) fn has(self, capability: Capability) -> bool {
        self.0 & (1 << capability.bit) != 0
    }

    /// Whether it, or one that the kernel takes for it, is in effect.
    pub(crate) fn suffices_for(self, capability: Capability) -> bool {
        let covered = capability == BPF || capability == PERFMON;
        self.has(capability) || covered && self.has(SYS_ADMIN)
    }

    /// Whether the kernel lets this process load tracing programs, as far as capabilities go.
    pub(crate) fn may_trace(self) -> bool {
        self.suffices_for(BPF) && self.suffices_for(PERFMON)
    }

    /// Names of those that [`Self::may_trace`] misses.
    pub(crate) fn missing_to_trace(self) -> Vec<&'static str> {
        [BPF, PERFMON]
            .into_iter()
            .filter(|c| !self.suffices_for(*c))
            .map(|c| c.name)
            .collect()
    }
}

/// This process's capabilities in effect; none in a user namespace of its own, where the kernel doesn't take them for what
/// numawatch does.
///
/// # Errors
/// If `/proc/self/status` can't be read, or tells none.
pub(crate) fn read_capabilities(root: &Root) -> Result<Capabilities, Error> {
    if require_host_users(root).is_err() {
        return Ok(Capabilities::default());
    }
    let path = root.proc("self/status");
    parse(&read(&path)?).ok_or_else(|| Error::format(&path, "has no CapEff"))
}

fn parse(status: &str) -> Option<Capabilities> {
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(mask.trim(), 16).ok().map(Capabilities)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_a_root_that_lacks_one() {
        let status = "CapPrm:\t000001ffffffffff\nCapEff:\t000001fffeffffff\n";
        let capabilities = parse(status).unwrap();
        for capability in USED {
            let want = capability != SYS_RESOURCE;
            assert_eq!(capabilities.has(capability), want, "{}", capability.name);
        }
    }

    #[test]
    fn sys_admin_stands_in_for_bpf_and_perfmon() {
        for (have, may) in [
            (&[BPF, PERFMON][..], true),
            (&[SYS_ADMIN], true),
            (&[BPF], false),
            (&[PERFMON, SYS_PTRACE], false),
            (&[], false),
        ] {
            let capabilities = Capabilities::of(have);
            assert_eq!(capabilities.may_trace(), may, "{have:?}");
            assert_eq!(capabilities.missing_to_trace().is_empty(), may);
        }
        assert!(!Capabilities::of(&[SYS_ADMIN]).suffices_for(SYS_PTRACE));
    }

    #[test]
    fn a_status_without_the_line_is_none() {
        assert_eq!(parse("Name:\tx\n"), None);
        assert_eq!(parse("CapEff:\tnonsense\n"), None);
    }
}
