//! What an ended numawatch leaves behind in this machine's kernel: nothing. The guest has the same tests on another rung.
#![allow(
    clippy::expect_used,
    reason = "a helper that cannot go on fails its test"
)]

use tests::built::tools;
use tests::leftovers::{AGENT, Ending, SNAPSHOT, ending};

fn end_by(command: &str, signal: i32) -> Ending {
    ending(&tools(env!("CARGO_BIN_EXE_workload")), command, signal, "")
        .expect("numawatch watches, and ends")
}

#[test]
fn done_when_5_kill_9_leaves_no_bpf_object_and_changes_no_setting() {
    for command in [SNAPSHOT, AGENT] {
        let ending = end_by(command, libc::SIGKILL);
        assert!(
            ending.programs > 0,
            "it had loaded nothing: no test of anything"
        );
        assert!(ending.left.is_empty(), "{:?}", ending.left);
        assert!(ending.changed.is_empty(), "{:?}", ending.changed);
    }
}

#[test]
fn an_orderly_end_leaves_nothing() {
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let ending = end_by(SNAPSHOT, signal);
        assert_eq!(
            ending.exit_code,
            Some(0),
            "signal {signal}: {}",
            ending.stderr
        );
        assert!(
            ending.left.is_empty() && ending.changed.is_empty(),
            "signal {signal}: {ending:?}"
        );
    }
}
