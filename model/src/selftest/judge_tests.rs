use super::*;
use crate::process::{
    HintCounter, MigrationPair, Migrations, MovePair, Moves, TouchCounter, TouchPair, Touches,
};
use crate::selftest::Report;
use crate::signal::SignalState;
use crate::topology::NodeId;

fn signal(name: SignalName, mechanism: Mechanism) -> Signal {
    Signal {
        name,
        state: SignalState::Attached,
        mechanism: Some(mechanism),
        target: Some("somewhere".to_owned()),
        reason: None,
    }
}

fn pairs(of: &[(NodeId, NodeId, u64)]) -> Pairs {
    of.iter()
        .map(|&(from, to, count)| Pair { from, to, count })
        .collect()
}

fn touched(of: &[(NodeId, NodeId, u64)]) -> TouchCounter {
    let pair = |&(cpu_node, memory_node, pages): &(NodeId, NodeId, u64)| TouchPair {
        cpu_node,
        memory_node,
        pages,
    };
    TouchCounter {
        pages: Some(of.iter().map(|(_, _, n)| n).sum()),
        unknown_node_pages: Some(0),
        by_pair: Some(of.iter().map(pair).collect()),
        ..TouchCounter::default()
    }
}

fn only(truth: &Truth, seen: &Seen, signal: &Signal) -> Test {
    judge(truth, seen, std::slice::from_ref(signal)).remove(0)
}

#[test]
fn first_touches_by_pair() {
    let truth = Truth {
        first_touch: pairs(&[(0, 0, 512), (0, 1, 512)]),
        ..Truth::default()
    };
    for (seen, want) in [
        (&[(0, 0, 512), (0, 1, 512)][..], Verdict::Passed),
        (&[(0, 0, 512 + 32), (0, 1, 512)], Verdict::Passed),
        // The stack, on a node that was not expected.
        (&[(0, 0, 512), (0, 1, 512), (1, 1, 9)], Verdict::Passed),
        (&[(0, 0, 512), (0, 1, 506)], Verdict::Failed),
        (&[(0, 0, 1024)], Verdict::Failed),
        (&[(0, 0, 512), (0, 1, 512), (1, 0, 512)], Verdict::Failed),
        (&[(0, 0, 1024), (0, 1, 1024)], Verdict::Failed),
        (&[], Verdict::Failed),
    ] {
        let seen = Seen {
            touches: Touches {
                first_touch: touched(seen),
                ..Touches::default()
            },
            ..Seen::default()
        };
        let test = only(
            &truth,
            &seen,
            &signal(SignalName::FirstTouch, Mechanism::Fentry),
        );
        assert_eq!(test.verdict, want, "{test:?}");
    }
}

#[test]
fn a_signal_that_gives_no_number_fails() {
    let truth = Truth {
        first_touch: pairs(&[(0, 0, 512)]),
        ..Truth::default()
    };
    let test = only(
        &truth,
        &Seen::default(),
        &signal(SignalName::FirstTouch, Mechanism::Fentry),
    );
    assert_eq!(test.verdict, Verdict::Failed);
    assert_eq!(
        test.reason.as_deref(),
        Some("all nodes: expected 512 pages, saw none")
    );
}

#[test]
fn a_lower_rung_is_held_to_what_it_can_see() {
    let truth = Truth {
        map_new: pairs(&[(0, 0, 256)]),
        map_old: pairs(&[(0, 0, 256)]),
        ..Truth::default()
    };
    for (mechanism, seen, want) in [
        (Mechanism::Fentry, 512, Verdict::Passed),
        (Mechanism::Fentry, 256, Verdict::Failed),
        (Mechanism::Kprobe, 512, Verdict::Passed),
        (Mechanism::TpBtf, 256, Verdict::Passed),
        (Mechanism::TpBtf, 512, Verdict::Failed),
    ] {
        let seen = Seen {
            touches: Touches {
                map: touched(&[(0, 0, seen)]),
                ..Touches::default()
            },
            ..Seen::default()
        };
        let test = only(&truth, &seen, &signal(SignalName::Map, mechanism));
        assert_eq!(test.verdict, want, "{mechanism:?} {test:?}");
    }
}

