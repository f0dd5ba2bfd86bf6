//! The self-test: makes known events with processes of its own, has the live probes count them, and compares.
//!
//! [`plan`] says which events this host allows, [`child`] makes them, `model::selftest` judges. It runs before anything
//! is watched, uses the reader that watches later, and takes its processes' rows away again.

pub(crate) mod child;
mod driver;
mod events;
mod plan;
pub(crate) mod process;
pub(crate) mod sys;

use crate::host::process::ProcessDir;
use crate::host::root::Root;
use crate::host::status;
use crate::probes::assemble::Meaning;
use crate::probes::ledger::{Ledger, ProcessAccount, ThreadId};
use crate::probes::procfs_threads::ProcfsThreads;
use crate::probes::running::Owner;
use crate::probes::source::Source;
use crate::sampler::placement;
use anyhow::{Context, Result};
use child::Task;
use model::balancing::Balancing;
use model::process::{ByNode, MemoryKind, Placement};
use model::selftest::{
    FullMap, Report, Seen, Test, Truth, Verdict, full_map as judge_full_map, judge,
};
use model::signal::{Signal, SignalName};
use plan::Plan;
use process::Process;
use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

/// How long a process may take to start, and to make its events; under emulation everything is slow.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long NUMA balancing has to move pages: its first scan comes after a second.
const BALANCING: Duration = Duration::from_millis(1_700);

/// What the self-test works with.
pub(crate) struct Host<'a> {
    /// Where procfs and sysfs are.
    pub(crate) root: &'a Root,
    /// What counts.
    pub(crate) source: &'a mut Source,
    /// What its numbers mean; the signals as they stand under the host's settings.
    pub(crate) meaning: Meaning<'a>,
    /// Whether placement is broken on purpose.
    pub(crate) placement_broken: bool,
}

/// Runs it. Takes half a second, and two where NUMA balancing is on. Call it from the thread that ends last: its
/// processes end with it.
pub(crate) fn run(host: &mut Host<'_>) -> Report {
    let began = Instant::now();
    let mut watched = Vec::new();
    let outcome = events(host, &mut watched);
    let signals = host.meaning.signals;
    let mut memory_bytes = None;
    let mut full_map = FullMap::not_tested("no event could be made");
    let tests = match outcome {
        Ok((truth, seen, full)) => {
            memory_bytes = truth.memory_bytes;
            let tests = judge(&truth, &seen, signals);
            let failed = |test: &Test| {
                test.signal == SignalName::FirstTouch && test.verdict == Verdict::Failed
            };
            full_map = if tests.iter().any(failed) {
                FullMap::not_tested("it takes first touches, and these failed their own test")
            } else {
                full
            };
            tests
        }
        Err(error) => {
            let why = format!("{error:#}");
            let not_made = SignalName::ALL.map(|name| (name, why.clone()));
            let truth = Truth {
                not_made: BTreeMap::from(not_made),
                ..Truth::default()
            };
            judge(&truth, &Seen::default(), signals)
        }
    };
    forget(host, &watched);
    Report {
        tests,
        full_map,
        took_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        memory_bytes,
    }
}

/// A process whose events are counted: pid and cookie.
type Counted = (u32, u64);

fn events(host: &mut Host<'_>, watched: &mut Vec<Counted>) -> Result<(Truth, Seen, FullMap)> {
    let live = |host: &Host<'_>, name| {
        host.meaning
            .signals
            .iter()
            .any(|s| s.name == name && s.is_live())
    };
    let mut plan = plan_for(host)?;
    plan.pin = live(host, SignalName::Pin);
    plan.swap = live(host, SignalName::FirstTouch) && swap_is_on(host.root);

    let balancing = [SignalName::Hint, SignalName::Migration, SignalName::Scan];
    let mut truth = Truth::default();
    match driver::render_node(host.root) {
        Ok(node) if live(host, SignalName::DriverAlloc) => plan.driver = Some(node),
        Ok(_) => {}
        Err(why) => {
            truth.not_made.insert(SignalName::DriverAlloc, why);
        }
    }
    let mut balanced = None;
    let why = if !balancing.iter().any(|name| live(host, *name)) {
        Some("no such signal".to_owned())
    } else if tiering(host.root) {
        Some("with memory tiering the kernel moves pages for other reasons".to_owned())
    } else if plan.balance.is_none() {
        Some("there are no two nodes with CPUs and memory that this process may use".to_owned())
    } else {
        let most = u64::try_from(BALANCING.as_millis()).unwrap_or(u64::MAX);
        let started = Process::start(&Task::Balance(plan.clone(), most), PATIENCE);
        match started.and_then(|process| follow(host, watched, process)) {
            Ok(following) => {
                balanced = Some(following);
                None
            }
            Err(error) => Some(format!("{error:#}")),
        }
    };
    if let Some(why) = why {
        truth
            .not_made
            .extend(balancing.map(|name| (name, why.clone())));
    }

    let process = Process::start(&Task::Touch(plan), PATIENCE)?;
    let before = placement::find(host.root, process.pid, host.placement_broken);
    let mut touching = follow(host, watched, process)?;
    let until = Instant::now() + PATIENCE;
    let mut told: Truth = touching.0.answer(until)?;
    (told.cpu_time_ns_by_node, told.under_way_ns) = touching.0.answer(until)?;
    truth.add(told);
    asleep(host.root, touching.0.pid);
    let after = placement::find(host.root, touching.0.pid, host.placement_broken);
    let mut ledger = Ledger::default();
    read(host, &mut ledger, watched)?;
    let account = ledger.process(touching.1).clone();
    let mut seen = seen(&host.meaning, &account);
    seen.resident_bytes = grown(anonymous(&before), anonymous(&after));
    if let Some((mut process, cookie)) = balanced {
        match process.answer::<Truth>(Instant::now() + PATIENCE) {
            Ok(told) => {
                truth.add(told);
                asleep(host.root, process.pid);
                read(host, &mut ledger, watched)?;
                let account = ledger.process(cookie);
                seen.hint = host.meaning.touches(&account.by_node);
                seen.migrations = host.meaning.migrations(&account.by_node);
                seen.scan_time_ns = host.meaning.scan(account).0;
            }
            Err(error) => {
                let why = format!("{error:#}");
                truth
                    .not_made
                    .extend(balancing.map(|name| (name, why.clone())));
            }
        }
    }
    // Last: nothing else is to find its map full.
    let full = full_map(host, touching, &ledger);
    Ok((truth, seen, full))
}

