use super::*;
use crate::host::capabilities::{BPF, Capabilities, PERFMON, SYS_PTRACE};
use crate::host::lockdown::Security;
use crate::host::surroundings::Surroundings;
use model::signal::{Mechanism, SignalName, SignalState};
use model::snapshot::{Lost, MapUse};

fn good() -> Facts {
    Facts {
        kernel: "6.12.1-amd64".to_owned(),
        btf_file: "/sys/kernel/btf/vmlinux".into(),
        security: Security {
            lockdown: Some(Lockdown::Off),
            modules: vec!["lockdown".to_owned(), "yama".to_owned()],
            unprivileged_bpf_disabled: Some(2),
        },
        capabilities: Capabilities::of(&USED),
        numa_balancing: Some(1),
        surroundings: Surroundings {
            cgroup: Some(Cgroup::V2),
            ..Surroundings::default()
        },
        nodes: 2,
        map_bytes: Some(21 << 20),
        maps: vec![MapUse {
            name: "THREADS".to_owned(),
            used: 2,
            max: 8_192,
        }],
        lost: Lost {
            rows: Some(0),
            news: Some(0),
            events: Some(0),
            events_reason: None,
        },
        signals: vec![standing(SignalName::Sched, SignalState::Attached, None)],
        ..Facts::default()
    }
}

fn standing(name: SignalName, state: SignalState, reason: Option<&str>) -> Signal {
    Signal {
        name,
        state,
        mechanism: Some(Mechanism::TpBtf),
        target: Some("sched_switch".to_owned()),
        reason: reason.map(str::to_owned),
    }
}

#[track_caller]
fn found(facts: &Facts, id: &str) -> (Outcome, String) {
    let mut checks = checks(facts);
    let at = checks.iter().position(|c| c.id == id);
    let check = checks.remove(at.unwrap_or_else(|| panic!("no {id}")));
    (check.outcome, check.what)
}

#[test]
fn a_good_host_passes_everything() {
    for check in checks(&good()) {
        assert_eq!(check.outcome, Outcome::Pass, "{check:?}");
    }
}

#[test]
fn ids_are_unique_and_stable() {
    let ids: Vec<String> = checks(&good()).into_iter().map(|c| c.id).collect();
    assert_eq!(
        ids,
        [
            "host.kernel",
            "host.btf",
            "host.lockdown",
            "host.unprivileged_bpf",
            "host.numa_balancing",
            "host.cgroup",
            "host.pid_namespace",
            "host.user_namespace",
            "host.container",
            "host.nodes",
            "host.virtual_machine",
            "host.tracefs",
            "capability.bpf",
            "capability.perfmon",
            "capability.sys_ptrace",
            "capability.sys_admin",
            "capability.sys_resource",
            "probes.load",
            "bounds.memory",
            "bounds.rows",
            "probes.missed",
            "signal.sched",
        ]
    );
}

fn with(change: fn(&mut Facts)) -> Facts {
    let mut facts = good();
    change(&mut facts);
    facts
}

#[test]
fn what_each_host_lacks() {
    for (facts, id, outcome, word) in [
        (
            with(|f| f.btf_unreadable = Some("No such file or directory".into())),
            "host.btf",
            Outcome::Fail,
            "CONFIG_DEBUG_INFO_BTF",
        ),
        (
            with(|f| f.numa_balancing = Some(0)),
            "host.numa_balancing",
            Outcome::Warn,
            "sysctl",
        ),
        (
            with(|f| f.numa_balancing = None),
            "host.numa_balancing",
            Outcome::Warn,
            "no NUMA balancing",
        ),
        (
            with(|f| {
                f.numa_balancing = None;
                f.numa_balancing_reason = Some("/proc/sys/kernel is masked".to_owned());
            }),
            "host.numa_balancing",
            Outcome::Warn,
            "masked",
        ),
        (
            with(|f| f.numa_balancing = Some(3)),
            "host.numa_balancing",
            Outcome::Warn,
            "tiering",
        ),
        (
            with(|f| f.nodes_reason = Some("node0/cpulist: is empty".into())),
            "host.nodes",
            Outcome::Warn,
            "is empty",
        ),
        (
            with(|f| f.foreign_users = Some("own users".into())),
            "host.user_namespace",
            Outcome::Fail,
            "own users",
        ),
        (
            with(|f| f.foreign_pids = Some("own pids".into())),
            "host.pid_namespace",
            Outcome::Fail,
            "own pids",
        ),
        (
            with(|f| {
                f.nodes = 1;
                f.surroundings.hypervisor = Some("QEMU".into());
            }),
            "host.virtual_machine",
            Outcome::Warn,
            "vNUMA",
        ),
        (
            with(|f| f.surroundings.hypervisor = Some("QEMU".into())),
            "host.virtual_machine",
            Outcome::Pass,
            "QEMU",
        ),
        (
            with(|f| f.surroundings.container = Some("docker")),
            "host.container",
            Outcome::Pass,
            "docker",
        ),
        (
            with(|f| f.security.unprivileged_bpf_disabled = Some(0)),
            "host.unprivileged_bpf",
            Outcome::Warn,
            "anybody",
        ),
        (
            with(|f| f.map_bytes = Some(33 << 20)),
            "bounds.memory",
            Outcome::Warn,
            "33.0 MiB",
        ),
        (
            with(|f| f.refused = Some("no".into())),
            "probes.load",
            Outcome::Fail,
            "no",
        ),
    ] {
        let (is, what) = found(&facts, id);
        assert_eq!(is, outcome, "{id}: {what}");
        assert!(what.contains(word), "{id}: {what}");
    }
}

