//! From facts to checks: the host, and what this process may do. Pure. Ids are stable and documented in docs/doctor.md.

use super::check::{Check, Outcome, check};
use super::facts::Facts;
use super::probe_checks;
use crate::host::capabilities::{Capability, SYS_ADMIN, SYS_RESOURCE, USED};
use crate::host::lockdown::Lockdown;
use crate::host::surroundings::Cgroup;
use model::balancing::Balancing;
use model::signal::Signal;

/// Every check, in the order in which they are shown.
pub(crate) fn checks(facts: &Facts) -> Vec<Check> {
    let mut checks = vec![
        check(
            "host.kernel",
            Outcome::Pass,
            format!("Linux {}", facts.kernel),
        ),
        btf(facts),
        lockdown(facts),
        unprivileged_bpf(facts),
        numa_balancing(facts),
        cgroup(facts.surroundings.cgroup),
        namespace(
            "host.pid_namespace",
            facts.foreign_pids.as_ref(),
            "/proc has the host's pids",
        ),
        namespace(
            "host.user_namespace",
            facts.foreign_users.as_ref(),
            "capabilities are the host's",
        ),
        container(facts),
        nodes(facts),
        virtual_machine(facts),
        tracefs(facts),
    ];
    checks.extend(USED.iter().map(|c| capability(facts, *c)));
    checks.extend(probe_checks::of(facts));
    checks
}

fn btf(facts: &Facts) -> Check {
    let file = facts.btf_file.display();
    let (outcome, what) = match &facts.btf_unreadable {
        None => (
            Outcome::Pass,
            format!("the kernel describes itself ({file})"),
        ),
        Some(why) => (
            Outcome::Fail,
            format!(
                "{file}: {why}; without it no probe can be attached: a kernel with CONFIG_DEBUG_INFO_BTF has \
                 /sys/kernel/btf/vmlinux"
            ),
        ),
    };
    check("host.btf", outcome, what)
}

/// The kernel's word for EPERM.
const EPERM: &str = "(os error 1)";

fn lockdown(facts: &Facts) -> Check {
    let state = facts.security.lockdown.map_or_else(
        || "unknown (securityfs is not mounted, or not readable)".to_owned(),
        |state| state.to_string(),
    );
    let refused = |s: &&Signal| {
        let reason = s.reason.as_deref().unwrap_or_default();
        reason.contains("fentry/") && reason.contains(EPERM)
    };
    let refused = facts.signals.iter().any(|s| refused(&s));
    let (outcome, what) = match (facts.security.lockdown, refused) {
        (Some(Lockdown::Confidentiality), _) => (
            Outcome::Warn,
            "the kernel lets no probe read its memory, and refuses kprobes; each signal below says what that costs it"
                .to_owned(),
        ),
        (Some(Lockdown::Off), false) => (Outcome::Pass, "nothing is forbidden to root".to_owned()),
        (None, false) if facts.refused.is_some() => (
            Outcome::Warn,
            "no probe was tried: whether it forbids any is not known".to_owned(),
        ),
        (_, false) => (Outcome::Pass, "no probe was refused for it".to_owned()),
        // The capabilities would have been the simpler reason.
        (_, true) if !facts.capabilities.may_trace() => {
            (Outcome::Warn, "fentry programs are refused for want of capabilities, see below".to_owned())
        }
        (Some(Lockdown::Off), true) => (
            Outcome::Warn,
            format!("fentry programs are refused (EPERM), and not by lockdown: by a security module{}", modules(facts)),
        ),
        (_, true) => (
            Outcome::Warn,
            format!(
                "fentry programs are refused (EPERM) though CAP_BPF and CAP_PERFMON are there: lockdown's doing, or \
                 another security module's{}; a kernel that was not booted with lockdown= or built to be locked down has them",
                modules(facts)
            ),
        ),
    };
    check("host.lockdown", outcome, format!("{state}: {what}"))
}

fn modules(facts: &Facts) -> String {
    if facts.security.modules.is_empty() {
        String::new()
    } else {
        format!(" ({})", facts.security.modules.join(", "))
    }
}

fn unprivileged_bpf(facts: &Facts) -> Check {
    let (outcome, what) = match facts.security.unprivileged_bpf_disabled {
        Some(0) => (
            Outcome::Warn,
            "kernel.unprivileged_bpf_disabled=0: anybody may load eBPF; numawatch doesn't need that, set it to 2",
        ),
        Some(_) => (
            Outcome::Pass,
            "kernel.unprivileged_bpf_disabled is set: eBPF is for those with CAP_BPF",
        ),
        None => (
            Outcome::Warn,
            "this kernel has no such setting, or it is masked: whether anybody may load eBPF is not known",
        ),
    };
    check("host.unprivileged_bpf", outcome, what)
}

