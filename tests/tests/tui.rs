//! The real dashboard in a terminal: it shows what is watched, takes keys, and gives the terminal back however it ends.
#![allow(
    clippy::expect_used,
    reason = "a helper that cannot go on fails its test"
)]

use model::snapshot::Snapshot;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use tests::bound::{RAISED, RAISES, Sleeper};
use tests::built::{NOBODY, PublicCopy, numawatch};
use tests::process::Running;
use tests::terminal::{Cell, Terminal};
use tests::truth::Ready;

/// Something to watch.
fn workload() -> (Running, u32) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_workload"));
    command.args(["touch", "--pages", "4096"]);
    let mut running = Running::start(&mut command).expect("the workload starts");
    let ready: Ready = running.json_line().expect("it is ready");
    (running, ready.pid)
}

fn dashboard(pid: u32, columns: u16, rows: u16) -> Terminal {
    let mut command = Command::new(numawatch());
    command.args(["tui", "--pid", &pid.to_string()]);
    Terminal::start(command, columns, rows)
}

/// The dashboard once it shows the process.
fn running_dashboard(pid: u32) -> Terminal {
    let mut terminal = dashboard(pid, 80, 24);
    shows(&mut terminal, &pid.to_string());
    terminal
}

#[track_caller]
fn shows(terminal: &mut Terminal, text: &str) {
    terminal.wait_until(&format!("showing {text:?}"), |screen| {
        screen.contents().contains(text)
    });
}

