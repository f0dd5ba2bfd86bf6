//! The process that makes the events: a hidden subcommand of numawatch itself.
//!
//! It is told a [`Task`] in one line on stdin, gets ready and says so with its pid, and begins at the next line. Its
//! [`Truth`] is one line too. Then it stays as it is until stdin ends, so that its memory can be looked at.

use super::events::{Thread, bound, burn, driver, pin, private, shared, swap, touched};
use super::plan::{BALANCED_PAGES, BURN_NS, FULL_PAGES, Plan, RESIDENT_PAGES, ROUNDS};
use super::sys::{PAGE, Region, allocate_on, cpu_time_ns, die_with_parent, run_on};
use crate::host::process::own_pid;
use crate::host::root::Root;
use crate::host::status;
use anyhow::{Context, Result, bail};
use model::selftest::{Truth, count};
use model::signal::SignalName;
use model::topology::NodeId;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

/// What a process is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Task {
    /// Everything that needs no waiting.
    Touch(Plan),
    /// Have NUMA balancing move its pages, for so many milliseconds at most.
    Balance(Plan, u64),
}

/// It is ready.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Ready {
    /// Its pid in the host's `/proc`.
    pub(crate) pid: u32,
}

/// So many pages that NUMA balancing has moved are no accident.
const ENOUGH_PAGES: usize = BALANCED_PAGES / 16;

/// After so many seconds a process that was forgotten ends by itself.
const LIFE_S: u32 = 20;

/// Runs until stdin ends.
pub(crate) fn run() -> Result<()> {
    die_with_parent(LIFE_S);
    // Under a policy that it inherited, NUMA balancing might leave its memory alone. A kernel without NUMA has none.
    let _ = allocate_on(None);
    let task: Task = serde_json::from_str(&line()?).context("the task")?;
    match task {
        Task::Touch(plan) => touch(&plan),
        Task::Balance(plan, at_most_ms) => {
            // A process that was forked is scanned a second earlier than one that has executed a program.
            // SAFETY: there is one thread, and the child runs on with its own copy of everything.
            match unsafe { libc::fork() } {
                -1 => Err(std::io::Error::last_os_error()).context("fork"),
                0 => {
                    die_with_parent(LIFE_S);
                    balance(&plan, Duration::from_millis(at_most_ms))
                }
                child => wait_for(child),
            }
        }
    }
}

fn wait_for(child: i32) -> Result<()> {
    let mut status = 0;
    // SAFETY: the kernel writes one int.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    if status == 0 {
        Ok(())
    } else {
        bail!("the process that was balanced failed")
    }
}

fn line() -> Result<String> {
    let mut text = String::new();
    // Locked for one line: what is read too early is kept for the next.
    std::io::stdin().lock().read_line(&mut text)?;
    if text.is_empty() {
        bail!("stdin has ended");
    }
    Ok(text)
}

fn say(what: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_vec(what)?;
    text.push(b'\n');
    let mut out = std::io::stdout().lock();
    out.write_all(&text)?;
    Ok(out.flush()?)
}

/// The largest resident set so far, bytes.
fn most_resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    status::parse(&text).most_resident_bytes
}

