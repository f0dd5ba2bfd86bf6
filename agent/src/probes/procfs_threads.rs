//! Threads as procfs shows them, for whoever reads the kernel side's rows.

use super::running::{Owner, Threads};
use crate::host::process::ProcessDir;
use crate::host::root::Root;
use std::collections::HashMap;

/// See the module's doc.
pub(crate) struct ProcfsThreads<'a> {
    /// Where procfs is.
    pub(crate) root: &'a Root,
    /// Whose each thread is, by tid.
    pub(crate) owners: HashMap<u32, Owner>,
}

impl Threads for ProcfsThreads<'_> {
    fn owner(&self, tid: u32) -> Option<Owner> {
        self.owners.get(&tid).copied()
    }

    fn run_time(&self, pid: u32, tid: u32) -> Option<u64> {
        let dir = ProcessDir::open(self.root, pid).ok()?;
        dir.thread_run_time(tid).ok()
    }

    fn switches(&self, pid: u32, tid: u32) -> Option<u64> {
        let dir = ProcessDir::open(self.root, pid).ok()?;
        dir.thread_switches(tid).ok()?
    }

    fn runnable_on(&self, pid: u32, tid: u32) -> Option<usize> {
        let dir = ProcessDir::open(self.root, pid).ok()?;
        let (state, cpu) = dir.thread_state(tid).ok()?;
        (state == 'R').then_some(cpu)
    }
}
