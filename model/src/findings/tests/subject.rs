//! What is advised to type for a process.

use super::*;
use crate::findings::subject::typed;

/// The first line to type for process 42, a worker that is away from its GPU, beside others.
fn relaunch_of_worker(others: Vec<Process>) -> String {
    let mut worker = process();
    worker.parent_pid = Some(41);
    worker.command = "worker".to_owned();
    worker.placement.by_node_bytes = memory(&[(0, GIB)]);
    let now = snapshot(10, [others, vec![worker]].concat());
    let view = View {
        now: &now,
        past: &Past::default(),
        thresholds: &Thresholds::default(),
        cache_bytes: None,
    };
    let found = findings(&view);
    let mut found = found.iter().filter(|f| f.pid == Some(42));
    let found = found.find(|f| f.id == "memory-away-from-gpu");
    found.map_or_else(String::new, |f| f.advice[0].clone())
}

#[test]
fn a_strangers_command_is_not_typed_where_a_terminal_would_read_more_in_it() {
    for (command, plain) in [
        ("server -m /m/a.gguf --port=80", true),
        ("server --config '{\"temperature\": 0}'", true),
        ("server 'a\nreboot'", false),
        ("server '\u{1b}[2J'", false),
        ("", false),
    ] {
        let mut process = process();
        process.command = command.to_owned();
        let typed = typed(&process);
        assert_eq!(typed == command, plain, "{typed}");
        assert!(plain || typed.starts_with("COMMAND   # "), "{typed}");
    }
}

#[test]
fn a_worker_is_started_anew_by_its_server() {
    let server = || Process {
        pid: 41,
        ..process()
    };
    let shell = Process {
        engine: None,
        ..server()
    };
    let sibling = Process {
        pid: 43,
        parent_pid: Some(41),
        devices: vec![gpu(1, Some(0))],
        ..process()
    };
    let launch = "numawatch launch --gpu 0";
    for (others, want) in [
        (vec![server()], format!("{launch} -- server -m model.gguf")),
        (vec![shell], format!("{launch} -- worker")),
        (
            vec![server(), sibling],
            format!(
                "{launch} --dry-run -- server -m model.gguf   # each of its workers belongs elsewhere: see the engine's own flags there"
            ),
        ),
    ] {
        assert_eq!(relaunch_of_worker(others), want);
    }
}
