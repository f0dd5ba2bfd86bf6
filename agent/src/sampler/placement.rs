//! Where processes' memory lies, found out on a thread of its own, so that a tick never waits for the kernel.
//!
//! The thread takes at most a twentieth of a CPU: with many processes each is refreshed more rarely.

use super::survey::{Effort, Ground, Survey};
use crate::host::capabilities::{SYS_PTRACE, read_capabilities};
use crate::host::error::Error;
use crate::host::numa_maps::Sum;
use crate::host::placement::{is_available, read_placement};
use crate::host::process::ProcessDir;
use crate::host::root::Root;
use crate::host::self_cost::cpu_time_ns;
use anyhow::{Context, Result};
use model::policy::OwnPolicy;
use model::process::{Placement, Process};
use model::signal::{Mechanism, Signal, SignalName, SignalState};
use model::time::Timestamp;
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// (pid, start time).
type Id = (u32, u64);

/// How long the last snapshot of a span waits for placements.
const SETTLE: Duration = Duration::from_secs(5);

/// How much longer than its work the thread rests.
const REST: u32 = 19;

/// The longest rest.
const LONGEST_REST: Duration = Duration::from_secs(1);

/// How placements are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// At the end only, by reading `numa_maps`: the kernel then looks at every page.
    pub(crate) exact: bool,
    /// Tell of no memory, so that the self-test has something to find.
    pub(crate) broken: bool,
    /// Not at all.
    pub(crate) off: bool,
}

/// What the thread is asked for.
enum Request {
    /// A process's placement, with this effort.
    Find(Id, Effort),
    /// To let go of what it knows of one.
    Forget(Id),
}

/// What is known of each process's placement.
pub(super) struct Placements {
    requests: Sender<Request>,
    results: Receiver<(Id, Placement)>,
    known: HashMap<Id, Known>,
    unavailable: Option<&'static str>,
    when: When,
}

/// A snapshot at the end of a span finds placements at the end only, where its other numbers are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    EachTick,
    AtTheEnd,
    /// It is the end: to be complete by then.
    Now(Instant),
}

#[derive(Default)]
struct Known {
    /// Requests that have no answer yet.
    waiting: u32,
    placement: Placement,
}

impl Placements {
    /// Starts the thread; it ends when this is dropped.
    pub(super) fn start(root: Root, at_the_end: bool, options: Options) -> Result<Self> {
        let (requests, inbox) = channel();
        let (outbox, results) = channel();
        let unavailable = unavailable(&root, options);
        thread::Builder::new()
            .name("placement".to_owned())
            .spawn(move || work(root, options, &inbox, &outbox))
            .context("cannot start the thread that finds placements")?;
        let when = if at_the_end || options.exact {
            When::AtTheEnd
        } else {
            When::EachTick
        };
        Ok(Self {
            requests,
            results,
            known: HashMap::new(),
            unavailable,
            when,
        })
    }

    /// From now on, completely.
    pub(super) fn find_now(&mut self) {
        self.when = When::Now(Instant::now() + SETTLE);
    }

    /// Takes over what the thread has found since.
    pub(super) fn collect(&mut self) {
        while let Ok(result) = self.results.try_recv() {
            self.take(result);
        }
    }

