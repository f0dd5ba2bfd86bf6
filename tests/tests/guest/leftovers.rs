//! What an ended numawatch leaves behind in the kernel: nothing.

use tests::leftovers::Ending;
use tests::sessions::TRACEPOINTS_ONLY;
use tests::vm::Guest;

on_each_kernel!(
    done_when_5_kill_9_leaves_no_bpf_object,
    done_when_5_kill_9_changes_no_setting,
    done_when_5_kill_9_on_the_rung_without_fentry_leaves_nothing,
    an_orderly_end_leaves_nothing,
);

fn ending<'a>(guest: &'a Guest, signal: i32, options: &str) -> &'a Ending {
    let report = guest.leftovers();
    let is_it = |ending: &&Ending| ending.signal == signal && ending.options == options;
    match report.endings.iter().find(is_it) {
        Some(ending) => ending,
        None => panic!(
            "no ending by signal {signal} with {options:?}: {:?}",
            report.error
        ),
    }
}

fn done_when_5_kill_9_leaves_no_bpf_object(guest: &Guest) {
    let ending = ending(guest, libc::SIGKILL, "");
    assert!(
        ending.programs > 0,
        "it had loaded nothing: no test of anything"
    );
    assert!(ending.left.is_empty(), "{:?}", ending.left);
}

fn done_when_5_kill_9_changes_no_setting(guest: &Guest) {
    let ending = ending(guest, libc::SIGKILL, "");
    assert!(ending.changed.is_empty(), "{:?}", ending.changed);
}

fn done_when_5_kill_9_on_the_rung_without_fentry_leaves_nothing(guest: &Guest) {
    let ending = ending(guest, libc::SIGKILL, TRACEPOINTS_ONLY);
    assert!(
        ending.programs > 0,
        "it had loaded nothing: no test of anything"
    );
    assert!(
        ending.left.is_empty() && ending.changed.is_empty(),
        "{ending:?}"
    );
}

fn an_orderly_end_leaves_nothing(guest: &Guest) {
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let ending = ending(guest, signal, "");
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
