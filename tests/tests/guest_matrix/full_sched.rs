//! Threads that change node while there is no room for their rows, on every kernel: what is counted is true, and the rest
//! is counted as lost.

use super::guest;
use model::process::{MovePair, Process};
use model::snapshot::Snapshot;
use tests::matrix::places::PLACES;
use tests::matrix::sessions::FULL_SCHED;
use tests::truth::{ProcessTruth, ThreadTruth};

on_each_kernel!(
    super::Played::at,
    time_at_home_needs_no_row,
    time_away_is_told_where_it_was_or_not_at_all,
    a_move_is_told_or_lost,
);

/// Threads begin at `home`, and go between it and `away`.
struct Played {
    home: u32,
    away: u32,
    truth: ProcessTruth,
    process: Process,
    snapshot: Snapshot,
}

impl Played {
    fn at(number: usize) -> Self {
        let place = &PLACES[number];
        let Some(home) = place.nodes.other else {
            panic!("{} has no other node", place.name())
        };
        let report = guest(place).session(FULL_SCHED.name);
        let truth = &report.workload("moves").truth.processes[0];
        Self {
            home,
            away: place.nodes.cpu,
            truth: truth.clone(),
            process: report.process(truth.pid),
            snapshot: report.snapshot(),
        }
    }

    /// What each moving thread ran on a node, nanoseconds, and what is told of that.
    fn times(&self, node: u32) -> Vec<(u64, u64)> {
        let time = |thread: &ThreadTruth| {
            let seen = self.process.threads.iter().find(|s| s.tid == thread.tid);
            let seen = seen.and_then(|seen| seen.cpu_time_ns_by_node.as_ref());
            let seen = seen.and_then(|by_node| by_node.get(&node)).copied();
            (thread.cpu_time_ns_by_node[&node], seen.unwrap_or(0))
        };
        let moving = self.truth.threads.iter().filter(|t| t.moves > 0);
        moving.map(time).collect()
    }

    fn moves(&self, to: u32) -> (u64, u64) {
        let of = |pairs: &[MovePair]| -> u64 {
            let pairs = pairs.iter().filter(|pair| pair.to == to);
            pairs.map(|pair| pair.count).sum()
        };
        let seen = self.process.moves.by_pair.as_deref().unwrap_or(&[]);
        (of(&self.truth.moves), of(seen))
    }
}

/// A thread reads its own clock a moment after it arrived, under emulation up to two milliseconds of twenty.
const SLACK_PERCENT: u64 = 20;

fn is(seen: u64, truth: u64) -> bool {
    seen.abs_diff(truth) <= truth * SLACK_PERCENT / 100
}

fn time_at_home_needs_no_row(played: &Played) {
    let times = played.times(played.home);
    assert_eq!(times.len(), 2, "two threads move");
    assert!(
        times.iter().all(|(truth, seen)| is(*seen, *truth)),
        "(ran, told): {times:?}"
    );
}

fn time_away_is_told_where_it_was_or_not_at_all(played: &Played) {
    let mut times = played.times(played.away);
    times.sort_unstable_by_key(|(_, seen)| *seen);
    let [without, with] = times[..] else {
        panic!("not two threads: {times:?}")
    };
    assert!(is(with.1, with.0), "with the row: (ran, told): {times:?}");
    // The most that is told of the other is one slice, which a reading found under way.
    assert!(without.1 < without.0 / 10, "(ran, told): {times:?}");
}

fn a_move_is_told_or_lost(played: &Played) {
    let lost = played.snapshot.host.lost.rows.unwrap_or(0);
    let ((there, told_there), (back, told_back)) =
        (played.moves(played.away), played.moves(played.home));
    // One of two threads has a row, and only for what it does away; of each, a reading may find one move under way.
    assert!(
        told_there.abs_diff(there / 2) <= 2 && told_back <= 2,
        "{:?}, not half of those in {:?}",
        played.process.moves,
        played.truth.moves
    );
    assert!(
        lost + told_there + told_back >= there + back,
        "lost {lost}, told {:?}, of {:?}",
        played.process.moves,
        played.truth.moves
    );
}
