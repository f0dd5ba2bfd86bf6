//! Which processes are watched: by pid, by command line, all, or the engines and GPU users.

use crate::host::process::ProcessDir;
use crate::host::root::Root;
use regex::Regex;

/// What the user asked for; the default is engines and whoever has a GPU open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    pids: Vec<u32>,
    pattern: Option<Regex>,
    all: bool,
}

/// Why a process is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// `--pid` names it.
    Pid,
    /// Its command line matches `--match`.
    Match,
    /// `--all`.
    All,
    /// A rule knows it as part of an inference engine.
    Engine,
    /// It has a GPU device open.
    Gpu,
}

/// What the decision needs to know of a process.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a yes or no of its own; all their combinations occur"
)]
pub(crate) struct Facts<'a> {
    /// The process.
    pub(crate) pid: u32,
    /// It is this numawatch.
    pub(crate) is_self: bool,
    /// It has memory: it is no kernel thread and no zombie.
    pub(crate) has_address_space: bool,
    /// Its arguments, joined by spaces.
    pub(crate) command: &'a str,
    /// A rule knows it.
    pub(crate) is_engine: bool,
    /// It has a GPU device open, and its program isn't excluded.
    pub(crate) has_gpu: bool,
}

/// A selection that can't be served, in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SelectionError {
    /// `--match` is no regular expression.
    #[error("--match {pattern:?} is no regular expression: {reason}")]
    Pattern {
        /// As given.
        pattern: String,
        /// What the parser says.
        reason: String,
    },
    /// `--pid` names no process.
    #[error("no process {pid}: --pid needs the pid of a running process")]
    NoSuchProcess {
        /// As given.
        pid: u32,
    },
    /// `--pid` names a thread.
    #[error("{tid} is a thread of process {pid}: use --pid {pid}")]
    Thread {
        /// As given.
        tid: u32,
        /// The process that it belongs to.
        pid: u32,
    },
    /// `--pid` names a kernel thread or a zombie.
    #[error("process {pid} ({name}) has no memory of its own: it is a kernel thread or has ended")]
    NoMemory {
        /// As given.
        pid: u32,
        /// Its name.
        name: String,
    },
}

impl Selection {
    /// What the command line says; all three together select their union, none the default.
    ///
    /// # Errors
    /// [`SelectionError::Pattern`].
    pub(crate) fn new(
        pids: Vec<u32>,
        pattern: Option<&str>,
        all: bool,
    ) -> Result<Self, SelectionError> {
        let pattern = pattern.map(compile).transpose()?;
        Ok(Self { pids, pattern, all })
    }

    /// Whether nothing was asked for: engines and GPU users are watched.
    pub(crate) fn is_default(&self) -> bool {
        self.pids.is_empty() && self.pattern.is_none() && !self.all
    }

    /// Whether a process could be selected at all; if not, none of its files needs a read.
    pub(crate) fn may_select(&self, pid: u32) -> bool {
        self.pids.is_empty() || self.pattern.is_some() || self.all || self.pids.contains(&pid)
    }

    /// Checks that each process that `--pid` names is there and has memory.
    ///
    /// # Errors
    /// The first that isn't or hasn't.
    pub(crate) fn check_pids(&self, root: &Root) -> Result<(), SelectionError> {
        self.pids.iter().try_for_each(|pid| check_pid(root, *pid))
    }

    /// Decides on one process; `None` leaves it alone.
    pub(crate) fn select(&self, facts: &Facts) -> Option<Why> {
        if !facts.has_address_space {
            return None;
        }
        if self.pids.contains(&facts.pid) {
            return Some(Why::Pid);
        }
        let matches = |pattern: &Regex| !facts.is_self && pattern.is_match(facts.command);
        if self.pattern.as_ref().is_some_and(matches) {
            return Some(Why::Match);
        }
        if self.all {
            return Some(Why::All);
        }
        if facts.is_self || !self.is_default() {
            return None;
        }
        match (facts.is_engine, facts.has_gpu) {
            (true, _) => Some(Why::Engine),
            (false, true) => Some(Why::Gpu),
            (false, false) => None,
        }
    }
}

fn compile(pattern: &str) -> Result<Regex, SelectionError> {
    Regex::new(pattern).map_err(|error| {
        // The parser draws a picture over several lines; the last one has the reason.
        let text = error.to_string();
        let last = text.lines().last().unwrap_or_default();
        SelectionError::Pattern {
            pattern: pattern.to_owned(),
            reason: last.trim_start_matches("error: ").to_owned(),
        }
    })
}

