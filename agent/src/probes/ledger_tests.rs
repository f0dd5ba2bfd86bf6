//! Tests of the ledger: threads end, tids come back, readings miss rows, and no count is lost, doubled or lowered.

use super::*;
use agent_ebpf::SLOTS;

const COOKIE: u64 = 1_000;

fn thread(cookie: u64, exited: bool) -> Thread {
    Thread {
        cookie,
        tgid: 10,
        pending_at: 0,
        copying_at: 0,
        exited: exited.into(),
        task: 0,
        on_cpu_ns: 0,
        run_time_ns: 0,
        scan_ns: 7,
        scan_cpu_ns: 5,
        scan_began_ns: 0,
        scan_began_run_time_ns: 0,
        scan_began_account_ns: 0,
        migrating_vma: 0,
        pinning_pages: 0,
        last_node: 0,
        hint_node: NO_NODE,
        hint_cpu_node: 0,
        in_swap: 0,
        pending_pages: 0,
        pending_node: NO_NODE,
        in_driver: 0,
        pending_swap: 0,
        home_node: NO_NODE,
        reserved: 0,
    }
}

fn sched(tid: u32, node: u32, cookie: u64, ns: u64) -> (RowKey, SchedRow) {
    let row = SchedRow {
        cookie,
        tgid: 10,
        on_cpu_ns: ns,
        moves_from: [0; SLOTS],
    };
    (RowKey { tid, node }, row)
}

fn reading(tids: &[(u32, bool)], rows: &[(RowKey, SchedRow)]) -> Reading {
    Reading {
        threads: tids
            .iter()
            .map(|(tid, exited)| (*tid, thread(COOKIE, *exited)))
            .collect(),
        sched: rows.to_vec(),
        ..Reading::default()
    }
}

fn running(on_cpu_ns: u64, moved_from: Option<usize>) -> Running {
    Running {
        id: ThreadId {
            tid: 10,
            cookie: COOKIE,
        },
        tgid: 10,
        node: 1,
        moved_from,
        on_cpu_ns,
    }
}

fn on_cpu(ledger: &mut Ledger, node: u32) -> u64 {
    ledger
        .process(COOKIE)
        .by_node
        .get(&node)
        .map_or(0, |t| t.on_cpu_ns)
}

#[test]
fn a_thread_that_ended_is_counted_once() {
    let mut ledger = Ledger::default();
    ledger.absorb(&reading(
        &[(10, false), (11, true)],
        &[sched(10, 0, COOKIE, 100), sched(11, 0, COOKIE, 50)],
    ));
    assert_eq!(on_cpu(&mut ledger, 0), 150);
    let ended = ledger.ended(|id| id.tid != 11);
    assert_eq!(
        ended,
        [ThreadId {
            tid: 11,
            cookie: COOKIE
        }]
    );
    ledger.fold(&ended[0]);
    assert_eq!(on_cpu(&mut ledger, 0), 150);
    assert_eq!(ledger.process(COOKIE).scan_ns, 14);
}

#[test]
fn a_row_made_anew_after_its_thread_was_folded_adds_up() {
    let mut ledger = Ledger::default();
    ledger.absorb(&reading(&[(11, true)], &[sched(11, 0, COOKIE, 50)]));
    ledger.fold(&ThreadId {
        tid: 11,
        cookie: COOKIE,
    });
    ledger.absorb(&reading(&[(11, false)], &[sched(11, 0, COOKIE, 3)]));
    assert_eq!(on_cpu(&mut ledger, 0), 53);
}

#[test]
fn a_row_that_a_reading_missed_keeps_its_count() {
    let mut ledger = Ledger::default();
    ledger.absorb(&reading(
        &[(10, false)],
        &[sched(10, 0, COOKIE, 100), sched(10, 1, COOKIE, 30)],
    ));
    ledger.absorb(&reading(&[(10, false)], &[sched(10, 0, COOKIE, 120)]));
    assert_eq!(on_cpu(&mut ledger, 1), 30);
    assert_eq!(on_cpu(&mut ledger, 0), 120);
}

