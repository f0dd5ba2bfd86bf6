//! Signals that procfs tells beside the probes of others: its rows stand in for the kernel side's.

use super::ledger::Reading;
use super::procfs::Procfs;
use agent_ebpf::{NO_NODE, SLOTS, Tracked};
use model::signal::SignalName;
use std::collections::{BTreeSet, HashMap};

/// See the module's doc.
pub(crate) struct Beside {
    procfs: Procfs,
    signals: BTreeSet<SignalName>,
}

impl Beside {
    /// For these signals; of those that procfs doesn't tell it has nothing.
    pub(crate) fn new(procfs: Procfs, signals: BTreeSet<SignalName>) -> Self {
        Self { procfs, signals }
    }

    /// Counts a process under the kernel side's cookie.
    pub(crate) fn track(&mut self, tgid: u32, tracked: Tracked, threads: &[(u32, u64)]) {
        self.procfs.adopt(tgid, tracked, threads);
    }

    /// Stops counting it.
    pub(crate) fn untrack(&mut self, tgid: u32, cookie: u64) {
        self.procfs.untrack(tgid, cookie);
    }

    /// Puts procfs' rows in the place of the kernel side's, which tracks these processes now.
    pub(crate) fn read(&mut self, tracked: &HashMap<u32, Tracked>, reading: &mut Reading) {
        let known = self.procfs.tracked();
        for (tgid, newest) in tracked {
            if known.get(tgid).is_none_or(|k| k.cookie != newest.cookie) {
                let threads = self.procfs.born_since(*tgid);
                self.procfs.adopt(*tgid, *newest, &threads);
            }
        }
        for (tgid, gone) in known {
            if !tracked.contains_key(&tgid) {
                self.procfs.untrack(tgid, gone.cookie);
            }
        }
        let told = self.procfs.read();
        self.without(reading);
        if self.signals.contains(&SignalName::Sched) {
            reading.sched.extend(told.sched);
        }
        if self.signals.contains(&SignalName::Migration) {
            reading.balance.extend(told.balance);
        }
    }

    /// Takes out what the kernel side may have counted of these signals for others' sake.
    pub(crate) fn without(&self, reading: &mut Reading) {
        if self.signals.contains(&SignalName::Sched) {
            reading.sched.clear();
            reading.running.clear();
            for (_, thread) in &mut reading.threads {
                thread.home_node = NO_NODE;
            }
        }
        if self.signals.contains(&SignalName::Migration) {
            for (_, row) in &mut reading.balance {
                row.migrated_from = [0; SLOTS];
                row.failed_pages = 0;
            }
        }
    }
}
