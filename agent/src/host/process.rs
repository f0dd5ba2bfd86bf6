//! One process's files in `/proc`, read as cheaply as a tick needs.
//!
//! The directory is opened by the `procfs` crate, which holds it: a pid that comes back meanwhile
//! is another directory, and reads of the old one say that it ended. Its `stat` and `statm` are
//! used as they are (4.5 and 2.5 µs); its `status` takes 23 µs against 5 µs of reading, and it
//! has no `numa_maps`, so those two have parsers of their own.

use crate::host::error::Error;
use crate::host::root::{Root, text};
use crate::host::status::{self, Status};
use procfs::process::StatFlags;
use procfs::{ProcError, page_size};
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::Read;
use std::os::unix::fs::DirEntryExt;
use std::path::PathBuf;

/// A process, its directory held open.
#[derive(Debug)]
pub(crate) struct ProcessDir {
    pid: u32,
    path: PathBuf,
    inner: procfs::process::Process,
}

/// What `/proc/PID/stat` tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    /// The executable's short name, at most 15 bytes; a thread may have renamed itself.
    pub(crate) name: String,
    /// The parent's pid; 0 for the first process and for children of another pid namespace's.
    pub(crate) parent_pid: u32,
    /// Clock ticks after boot; with the pid it is the process's identity.
    pub(crate) start_time: u64,
    /// Live threads.
    pub(crate) threads: u32,
    /// The kernel's letter: `R`, `S`, `D`, `Z` for a zombie, …
    pub(crate) state: char,
    /// A thread of the kernel's own.
    pub(crate) kernel_thread: bool,
    /// It has memory; kernel threads and zombies have none.
    pub(crate) has_address_space: bool,
}

/// A pid in a listing of `/proc`, with the directory's inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PidEntry {
    /// The process.
    pub(crate) pid: u32,
    /// Stays the same while the process lives, unless the kernel drops the inode from its cache;
    /// a process that gets the pid later has another.
    pub(crate) inode: u64,
}

/// Every process, without a read of any: 1 ms for 2,000.
///
/// # Errors
/// If `/proc` can't be listed.
pub(crate) fn list_pids(root: &Root) -> Result<Vec<PidEntry>, Error> {
    let path = root.proc("");
    let entries = fs::read_dir(&path).map_err(|source| Error::io(&path, source))?;
    let pid = |entry: &fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    Ok(entries
        .filter_map(Result::ok)
        .filter_map(|entry| {
            Some(PidEntry {
                pid: pid(&entry)?,
                inode: entry.ino(),
            })
        })
        .collect())
}

/// The agent's own pid as this `/proc` numbers it, which may be another namespace's than the agent's.
pub(crate) fn own_pid(root: &Root) -> u32 {
    let link = fs::read_link(root.proc("self")).ok();
    let told = link.and_then(|target| target.to_str()?.parse().ok());
    told.unwrap_or_else(std::process::id)
}

/// The agent's parent, its parent and so on.
pub(crate) fn ancestors(root: &Root) -> HashSet<u32> {
    let mut found = HashSet::new();
    let mut pid = own_pid(root);
    while let Ok(stat) = ProcessDir::open(root, pid).and_then(|dir| dir.stat()) {
        pid = stat.parent_pid;
        if pid == 0 || !found.insert(pid) {
            break;
        }
    }
    found
}

/// Children of `ancestors`, their children and so on, as (pid, parent), parents first. Reads every process's `stat`: 30 ms
/// for 2,000.
///
/// # Errors
/// If `/proc` can't be listed.
pub(crate) fn descendants(root: &Root, ancestors: &[u32]) -> Result<Vec<(u32, u32)>, Error> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in list_pids(root)? {
        // One that has ended meanwhile has no children any more.
        if let Ok(stat) = ProcessDir::open(root, entry.pid).and_then(|dir| dir.stat()) {
            children.entry(stat.parent_pid).or_default().push(entry.pid);
        }
    }
    let mut found = Vec::new();
    let mut parents = ancestors.to_vec();
    while let Some(parent) = parents.pop() {
        // Taken out, so that a pid that comes back in the middle makes no circle.
        for child in children.remove(&parent).unwrap_or_default() {
            found.push((child, parent));
            parents.push(child);
        }
    }
    Ok(found)
}