#[test]
fn a_reused_pid_is_another_process() {
    let mut ledger = Ledger::default();
    ledger.absorb(&reading(&[(10, true)], &[sched(10, 0, COOKIE, 100)]));
    let mut next = reading(&[], &[sched(10, 0, COOKIE + 1, 5)]);
    next.threads = vec![(10, thread(COOKIE + 1, false))];
    ledger.absorb(&next);
    assert_eq!(on_cpu(&mut ledger, 0), 100);
    assert_eq!(ledger.process(COOKIE + 1).by_node[&0].on_cpu_ns, 5);
}

#[test]
fn a_thread_that_never_switches_is_counted_while_it_runs() {
    let mut ledger = Ledger::default();
    let mut r = reading(&[(10, false)], &[]);
    r.running = vec![running(6_000, Some(0))];
    ledger.absorb(&r);
    assert_eq!(on_cpu(&mut ledger, 1), 6_000);
    assert_eq!(ledger.process(COOKIE).by_node[&1].moves_from[0], 1);
}

#[test]
fn a_count_never_falls_when_a_slice_ends_between_two_reads() {
    let mut ledger = Ledger::default();
    let mut r = reading(&[(10, false)], &[]);
    r.running = vec![running(6_000, None)];
    ledger.absorb(&r);
    assert_eq!(on_cpu(&mut ledger, 1), 6_000);
    // The row was read before the switch, the CPU after it: neither has the slice.
    ledger.absorb(&reading(&[(10, false)], &[]));
    assert_eq!(on_cpu(&mut ledger, 1), 6_000);
    ledger.absorb(&reading(&[(10, false)], &[sched(10, 1, COOKIE, 6_500)]));
    assert_eq!(on_cpu(&mut ledger, 1), 6_500);
}

#[test]
fn threads_that_nobody_knows_any_more_have_ended() {
    let mut ledger = Ledger::default();
    ledger.absorb(&reading(&[(10, false), (11, false)], &[]));
    assert_eq!(
        ledger.ended(|id| id.tid == 10),
        [ThreadId {
            tid: 11,
            cookie: COOKIE
        }]
    );
}

#[test]
fn a_threads_count_never_falls_either() {
    let id = ThreadId {
        tid: 10,
        cookie: COOKIE,
    };
    let mut ledger = Ledger::default();
    let mut r = reading(&[(10, false)], &[]);
    r.running = vec![running(6_000, None)];
    ledger.absorb(&r);
    assert_eq!(
        ledger.live_thread(&id).unwrap().by_node[&1].on_cpu_ns,
        6_000
    );
    ledger.absorb(&reading(&[(10, false)], &[]));
    assert_eq!(
        ledger.live_thread(&id).unwrap().by_node[&1].on_cpu_ns,
        6_000
    );
}

#[test]
fn a_row_that_is_being_made_is_nobodys() {
    let mut ledger = Ledger::default();
    ledger.absorb(&reading(&[], &[sched(10, 0, 0, 0)]));
    assert!(!ledger.has_threads(0));
}

#[test]
fn time_at_home_is_the_threads_own_and_its_row_there_has_moves_only() {
    let mut ledger = Ledger::default();
    let mut back_home = sched(10, 0, COOKIE, 0);
    back_home.1.moves_from[1] = 2;
    let mut now = reading(&[(10, false)], &[sched(10, 1, COOKIE, 30), back_home]);
    now.threads[0].1.home_node = 0;
    now.threads[0].1.on_cpu_ns = 50;
    ledger.absorb(&now);
    ledger.absorb(&now);
    assert_eq!((on_cpu(&mut ledger, 0), on_cpu(&mut ledger, 1)), (50, 30));
    let moves = ledger.process(COOKIE).by_node[&0].moves_from;
    assert_eq!(moves[1], 2);
    let id = ThreadId {
        tid: 10,
        cookie: COOKIE,
    };
    ledger.fold(&id);
    assert_eq!((on_cpu(&mut ledger, 0), on_cpu(&mut ledger, 1)), (50, 30));
}

#[test]
fn a_thread_that_has_not_switched_has_no_home() {
    let mut ledger = Ledger::default();
    ledger.absorb(&reading(&[(10, false)], &[]));
    assert!(ledger.process(COOKIE).by_node.is_empty());
}
