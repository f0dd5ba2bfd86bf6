use super::*;
use crate::host::fixture::{Fixture, kernel_thread_stat};

#[test]
fn a_name_may_hold_spaces_and_brackets() {
    let fixture = Fixture::new();
    fixture.process(7, 4321, "a) R (b", &["x"]);
    let stat = ProcessDir::open(&fixture.root(), 7)
        .unwrap()
        .stat()
        .unwrap();
    assert_eq!(
        stat,
        Stat {
            name: "a) R (b".into(),
            parent_pid: 1,
            start_time: 4321,
            threads: 1,
            state: 'S',
            kernel_thread: false,
            has_address_space: true,
        }
    );
}

#[test]
fn a_kernel_thread_is_known_by_its_flag() {
    let fixture = Fixture::with(&[
        ("proc/2/stat", &kernel_thread_stat(2, 5, "kthreadd")),
        ("proc/2/cmdline", ""),
        ("proc/2/statm", "0 0 0 0 0 0 0\n"),
    ]);
    let process = ProcessDir::open(&fixture.root(), 2).unwrap();
    let stat = process.stat().unwrap();
    assert!(stat.kernel_thread && !stat.has_address_space);
    assert_eq!(process.command_line().unwrap(), Vec::<String>::new());
    assert_eq!(process.resident_bytes().unwrap(), None);
}

#[test]
fn command_lines_are_split_at_zeros() {
    for (content, want) in [
        ("vllm\0serve\0", &["vllm", "serve"][..]),
        ("a\0\0b\0", &["a", "", "b"]),
        ("VLLM::EngineCore\0\0\0\0\0", &["VLLM::EngineCore"]),
        ("no zero at the end", &["no zero at the end"]),
        ("", &[]),
    ] {
        let fixture = Fixture::with(&[("proc/7/cmdline", content)]);
        let process = ProcessDir::open(&fixture.root(), 7).unwrap();
        assert_eq!(process.command_line().unwrap(), want, "{content:?}");
    }
}

#[test]
fn threads_are_listed_ascending_with_their_names() {
    let fixture = Fixture::with(&[
        ("proc/7/task/12/comm", "worker\n"),
        ("proc/7/task/7/comm", "main\n"),
    ]);
    let process = ProcessDir::open(&fixture.root(), 7).unwrap();
    assert_eq!(process.thread_ids().unwrap(), [7, 12]);
    assert_eq!(process.thread_name(12).unwrap(), "worker");
    assert!(process.thread_name(13).unwrap_err().is_gone());
}

#[test]
fn resident_memory_is_in_bytes() {
    let fixture = Fixture::with(&[("proc/7/statm", "100 3 2 1 0 5 0\n")]);
    let process = ProcessDir::open(&fixture.root(), 7).unwrap();
    assert_eq!(process.resident_bytes().unwrap(), Some(3 * page_size()));
}

#[test]
fn a_process_that_does_not_exist_is_gone() {
    let error = ProcessDir::open(&Fixture::new().root(), 7).unwrap_err();
    assert!(error.is_gone(), "{error}");
}

#[test]
fn a_process_that_ends_while_it_is_read_is_gone() {
    let fixture = Fixture::new();
    fixture.process(7, 1, "x", &["x"]);
    let process = ProcessDir::open(&fixture.root(), 7).unwrap();
    fixture.end(7);
    assert!(process.stat().unwrap_err().is_gone());
    assert!(process.command_line().unwrap_err().is_gone());
    assert!(process.thread_ids().unwrap_err().is_gone());
}

#[test]
fn a_pid_that_came_back_is_not_mistaken_for_the_held_one() {
    let fixture = Fixture::new();
    fixture.process(7, 1, "old", &["old"]);
    let process = ProcessDir::open(&fixture.root(), 7).unwrap();
    fixture.reuse_pid(7, 2, "new", &["new"]);
    assert!(process.stat().unwrap_err().is_gone());
}

#[test]
fn only_numbers_are_processes() {
    let fixture = Fixture::with(&[("proc/stat", ""), ("proc/7/stat", ""), ("proc/self/x", "")]);
    let pids: Vec<u32> = list_pids(&fixture.root())
        .unwrap()
        .iter()
        .map(|e| e.pid)
        .collect();
    assert_eq!(pids, [7]);
}

#[test]
fn this_very_process_can_be_read() {
    let process = ProcessDir::open(&Root::system(), std::process::id()).unwrap();
    let own = std::env::current_exe().unwrap();
    assert_eq!(
        process.executable_name().as_deref(),
        own.file_name().and_then(|name| name.to_str())
    );
    assert!(process.stat().unwrap().has_address_space);
    assert!(process.resident_bytes().unwrap().unwrap_or(0) > 0);
    assert!(process.thread_ids().unwrap().contains(&std::process::id()));
    assert!(process.status().unwrap().cpus_allowed.is_some());
}