impl ProcessDir {
    /// Opens and holds `/proc/PID`.
    ///
    /// # Errors
    /// [`Error::Gone`] if there is no such process.
    pub(crate) fn open(root: &Root, pid: u32) -> Result<Self, Error> {
        let path = root.process(pid);
        match procfs::process::Process::new_with_root(path.clone()) {
            Ok(inner) => Ok(Self { pid, path, inner }),
            Err(error) => Err(convert(pid, path, error)),
        }
    }

    /// The process.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Its `stat`.
    ///
    /// # Errors
    /// [`Error::Gone`], or [`Error::Format`] for what is no `stat`.
    pub(crate) fn stat(&self) -> Result<Stat, Error> {
        let stat = self.inner.stat().map_err(|e| self.error("stat", e))?;
        Ok(Stat {
            parent_pid: u32::try_from(stat.ppid).unwrap_or(0),
            start_time: stat.starttime,
            threads: u32::try_from(stat.num_threads).unwrap_or(0),
            state: stat.state,
            kernel_thread: StatFlags::from_bits_truncate(stat.flags)
                .contains(StatFlags::PF_KTHREAD),
            has_address_space: stat.vsize > 0,
            name: stat.comm,
        })
    }

    /// Its command line, one string an argument; empty for kernel threads and zombies.
    ///
    /// A process that renamed itself has its title as the first argument, followed by the zeros
    /// with which it erased the others; those aren't arguments.
    ///
    /// # Errors
    /// [`Error::Gone`], [`Error::Denied`] or [`Error::Io`].
    pub(crate) fn command_line(&self) -> Result<Vec<String>, Error> {
        let content = self.read("cmdline")?;
        let content = content.trim_end_matches('\0');
        if content.is_empty() {
            return Ok(Vec::new());
        }
        Ok(content.split('\0').map(str::to_owned).collect())
    }

    /// Its resident set, bytes; `None` for kernel threads and zombies.
    ///
    /// # Errors
    /// [`Error::Gone`], or [`Error::Format`] for what is no `statm`.
    pub(crate) fn resident_bytes(&self) -> Result<Option<u64>, Error> {
        let statm = self.inner.statm().map_err(|e| self.error("statm", e))?;
        Ok((statm.size > 0).then(|| statm.resident * page_size()))
    }

    /// The few lines of its `status` that are of use.
    ///
    /// # Errors
    /// [`Error::Gone`], [`Error::Denied`] or [`Error::Io`].
    pub(crate) fn status(&self) -> Result<Status, Error> {
        Ok(status::parse(&self.read("status")?))
    }

    /// The ids of its live threads, ascending. Names are a read each: see [`Self::thread_name`].
    ///
    /// # Errors
    /// [`Error::Gone`], [`Error::Denied`] or [`Error::Io`].
    pub(crate) fn thread_ids(&self) -> Result<Vec<u32>, Error> {
        let path = self.path.join("task");
        let entries =
            fs::read_dir(&path).map_err(|source| Error::process_io(self.pid, &path, source))?;
        let mut ids: Vec<u32> = entries
            .filter_map(Result::ok)
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect();
        ids.sort_unstable();
        Ok(ids)
    }

    /// A thread's name, at most 15 bytes. 3 µs: callers remember it and ask again now and then.
    ///
    /// # Errors
    /// [`Error::Gone`] if the thread ended.
    pub(crate) fn thread_name(&self, tid: u32) -> Result<String, Error> {
        let name = self.read(&format!("task/{tid}/comm"))?;
        Ok(name.trim_end_matches('\n').to_owned())
    }

    /// A thread's run time since its birth, nanoseconds: the scheduler's own account, a clock tick old at most while it
    /// runs. In clock ticks, where the kernel keeps no `schedstat`.
    ///
    /// # Errors
    /// [`Error::Gone`] if the thread ended.
    pub(crate) fn thread_run_time(&self, tid: u32) -> Result<u64, Error> {
        if let Ok(schedstat) = self.read_start(&format!("task/{tid}/schedstat"), 64)
            && let Some(ns) = schedstat
                .split(' ')
                .next()
                .and_then(|word| word.parse().ok())
        {
            return Ok(ns);
        }
        let ticks = self.thread_stat(tid, |fields| {
            let user: u64 = fields.get(11)?.parse().ok()?;
            let system: u64 = fields.get(12)?.parse().ok()?;
            Some(user + system)
        })?;
        Ok(ticks * (1_000_000_000 / procfs::ticks_per_second()))
    }

