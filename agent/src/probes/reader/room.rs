//! How much room the kernel side's maps have, what found none, and the self-test's way to leave none.

use super::{BPF_ANY, Reader};
use crate::probes::ledger::Reading;
use agent_ebpf::{LOST_KINDS, Lost, NO_NODE, RowKey, SLOTS, TouchRow};
use model::snapshot::MapUse;

/// No thread has such a tid: `kernel.pid_max` is at most 2^22.
const FILLER_TID: u32 = 1 << 31;

/// A key that no program looks for.
const fn filler_key(n: u32) -> RowKey {
    RowKey {
        tid: FILLER_TID + n,
        node: NO_NODE,
    }
}

/// Entries in use, by the map's name.
pub(super) type Used = [(&'static str, usize); 5];

/// What a reading found in the maps, as long as nothing else was put into it.
pub(super) fn used(reading: &Reading) -> Used {
    [
        ("THREADS", reading.threads.len()),
        ("SCHED", reading.sched.len()),
        ("TOUCH", reading.touch.len()),
        ("BALANCE", reading.balance.len()),
        ("DEVICE", reading.device.len()),
    ]
}

impl Reader {
    /// Takes all room in the map of page-fault rows, and says how many entries that took.
    pub(crate) fn fill_touch(&mut self) -> u32 {
        let all = self.max_of("TOUCH");
        let filler = TouchRow {
            cookie: 0,
            tgid: 0,
            swap_in: 0,
            first_touch: [0; SLOTS],
            map: [0; SLOTS],
        };
        // An insert is refused only for want of room.
        (0..all)
            .find(|n| self.touch.insert(filler_key(*n), filler, BPF_ANY).is_err())
            .unwrap_or(all)
    }

    /// Gives the room back, and forgets counts that found none meanwhile.
    pub(crate) fn empty_touch(&mut self, filled: u32, lost: u64) {
        for n in 0..filled {
            let _ = self.touch.remove(&filler_key(n));
        }
        self.forgiven += lost;
    }

    /// How full the maps were at the last reading, before rows of threads that had ended were deleted.
    pub(crate) fn maps(&self, tracked: usize) -> Vec<MapUse> {
        let used = |name: &str| {
            let rows = self.used.iter().find(|(known, _)| *known == name);
            let rows = rows.map(|(_, used)| *used);
            rows.or_else(|| (name == "TRACKED").then_some(tracked))
        };
        let map = |(name, max): &(&str, u32)| {
            Some(MapUse {
                name: (*name).to_owned(),
                used: used(name)? as u64,
                max: u64::from(*max),
            })
        };
        self.entries.iter().filter_map(map).collect()
    }

    /// What found no room since the start: (counts, news).
    pub(crate) fn lost(&self) -> (Option<u64>, Option<u64>) {
        let of = |kind: Lost| -> Option<u64> {
            debug_assert!((kind as u32) < LOST_KINDS);
            self.lost
                .get(&(kind as u32), 0)
                .ok()
                .map(|values| values.iter().sum())
        };
        let rows = of(Lost::Row)
            .zip(of(Lost::Process))
            .zip(of(Lost::Reused))
            .map(|((a, b), c)| (a + b + c).saturating_sub(self.forgiven));
        (rows, of(Lost::News))
    }

    pub(super) fn max_of(&self, name: &str) -> u32 {
        let found = self.entries.iter().find(|(known, _)| *known == name);
        found.map_or(0, |(_, max)| *max)
    }
}
