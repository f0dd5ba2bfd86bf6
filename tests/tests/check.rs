//! `numawatch check` on the machine that runs the tests: what it prints, and how it exits.
#![allow(
    clippy::expect_used,
    reason = "a helper that cannot go on fails its test"
)]

use model::check::{Report, State};
use model::finding::Finding;
use model::snapshot::Snapshot;
use model::verdict::Verdict;
use std::process::{Command, Output, Stdio};
use tests::bound::{RAISED, RAISES, Sleeper};
use tests::built::numawatch;
use tests::process::Running;

/// A process that sleeps, checked for half a second.
fn check(arguments: &[&str]) -> Output {
    watch("check", arguments)
}

/// The same by any command.
fn watch(command: &str, arguments: &[&str]) -> Output {
    let mut sleeper = Command::new("sleep").arg("600").spawn().expect("sleep");
    let output = Command::new(numawatch())
        .args([
            command,
            "--for",
            "500ms",
            "--pid",
            &sleeper.id().to_string(),
        ])
        .args(arguments)
        .stdin(Stdio::null())
        .output();
    let _ = sleeper.kill();
    let _ = sleeper.wait();
    output.expect("numawatch starts")
}

#[test]
fn four_questions_are_answered_and_what_is_unknown_does_not_fail() {
    let output = check(&["--json"]);
    let report: Report = serde_json::from_slice(&output.stdout).expect("a report");
    let ids: Vec<&str> = report.answers.iter().map(|a| a.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "remote-share",
            "device-node",
            "worker-affinity",
            "pinned-buffers"
        ]
    );
    // A process that slept has given no evidence.
    assert_eq!(report.answers[0].state, State::Unknown);
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_snapshot_says_what_check_says_of_the_same_process() {
    let bound = Sleeper::start();
    let watch = |command: &str| {
        let output = Command::new(numawatch())
            .args([
                command,
                "--json",
                "--for",
                "500ms",
                "--pid",
                &bound.pid().to_string(),
            ])
            .args(RAISES)
            .output();
        output.expect("numawatch starts").stdout
    };
    let report: Report = serde_json::from_slice(&watch("check")).expect("a report");
    let snapshot: Snapshot = serde_json::from_slice(&watch("snapshot")).expect("a snapshot");
    let ids = |findings: &[&Finding]| -> Vec<(Option<u32>, String)> {
        findings.iter().map(|f| (f.pid, f.id.clone())).collect()
    };
    let of_check: Vec<&Finding> = report.findings.iter().collect();
    let raised = (Some(bound.pid()), RAISED.to_owned());
    assert!(ids(&of_check).contains(&raised), "{of_check:?}");
    assert_eq!(ids(&snapshot.all_findings()), ids(&of_check));
    let process = &snapshot.processes[0];
    assert_eq!(process.verdict, Verdict::Unknown);
    let why = process.verdict_reason.as_deref().expect("a reason");
    assert!(why.contains("it used no CPU time"), "{why}");
    assert_eq!(report.answers[0].summary, why);
}

#[test]
fn a_threshold_holds_for_every_command_that_watches() {
    let output = watch(
        "snapshot",
        &["--json", "--threshold", "evidence_pages=1000000000"],
    );
    let snapshot: Snapshot = serde_json::from_slice(&output.stdout).expect("a snapshot");
    let why = snapshot.processes[0].verdict_reason.as_deref();
    let why = why.expect("a reason");
    assert!(why.contains("pages are resident"), "{why}");
}

#[test]
fn strict_fails_what_is_unknown() {
    assert_eq!(check(&["--strict"]).status.code(), Some(1));
}

#[test]
fn an_unknown_threshold_is_refused_with_those_there_are() {
    let output = check(&["--threshold", "remote=0.4"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("`remote`") && stderr.contains("remote_from"),
        "{stderr}"
    );
}

#[test]
fn who_ends_meanwhile_is_named_and_unknown() {
    let mut sleeper = Command::new("sleep").arg("600").spawn().expect("sleep");
    let pid = sleeper.id().to_string();
    let mut command = Command::new(numawatch());
    command.args(["check", "--strict", "--for", "600s", "--pid", &pid]);
    let mut checking = Running::start(&mut command).expect("numawatch starts");
    let watches = checking.stderr_line(|line| line.starts_with("numawatch: watching "));
    let _ = sleeper.kill();
    let _ = sleeper.wait();
    watches.expect("it watches");
    checking.interrupt();
    let (status, stdout) = checking.wait().expect("it ends");
    let told = stdout.split_once(&format!("{pid} sleep\n"));
    let told = told.map_or("", |(_, rest)| rest).lines().next();
    assert_eq!(
        told,
        Some("  UNKNOWN  it ended meanwhile: nothing can be said of it")
    );
    assert_eq!(status.code(), Some(1), "{stdout}");
}

#[test]
fn nobody_to_check_is_unknown_and_no_pass() {
    let output = Command::new(numawatch())
        .args(["check", "--strict", "--for", "500ms"])
        .args(["--match", "^no such command line$"])
        .output()
        .expect("numawatch starts");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("UNKNOWN: no process"), "{stdout}");
    assert_eq!(output.status.code(), Some(1));
}
