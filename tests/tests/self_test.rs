//! The self-test on the machine that runs the tests, whatever rungs it has.
#![allow(
    clippy::expect_used,
    reason = "a helper that cannot go on fails its test"
)]

use model::selftest::Verdict;
use model::signal::{SignalName, SignalState};
use std::process::Command;
use tests::built::{numawatch, tools};
use tests::process::Running;
use tests::self_test::{Run, run};

fn doctor(broken: Option<SignalName>) -> Run {
    run(&tools(env!("CARGO_BIN_EXE_workload")), broken, "").expect("doctor runs")
}

#[test]
fn unbroken_it_passes_and_leaves_nothing() {
    let run = doctor(None);
    assert_eq!(run.failed(), [], "{run:?}");
    assert_eq!(run.exit_code, Some(0), "{run:?}");
    for signal in [
        SignalName::Sched,
        SignalName::FirstTouch,
        SignalName::Placement,
    ] {
        assert_eq!(run.verdict(signal), Verdict::Passed, "{run:?}");
    }
    let report = &run.document.self_test;
    assert!(report.took_ms < 3_000, "{report:?}");
    assert!(
        report.memory_bytes.is_some_and(|bytes| bytes < 64 << 20),
        "{report:?}"
    );
    assert!(run.left.is_empty(), "{run:?}");
}

#[test]
fn a_broken_signal_is_found_and_named() {
    for signal in [
        SignalName::Sched,
        SignalName::FirstTouch,
        SignalName::Map,
        SignalName::Placement,
    ] {
        let run = doctor(Some(signal));
        assert!(
            run.failed().contains(&signal),
            "{}: {run:?}",
            signal.as_str()
        );
        assert_eq!(run.exit_code, Some(1), "{run:?}");
        let state = run.document.signals.iter().find(|s| s.name == signal);
        assert!(
            state.is_some_and(|s| s.state == SignalState::Unreliable && s.reason.is_some()),
            "{run:?}"
        );
    }
}

#[test]
fn what_is_unavailable_is_not_tested_and_not_failed() {
    let run = doctor(None);
    for signal in run.document.signals.iter().filter(|s| !s.is_live()) {
        assert_eq!(run.verdict(signal.name), Verdict::NotTested, "{signal:?}");
    }
}

#[test]
fn a_snapshot_shows_the_unreliable_signal_and_rests_no_share_on_it() {
    let watched = Running::start(&mut Command::new("cat")).expect("cat starts");
    let own = watched.pid().to_string();
    let output = Command::new(numawatch())
        .args(["snapshot", "--json", "--for", "1s", "--pid", &own])
        .args(["--self-test", "--break", "sched"])
        .output()
        .expect("numawatch runs");
    let snapshot: model::snapshot::Snapshot =
        serde_json::from_slice(&output.stdout).expect("one JSON document");
    let sched = snapshot.signal(SignalName::Sched).expect("sched is listed");
    assert_eq!(sched.state, SignalState::Unreliable, "{sched:?}");
    assert!(
        sched
            .reason
            .as_deref()
            .is_some_and(|why| why.contains("self-test")),
        "{sched:?}"
    );
    let pids: Vec<String> = snapshot
        .processes
        .iter()
        .map(|p| p.pid.to_string())
        .collect();
    assert_eq!(
        pids,
        [own],
        "the self-test's own processes are in no snapshot"
    );
    assert_eq!(snapshot.processes[0].remote_share.value, None);
}

/// A node agent's cgroup may have no more. What the kernel counts is the most that was ever resident.
#[test]
fn it_needs_less_than_64_mib() {
    let mut child = Command::new(numawatch())
        .args(["doctor", "--self-test"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("numawatch starts");
    let pid = child.id().cast_signed();
    // SAFETY: all zeros are a value of it, and the kernel writes it.
    let used = unsafe {
        let mut used: libc::rusage = std::mem::zeroed();
        assert_eq!(
            libc::wait4(pid, std::ptr::null_mut(), 0, &raw mut used),
            pid
        );
        used
    };
    // It is gone: there is nothing to wait for any more.
    let _ = child.try_wait();
    let mebibytes = used.ru_maxrss / 1024;
    assert!((10..64).contains(&mebibytes), "{mebibytes} MiB");
}
