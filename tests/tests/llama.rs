//! A real llama.cpp server that decodes tokens, as numawatch sees it on this machine.
#![allow(
    clippy::expect_used,
    reason = "a helper that cannot go on fails its test"
)]

#[path = "llama/engine.rs"]
mod engine;
#[path = "llama/server.rs"]
mod server;

use model::process::{MemoryKind, Process};
use model::signal::{Signal, SignalName, SignalState};
use model::snapshot::Snapshot;
use server::Server;
use std::process::Command;
use std::sync::OnceLock;
use tests::built::numawatch;
use tests::compare::sum;
use tests::process::Running;
use tests::terminal::Terminal;

/// Tokens decoded under watch; each is a pass over all weights.
const TOKENS: u32 = 128;
/// The weights: 253 MB, of which every page is read.
const WEIGHTS: u64 = 200 << 20;

/// One server for all tests; it ends with the test program.
fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(Server::start)
}

/// What numawatch says after the server has decoded tokens.
fn snapshot() -> &'static (Snapshot, Process) {
    static SNAPSHOT: OnceLock<(Snapshot, Process)> = OnceLock::new();
    SNAPSHOT.get_or_init(|| {
        let mut command = Command::new(numawatch());
        let pid = server().pid();
        command.args([
            "snapshot",
            "--json",
            "--for",
            "600s",
            "--pid",
            &pid.to_string(),
        ]);
        let mut numawatch = Running::start(&mut command).expect("numawatch starts");
        numawatch
            .stderr_line(|line| line.starts_with("numawatch: watching "))
            .expect("it watches");
        server().decode(TOKENS);
        numawatch.interrupt();
        let (status, stdout) = numawatch.wait().expect("numawatch ends");
        assert_eq!(status.code(), Some(0), "{}", numawatch.stderr_so_far());
        let snapshot: Snapshot = serde_json::from_str(&stdout).expect("a snapshot");
        let process = snapshot.processes.iter().find(|process| process.pid == pid);
        let process = process.expect("the server is in it").clone();
        (snapshot, process)
    })
}

fn signal(name: SignalName) -> &'static Signal {
    snapshot().0.signal(name).expect("every signal is listed")
}

#[test]
fn done_when_3_a_llama_cpp_server_is_known_as_such() {
    let process = &snapshot().1;
    assert_eq!(
        process.engine.as_deref(),
        Some("llama.cpp"),
        "{}",
        process.command
    );
    assert!(process.role.is_some(), "{}", process.command);
    assert!(
        process
            .model
            .as_ref()
            .is_some_and(|model| model.contains("gemma3")),
        "{:?}",
        process.model
    );
}

#[test]
fn done_when_3_its_threads_show_their_cpu_time_by_node() {
    let process = &snapshot().1;
    assert!(process.threads.len() > 1, "{:?}", process.threads);
    let all = process.cpu_time_ns_by_node.as_ref().map_or(0, sum);
    let of_threads: u64 = process
        .threads
        .iter()
        .filter_map(|thread| thread.cpu_time_ns_by_node.as_ref().map(sum))
        .sum();
    assert!(all > 50_000_000, "{all} ns for {TOKENS} tokens");
    assert!(
        of_threads <= all,
        "{of_threads} ns in live threads, {all} ns in all"
    );
}

#[test]
fn done_when_3_its_first_touches_are_seen() {
    assert!(
        signal(SignalName::FirstTouch).is_live(),
        "{:?}",
        signal(SignalName::FirstTouch)
    );
    let touched = &snapshot().1.touches.first_touch;
    assert!(touched.pages.is_some_and(|pages| pages > 0), "{touched:?}");
}

#[test]
fn done_when_3_its_weights_have_a_place() {
    let placement = &snapshot().1.placement;
    let bytes = placement.by_node_bytes.as_ref().map_or(0, sum);
    assert!(bytes > WEIGHTS, "{placement:?}");
    let by_kind = placement.by_kind.as_ref().expect("kinds");
    let kinds: u64 = by_kind.values().map(sum).sum();
    assert_eq!(kinds, bytes, "each page is of one kind");
    for kind in [MemoryKind::File, MemoryKind::Anonymous] {
        assert!(
            by_kind.get(&kind).is_some_and(|b| sum(b) > 0),
            "{by_kind:?}"
        );
    }
}

#[test]
fn done_when_3_what_this_host_cannot_measure_says_why() {
    for name in SignalName::ALL {
        let signal = signal(name);
        let told = signal
            .reason
            .as_ref()
            .is_some_and(|reason| !reason.is_empty());
        assert!(signal.state == SignalState::Attached || told, "{signal:?}");
    }
}

#[test]
fn it_is_found_without_being_named() {
    let pid = server().pid();
    let output = Command::new(numawatch())
        .args(["snapshot", "--json", "--for", "1s"])
        .stdin(std::process::Stdio::null())
        .output()
        .expect("numawatch starts");
    let snapshot: Snapshot = serde_json::from_slice(&output.stdout).expect("a snapshot");
    assert!(
        snapshot.processes.iter().any(|process| process.pid == pid),
        "{:?}",
        snapshot.processes
    );
}

#[test]
fn done_when_3_the_dashboard_shows_it_at_80x24_and_160x50() {
    let pid = server().pid().to_string();
    for (columns, rows) in [(80, 24), (160, 50)] {
        let mut command = Command::new(numawatch());
        command.arg("tui");
        let mut terminal = Terminal::start(command, columns, rows);
        terminal.wait_until("showing the server", |screen| {
            let text = screen.contents();
            text.lines()
                .any(|line| line.contains(&pid) && line.contains("llama.cpp"))
        });
        terminal.press("q");
        assert_eq!(terminal.wait().code(), Some(0));
    }
}