    /// Waits for what was asked, not for ever.
    pub(super) fn settle(&mut self) {
        let until = Instant::now() + SETTLE + LONGEST_REST;
        while self.known.values().any(|k| k.waiting > 0) {
            match self
                .results
                .recv_timeout(until.saturating_duration_since(Instant::now()))
            {
                Ok(result) => self.take(result),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        for known in self.known.values_mut().filter(|k| k.waiting > 0) {
            let why = "it took too long to find out how it is now";
            if known.placement.source.is_some() {
                known.placement.reason = Some(why.to_owned());
            } else {
                known.placement = unknown(why);
            }
        }
        // What is known now is what the last snapshot says.
        self.when = When::AtTheEnd;
    }

    fn take(&mut self, (id, placement): (Id, Placement)) {
        if let Some(known) = self.known.get_mut(&id) {
            known.waiting = known.waiting.saturating_sub(1);
            known.placement = placement;
        }
    }

    /// The newest placement of a process, and a request for the next.
    pub(super) fn of(&mut self, id: Id, resident_bytes: Option<u64>) -> Placement {
        if let Some(why) = self.unavailable {
            return unknown(why);
        }
        let known = self.known.entry(id).or_default();
        if resident_bytes.is_none() {
            if known.placement.source.is_none() {
                known.placement = unknown("the process ended before its memory was read");
            }
            return known.placement.clone();
        }
        let effort = match self.when {
            When::EachTick => Some(Effort::Slice),
            When::AtTheEnd => None,
            When::Now(until) => Some(Effort::Complete(until)),
        };
        // What is wanted at the end is wanted whatever is under way.
        let may_ask = known.waiting == 0 || matches!(self.when, When::Now(_));
        if let Some(effort) = effort.filter(|_| may_ask) {
            match self.requests.send(Request::Find(id, effort)) {
                Ok(()) => known.waiting += 1,
                Err(_) => return unknown("the thread that finds placements has ended"),
            }
        }
        known.placement.clone()
    }

    /// Forgets a process.
    pub(super) fn forget(&mut self, id: Id) {
        if self.known.remove(&id).is_some() {
            // A thread that has ended has forgotten too.
            let _ = self.requests.send(Request::Forget(id));
        }
    }
}

/// The thread's: does what it is asked until nobody asks any more.
fn work(root: Root, options: Options, inbox: &Receiver<Request>, outbox: &Sender<(Id, Placement)>) {
    let ground = Ground::new(root);
    let mut surveys: HashMap<Id, Survey> = HashMap::new();
    for request in inbox {
        let (id, effort) = match request {
            Request::Find(id, effort) => (id, effort),
            Request::Forget(id) => {
                surveys.remove(&id);
                continue;
            }
        };
        let began = cpu_time_ns();
        let placement = if options.exact {
            exactly(ground.root(), id, options.broken)
        } else {
            let survey = surveys.entry(id).or_insert_with(|| Survey::new(id));
            told(survey.refresh(&ground, effort, options.broken))
        };
        if outbox.send((id, placement)).is_err() {
            break;
        }
        if matches!(effort, Effort::Slice) {
            let took = Duration::from_nanos(cpu_time_ns().saturating_sub(began));
            thread::sleep((took * REST).min(LONGEST_REST));
        }
    }
}

/// One process's placement, completely and now, without a thread; it blocks.
pub(crate) fn find(root: &Root, pid: u32, broken: bool) -> Placement {
    match ProcessDir::open(root, pid).and_then(|dir| dir.stat()) {
        Ok(stat) => {
            let effort = Effort::Complete(Instant::now() + SETTLE);
            let mut survey = Survey::new((pid, stat.start_time));
            told(survey.refresh(&Ground::new(root.clone()), effort, broken))
        }
        Err(error) => unknown(&error.to_string()),
    }
}

/// One process's refreshes, one after the other and without rest, with the CPU time of each: what the bench measures.
pub(crate) struct Refreshes {
    ground: Ground,
    survey: Survey,
}

impl Refreshes {
    /// Of a process.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn of(root: &Root, pid: u32) -> Result<Self, Error> {
        let stat = ProcessDir::open(root, pid)?.stat()?;
        Ok(Self {
            ground: Ground::new(root.clone()),
            survey: Survey::new((pid, stat.start_time)),
        })
    }

    /// The next one: CPU time, nanoseconds, and what it found.
    pub(crate) fn next(&mut self) -> (u64, Placement) {
        let began = cpu_time_ns();
        let found = self.survey.refresh(&self.ground, Effort::Slice, false);
        let took = cpu_time_ns().saturating_sub(began);
        (took, told(found))
    }
}

fn exactly(root: &Root, (pid, start_time): Id, broken: bool) -> Placement {
    let dir = match ProcessDir::open(root, pid) {
        Ok(dir) if dir.stat().is_ok_and(|stat| stat.start_time == start_time) => dir,
        _ => return unknown("the process has ended"),
    };
    let sum = read_placement(&dir).map(|sum| {
        let sum = sum.map(|sum| if broken { Sum::default() } else { sum });
        sum.map(|sum| sum.into_placement(Timestamp(SystemTime::now())))
    });
    told(sum)
}

/// The policies of a process's mappings; `None` where they can't be read, or the process has ended.
pub(super) fn read_own_policies(root: &Root, process: &Process) -> Option<Vec<OwnPolicy>> {
    let dir = ProcessDir::open(root, process.pid).ok()?;
    let same = dir.stat().ok()?.start_time == process.start_time;
    let sum = same.then(|| read_placement(&dir))?.ok()??;
    Some(sum.own_policies())
}

fn told(found: Result<Option<Placement>, Error>) -> Placement {
    match found {
        Ok(Some(placement)) => placement,
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

/// Why no placements are told.
fn unavailable(root: &Root, Options { exact, off, .. }: Options) -> Option<&'static str> {
    if off {
        Some("--mechanism placement=off")
    } else if !is_available(root) {
        Some("this kernel has no NUMA (CONFIG_NUMA)")
    } else if !exact && !root.proc("self/pagemap").exists() {
        Some(
            "this kernel has no /proc/PID/pagemap (CONFIG_PROC_PAGE_MONITOR); snapshot --exact does without",
        )
    } else {
        None
    }
}

/// How this host tells placements.
pub(super) fn signal(root: &Root, options: Options) -> Signal {
    if let Some(why) = unavailable(root, options) {
        return Signal::unavailable(SignalName::Placement, why);
    }
    let target = if options.exact {
        "/proc/PID/numa_maps"
    } else {
        "/proc/PID/pagemap, move_pages"
    };
    let others = read_capabilities(root).is_ok_and(|have| have.has(SYS_PTRACE));
    Signal {
        name: SignalName::Placement,
        state: if others {
            SignalState::Attached
        } else {
            SignalState::Degraded
        },
        mechanism: Some(Mechanism::Procfs),
        target: Some(target.to_owned()),
        reason: (!others).then(|| OWN_ONLY.to_owned()),
    }
}

const OWN_ONLY: &str = "of one's own processes only: CAP_SYS_PTRACE is missing";
