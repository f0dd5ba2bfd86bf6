//! Events that probes missed because one was running on that CPU already: the kernel's own count, or why there is none.

use tests::vm::Guest;

on_kernel_6_12!(what_programs_missed_is_told, what_kprobes_missed_is_told);
on_kernel_6_1!(
    what_programs_missed_is_told,
    what_kprobes_missed_is_unknown_and_says_since_when_it_is_not,
);

fn what_kprobes_missed_is_told(guest: &Guest) {
    let lost = guest.session("kprobes").snapshot().host.lost;
    assert!(
        lost.events.is_some() && lost.events_reason.is_none(),
        "{lost:?}"
    );
}

fn what_kprobes_missed_is_unknown_and_says_since_when_it_is_not(guest: &Guest) {
    let lost = guest.session("kprobes").snapshot().host.lost;
    let why = lost.events_reason.as_deref().unwrap_or_default();
    assert!(lost.events.is_none() && why.contains("6.7"), "{lost:?}");
}

fn what_programs_missed_is_told(guest: &Guest) {
    for session in ["counts", "balancing"] {
        let lost = guest.session(session).snapshot().host.lost;
        assert!(lost.events.is_some(), "{session}: {lost:?}");
    }
}
