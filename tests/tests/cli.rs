//! The command line: wrong use, missing rights and vanishing processes give one clear line and the right exit code.
#![allow(
    clippy::expect_used,
    reason = "a helper that cannot go on fails its test"
)]

use model::signal::{Mechanism, SignalName, SignalState};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output, Stdio};
use tests::built::{NOBODY, PublicCopy, numawatch};
use tests::process::Running;
use tests::terminal::Terminal;

/// A pid that the kernel never gives: its limit is 4194304.
const NO_PID: &str = "4194305";

fn run(arguments: &[&str]) -> Output {
    Command::new(numawatch())
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("numawatch starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Wrong use, or can't start: exit 2, one line on stderr, nothing on stdout.
#[track_caller]
fn refused(output: &Output) -> String {
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_eq!(stderr.trim_end().lines().count(), 1, "one line: {stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    assert_eq!(text(&output.stdout), "");
    stderr
}

#[test]
fn an_unknown_option_is_refused_in_one_line() {
    let line = refused(&run(&["snapshot", "--frobnicate"]));
    assert!(line.contains("--frobnicate"), "{line}");
}

#[test]
fn an_unknown_subcommand_is_refused_in_one_line() {
    let line = refused(&run(&["frobnicate"]));
    assert!(line.contains("frobnicate"), "{line}");
}

#[test]
fn a_pid_that_is_no_number_is_refused_in_one_line() {
    let line = refused(&run(&["snapshot", "--pid", "abc"]));
    assert!(line.contains("abc"), "{line}");
}

#[test]
fn a_duration_that_is_none_is_refused_in_one_line() {
    let line = refused(&run(&["snapshot", "--for", "soon"]));
    assert!(line.contains("soon"), "{line}");
}

#[test]
fn no_subcommand_is_refused_in_one_line_that_names_them() {
    let line = refused(&run(&[]));
    assert!(
        line.contains("snapshot") && line.contains("--help"),
        "{line}"
    );
}

#[test]
fn an_empty_variable_is_unset_and_a_wrong_one_is_named() {
    let with = |value: &str| {
        Command::new(numawatch())
            .args(["snapshot", "--json", "--for", "0s", "--pid", NO_PID])
            .env("NUMAWATCH_INTERVAL", value)
            .stdin(Stdio::null())
            .output()
            .expect("numawatch starts")
    };
    let line = refused(&with(""));
    assert!(line.contains(NO_PID), "the pid, not the interval: {line}");
    let line = refused(&with("soon"));
    assert!(line.contains("NUMAWATCH_INTERVAL"), "{line}");
}

#[test]
fn a_wrong_otel_variable_is_refused_before_anything_is_attached() {
    let output = Command::new(numawatch())
        .arg("agent")
        .env("OTEL_EXPORTER_OTLP_PROTOCOL", "pigeon")
        .stdin(Stdio::null())
        .output()
        .expect("numawatch starts");
    let line = refused(&output);
    assert!(line.contains("OTEL_EXPORTER_OTLP_PROTOCOL"), "{line}");
}

#[test]
fn a_regex_that_is_none_is_refused_in_one_line() {
    let line = refused(&run(&["snapshot", "--match", "(", "--for", "1s"]));
    assert!(line.contains('('), "{line}");
}

#[test]
fn a_pid_that_does_not_exist_is_refused_in_one_line() {
    let line = refused(&run(&[
        "snapshot", "--json", "--for", "1s", "--pid", NO_PID,
    ]));
    assert!(line.contains(NO_PID), "{line}");
}

/// numawatch as a user without privileges, watching a process of that user.
fn as_nobody(arguments: &[&str]) -> (Output, u32) {
    let copy = PublicCopy::of(&numawatch());
    let mut own = Command::new("sleep");
    own.arg("600").uid(NOBODY).gid(NOBODY);
    let own = Running::start(&mut own).expect("sleep starts");
    let output = Command::new(copy.path())
        .args(arguments)
        .args(["--pid", &own.pid().to_string()])
        .uid(NOBODY)
        .gid(NOBODY)
        .stdin(Stdio::null())
        .output()
        .expect("it starts as nobody: the tests run as root");
    (output, own.pid())
}

#[test]
fn without_privileges_it_says_in_one_line_what_more_there_could_be() {
    let (output, _) = as_nobody(&["snapshot", "--json", "--for", "1s"]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let lines: Vec<&str> = stderr
        .lines()
        .filter(|line| !line.starts_with("numawatch: watching "))
        .collect();
    assert_eq!(lines.len(), 1, "{stderr}");
    assert!(
        [
            "root",
            "CAP_BPF",
            "CAP_PERFMON",
            "CAP_SYS_PTRACE",
            "hint touches"
        ]
        .iter()
        .all(|word| lines[0].contains(word)),
        "{stderr}"
    );
}

#[test]
fn without_privileges_own_processes_have_procfs_signals() {
    let (output, pid) = as_nobody(&["snapshot", "--json", "--for", "1s"]);
    let snapshot: model::snapshot::Snapshot =
        serde_json::from_slice(&output.stdout).expect("one JSON document");
    let process = snapshot.processes.iter().find(|p| p.pid == pid);
    let process = process.expect("the user's own process is there");
    assert!(process.cpu_time_ns_by_node.is_some(), "{process:?}");
    assert!(process.placement.by_node_bytes.is_some(), "{process:?}");
    // What procfs can't see is no zero.
    assert_eq!(process.moves.total, None);
    assert_eq!(process.touches.first_touch.pages, None);
    assert_eq!(process.touches.hint.faults, None);
    let sched = snapshot.signal(SignalName::Sched).expect("it is listed");
    assert_eq!(
        (sched.state, sched.mechanism),
        (SignalState::Degraded, Some(Mechanism::Procfs))
    );
    assert!(
        sched
            .reason
            .as_deref()
            .is_some_and(|r| r.contains("CAP_BPF"))
    );
}

#[test]
fn without_privileges_another_users_memory_is_unknown_with_the_reason() {
    let copy = PublicCopy::of(&numawatch());
    let others = Running::start(Command::new("sleep").arg("600")).expect("sleep starts");
    let output = Command::new(copy.path())
        .args(["snapshot", "--json", "--for", "0s"])
        .args(["--pid", &others.pid().to_string()])
        .uid(NOBODY)
        .gid(NOBODY)
        .stdin(Stdio::null())
        .output()
        .expect("it starts as nobody: the tests run as root");
    let snapshot: model::snapshot::Snapshot =
        serde_json::from_slice(&output.stdout).expect("one JSON document");
    let process = snapshot.processes.first().expect("it is there");
    assert_eq!(process.placement.by_node_bytes, None);
    let reason = process.placement.reason.as_deref().unwrap_or_default();
    assert!(reason.contains("CAP_SYS_PTRACE"), "{reason}");
}

#[test]
fn a_pid_that_ends_while_it_is_watched_is_no_failure() {
    let mut short = Running::start(&mut Command::new("cat")).expect("cat starts");
    let pid = short.pid().to_string();
    let mut watcher = Command::new(numawatch());
    watcher.args(["snapshot", "--json", "--for", "600s", "--pid", &pid]);
    let mut watcher = Running::start(&mut watcher).expect("numawatch starts");
    watcher
        .stderr_line(|line| line.starts_with("numawatch: watching "))
        .expect("it watches");
    short.close_stdin();
    short.wait().expect("cat ends");
    watcher.interrupt();
    let (status, stdout) = watcher.wait().expect("numawatch ends");
    let stderr = watcher.stderr_so_far();
    assert_eq!(status.code(), Some(0), "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    serde_json::from_str::<serde_json::Value>(&stdout).expect("one JSON document");
}

#[test]
fn the_snapshot_is_the_only_thing_on_stdout() {
    let own = std::process::id().to_string();
    let output = run(&["snapshot", "--json", "--for", "1s", "--pid", &own]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let snapshot: model::snapshot::Snapshot =
        serde_json::from_slice(&output.stdout).expect("one JSON document");
    // Children of this process, which other tests start, are watched too.
    assert!(snapshot.processes.iter().any(|p| p.pid.to_string() == own));
}

#[test]
fn without_json_it_is_a_table() {
    let own = std::process::id().to_string();
    let output = run(&["snapshot", "--for", "1s", "--pid", &own]);
    let stdout = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(stdout.lines().any(|line| line.contains(&own)), "{stdout}");
    assert!(!stdout.starts_with('{'), "{stdout}");
    let titles = stdout.lines().nth(1).unwrap_or_default();
    for title in ["MEMORY BY NODE", "MIGRATED", "POLICY", "VERDICT"] {
        assert!(titles.contains(title), "no {title}: {stdout}");
    }
}

#[test]
fn in_a_narrow_terminal_the_table_keeps_what_answers_and_names_the_rest() {
    let mut sleeper = Command::new("sleep").arg("600").spawn().expect("sleep");
    let pid = sleeper.id().to_string();
    let mut command = Command::new(numawatch());
    command.args(["snapshot", "--for", "0s", "--pid", &pid]);
    let mut terminal = Terminal::start(command, 80, 50);
    let status = terminal.wait();
    let _ = sleeper.kill();
    let _ = sleeper.wait();
    let shown = terminal.text();
    assert_eq!(status.code(), Some(0), "{shown}");
    let titles = shown.lines().find(|line| line.starts_with("PID "));
    let titles = titles.expect("titles");
    for title in ["NAME", "MEMORY BY NODE", "REMOTE", "VERDICT"] {
        assert!(titles.contains(title), "no {title}: {shown}");
    }
    assert!(!titles.contains("MIGRATED"), "{shown}");
    assert!(shown.contains(&format!("\n{pid} ")), "{shown}");
    let left_out = shown.lines().find(|line| line.starts_with("no room for "));
    assert!(
        left_out.is_some_and(|line| line.contains("MIGRATED")),
        "{shown}"
    );
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let own = std::process::id().to_string();
    let mut child = Command::new(numawatch())
        .args(["snapshot", "--json", "--for", "1s", "--pid", &own])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("numawatch starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("numawatch ends");
    assert!(
        !text(&output.stderr).contains("panicked"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_stderr_that_takes_nothing_ends_nothing() {
    let full = std::fs::File::create("/dev/full").expect("every Linux has it");
    let pid = std::process::id().to_string();
    let output = Command::new(numawatch())
        .args(["snapshot", "--json", "--for", "100ms", "--pid", &pid])
        .stdin(Stdio::null())
        .stderr(full)
        .output()
        .expect("numawatch starts");
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).ends_with("}\n"), "{output:?}");
}

#[test]
fn without_the_kernels_description_procfs_tells_what_it_can() {
    let pid = std::process::id().to_string();
    let output = Command::new(numawatch())
        .args(["snapshot", "--json", "--for", "100ms", "--pid", &pid])
        .env("NUMAWATCH_BTF", "/dev/null")
        .output()
        .expect("numawatch starts");
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(
        stderr.contains("by procfs only (kernel BTF /dev/null"),
        "{stderr}"
    );
    let snapshot: model::snapshot::Snapshot =
        serde_json::from_slice(&output.stdout).expect("a snapshot");
    let sched = snapshot.signal(SignalName::Sched).expect("it is listed");
    assert_eq!(sched.mechanism, Some(Mechanism::Procfs), "{sched:?}");
    assert!(snapshot.processes[0].cpu_time_ns_by_node.is_some());
}

#[test]
fn a_rung_forced_twice_is_refused_in_one_line() {
    let twice = ["--mechanism", "map=off", "--mechanism", "map=tp_btf"];
    let line = refused(&run(&[&["snapshot"], &twice[..]].concat()));
    assert!(line.contains("map is forced twice"), "{line}");
}

#[test]
fn doctor_names_every_signal() {
    let output = run(&["doctor"]);
    let stdout = text(&output.stdout);
    assert!(
        output.status.code().is_some_and(|code| code < 2),
        "{}",
        text(&output.stderr)
    );
    for signal in model::signal::SignalName::ALL {
        let words = [
            signal.as_str().to_owned(),
            signal.as_str().replace('_', "-"),
        ];
        assert!(
            words.iter().any(|word| stdout.contains(word)),
            "no {}: {stdout}",
            signal.as_str()
        );
    }
}

#[test]
fn help_names_every_subcommand() {
    let output = run(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    for subcommand in ["tui", "agent", "snapshot", "doctor", "launch"] {
        assert!(text(&output.stdout).contains(subcommand), "{subcommand}");
    }
}