    /// A thread's state letter and the CPU that it runs on, or ran on last.
    ///
    /// # Errors
    /// [`Error::Gone`] if the thread ended.
    pub(crate) fn thread_state(&self, tid: u32) -> Result<(char, usize), Error> {
        self.thread_stat(tid, |fields| {
            let state = fields.first()?.chars().next()?;
            Some((state, fields.get(36)?.parse().ok()?))
        })
    }

    /// How often a thread has left a CPU since its birth; `None` where the kernel doesn't tell.
    ///
    /// # Errors
    /// As [`Self::thread_state`].
    pub(crate) fn thread_switches(&self, tid: u32) -> Result<Option<u64>, Error> {
        Ok(status::parse(&self.read(&format!("task/{tid}/status"))?).switches)
    }

    /// What `take` finds in a thread's `stat`, whose fields it is given from the state on.
    fn thread_stat<T>(&self, tid: u32, take: impl Fn(&[&str]) -> Option<T>) -> Result<T, Error> {
        let name = format!("task/{tid}/stat");
        let stat = self.read_start(&name, 4096)?;
        // The name may hold anything, parentheses and blanks included.
        let fields = stat.rsplit_once(')').map(|(_, rest)| rest);
        let fields: Vec<&str> = fields.unwrap_or_default().split_whitespace().collect();
        take(&fields).ok_or_else(|| Error::format(&self.path(&name), "lacks fields"))
    }

    /// The file name of its program; `None` for kernel threads, for zombies, and for another user's process without
    /// CAP_SYS_PTRACE.
    pub(crate) fn executable_name(&self) -> Option<String> {
        let link = self.inner.exe().ok()?;
        let name = link.file_name()?.to_string_lossy();
        // As the kernel marks a program whose file is gone, after an update.
        Some(name.trim_end_matches(" (deleted)").to_owned())
    }

    /// What each of its open files is: the targets of `/proc/PID/fd/*`.
    ///
    /// # Errors
    /// [`Error::Denied`] for another user's process without CAP_SYS_PTRACE; [`Error::Gone`].
    pub(crate) fn open_files(&self) -> Result<Vec<PathBuf>, Error> {
        let path = self.path.join("fd");
        let entries =
            fs::read_dir(&path).map_err(|source| Error::process_io(self.pid, &path, source))?;
        Ok(entries
            .filter_map(Result::ok)
            .filter_map(|entry| fs::read_link(entry.path()).ok())
            .collect())
    }

    /// The start of one of its files, at most `limit` bytes, as text.
    ///
    /// # Errors
    /// [`Error::Gone`], [`Error::Denied`] or [`Error::Io`].
    pub(crate) fn read_start(&self, name: &str, limit: u64) -> Result<String, Error> {
        let mut bytes = Vec::new();
        self.open_file(name)?
            .take(limit)
            .read_to_end(&mut bytes)
            .map_err(|source| Error::process_io(self.pid, &self.path.join(name), source))?;
        Ok(text(bytes))
    }

    /// Opens one of its files.
    ///
    /// # Errors
    /// [`Error::Gone`], [`Error::Denied`] or [`Error::Io`].
    pub(crate) fn open_file(&self, name: &str) -> Result<fs::File, Error> {
        self.inner
            .open_relative(name)
            .map_err(|e| self.error(name, e))
    }

    /// The path of one of its files, for messages.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn read(&self, name: &str) -> Result<String, Error> {
        self.read_start(name, u64::MAX)
    }

    fn error(&self, name: &str, error: ProcError) -> Error {
        convert(self.pid, self.path.join(name), error)
    }
}

fn convert(pid: u32, path: PathBuf, error: ProcError) -> Error {
    match error {
        ProcError::NotFound(_) => Error::Gone { pid },
        ProcError::PermissionDenied(_) => Error::Denied { path },
        ProcError::Io(source, _) => Error::process_io(pid, &path, source),
        other => Error::Format {
            path,
            what: other.to_string(),
        },
    }
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
