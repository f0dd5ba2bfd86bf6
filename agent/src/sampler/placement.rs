//! Reads placements on a thread of its own, so that a tick never waits for the kernel's walk of a page table.

use crate::host::numa_maps::Sum;
use crate::host::placement::{SHORTEST_INTERVAL, is_available, may_read, read_placement};
use crate::host::process::ProcessDir;
use crate::host::root::Root;
use anyhow::{Context, Result};
use model::process::Placement;
use model::signal::{Mechanism, Signal, SignalName, SignalState};
use model::time::Timestamp;
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// (pid, start time).
type Id = (u32, u64);

/// What is known of each process's placement.
pub(crate) struct Placements {
    requests: Sender<Id>,
    results: Receiver<(Id, Placement)>,
    known: HashMap<Id, Known>,
    available: bool,
    /// Whether to read; a snapshot at the end of a span reads at the end only, where its other numbers are from.
    reading: bool,
}

#[derive(Default)]
struct Known {
    asked_ns: Option<u64>,
    waiting: bool,
    placement: Placement,
}

impl Placements {
    /// Starts the thread; it ends when this is dropped.
    pub(super) fn start(root: Root, reading: bool, broken: bool) -> Result<Self> {
        let (requests, inbox) = channel::<Id>();
        let (outbox, results) = channel();
        let available = is_available(&root);
        thread::Builder::new()
            .name("placement".to_owned())
            .spawn(move || {
                for id in inbox {
                    if outbox.send((id, read(&root, id, broken))).is_err() {
                        break;
                    }
                }
            })
            .context("cannot start the thread that reads placements")?;
        Ok(Self {
            requests,
            results,
            known: HashMap::new(),
            available,
            reading,
        })
    }

    /// Reads one process's now; it blocks.
    pub(crate) fn read(root: &Root, pid: u32, broken: bool) -> Placement {
        match ProcessDir::open(root, pid).and_then(|dir| dir.stat()) {
            Ok(stat) => read(root, (pid, stat.start_time), broken),
            Err(error) => unknown(&error.to_string()),
        }
    }

    /// Reads from now on.
    pub(super) fn read_now(&mut self) {
        self.reading = true;
    }

    /// Takes over what the thread has read since.
    pub(super) fn collect(&mut self) {
        while let Ok(result) = self.results.try_recv() {
            self.take(result);
        }
    }

    /// Waits for what was asked, at most this long.
    pub(super) fn settle(&mut self, at_most: Duration) {
        let until = Instant::now() + at_most;
        while self.known.values().any(|k| k.waiting) {
            match self
                .results
                .recv_timeout(until.saturating_duration_since(Instant::now()))
            {
                Ok(result) => self.take(result),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
    }

    fn take(&mut self, (id, placement): (Id, Placement)) {
        if let Some(known) = self.known.get_mut(&id) {
            known.waiting = false;
            known.placement = placement;
        }
    }

    /// The newest placement of a process, and a request for the next when it is due.
    pub(super) fn of(&mut self, id: Id, resident_bytes: Option<u64>, now_ns: u64) -> Placement {
        let known = self.known.entry(id).or_default();
        if !self.available {
            return unknown("this kernel has no /proc/PID/numa_maps (CONFIG_NUMA)");
        }
        let Some(resident_bytes) = resident_bytes else {
            if known.placement.source.is_none() {
                known.placement = unknown("the process ended before its memory was read");
            }
            return known.placement.clone();
        };
        if !self.reading {
            return known.placement.clone();
        }
        let age = known
            .asked_ns
            .map(|asked| Duration::from_nanos(now_ns.saturating_sub(asked)));
        match may_read(resident_bytes, None) {
            Err(refusal) => {
                // What was read when it was smaller says nothing of it now.
                known.placement = unknown(&refusal.to_string());
            }
            Ok(()) if !known.waiting && age.is_none_or(|age| age >= SHORTEST_INTERVAL) => {
                known.asked_ns = Some(now_ns);
                known.waiting = self.requests.send(id).is_ok();
            }
            Ok(()) => {}
        }
        known.placement.clone()
    }

    /// Forgets a process.
    pub(super) fn forget(&mut self, id: Id) {
        self.known.remove(&id);
    }
}

/// A broken one tells of no memory, so that the self-test has something to find.
fn read(root: &Root, (pid, start_time): Id, broken: bool) -> Placement {
    let dir = match ProcessDir::open(root, pid) {
        Ok(dir) if dir.stat().is_ok_and(|stat| stat.start_time == start_time) => dir,
        _ => return unknown("the process has ended"),
    };
    match read_placement(&dir) {
        Ok(Some(_)) if broken => Sum::default().into_placement(Timestamp(SystemTime::now())),
        Ok(Some(sum)) => sum.into_placement(Timestamp(SystemTime::now())),
        Ok(None) => unknown("the process has no memory of its own"),
        Err(error) if error.is_gone() => unknown("the process has ended"),
        Err(error) => unknown(&error.to_string()),
    }
}

fn unknown(reason: &str) -> Placement {
    Placement {
        reason: Some(reason.to_owned()),
        ..Placement::default()
    }
}

/// How this host tells placements.
pub(super) fn signal(root: &Root) -> Signal {
    if !is_available(root) {
        return Signal::unavailable(
            SignalName::Placement,
            "this kernel has no /proc/PID/numa_maps (CONFIG_NUMA)",
        );
    }
    Signal {
        name: SignalName::Placement,
        state: SignalState::Attached,
        mechanism: Some(Mechanism::Procfs),
        target: Some("/proc/PID/numa_maps".to_owned()),
        reason: None,
    }
}
