//! What a scanner reports, over a `/proc` that changes under it.

use crate::engines::scan::{Changes, Scanner};
use crate::engines::selection::{Selection, Why};
use crate::host::fixture::{Fixture, kernel_thread_stat};
use std::time::Duration;

const SERVER: [&str; 4] = ["llama-server", "-m", "/m/x.gguf", "-v"];
const OWN: u32 = 500;

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn host() -> Fixture {
    let fixture = Fixture::with(&[
        ("proc/devices", "Character devices:\n226 drm\n"),
        ("proc/2/stat", &kernel_thread_stat(2, 1, "kthreadd")),
    ]);
    fixture.process(100, 10, "bash", &["bash"]);
    fixture.process(200, 20, "llama-server", &SERVER);
    fixture.process(OWN, 50, "numawatch", &["numawatch", "snapshot"]);
    fixture
}

fn scanner(fixture: &Fixture, selection: Selection) -> Scanner {
    Scanner::new(fixture.root(), selection, OWN)
}

fn default_scanner(fixture: &Fixture) -> Scanner {
    scanner(fixture, Selection::default())
}

fn added(changes: &Changes) -> Vec<(u32, Why)> {
    changes.added.iter().map(|f| (f.pid, f.why)).collect()
}

#[test]
fn a_first_scan_finds_the_engine_with_all_that_is_known() {
    let fixture = host();
    let changes = default_scanner(&fixture).scan(seconds(0), &[]).unwrap();
    assert_eq!(added(&changes), [(200, Why::Engine)]);
    let found = &changes.added[0];
    assert_eq!(
        (found.start_time, found.name.as_str()),
        (20, "llama-server")
    );
    assert_eq!(found.command, "llama-server -m /m/x.gguf -v");
    assert_eq!(
        found.detected.as_ref().unwrap().model.as_deref(),
        Some("x.gguf")
    );
}

#[test]
fn a_second_scan_of_the_same_has_nothing_to_say() {
    let fixture = host();
    let mut scanner = default_scanner(&fixture);
    scanner.scan(seconds(0), &[]).unwrap();
    for now in [0, 1, 10, 20, 30] {
        assert_eq!(scanner.scan(seconds(now), &[]).unwrap(), Changes::default());
    }
}

#[test]
fn a_new_process_is_found_at_once() {
    let fixture = host();
    let mut scanner = default_scanner(&fixture);
    scanner.scan(seconds(0), &[]).unwrap();
    fixture.process(300, 30, "vllm", &["python3", "/v/bin/vllm", "serve", "x"]);
    let changes = scanner.scan(seconds(1), &[]).unwrap();
    assert_eq!(added(&changes), [(300, Why::Engine)]);
}

#[test]
fn an_ended_process_is_removed_once() {
    let fixture = host();
    let mut scanner = default_scanner(&fixture);
    scanner.scan(seconds(0), &[]).unwrap();
    fixture.end(200);
    fixture.end(100);
    assert_eq!(scanner.scan(seconds(1), &[]).unwrap().removed, [(200, 20)]);
    assert_eq!(scanner.scan(seconds(2), &[]).unwrap(), Changes::default());
}

#[test]
fn a_pid_that_came_back_is_a_new_process() {
    let fixture = host();
    let mut scanner = default_scanner(&fixture);
    scanner.scan(seconds(0), &[]).unwrap();
    fixture.reuse_pid(200, 99, "llama-cli", &["llama-cli"]);
    let changes = scanner.scan(seconds(1), &[]).unwrap();
    assert_eq!(changes.removed, [(200, 20)]);
    assert_eq!(added(&changes), [(200, Why::Engine)]);
    assert_eq!(changes.added[0].start_time, 99);
}

#[test]
fn a_directory_with_a_new_inode_is_the_same_process_if_its_start_is() {
    let fixture = host();
    let mut scanner = default_scanner(&fixture);
    scanner.scan(seconds(0), &[]).unwrap();
    fixture.reuse_pid(200, 20, "llama-server", &SERVER);
    assert_eq!(scanner.scan(seconds(1), &[]).unwrap(), Changes::default());
}

#[test]
fn an_exec_is_seen_when_the_caller_tells() {
    let fixture = host();
    let mut scanner = default_scanner(&fixture);
    scanner.scan(seconds(0), &[]).unwrap();
    fixture.process(100, 10, "llama-server", &SERVER);
    assert_eq!(scanner.scan(seconds(0), &[]).unwrap(), Changes::default());
    let changes = scanner.scan(seconds(0), &[100]).unwrap();
    assert_eq!(added(&changes), [(100, Why::Engine)]);
}

#[test]
fn an_exec_that_nobody_told_is_seen_within_ten_seconds() {
    let fixture = host();
    let mut scanner = default_scanner(&fixture);
    scanner.scan(seconds(0), &[]).unwrap();
    fixture.process(100, 10, "llama-server", &SERVER);
    let changes = scanner.scan(seconds(10), &[]).unwrap();
    assert_eq!(added(&changes), [(100, Why::Engine)]);
}

#[test]
fn a_young_process_is_looked_at_again_after_a_second() {
    let fixture = host();
    let mut scanner = default_scanner(&fixture);
    scanner.scan(seconds(0), &[]).unwrap();
    fixture.process(300, 30, "bash", &["bash"]);
    assert_eq!(scanner.scan(seconds(5), &[]).unwrap(), Changes::default());
    fixture.process(300, 30, "llama-server", &SERVER);
    let changes = scanner.scan(seconds(6), &[]).unwrap();
    assert_eq!(added(&changes), [(300, Why::Engine)]);
}