/// As a shell expects it.
#[track_caller]
fn is_restored(terminal: &mut Terminal) {
    assert!(terminal.is_cooked(), "the terminal is still raw");
    let end = std::time::Instant::now() + tests::process::LIMIT;
    // The last bytes may still be on their way through the terminal.
    while !terminal.is_plain() {
        assert!(
            std::time::Instant::now() < end,
            "alternate screen, hidden cursor or mouse; the screen:\n{}",
            terminal.text()
        );
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// What a program wrote before it ended may still be on its way through the terminal.
#[track_caller]
fn shows_at_last(terminal: &Terminal, text: &str) {
    let end = std::time::Instant::now() + tests::process::LIMIT;
    while !terminal.text().contains(text) {
        assert!(
            std::time::Instant::now() < end,
            "no {text:?}:\n{}",
            terminal.text()
        );
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn at_80x24_it_shows_the_process_and_its_columns() {
    let (_running, pid) = workload();
    let terminal = running_dashboard(pid);
    let text = terminal.text();
    for word in ["PID", "workload"] {
        assert!(text.contains(word), "no {word}:\n{text}");
    }
}

#[test]
fn q_quits_and_restores_the_terminal() {
    let (_running, pid) = workload();
    let mut terminal = running_dashboard(pid);
    assert!(!terminal.is_cooked(), "it takes keys one by one");
    terminal.press("q");
    let status = terminal.wait();
    assert_eq!(status.code(), Some(0), "{}", terminal.text());
    is_restored(&mut terminal);
}

#[test]
fn ctrl_c_quits_and_restores_the_terminal() {
    let (_running, pid) = workload();
    let mut terminal = running_dashboard(pid);
    terminal.press("\x03");
    terminal.wait();
    is_restored(&mut terminal);
}

#[test]
fn sigterm_restores_the_terminal() {
    let (_running, pid) = workload();
    let mut terminal = running_dashboard(pid);
    terminal.signal(libc::SIGTERM);
    terminal.wait();
    is_restored(&mut terminal);
}

#[test]
fn sighup_ends_it() {
    let (_running, pid) = workload();
    let mut terminal = running_dashboard(pid);
    terminal.signal(libc::SIGHUP);
    terminal.wait();
}

#[test]
fn a_question_mark_shows_help_and_escape_leaves_it() {
    let (_running, pid) = workload();
    let mut terminal = running_dashboard(pid);
    terminal.press("?");
    terminal.wait_until("showing help", |screen| {
        screen.contents().to_lowercase().contains("quit")
    });
    terminal.press("\x1b");
    shows(&mut terminal, &pid.to_string());
}

#[test]
fn enter_shows_the_process_s_threads() {
    let (_running, pid) = workload();
    let mut terminal = running_dashboard(pid);
    terminal.press("\r");
    shows(&mut terminal, "by node");
    // They come last, and a small window shows them when it is asked to.
    terminal.press("\x1b[F");
    terminal.wait_until("showing threads", |screen| {
        screen.contents().to_lowercase().contains("thread")
    });
}

#[test]
fn f_shows_the_findings_that_a_snapshot_has_and_enter_the_process_s_own() {
    // One that is raised on any machine, and a process that nothing is wrong with.
    let bound = Sleeper::start();
    let (_running, free) = workload();
    let (bound, free) = (bound.pid().to_string(), free.to_string());
    let watched = [&RAISES[..], &["--pid", &bound, "--pid", &free]].concat();
    let output = Command::new(numawatch())
        .args(["snapshot", "--json", "--for", "500ms"])
        .args(&watched)
        .output()
        .expect("numawatch starts");
    let snapshot: Snapshot = serde_json::from_slice(&output.stdout).expect("a snapshot");
    let mut processes = snapshot.processes.iter();
    let process = processes.find(|p| p.pid.to_string() == bound);
    let of_process = &process.expect("it is watched").findings;
    assert!(of_process.iter().any(|f| f.id == RAISED), "{of_process:?}");

    let mut command = Command::new(numawatch());
    command.arg("tui").args(&watched);
    let mut terminal = Terminal::start(command, 160, 50);
    shows(&mut terminal, &free);
    terminal.press("f");
    shows(&mut terminal, &format!("── {bound} - sleep, "));
    shows(&mut terminal, "── no finding ─");
    shows(&mut terminal, &format!("  {free} - workload, "));
    for finding in snapshot.all_findings() {
        shows(&mut terminal, &finding.id);
    }
    terminal.press("\x1b");
    shows(&mut terminal, "▸ ");
    terminal.press("/sleep\r");
    shows(&mut terminal, &format!("▸ {bound:>7}"));
    terminal.press("\r");
    shows(&mut terminal, "by node");
    let heading = match of_process.len() {
        1 => "── 1 finding ─".to_owned(),
        n => format!("── {n} findings ─"),
    };
    shows(&mut terminal, &heading);
    shows(&mut terminal, &format!("  {RAISED}  "));
}

#[test]
fn t_shows_the_machine() {
    let (_running, pid) = workload();
    let mut terminal = dashboard(pid, 160, 50);
    shows(&mut terminal, &format!("▸ {pid}"));
    terminal.press("t");
    shows(&mut terminal, "█ node 0 ");
    shows(&mut terminal, "CPUs 0");
    terminal.press("q");
    assert_eq!(terminal.wait().code(), Some(0), "{}", terminal.text());
}

#[test]
fn a_bigger_window_is_used() {
    let (_running, pid) = workload();
    let mut terminal = running_dashboard(pid);
    terminal.resize(160, 50);
    terminal.wait_until("drawn beyond column 80", |screen| {
        (0..50).any(|row| {
            (80..160).any(|column| screen.cell(row, column).is_some_and(Cell::has_contents))
        })
    });
    shows(&mut terminal, &pid.to_string());
}

#[test]
fn a_tiny_window_is_no_crash() {
    let (_running, pid) = workload();
    let mut terminal = running_dashboard(pid);
    for (columns, rows) in [(10, 3), (2, 2)] {
        terminal.resize(columns, rows);
        terminal.wait_until("drawn anew", |screen| !screen.contents().trim().is_empty());
    }
    terminal.resize(80, 24);
    shows(&mut terminal, &pid.to_string());
    terminal.press("q");
    assert_eq!(terminal.wait().code(), Some(0));
}

#[test]
fn the_process_that_ended_is_no_crash() {
    let (mut running, pid) = workload();
    let mut terminal = running_dashboard(pid);
    running.close_stdin();
    running.wait().expect("the workload ends");
    terminal.press("q");
    assert_eq!(terminal.wait().code(), Some(0), "{}", terminal.text());
}

#[test]
fn without_a_terminal_it_is_refused_in_one_line() {
    let output = Command::new(numawatch())
        .arg("tui")
        .stdin(std::process::Stdio::null())
        .output()
        .expect("numawatch starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_eq!(stderr.trim_end().lines().count(), 1, "{stderr}");
}

#[test]
fn without_privileges_it_shows_what_procfs_tells_and_says_what_is_missing() {
    let copy = PublicCopy::of(&numawatch());
    let mut command = Command::new(copy.path());
    command.arg("tui").uid(NOBODY).gid(NOBODY);
    let mut terminal = Terminal::start(command, 200, 24);
    shows_at_last(&terminal, "No process to show yet");
    terminal.press("q");
    assert_eq!(terminal.wait().code(), Some(0), "{}", terminal.text());
    is_restored(&mut terminal);
    shows_at_last(&terminal, "by procfs only");
    let told = terminal.text();
    assert!(told.contains("CAP_BPF"), "what is missing: {told}");
}
