//! Where counts come from: the kernel side's maps, or procfs for a user who may not load it. The sampler does not care.

use super::beside::Beside;
use super::ledger::{Ledger, Reading, ThreadId};
use super::procfs::Procfs;
use super::reader::{Happened, Reader};
use super::running::Threads;
use agent_ebpf::Tracked;
use anyhow::Result;
use model::snapshot::MapUse;
use std::collections::HashMap;

/// See the module's doc.
pub(crate) enum Source {
    /// eBPF.
    Kernel(Box<Reader>),
    /// eBPF, and files in `/proc` for some signals.
    Both(Box<Reader>, Beside),
    /// Files in `/proc`.
    Procfs(Procfs),
}

impl Source {
    /// See [`Reader::track`].
    pub(crate) fn track(&mut self, tgid: u32, threads: &[(u32, u64)]) -> Result<Tracked> {
        match self {
            Self::Kernel(reader) => reader.track(tgid, threads),
            Self::Both(reader, beside) => {
                let tracked = reader.track(tgid, threads)?;
                beside.track(tgid, tracked, threads);
                Ok(tracked)
            }
            Self::Procfs(procfs) => Ok(procfs.track(tgid, threads)),
        }
    }

    /// See [`Reader::untrack`].
    pub(crate) fn untrack(&mut self, tgid: u32, cookie: u64) {
        match self {
            Self::Kernel(reader) => reader.untrack(tgid, cookie),
            Self::Both(reader, beside) => {
                reader.untrack(tgid, cookie);
                beside.untrack(tgid, cookie);
            }
            Self::Procfs(procfs) => procfs.untrack(tgid, cookie),
        }
    }

    /// See [`Reader::tracked`].
    pub(crate) fn tracked(&self) -> Result<HashMap<u32, Tracked>> {
        match self {
            Self::Kernel(reader) | Self::Both(reader, _) => reader.tracked(),
            Self::Procfs(procfs) => Ok(procfs.tracked()),
        }
    }

    /// See [`Reader::read`].
    pub(crate) fn read(&mut self, host: &impl Threads) -> Result<Reading> {
        match self {
            Self::Kernel(reader) => reader.read(host),
            Self::Both(reader, beside) => {
                let mut reading = reader.read(host)?;
                beside.read(&reader.tracked()?, &mut reading);
                Ok(reading)
            }
            Self::Procfs(procfs) => Ok(procfs.read()),
        }
    }

    /// See [`Reader::retire`]; procfs has nothing more to tell of a thread that has ended.
    pub(crate) fn retire(&mut self, ledger: &mut Ledger, ended: &[ThreadId]) {
        match self {
            Self::Kernel(reader) => reader.retire(ledger, ended, |_| ()),
            Self::Both(reader, beside) => {
                reader.retire(ledger, ended, |last| beside.without(last));
            }
            Self::Procfs(_) => ended.iter().for_each(|id| ledger.fold(id)),
        }
    }

    /// See [`Reader::delete`].
    pub(crate) fn delete(&mut self, id: &ThreadId, nodes: &[u32]) {
        if let Self::Kernel(reader) | Self::Both(reader, _) = self {
            reader.delete(id, nodes);
        }
    }

    /// See [`Reader::news`].
    pub(crate) fn news(&mut self) -> Happened {
        match self {
            Self::Kernel(reader) | Self::Both(reader, _) => reader.news(),
            Self::Procfs(procfs) => {
                procfs.find_children();
                Happened::default()
            }
        }
    }

    /// See [`Reader::switches`]; procfs has no probe there.
    pub(crate) fn switches(&self) -> Option<u64> {
        match self {
            Self::Kernel(reader) | Self::Both(reader, _) => reader.switches(),
            Self::Procfs(_) => None,
        }
    }

    /// See [`Reader::fill_touch`]; `None` where there is no map.
    pub(crate) fn fill_touch(&mut self) -> Option<u32> {
        match self {
            Self::Kernel(reader) | Self::Both(reader, _) => Some(reader.fill_touch()),
            Self::Procfs(_) => None,
        }
    }

    /// See [`Reader::empty_touch`].
    pub(crate) fn empty_touch(&mut self, filled: u32, lost: u64) {
        if let Self::Kernel(reader) | Self::Both(reader, _) = self {
            reader.empty_touch(filled, lost);
        }
    }

    /// See [`Reader::maps`]; procfs has none.
    pub(crate) fn maps(&self, tracked: usize) -> Vec<MapUse> {
        match self {
            Self::Kernel(reader) | Self::Both(reader, _) => reader.maps(tracked),
            Self::Procfs(_) => Vec::new(),
        }
    }

    /// See [`Reader::lost`]; without eBPF there is no map that could be full, and nobody tells news.
    pub(crate) fn lost(&self) -> (Option<u64>, Option<u64>) {
        match self {
            Self::Kernel(reader) | Self::Both(reader, _) => reader.lost(),
            Self::Procfs(_) => (None, None),
        }
    }
}