fn check_pid(root: &Root, pid: u32) -> Result<(), SelectionError> {
    let gone = SelectionError::NoSuchProcess { pid };
    let Ok(process) = ProcessDir::open(root, pid) else {
        return Err(gone);
    };
    let (Ok(status), Ok(stat)) = (process.status(), process.stat()) else {
        return Err(gone);
    };
    match status.tgid {
        // `/proc` has a directory for each thread, though it lists none.
        Some(leader) if leader != pid => Err(SelectionError::Thread {
            tid: pid,
            pid: leader,
        }),
        _ if !stat.has_address_space => Err(SelectionError::NoMemory {
            pid,
            name: stat.name,
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fixture::{Fixture, kernel_thread_stat};

    const PLAIN: Facts = Facts {
        pid: 7,
        is_self: false,
        has_address_space: true,
        command: "python train.py",
        is_engine: false,
        has_gpu: false,
    };

    fn selection(pids: &[u32], pattern: Option<&str>, all: bool) -> Selection {
        Selection::new(pids.to_vec(), pattern, all).unwrap()
    }

    #[test]
    fn by_default_engines_and_gpu_users_are_watched() {
        let default = Selection::default();
        for (is_engine, has_gpu, want) in [
            (false, false, None),
            (false, true, Some(Why::Gpu)),
            (true, false, Some(Why::Engine)),
            (true, true, Some(Why::Engine)),
        ] {
            let facts = Facts {
                is_engine,
                has_gpu,
                ..PLAIN
            };
            assert_eq!(default.select(&facts), want, "{facts:?}");
        }
    }

    #[test]
    fn what_was_asked_for_replaces_the_default() {
        let engine = Facts {
            is_engine: true,
            has_gpu: true,
            ..PLAIN
        };
        for (selection, want) in [
            (selection(&[7], None, false), Some(Why::Pid)),
            (selection(&[8], None, false), None),
            (selection(&[], Some("train"), false), Some(Why::Match)),
            (selection(&[], Some("^train"), false), None),
            (selection(&[8], Some("train"), false), Some(Why::Match)),
            (selection(&[], None, true), Some(Why::All)),
            (selection(&[7], Some("train"), true), Some(Why::Pid)),
        ] {
            assert_eq!(selection.select(&engine), want, "{selection:?}");
        }
    }

    #[test]
    fn numawatch_watches_itself_only_when_told_so() {
        let own = Facts {
            is_self: true,
            is_engine: true,
            has_gpu: true,
            ..PLAIN
        };
        for (selection, want) in [
            (Selection::default(), None),
            (selection(&[], Some("."), false), None),
            (selection(&[], None, true), Some(Why::All)),
            (selection(&[7], None, false), Some(Why::Pid)),
        ] {
            assert_eq!(selection.select(&own), want, "{selection:?}");
        }
    }

    #[test]
    fn a_kernel_thread_is_never_watched() {
        let thread = Facts {
            has_address_space: false,
            command: "",
            ..PLAIN
        };
        for selection in [selection(&[7], Some(""), true), selection(&[], None, true)] {
            assert_eq!(selection.select(&thread), None);
        }
    }

    #[test]
    fn with_pids_alone_no_other_process_is_read() {
        assert!(!selection(&[7], None, false).may_select(8));
        for selection in [
            Selection::default(),
            selection(&[8], None, false),
            selection(&[7], Some("x"), false),
            selection(&[7], None, true),
        ] {
            assert!(selection.may_select(8), "{selection:?}");
        }
    }

    #[test]
    fn a_bad_pattern_is_refused_in_one_line() {
        let error = Selection::new(vec![], Some("vllm("), false)
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "--match \"vllm(\" is no regular expression: unclosed group"
        );
    }

    #[test]
    fn pids_are_checked() {
        let fixture = Fixture::with(&[
            ("proc/2/stat", &kernel_thread_stat(2, 1, "kthreadd")),
            ("proc/2/status", "Tgid:\t2\n"),
            ("proc/7/status", "Tgid:\t7\n"),
            ("proc/8/status", "Tgid:\t7\n"),
        ]);
        fixture.process(7, 1, "x", &["x"]);
        fixture.process(8, 1, "x", &["x"]);
        let check = |pid| selection(&[pid], None, false).check_pids(&fixture.root());
        assert_eq!(check(7), Ok(()));
        assert_eq!(check(9), Err(SelectionError::NoSuchProcess { pid: 9 }));
        assert_eq!(check(8), Err(SelectionError::Thread { tid: 8, pid: 7 }));
        let name = "kthreadd".to_owned();
        assert_eq!(check(2), Err(SelectionError::NoMemory { pid: 2, name }));
    }
}