#[test]
fn a_worker_that_renames_itself_is_updated() {
    let fixture = host();
    fixture.process(300, 30, "VLLM::EngineCor", &["VLLM::EngineCore"]);
    let mut scanner = default_scanner(&fixture);
    scanner.scan(seconds(0), &[]).unwrap();
    fixture.process(300, 30, "VLLM::Worker_TP", &["VLLM::Worker_TP1"]);
    let changes = scanner.scan(seconds(10), &[]).unwrap();
    assert_eq!(changes.updated.len(), 1);
    let detected = changes.updated[0].detected.as_ref().unwrap();
    assert_eq!((detected.role.as_str(), detected.rank), ("worker", Some(1)));
}

#[test]
fn who_has_a_gpu_open_is_found() {
    let fixture = host();
    fixture.link("proc/100/fd/3", "/dev/dri/renderD128");
    let changes = default_scanner(&fixture).scan(seconds(0), &[]).unwrap();
    assert_eq!(added(&changes), [(100, Why::Gpu), (200, Why::Engine)]);
    assert_eq!(changes.added[0].detected, None);
    assert_eq!(changes.added[0].gpu_devices.len(), 1);
}

#[test]
fn a_gpu_that_is_opened_late_is_found_within_ten_seconds() {
    let fixture = host();
    let mut scanner = default_scanner(&fixture);
    scanner.scan(seconds(0), &[]).unwrap();
    fixture.link("proc/100/fd/3", "/dev/nvidia0");
    let changes = scanner.scan(seconds(10), &[]).unwrap();
    assert_eq!(added(&changes), [(100, Why::Gpu)]);
}

#[test]
fn a_display_server_is_left_alone() {
    let fixture = host();
    fixture.process(100, 10, "Xorg", &["/usr/lib/xorg/Xorg", ":0"]);
    fixture.link("proc/100/fd/3", "/dev/dri/renderD128");
    let changes = default_scanner(&fixture).scan(seconds(0), &[]).unwrap();
    assert_eq!(added(&changes), [(200, Why::Engine)]);
}

#[test]
fn a_watched_process_stays_watched_without_its_gpu() {
    let fixture = host();
    fixture.link("proc/100/fd/3", "/dev/nvidia0");
    let mut scanner = default_scanner(&fixture);
    scanner.scan(seconds(0), &[]).unwrap();
    fixture.link("proc/100/fd/3", "/dev/null");
    let changes = scanner.scan(seconds(10), &[]).unwrap();
    assert_eq!(changes.removed, []);
    assert_eq!(changes.updated[0].gpu_devices.len(), 0);
}

#[test]
fn a_python_program_with_an_engine_inside_is_found_by_its_libraries() {
    let fixture = host();
    fixture.process(300, 30, "python", &["python", "serve.py"]);
    fixture.file(
        "proc/300/maps",
        "1-2 r--p 0 fe:00 9 /v/xllamacpp/xllamacpp.abi3.so\n",
    );
    let mut scanner = default_scanner(&fixture);
    let changes = scanner.scan(seconds(0), &[]).unwrap();
    assert_eq!(added(&changes), [(200, Why::Engine), (300, Why::Engine)]);
    assert_eq!(changes.added[1].detected.as_ref().unwrap().role, "embedded");
    for now in [10, 20, 40] {
        assert_eq!(scanner.scan(seconds(now), &[]).unwrap(), Changes::default());
    }
}

#[test]
fn with_a_pid_only_that_process_is_found() {
    let fixture = host();
    let selection = Selection::new(vec![100], None, false).unwrap();
    let changes = scanner(&fixture, selection).scan(seconds(0), &[]).unwrap();
    assert_eq!(added(&changes), [(100, Why::Pid)]);
}

#[test]
fn a_pattern_finds_by_command_line_but_not_numawatch_itself() {
    let fixture = host();
    fixture.process(300, 30, "x", &["watcher", "numawatch"]);
    let selection = Selection::new(vec![], Some("numawatch"), false).unwrap();
    let changes = scanner(&fixture, selection).scan(seconds(0), &[]).unwrap();
    assert_eq!(added(&changes), [(300, Why::Match)]);
}

#[test]
fn all_is_everything_with_memory() {
    let fixture = host();
    let selection = Selection::new(vec![], None, true).unwrap();
    let changes = scanner(&fixture, selection).scan(seconds(0), &[]).unwrap();
    assert_eq!(
        added(&changes),
        [(100, Why::All), (200, Why::All), (OWN, Why::All)]
    );
    assert!(changes.added[1].detected.is_some());
}

#[test]
fn an_embedded_engine_is_forgotten_with_the_program_that_had_it() {
    let fixture = host();
    fixture.process(300, 30, "python", &["python", "serve.py"]);
    fixture.file(
        "proc/300/maps",
        "1-2 r--p 0 fe:00 9 /v/xllamacpp/xllamacpp.abi3.so\n",
    );
    let mut scanner = default_scanner(&fixture);
    scanner.scan(seconds(0), &[]).unwrap();
    fixture.process(300, 30, "sleep", &["sleep", "60"]);
    let changes = scanner.scan(seconds(1), &[300]).unwrap();
    assert_eq!(changes.updated[0].detected, None);
}