/// Has a process touch pages while the map of page-fault rows is full. Its own rows go first, or it would need no room.
fn full_map(host: &mut Host<'_>, touching: (Process, u64), ledger: &Ledger) -> FullMap {
    let signals = host.meaning.signals;
    let first_touch = signals.iter().find(|s| s.name == SignalName::FirstTouch);
    if !first_touch.is_some_and(Signal::is_live) {
        return FullMap::not_tested("the signal first_touch is unavailable");
    }
    let (mut process, cookie) = touching;
    let id = ThreadId {
        tid: process.pid,
        cookie,
    };
    host.source.delete(&id, &ledger.nodes(&id));
    let before = host.source.lost().0;
    let Some(filled) = host.source.fill_touch() else {
        return FullMap::not_tested("there is no map");
    };
    let touched = process
        .go()
        .and_then(|()| process.answer::<u64>(Instant::now() + PATIENCE));
    asleep(host.root, process.pid);
    let grown = |before: u64| Some(host.source.lost().0?.saturating_sub(before));
    let lost = before.and_then(grown);
    host.source.empty_touch(filled, lost.unwrap_or(0));
    match touched {
        Ok(pages) => judge_full_map(pages, lost),
        Err(error) => FullMap::not_tested(format!("{error:#}")),
    }
}

fn swap_is_on(root: &Root) -> bool {
    let swaps = crate::host::root::read(&root.proc("swaps")).unwrap_or_default();
    // Below the head.
    swaps.lines().nth(1).is_some()
}

fn plan_for(host: &Host<'_>) -> Result<Plan> {
    let status = crate::host::root::read(&host.root.proc("self/status"))?;
    let status = status::parse(&status);
    Ok(Plan::new(
        host.meaning.topology,
        status.cpus_allowed.as_deref(),
        status.memory_allowed.as_deref(),
    ))
}

fn tiering(root: &Root) -> bool {
    crate::host::kernel::read_numa_balancing(root)
        .ok()
        .flatten()
        .is_some_and(|mode| matches!(Balancing::of(Some(mode), None), Balancing::Tiering { .. }))
}

/// Counts a process from now on, and lets it begin.
fn follow(
    host: &mut Host<'_>,
    watched: &mut Vec<Counted>,
    mut process: Process,
) -> Result<(Process, u64)> {
    asleep(host.root, process.pid);
    let threads = crate::sampler::run_times(host.root, process.pid);
    let entry = host.source.track(process.pid, &threads)?;
    watched.push((process.pid, entry.cookie));
    process.go()?;
    Ok((process, entry.cookie))
}

/// Returns once a process sleeps: until then its last slice is not in its row.
fn asleep(root: &Root, pid: u32) {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        let state = ProcessDir::open(root, pid).and_then(|dir| dir.thread_state(pid));
        if !matches!(state, Ok(('R', _))) {
            return;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn read(host: &mut Host<'_>, ledger: &mut Ledger, watched: &[Counted]) -> Result<()> {
    // Its processes have one thread each.
    let owners = ProcfsThreads {
        root: host.root,
        owners: watched
            .iter()
            .map(|&(tgid, cookie)| (tgid, Owner { tgid, cookie }))
            .collect(),
    };
    let reading = host
        .source
        .read(&owners)
        .context("what was counted cannot be read")?;
    ledger.absorb(&reading);
    Ok(())
}

fn seen(meaning: &Meaning<'_>, account: &ProcessAccount) -> Seen {
    Seen {
        cpu_time_ns_by_node: meaning.cpu_time(&account.by_node),
        moves: meaning.moves(&account.by_node),
        touches: meaning.touches(&account.by_node),
        pinned_pages: meaning.pins_made(&account.by_node).by_node,
        driver_allocated: meaning.driver_allocated(&account.by_node).by_node,
        ..Seen::default()
    }
}

/// What the process asked for itself; how much of its program's file the kernel maps at once is the kernel's affair.
fn anonymous(placement: &Placement) -> Option<&ByNode> {
    placement.by_kind.as_ref()?.get(&MemoryKind::Anonymous)
}

fn grown(before: Option<&ByNode>, after: Option<&ByNode>) -> Option<ByNode> {
    let (before, after) = (before?, after?);
    let less = |(node, bytes): (&u32, &u64)| {
        let before = before.get(node).copied().unwrap_or(0);
        (*node, bytes.saturating_sub(before))
    };
    Some(after.iter().map(less).collect())
}

/// Takes away what was counted of processes that have ended: nobody is to see them.
fn forget(host: &mut Host<'_>, watched: &[Counted]) {
    for (pid, cookie) in watched {
        host.source.untrack(*pid, *cookie);
    }
    let mut ledger = Ledger::default();
    if let Err(error) = read(host, &mut ledger, watched) {
        tracing::warn!("the self-test's rows stay: {error:#}");
    }
    for (id, nodes) in ledger.retain(&HashSet::new()) {
        host.source.delete(&id, &nodes);
    }
}
