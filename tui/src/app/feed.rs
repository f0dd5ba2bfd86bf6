//! The snapshots on the screen: the newest two for rates, and the held two while paused.

use super::row::Row;
use model::process::Process;
use model::rates;
use model::snapshot::Snapshot;
use std::collections::HashMap;
use std::sync::Arc;

/// A process's identity: pids come back, so the start time belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Id {
    pub(crate) pid: u32,
    pub(crate) start_time: u64,
}

impl Id {
    pub(crate) fn of(process: &Process) -> Self {
        Self {
            pid: process.pid,
            start_time: process.start_time,
        }
    }
}

/// A snapshot and the one before it.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    pub(crate) now: Arc<Snapshot>,
    pub(crate) before: Option<Arc<Snapshot>>,
    /// Where each process is in `before`: with `--all` there are thousands.
    index: Arc<HashMap<Id, usize>>,
}

impl Pair {
    pub(crate) fn new(before: Option<Arc<Snapshot>>, now: Arc<Snapshot>) -> Self {
        let index = before
            .iter()
            .flat_map(|b| b.processes.iter().enumerate())
            .map(|(at, p)| (Id::of(p), at))
            .collect();
        Self {
            now,
            before,
            index: Arc::new(index),
        }
    }

    /// Nanoseconds between the two.
    pub(crate) fn elapsed_ns(&self) -> Option<u64> {
        rates::elapsed_ns(self.before.as_deref()?, &self.now)
    }

    /// A process with what is needed for its rates.
    pub(crate) fn row<'a>(&'a self, process: &'a Process) -> Row<'a> {
        let before = self
            .index
            .get(&Id::of(process))
            .and_then(|at| self.before.as_ref()?.processes.get(*at));
        Row::new(process, before, self.elapsed_ns())
    }

    /// The same by identity.
    pub(crate) fn find(&self, id: Id) -> Option<Row<'_>> {
        self.now
            .processes
            .iter()
            .find(|p| Id::of(p) == id)
            .map(|p| self.row(p))
    }
}

/// What arrives, and what is shown of it.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    latest: Option<Pair>,
    held: Option<Pair>,
    /// The sender is gone.
    pub(crate) ended: bool,
}

impl Feed {
    pub(crate) fn push(&mut self, now: Arc<Snapshot>) {
        let before = self.latest.take().map(|p| p.now);
        self.latest = Some(Pair::new(before, now));
    }

    /// What the screen shows.
    pub(crate) fn shown(&self) -> Option<&Pair> {
        self.held.as_ref().or(self.latest.as_ref())
    }

    pub(crate) fn paused(&self) -> bool {
        self.held.is_some()
    }

    /// Holds the picture or lets it go; before the first snapshot there is none to hold.
    pub(crate) fn toggle_pause(&mut self) {
        self.held = if self.held.is_some() {
            None
        } else {
            self.latest.clone()
        };
    }
}
