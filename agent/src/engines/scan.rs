//! Finds the processes to watch: a listing of `/proc` each time, and a read of what is new in it.
//!
//! A process is looked at when it appears, when the caller says that it changed (an exec), and
//! again every 10 s, as processes rename themselves and open GPUs late; a young one sooner. The
//! listing's inode tells a process that has a pid from one that had it, so that nothing is read of
//! the others. With 2,100 processes a scan takes 1.3 ms of CPU time, and 5.2 ms with the looks that
//! fall due in a second (measured on a host without GPUs, whose open files need no look).

use crate::engines::gpu;
use crate::engines::rules::{self, Detected};
use crate::engines::selection::{Facts, Selection, Why};
use crate::host::error::Error;
use crate::host::process::{PidEntry, ProcessDir, Stat, list_pids};
use crate::host::root::Root;
use crate::shell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

/// How often a process is looked at again.
const REREAD: Duration = Duration::from_secs(10);

/// How soon after its appearance a process is looked at again, at first.
const YOUNG: Duration = Duration::from_secs(1);

/// How much of a Python program's `maps` is read, bytes: about 20,000 mappings.
const MAPS_LIMIT: u64 = 2 << 20;

/// How seldom `maps` is read in the end; each read takes the process's lock for a moment.
const MAPS_SELDOM: Duration = Duration::from_secs(320);

/// A process to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// The process.
    pub(crate) pid: u32,
    /// Clock ticks after boot; with the pid its identity.
    pub(crate) start_time: u64,
    /// Why it is watched.
    pub(crate) why: Why,
    /// Its short name.
    pub(crate) name: String,
    /// Its command line as a shell takes it.
    pub(crate) command: String,
    /// What it is in an engine; `None` when no rule knows it.
    pub(crate) detected: Option<Detected>,
    /// The GPU devices that it has open, sorted; empty too where that may not be read.
    pub(crate) gpu_devices: Vec<PathBuf>,
}

/// What a scan found to be different from the one before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Now to be watched, ascending by pid.
    pub(crate) added: Vec<Found>,
    /// Watched before, now with another command line, role or GPU. Once watched, a process is so
    /// until it ends.
    pub(crate) updated: Vec<Found>,
    /// Ended: pid and start time. A pid that came back is here and in `added`.
    pub(crate) removed: Vec<(u32, u64)>,
    /// Living processes whose open files may not be read, so that their GPUs are unknown.
    pub(crate) unreadable: usize,
}

/// Remembers every process that it has seen.
#[derive(Debug)]
pub(crate) struct Scanner {
    root: Root,
    selection: Selection,
    own_pid: u32,
    known: HashMap<u32, Known>,
    generation: u64,
}

/// What is remembered of a process.
#[derive(Debug)]
struct Known {
    inode: u64,
    start_time: u64,
    /// The last scan that listed it.
    generation: u64,
    /// When to look again; `None` for kernel threads.
    next: Option<Duration>,
    interval: Duration,
    next_maps: Duration,
    maps_interval: Duration,
    unreadable: bool,
    found: Option<Found>,
}

impl Scanner {
    /// One that has seen nothing; `own_pid` is the agent's.
    pub(crate) fn new(root: Root, selection: Selection, own_pid: u32) -> Self {
        Self {
            root,
            selection,
            own_pid,
            known: HashMap::new(),
            generation: 0,
        }
    }

    /// Scans. `now` is a monotonic time; `executed` are pids that run another program since the scan before.
    ///
    /// A process that ends meanwhile is simply not there.
    ///
    /// # Errors
    /// If `/proc` can't be listed.
    pub(crate) fn scan(&mut self, now: Duration, executed: &[u32]) -> Result<Changes, Error> {
        self.generation += 1;
        let drivers = gpu::has_driver(&self.root);
        let mut changes = Changes::default();
        for entry in list_pids(&self.root)? {
            if self.selection.may_select(entry.pid) {
                let executed = executed.contains(&entry.pid);
                self.visit(entry, now, executed, drivers, &mut changes);
            }
        }
        self.known.retain(|pid, known| {
            let lives = known.generation == self.generation;
            if !lives && known.found.is_some() {
                changes.removed.push((*pid, known.start_time));
            }
            lives
        });
        changes.unreadable = self.known.values().filter(|k| k.unreadable).count();
        changes.added.sort_unstable_by_key(|found| found.pid);
        changes.updated.sort_unstable_by_key(|found| found.pid);
        changes.removed.sort_unstable();
        Ok(changes)
    }