fn scheduled(cpu: &[(NodeId, u64)], moves: &[(NodeId, NodeId, u64)]) -> Seen {
    let pair = |&(from, to, count): &(NodeId, NodeId, u64)| MovePair { from, to, count };
    Seen {
        cpu_time_ns_by_node: Some(cpu.iter().copied().collect()),
        moves: Moves {
            by_pair: Some(moves.iter().map(pair).collect()),
            ..Moves::default()
        },
        ..Seen::default()
    }
}

#[test]
fn cpu_time_and_moves() {
    const MS: u64 = 1_000_000;
    let truth = Truth {
        cpu_time_ns_by_node: ByNode::from([(0, 100 * MS), (1, 50 * MS)]),
        moves: pairs(&[(0, 1, 10), (1, 0, 9)]),
        ..Truth::default()
    };
    let good = scheduled(&[(0, 101 * MS), (1, 49 * MS)], &[(0, 1, 10), (1, 0, 9)]);
    let wrong_node = scheduled(&[(0, 150 * MS), (1, 0)], &[(0, 1, 10), (1, 0, 9)]);
    let no_moves = scheduled(&[(0, 100 * MS), (1, 50 * MS)], &[]);
    let tp = signal(SignalName::Sched, Mechanism::TpBtf);
    assert_eq!(only(&truth, &good, &tp).verdict, Verdict::Passed);
    assert_eq!(only(&truth, &wrong_node, &tp).verdict, Verdict::Failed);
    assert_eq!(only(&truth, &no_moves, &tp).verdict, Verdict::Failed);
    // It is not held to the node, and has no moves.
    let procfs = signal(SignalName::Sched, Mechanism::Procfs);
    assert_eq!(only(&truth, &wrong_node, &procfs).verdict, Verdict::Passed);
    assert_eq!(
        only(&truth, &Seen::default(), &procfs).verdict,
        Verdict::Failed
    );
}

#[test]
fn balancing_is_known_by_the_pages_that_arrived() {
    let truth = Truth {
        migrated: pairs(&[(1, 0, 2_000)]),
        ..Truth::default()
    };
    let seen = |hint: u64, migrated: u64, by_pair: bool| Seen {
        hint: Touches {
            hint: HintCounter {
                counter: touched(&[(0, 1, hint), (0, 0, 70)]),
                ..HintCounter::default()
            },
            ..Touches::default()
        },
        migrations: Migrations {
            pages: Some(migrated),
            by_pair: by_pair.then(|| {
                vec![MigrationPair {
                    from: 1,
                    to: 0,
                    pages: migrated,
                }]
            }),
            ..Migrations::default()
        },
        scan_time_ns: Some(hint),
        ..Seen::default()
    };
    for (hint, migrated, by_pair, want) in [
        (2_000, 2_000, true, Verdict::Passed),
        (2_100, 2_010, false, Verdict::Passed),
        (0, 0, true, Verdict::Failed),
        (4_200, 4_200, true, Verdict::Failed),
        (1_000, 1_000, false, Verdict::Failed),
    ] {
        for name in [SignalName::Hint, SignalName::Migration] {
            let test = only(
                &truth,
                &seen(hint, migrated, by_pair),
                &signal(name, Mechanism::Fentry),
            );
            assert_eq!(test.verdict, want, "{test:?}");
        }
    }
    let scan = signal(SignalName::Scan, Mechanism::Fentry);
    assert_eq!(
        only(&truth, &seen(1, 1, true), &scan).verdict,
        Verdict::Passed
    );
    assert_eq!(
        only(&truth, &seen(0, 0, true), &scan).verdict,
        Verdict::Failed
    );
}

#[test]
fn pins_and_placement_are_by_node() {
    let truth = Truth {
        pinned_pages: ByNode::from([(0, 64), (1, 64)]),
        resident_bytes: ByNode::from([(0, 4096 * 256)]),
        ..Truth::default()
    };
    for (pins, bytes, want) in [
        (64, 4096 * 256, Verdict::Passed),
        // NUMA balancing took some of the process's other pages away meanwhile.
        (64, 4096 * 250, Verdict::Passed),
        (0, 0, Verdict::Failed),
        (128, 4096 * 512, Verdict::Failed),
    ] {
        let seen = Seen {
            pinned_pages: Some(ByNode::from([(0, pins), (1, pins)])),
            resident_bytes: Some(ByNode::from([(0, bytes)])),
            ..Seen::default()
        };
        for name in [SignalName::Pin, SignalName::Placement] {
            let test = only(&truth, &seen, &signal(name, Mechanism::Fentry));
            assert_eq!(test.verdict, want, "{test:?}");
        }
    }
}

