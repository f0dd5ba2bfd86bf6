//! What an export observes: the newest snapshot, and processes that ended since the last export that arrived.

use model::process::Process;
use model::snapshot::Snapshot;
use std::collections::HashSet;
use std::sync::Arc;

/// While no collector answers, no more processes than these wait for their last export.
const ENDED_KEPT: usize = 4096;

/// The newest snapshot's live processes, and each ended one until it was exported once.
#[derive(Debug, Default)]
pub(super) struct View {
    newest: Option<Arc<Snapshot>>,
    ended: Vec<Ended>,
    given_up: u64,
}

#[derive(Debug)]
struct Ended {
    process: Process,
    /// It is in the export that is under way.
    observed: bool,
}

impl View {
    /// Takes the next snapshot. Snapshots can be skipped: what is gone has ended, too.
    pub(super) fn update(&mut self, next: &Arc<Snapshot>) {
        if self.newest.as_ref().is_some_and(|n| Arc::ptr_eq(n, next)) {
            return;
        }
        let listed: HashSet<(u32, u64)> = next.processes.iter().map(identity).collect();
        if let Some(before) = self.newest.replace(Arc::clone(next)) {
            for process in before.processes.iter().filter(|p| p.alive) {
                if !listed.contains(&identity(process)) {
                    self.keep(process);
                }
            }
        }
        for process in next.processes.iter().filter(|p| !p.alive) {
            self.keep(process);
        }
        // One series can't have two values: the process that has the pid now comes first.
        let live = next.processes.iter().filter(|p| p.alive);
        let live: HashSet<(u32, &str)> = live.map(series).collect();
        self.ended
            .retain(|ended| !live.contains(&series(&ended.process)));
    }

    fn keep(&mut self, process: &Process) {
        self.ended
            .retain(|ended| series(&ended.process) != series(process));
        if self.ended.len() == ENDED_KEPT {
            self.ended.remove(0);
            self.given_up += 1;
        }
        self.ended.push(Ended {
            process: process.clone(),
            observed: false,
        });
    }

    /// The newest snapshot and the processes to observe; `None` before the first snapshot.
    pub(super) fn observe(&self) -> Option<(&Snapshot, impl Iterator<Item = &Process>)> {
        let snapshot = self.newest.as_deref()?;
        let live = snapshot.processes.iter().filter(|p| p.alive);
        Some((snapshot, live.chain(self.ended.iter().map(|e| &e.process))))
    }

    /// An export of what is observed now begins.
    pub(super) fn export_begins(&mut self) {
        for ended in &mut self.ended {
            ended.observed = true;
        }
    }

    /// It arrived: the ended processes in it are done.
    pub(super) fn export_arrived(&mut self) {
        self.ended.retain(|ended| !ended.observed);
    }

    /// How many ended processes were never exported, since the last call.
    pub(super) fn take_given_up(&mut self) -> u64 {
        std::mem::take(&mut self.given_up)
    }
}

fn identity(process: &Process) -> (u32, u64) {
    (process.pid, process.start_time)
}

/// What tells its points from another process's.
fn series(process: &Process) -> (u32, &str) {
    (process.pid, &process.name)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{process, snapshot};
    use super::*;

    fn names(view: &View) -> Vec<(u32, u64)> {
        let (_, processes) = view.observe().unwrap();
        let mut ids: Vec<_> = processes.map(|p| (p.pid, p.start_time)).collect();
        ids.sort_unstable();
        ids
    }

    fn taken(view: &mut View, processes: Vec<Process>) {
        view.update(&Arc::new(snapshot(processes)));
    }

    fn ended(pid: u32, start_time: u64) -> Process {
        Process {
            alive: false,
            ..process(pid, start_time)
        }
    }

    #[test]
    fn an_ended_process_is_observed_until_an_export_with_it_arrived() {
        let mut view = View::default();
        taken(&mut view, vec![process(1, 1), process(2, 1)]);
        taken(&mut view, vec![process(1, 1), ended(2, 1)]);
        assert_eq!(names(&view), [(1, 1), (2, 1)]);
        taken(&mut view, vec![process(1, 1)]);
        view.export_begins();
        assert_eq!(names(&view), [(1, 1), (2, 1)], "the export can fail");
        view.export_arrived();
        assert_eq!(names(&view), [(1, 1)]);
    }

    #[test]
    fn the_same_snapshot_again_is_nothing_new() {
        let mut view = View::default();
        let last = Arc::new(snapshot(vec![ended(1, 1)]));
        view.update(&last);
        view.export_begins();
        view.export_arrived();
        view.update(&last);
        assert_eq!(names(&view), []);
    }

    #[test]
    fn one_that_ends_during_an_export_waits_for_the_next() {
        let mut view = View::default();
        taken(&mut view, vec![process(1, 1)]);
        view.export_begins();
        taken(&mut view, vec![ended(1, 1)]);
        view.export_arrived();
        assert_eq!(names(&view), [(1, 1)]);
    }

    #[test]
    fn one_whose_last_snapshot_was_skipped_has_ended() {
        let mut view = View::default();
        taken(&mut view, vec![process(1, 1)]);
        taken(&mut view, vec![]);
        assert_eq!(names(&view), [(1, 1)]);
    }

    #[test]
    fn a_reused_pid_is_the_new_process() {
        let mut view = View::default();
        taken(&mut view, vec![process(1, 1)]);
        taken(&mut view, vec![ended(1, 1), process(1, 2)]);
        assert_eq!(names(&view), [(1, 2)]);
    }

    #[test]
    fn what_waits_is_bounded_and_counted() {
        let mut view = View::default();
        let pids = 0..u32::try_from(ENDED_KEPT).unwrap() + 3;
        taken(&mut view, pids.map(|pid| ended(pid, 1)).collect());
        assert_eq!(names(&view).len(), ENDED_KEPT);
        assert_eq!((view.take_given_up(), view.take_given_up()), (3, 0));
    }
}
