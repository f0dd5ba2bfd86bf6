//! Whom the sampler watches: selected processes and their children, from when they are found until their last thread is
//! counted.

use super::watched::Watched;
use super::{Sampler, run_times};
use crate::engines::scan::Found;
use crate::engines::selection::Why;
use crate::host::process::{descendants, own_pid};
use crate::probes::reader::{Happened, now_ns};
use agent_ebpf::Tracked;
use anyhow::Result;
use model::process::Process;
use std::time::Duration;

impl Sampler {
    /// Brings the set of watched processes up to date: selected ones, and children that the kernel side added.
    pub(super) fn follow(&mut self, happened: &Happened) -> Result<()> {
        let executed: Vec<u32> = happened.executed.iter().copied().collect();
        let changes = self
            .scanner
            .scan(Duration::from_nanos(now_ns()), &executed)?;
        for pid in &executed {
            if let Some(watched) = self.newest(*pid) {
                watched.executed();
                let id = watched.id();
                self.placements.forget(id);
            }
        }
        let tracked = self.source.tracked()?;
        let is_new = |(_, entry): &(&u32, &Tracked)| !self.watched.contains_key(&entry.cookie);
        let mut new: Vec<_> = tracked.iter().filter(is_new).collect();
        // Parents before their children, who take their names from them.
        new.sort_unstable_by_key(|(_, entry)| entry.cookie);
        for (pid, entry) in new {
            let parent = self
                .current
                .get(&entry.parent)
                .and_then(|cookie| self.watched.get(cookie));
            let child = Watched::child(&self.root, *pid, entry, parent);
            self.watch(child);
        }
        for found in &changes.added {
            if !self.is_meant(found) {
                continue;
            }
            let known = self
                .newest(found.pid)
                .filter(|w| w.id() == (found.pid, found.start_time));
            if let Some(watched) = known {
                watched.update(found);
            } else if let Some(entry) = self.track(found.pid) {
                self.watch(Watched::found(found, &entry));
            }
        }
        if !changes.added.is_empty() {
            self.watch_descendants(&changes.added)?;
        }
        for found in &changes.updated {
            if let Some(watched) = self.newest(found.pid) {
                watched.update(found);
            }
        }
        let tracked = self.source.tracked()?;
        for watched in self.watched.values_mut() {
            watched.note(tracked.get(&watched.id().0));
        }
        Ok(())
    }

    /// Whether the user means this process: `--match` also finds whoever started this agent with the pattern among its
    /// arguments, and the pid of `--pid` may have come back to another.
    fn is_meant(&mut self, found: &Found) -> bool {
        match found.why {
            Why::Match => !self.ancestors.contains(&found.pid),
            Why::Pid => {
                *self.asked.entry(found.pid).or_insert(found.start_time) == found.start_time
            }
            Why::All | Why::Engine | Why::Gpu => true,
        }
    }

    /// Begins to count a process; `None` where there is no room, which is counted too.
    fn track(&mut self, pid: u32) -> Option<Tracked> {
        let threads = run_times(&self.root, pid);
        match self.source.track(pid, &threads) {
            Ok(entry) => Some(entry),
            Err(error) => {
                self.unwatched += 1;
                tracing::warn!("{error:#}");
                None
            }
        }
    }

    /// Children that a process had before it was watched; later ones are added by the kernel side.
    fn watch_descendants(&mut self, added: &[Found]) -> Result<()> {
        let ancestors: Vec<u32> = added.iter().map(|found| found.pid).collect();
        let own = own_pid(&self.root);
        for (pid, parent) in descendants(&self.root, &ancestors)? {
            if pid == own || self.current.contains_key(&pid) {
                continue;
            }
            if let Some(entry) = self.track(pid) {
                let entry = Tracked { parent, ..entry };
                let parent = self
                    .current
                    .get(&parent)
                    .and_then(|cookie| self.watched.get(cookie));
                self.watch(Watched::child(&self.root, pid, &entry, parent));
            }
        }
        Ok(())
    }

    fn newest(&mut self, pid: u32) -> Option<&mut Watched> {
        self.watched.get_mut(self.current.get(&pid)?)
    }

    fn watch(&mut self, watched: Watched) {
        self.current.insert(watched.id().0, watched.cookie());
        self.watched.insert(watched.cookie(), watched);
    }

    /// Lets go of processes that have ended and whose threads are all folded: this snapshot is their last.
    pub(super) fn let_go(&mut self, reported: &[Process]) {
        let gone: Vec<u64> = self
            .watched
            .iter()
            .filter(|(cookie, w)| w.has_ended() && !self.ledger.has_threads(**cookie))
            .map(|(cookie, _)| *cookie)
            .collect();
        for cookie in gone {
            let Some(watched) = self.watched.remove(&cookie) else {
                continue;
            };
            let (pid, start_time) = watched.id();
            if let Some(last) = reported
                .iter()
                .find(|p| (p.pid, p.start_time) == (pid, start_time))
            {
                self.remember(last);
            }
            if self.current.get(&pid) == Some(&cookie) {
                self.current.remove(&pid);
            }
            self.ledger.forget(cookie);
            self.placements.forget(watched.id());
            self.source.untrack(pid, cookie);
        }
    }

    fn remember(&mut self, process: &Process) {
        self.account.let_go(process);
        if self.keep_ended {
            self.ended.push(process.clone());
        }
    }
}
