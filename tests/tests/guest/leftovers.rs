//! What an ended numawatch leaves behind in the kernel: nothing.

use tests::leftovers::{AGENT, Ending, SNAPSHOT};
use tests::sessions::{KPROBES_ONLY, TRACEPOINTS_ONLY};
use tests::vm::Guest;

on_each_kernel!(
    done_when_5_kill_9_leaves_no_bpf_object,
    done_when_5_kill_9_changes_no_setting,
    done_when_5_kill_9_on_each_lower_rung_leaves_nothing,
    done_when_5_kill_9_of_the_agent_leaves_nothing,
    an_orderly_end_leaves_nothing,
);

fn ending<'a>(guest: &'a Guest, command: &str, signal: i32, options: &str) -> &'a Ending {
    let report = guest.leftovers();
    let is_it = |ending: &&Ending| {
        (
            ending.command.as_str(),
            ending.signal,
            ending.options.as_str(),
        ) == (command, signal, options)
    };
    match report.endings.iter().find(is_it) {
        Some(ending) => ending,
        None => panic!(
            "no ending by signal {signal} with {options:?}: {:?}",
            report.error
        ),
    }
}

fn done_when_5_kill_9_leaves_no_bpf_object(guest: &Guest) {
    let ending = ending(guest, SNAPSHOT, libc::SIGKILL, "");
    assert!(
        ending.programs > 0,
        "it had loaded nothing: no test of anything"
    );
    assert!(ending.left.is_empty(), "{:?}", ending.left);
}

fn done_when_5_kill_9_changes_no_setting(guest: &Guest) {
    let ending = ending(guest, SNAPSHOT, libc::SIGKILL, "");
    assert!(ending.changed.is_empty(), "{:?}", ending.changed);
}

#[track_caller]
fn nothing_is_left(ending: &Ending) {
    assert!(
        ending.programs > 0,
        "it had loaded nothing: no test of anything"
    );
    assert!(
        ending.left.is_empty() && ending.changed.is_empty(),
        "{ending:?}"
    );
}

fn done_when_5_kill_9_on_each_lower_rung_leaves_nothing(guest: &Guest) {
    for options in [TRACEPOINTS_ONLY, KPROBES_ONLY] {
        nothing_is_left(ending(guest, SNAPSHOT, libc::SIGKILL, options));
    }
}

fn done_when_5_kill_9_of_the_agent_leaves_nothing(guest: &Guest) {
    nothing_is_left(ending(guest, AGENT, libc::SIGKILL, ""));
}

fn an_orderly_end_leaves_nothing(guest: &Guest) {
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let ending = ending(guest, SNAPSHOT, signal, "");
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