/// Everything that needs no waiting.
fn touch(plan: &Plan) -> Result<()> {
    let first = plan.places.first().context("no CPU is allowed")?;
    let home = plan.memory.first().copied().context("no node is allowed")?;
    // Once for nothing, so that code, stack and heap are touched already.
    run_on(&first.cpus)?;
    let mut rehearsal = Thread::here(cpu_time_ns())?;
    rehearsal.go_to(first)?;
    private(&mut rehearsal, home)?;
    shared(&mut rehearsal, home)?;
    if plan.pin {
        drop(pin(&mut rehearsal, &[home]));
    }
    if let Some(device) = &plan.driver {
        drop(driver(&mut rehearsal, device, &[home]));
    }
    let full = Region::private(FULL_PAGES)?;
    rehearsal.truth.memory_bytes = most_resident_bytes();
    drop(serde_json::to_vec(&rehearsal.truth)?);
    drop(rehearsal);
    say(&Ready {
        pid: own_pid(&Root::system()),
    })?;
    // What it has run by the moment at which it begins to wait, from when on it is counted.
    let counted_ns = cpu_time_ns();
    line()?;

    let mut thread = Thread::here(counted_ns)?;
    for (place, node) in &plan.pairs {
        thread.go_to(&plan.places[*place])?;
        private(&mut thread, *node)?;
        shared(&mut thread, *node)?;
    }
    let mut resident = Vec::new();
    for node in &plan.memory {
        let region = bound(RESIDENT_PAGES, *node)?;
        region.touch();
        touched(&mut thread.truth.first_touch, thread.node, &region)?;
        for node in region.nodes()?.into_iter().flatten() {
            *thread.truth.resident_bytes.entry(node).or_default() += PAGE as u64;
        }
        resident.push(region);
    }
    let pins = plan.pin.then(|| pin(&mut thread, &plan.memory));
    let device = plan.driver.as_deref();
    let device = device.map(|device| driver(&mut thread, device, &plan.memory));
    if plan.swap {
        swap(&mut thread, home)?;
    }
    for _ in 0..ROUNDS {
        for place in &plan.places {
            thread.go_to(place)?;
        }
    }
    for place in &plan.places {
        thread.go_to(place)?;
        burn(BURN_NS);
    }
    thread.truth.memory_bytes = most_resident_bytes();
    say(&thread.truth)?;
    // The last word, for saying the others takes time too.
    thread.count();
    say(&(thread.truth.cpu_time_ns_by_node, thread.truth.under_way_ns))?;
    // Until stdin ends everything stays where it is.
    if line().is_ok() {
        full.touch();
        say(&full.nodes()?.iter().flatten().count())?;
        let _ = line();
    }
    drop((pins, device, resident));
    Ok(())
}

/// Has NUMA balancing bring pages from one node to another.
fn balance(plan: &Plan, at_most: Duration) -> Result<()> {
    let (from, to) = plan.balance.context("there are no two nodes")?;
    let (from, to) = (&plan.places[from], &plan.places[to]);
    let region = Region::private(BALANCED_PAGES)?;
    run_on(&from.cpus)?;
    let mut thread = Thread::here(cpu_time_ns())?;
    say(&Ready {
        pid: own_pid(&Root::system()),
    })?;
    line()?;
    let end = Instant::now() + at_most;
    // Not bound, for what is bound is not scanned: it lies where it is touched first.
    region.touch();
    thread.go_to(to)?;
    let on = |node: NodeId| -> Result<usize> {
        Ok(region.nodes()?.iter().filter(|n| **n == Some(node)).count())
    };
    let before = on(thread.node)?;
    let mut look = Instant::now();
    let arrived = loop {
        region.touch();
        if look.elapsed() >= Duration::from_millis(20) {
            look = Instant::now();
            let arrived = on(thread.node)?.saturating_sub(before);
            if arrived >= BALANCED_PAGES * 3 / 4 || look >= end {
                break arrived;
            }
        }
    };
    if arrived >= ENOUGH_PAGES {
        count(
            &mut thread.truth.migrated,
            from.node,
            to.node,
            arrived as u64,
        );
    } else {
        let why = format!(
            "NUMA balancing moved {arrived} of {BALANCED_PAGES} pages within {:.1} s of touching",
            at_most.as_secs_f64()
        );
        for name in [SignalName::Hint, SignalName::Migration, SignalName::Scan] {
            thread.truth.not_made.insert(name, why.clone());
        }
    }
    // CPU time and touches of this process are compared to nothing.
    let truth = Truth {
        migrated: thread.truth.migrated,
        not_made: thread.truth.not_made,
        memory_bytes: most_resident_bytes(),
        ..Truth::default()
    };
    say(&truth)?;
    let _ = line();
    Ok(())
}