#[test]
fn what_was_lost_and_what_was_missed() {
    for (facts, id, outcome, word) in [
        (
            with(|f| f.lost.rows = Some(7)),
            "bounds.rows",
            Outcome::Fail,
            "counts that found no room, so that others are too low: 7; entries in use: THREADS 2 of 8192",
        ),
        (
            with(|f| f.lost.events = Some(7)),
            "probes.missed",
            Outcome::Warn,
            "7 events",
        ),
        (
            with(|f| {
                f.lost.events = None;
                f.lost.events_reason = Some("an old kernel".into());
            }),
            "probes.missed",
            Outcome::Warn,
            "an old kernel",
        ),
    ] {
        let (is, what) = found(&facts, id);
        assert_eq!(is, outcome, "{id}: {what}");
        assert!(what.contains(word), "{id}: {what}");
    }
}

#[test]
fn a_missing_capability_says_what_it_costs() {
    let facts = |have: &[Capability], kernel: &str| Facts {
        capabilities: Capabilities::of(have),
        kernel: kernel.to_owned(),
        ..good()
    };
    let nobody = facts(&[], "5.10.0");
    for (id, word) in [
        (
            "capability.bpf",
            "CAP_BPF is missing: no eBPF program loads",
        ),
        ("capability.perfmon", "CAP_PERFMON is missing"),
        ("capability.sys_ptrace", "other users' processes"),
        ("capability.sys_resource", "RLIMIT_MEMLOCK"),
    ] {
        let (outcome, what) = found(&nobody, id);
        assert_eq!(outcome, Outcome::Warn, "{what}");
        assert!(what.contains(word), "{what}");
    }
    let enough = facts(&[BPF, PERFMON, SYS_PTRACE], "6.12.0");
    assert!(checks(&enough).iter().all(|c| c.outcome == Outcome::Pass));
    let admin = facts(&[SYS_ADMIN, SYS_PTRACE], "6.12.0");
    let (outcome, what) = found(&admin, "capability.bpf");
    assert_eq!(outcome, Outcome::Pass);
    assert!(what.contains("CAP_SYS_ADMIN stands in"), "{what}");
}

#[test]
fn whose_doing_a_refused_fentry_is() {
    let refused = standing(
        SignalName::FirstTouch,
        SignalState::Degraded,
        Some("fentry/x: load: Operation not permitted (os error 1)"),
    );
    for (lockdown, capable, word) in [
        (
            Some(Lockdown::Integrity),
            true,
            "integrity: fentry programs are refused (EPERM) though",
        ),
        (
            Some(Lockdown::Off),
            true,
            "not by lockdown: by a security module (lockdown, yama)",
        ),
        (Some(Lockdown::Confidentiality), true, "refuses kprobes"),
        (None, true, "unknown"),
        (Some(Lockdown::Integrity), false, "for want of capabilities"),
    ] {
        let mut facts = good();
        facts.security.lockdown = lockdown;
        facts.signals.push(refused.clone());
        if !capable {
            facts.capabilities = Capabilities::default();
        }
        let (outcome, what) = found(&facts, "host.lockdown");
        assert_eq!(outcome, Outcome::Warn, "{what}");
        assert!(what.contains(word), "{what}");
    }
}

#[test]
fn signals_by_their_state() {
    for (name, state, want) in [
        (SignalName::Sched, SignalState::Attached, Outcome::Pass),
        (SignalName::Sched, SignalState::Unavailable, Outcome::Fail),
        (SignalName::Hint, SignalState::Unavailable, Outcome::Warn),
        (SignalName::Map, SignalState::Degraded, Outcome::Warn),
        (SignalName::Map, SignalState::Unreliable, Outcome::Fail),
    ] {
        let facts = Facts {
            signals: vec![standing(name, state, Some("why"))],
            ..good()
        };
        let (outcome, what) = found(&facts, &format!("signal.{}", name.as_str()));
        assert_eq!(outcome, want, "{what}");
        assert_eq!(
            what,
            format!("{} by tp_btf at sched_switch: why", state.as_str())
        );
    }
}

#[test]
fn releases_are_compared_as_numbers() {
    for (release, want) in [
        ("5.10.0-28-amd64", false),
        ("5.11.0", true),
        ("6.1.0", true),
        ("4.19", false),
        ("", false),
    ] {
        assert_eq!(at_least(release, 5, 11), want, "{release:?}");
    }
}