    fn visit(
        &mut self,
        entry: PidEntry,
        now: Duration,
        executed: bool,
        drivers: bool,
        changes: &mut Changes,
    ) {
        if let Some(known) = self.known.get_mut(&entry.pid)
            && known.inode == entry.inode
            && !executed
            && known.next.is_none_or(|next| now < next)
        {
            known.generation = self.generation;
            return;
        }
        let before = self.known.remove(&entry.pid);
        let Ok((process, stat)) = open(&self.root, entry.pid) else {
            // It ended, or may not be seen: what was known of it is over.
            changes
                .removed
                .extend(before.and_then(|k| k.found).map(|f| (f.pid, f.start_time)));
            return;
        };
        let same = |known: &Known| known.start_time == stat.start_time;
        let (mut known, before) = match before {
            Some(mut known) if same(&known) => {
                let found = known.found.take();
                (known, found)
            }
            other => {
                let ended = other.and_then(|known| known.found);
                changes.removed.extend(ended.map(|f| (f.pid, f.start_time)));
                (self.newcomer(entry, &stat, now), None)
            }
        };
        known.inode = entry.inode;
        known.generation = self.generation;
        known.look_again_after(now, &stat);
        known.found = self.look(&process, stat, &mut known, before.as_ref(), now, drivers);
        match (&known.found, before) {
            (Some(found), None) => changes.added.push(found.clone()),
            (Some(found), Some(before)) if *found != before => changes.updated.push(found.clone()),
            _ => {}
        }
        self.known.insert(entry.pid, known);
    }

    fn newcomer(&self, entry: PidEntry, stat: &Stat, now: Duration) -> Known {
        // What the first scan finds is looked at again spread over the next 10 s, not all at once.
        let interval = if self.generation == 1 {
            Duration::from_secs(u64::from(entry.pid % 10) + 1)
        } else {
            YOUNG
        };
        Known {
            inode: entry.inode,
            start_time: stat.start_time,
            generation: self.generation,
            next: None,
            interval,
            next_maps: now,
            maps_interval: REREAD,
            unreadable: false,
            found: None,
        }
    }

    /// Reads what the decision needs. `before` is what it was watched as: it stays watched.
    fn look(
        &self,
        process: &ProcessDir,
        stat: Stat,
        known: &mut Known,
        before: Option<&Found>,
        now: Duration,
        drivers: bool,
    ) -> Option<Found> {
        let pid = process.pid();
        if !stat.has_address_space || (pid == self.own_pid && self.selection.is_default()) {
            return before.cloned();
        }
        let argv = process.command_line().unwrap_or_default();
        let command = shell::joined(&argv);
        let mut facts = Facts {
            pid,
            is_self: pid == self.own_pid,
            has_address_space: true,
            command: &argv.join(" "),
            is_engine: false,
            has_gpu: false,
        };
        if before.is_none()
            && !self.selection.is_default()
            && self.selection.select(&facts).is_none()
        {
            return None;
        }
        // A library that was found once is not looked for again while the program is the same.
        let remembered = before
            .filter(|found| found.command == command)
            .and_then(|found| found.detected.clone());
        let detected = rules::detect(&argv, &stat.name)
            .or(remembered)
            .or_else(|| known.detect_library(process, &argv, now));
        let mut gpu_devices = Vec::new();
        if drivers && gpu::excluded(&stat.name, &argv).is_none() {
            let devices = gpu::open_devices(process);
            known.unreadable = matches!(devices, Err(Error::Denied { .. }));
            gpu_devices = devices.unwrap_or_default();
        }
        facts.is_engine = detected.is_some();
        facts.has_gpu = !gpu_devices.is_empty();
        let why = before
            .map(|found| found.why)
            .or_else(|| self.selection.select(&facts))?;
        Some(Found {
            pid,
            start_time: stat.start_time,
            why,
            name: stat.name,
            command,
            detected,
            gpu_devices,
        })
    }
}

impl Known {
    fn look_again_after(&mut self, now: Duration, stat: &Stat) {
        self.next = (!stat.kernel_thread).then(|| now + self.interval);
        self.interval = (self.interval * 2).min(REREAD);
        if self.generation == 1 {
            self.interval = REREAD;
        }
    }

    /// Looks for an engine's library in a Python program, ever less often.
    fn detect_library(
        &mut self,
        process: &ProcessDir,
        argv: &[String],
        now: Duration,
    ) -> Option<Detected> {
        if now < self.next_maps || !rules::is_python(argv) {
            return None;
        }
        self.next_maps = now + self.maps_interval;
        self.maps_interval = (self.maps_interval * 2).min(MAPS_SELDOM);
        let maps = process.read_start("maps", MAPS_LIMIT).ok()?;
        rules::detect_library(argv, &maps)
    }
}

fn open(root: &Root, pid: u32) -> Result<(ProcessDir, Stat), Error> {
    let process = ProcessDir::open(root, pid)?;
    let stat = process.stat()?;
    Ok((process, stat))
}