#[test]
fn what_could_not_be_made_is_neither_pass_nor_fail() {
    let mut truth = Truth::default();
    truth
        .not_made
        .insert(SignalName::Hint, "one node".to_owned());
    let test = only(
        &truth,
        &Seen::default(),
        &signal(SignalName::Hint, Mechanism::Fentry),
    );
    assert_eq!(test.verdict, Verdict::NotTested);
    assert_eq!(test.summary(), "not tested: one node");
    let gone = Signal::unavailable(SignalName::Hint, "kernel.numa_balancing=0");
    let test = only(&truth, &Seen::default(), &gone);
    assert_eq!(test.summary(), "not tested: the signal is unavailable");
}

#[test]
fn a_signal_that_failed_is_unreliable_and_says_why() {
    let truth = Truth {
        first_touch: pairs(&[(0, 0, 512)]),
        ..Truth::default()
    };
    let first_touch = Signal {
        state: SignalState::Degraded,
        reason: Some("hugetlb memory is not seen".to_owned()),
        ..signal(SignalName::FirstTouch, Mechanism::TpBtf)
    };
    let report = Report {
        tests: judge(&truth, &Seen::default(), std::slice::from_ref(&first_touch)),
        ..Report::default()
    };
    let marked = report.mark(&first_touch);
    assert_eq!(marked.state, SignalState::Unreliable);
    assert_eq!(
        marked.reason.as_deref(),
        Some("self-test: all nodes: expected 512 pages, saw none; hugetlb memory is not seen")
    );
    let other = signal(SignalName::Sched, Mechanism::TpBtf);
    assert_eq!(report.mark(&other), other);
}

#[test]
fn a_drivers_pages_are_by_node() {
    let truth = Truth {
        driver_allocated: [(1, 512)].into(),
        ..Truth::default()
    };
    for (seen, want) in [
        (Some([(1, 512)].into()), Verdict::Passed),
        // Its page tables and slabs.
        (Some([(1, 537)].into()), Verdict::Passed),
        (Some([(0, 512)].into()), Verdict::Failed),
        (Some(ByNode::new()), Verdict::Failed),
        (None, Verdict::Failed),
    ] {
        let seen = Seen {
            driver_allocated: seen,
            ..Seen::default()
        };
        let signal = signal(SignalName::DriverAlloc, Mechanism::Fentry);
        let test = only(&truth, &seen, &signal);
        assert_eq!(test.verdict, want, "{test:?}");
    }
}

#[test]
fn pages_from_swap_are_a_count_of_their_own_where_the_rung_sees_them() {
    let truth = Truth {
        first_touch: pairs(&[(0, 0, 512)]),
        swapped_in: 64,
        ..Truth::default()
    };
    for (mechanism, swap_in_pages, want) in [
        (Mechanism::Fentry, Some(64), Verdict::Passed),
        (Mechanism::Kprobe, Some(64), Verdict::Passed),
        (Mechanism::Fentry, Some(0), Verdict::Failed),
        (Mechanism::Fentry, None, Verdict::Failed),
        (Mechanism::TpBtf, Some(0), Verdict::Passed),
    ] {
        let seen = Seen {
            touches: Touches {
                first_touch: touched(&[(0, 0, 512)]),
                swap_in_pages,
                ..Touches::default()
            },
            ..Seen::default()
        };
        let test = only(&truth, &seen, &signal(SignalName::FirstTouch, mechanism));
        assert_eq!(test.verdict, want, "{test:?}");
    }
}

#[test]
fn what_finds_no_room_is_counted_one_by_one() {
    for (lost, want) in [
        (Some(256), Verdict::Passed),
        (Some(256 + 9), Verdict::Passed),
        (Some(0), Verdict::Failed),
        (Some(250), Verdict::Failed),
        (Some(512), Verdict::Failed),
        (None, Verdict::Failed),
    ] {
        let test = full_map(256, lost);
        assert_eq!(test.verdict, want, "{test:?}");
    }
    assert_eq!(
        full_map(256, Some(0)).summary(),
        "failed: without room: expected 256 counts, saw 0 counts"
    );
}