fn numa_balancing(facts: &Facts) -> Check {
    let id = "host.numa_balancing";
    let unreadable = facts.numa_balancing_reason.as_deref();
    let (outcome, what) = match Balancing::of(facts.numa_balancing, unreadable) {
        Balancing::Unknown(why) => (Outcome::Warn, why),
        Balancing::NotInKernel => (
            Outcome::Warn,
            "this kernel has no NUMA balancing, so there are no hint touches; remote shares are estimates",
        ),
        Balancing::Off => (
            Outcome::Warn,
            "kernel.numa_balancing=0: no hint touches; remote shares are estimates \
             (sysctl kernel.numa_balancing=1 switches it on, and makes the kernel move pages)",
        ),
        Balancing::On => (
            Outcome::Pass,
            "kernel.numa_balancing=1: hint touches measure remote shares",
        ),
        Balancing::Tiering { .. } => (
            Outcome::Warn,
            "kernel.numa_balancing has memory tiering: hint touches are no remote share",
        ),
        Balancing::Other(_) => (
            Outcome::Warn,
            "kernel.numa_balancing has a mode that numawatch doesn't know: hint touches are no remote share",
        ),
    };
    check(id, outcome, what)
}

fn cgroup(version: Option<Cgroup>) -> Check {
    let (outcome, what) = match version {
        Some(Cgroup::V2) => (Outcome::Pass, "version 2"),
        Some(Cgroup::V1) => (
            Outcome::Pass,
            "version 1, or both; cpusets are honoured all the same",
        ),
        None => (Outcome::Pass, "none in this kernel"),
    };
    check("host.cgroup", outcome, what)
}

fn namespace(id: &str, foreign: Option<&String>, own: &str) -> Check {
    match foreign {
        None => check(id, Outcome::Pass, own),
        Some(why) => check(id, Outcome::Fail, why),
    }
}

fn container(facts: &Facts) -> Check {
    let what = facts.surroundings.container.map_or_else(
        || "nothing says that this is a container".to_owned(),
        |sign| format!("this is a container ({sign}); nodes and CPUs below are the host's"),
    );
    check("host.container", Outcome::Pass, what)
}

fn nodes(facts: &Facts) -> Check {
    let id = "host.nodes";
    match (&facts.nodes_reason, facts.nodes) {
        (Some(why), _) => check(
            id,
            Outcome::Warn,
            format!(
                "{why}; what is near and far can't be told of what is hidden: run numawatch where it isn't"
            ),
        ),
        (None, 1) => check(id, Outcome::Pass, "one node"),
        (None, nodes) => check(id, Outcome::Pass, format!("{nodes} nodes")),
    }
}

fn virtual_machine(facts: &Facts) -> Check {
    let nodes = match facts.nodes {
        1 => "one node".to_owned(),
        n => format!("{n} nodes"),
    };
    let (outcome, what) = match (&facts.surroundings.hypervisor, facts.nodes) {
        (None, _) => (Outcome::Pass, format!("bare metal, {nodes}")),
        (Some(name), 1) => (
            Outcome::Warn,
            format!(
                "a virtual machine ({name}) with one node: if its host has more, remote memory can't be seen from within; \
                 have the hypervisor pass the topology on (vNUMA)"
            ),
        ),
        (Some(name), _) => (
            Outcome::Pass,
            format!(
                "a virtual machine ({name}) that has {nodes}; they are what its hypervisor says"
            ),
        ),
    };
    check("host.virtual_machine", outcome, what)
}

fn tracefs(facts: &Facts) -> Check {
    let mounted = if facts.surroundings.tracefs {
        "mounted"
    } else {
        "not mounted"
    };
    check(
        "host.tracefs",
        Outcome::Pass,
        format!("{mounted}, and not needed: no rung reads it"),
    )
}

fn capability(facts: &Facts, capability: Capability) -> Check {
    let id = format!("capability.{}", capability.id);
    let Capability { name, costs, .. } = capability;
    if facts.capabilities.has(capability) {
        return check(id, Outcome::Pass, format!("{name} is in effect"));
    }
    if facts.capabilities.suffices_for(capability) {
        return check(
            id,
            Outcome::Pass,
            format!("{name} is missing; CAP_SYS_ADMIN stands in for it"),
        );
    }
    let harmless =
        capability == SYS_ADMIN || capability == SYS_RESOURCE && at_least(&facts.kernel, 5, 11);
    if harmless {
        let what = format!("{name} is missing, and not needed on this kernel");
        return check(id, Outcome::Pass, what);
    }
    check(id, Outcome::Warn, format!("{name} is missing: {costs}"))
}

/// Whether a release is this version or later; not when it is no release.
fn at_least(release: &str, major: u32, minor: u32) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut next = || numbers.next().and_then(|n| n.parse::<u32>().ok());
    next()
        .zip(next())
        .is_some_and(|have| have >= (major, minor))
}

#[cfg(test)]
#[path = "checks_tests.rs"]
mod tests;
