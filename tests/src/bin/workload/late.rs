//! `workload late`: a thread that runs while others hold the room for threads' rows, and goes on on another node once they
//! are gone.

use crate::spin::compute_for;
use crate::stage::{Clock, Stage, thread_name};
use crate::sys;
use anyhow::{Context as _, Result, ensure};
use clap::Args;
use model::process::ByNode;
use model::topology::NodeId;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use tests::truth::ThreadTruth;

/// The arguments.
#[derive(Args, Clone, Debug)]
pub(crate) struct Late {
    /// Threads that come before it, and end before it goes on.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=256))]
    early: u32,
    /// CPU time that it spends on each node, milliseconds.
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    spin_ms: u64,
    /// How long the others are gone before it goes on, milliseconds.
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 3_000, value_parser = clap::value_parser!(u64).range(0..=60_000))]
    pause_ms: u64,
    /// The node where it runs first, and the one where it goes on.
    #[arg(long, value_delimiter = ',', default_value = "0,1")]
    nodes: Vec<NodeId>,
}

impl Late {
    /// Runs it.
    pub(crate) fn run(&self, stage: &Stage) -> Result<()> {
        let [first, then] = self.nodes[..] else {
            anyhow::bail!("--nodes needs two, as in 0,1");
        };
        ensure!(
            first != then,
            "--nodes needs two that differ, not {first},{then}"
        );
        sys::cpus_of(then)?;
        sys::pin_to_node(first)?;
        stage.ready()?;

        let clock = Clock::start();
        let (let_go, early): (Vec<_>, Vec<_>) = (0..self.early)
            .map(early)
            .collect::<Result<Vec<_>>>()?
            .into_iter()
            .unzip();
        let (go_on, may_go_on) = mpsc::channel::<()>();
        let (paused, has_paused) = mpsc::channel::<()>();
        let spin_ms = self.spin_ms;
        let late = thread::Builder::new().name("late".to_owned());
        let late = late.spawn(move || -> Result<ThreadTruth> {
            let on_first = work(spin_ms);
            paused.send(())?;
            may_go_on.recv()?;
            sys::pin_to_node(then)?;
            let on_then = work(spin_ms);
            Ok(ThreadTruth {
                tid: sys::tid(),
                name: thread_name(),
                cpu_time_ns_by_node: ByNode::from([(first, on_first), (then, on_then)]),
                moves: 1,
            })
        })?;
        has_paused.recv().context("the late thread failed")?;
        drop(let_go);
        for thread in early {
            join(thread)?;
        }
        thread::sleep(Duration::from_millis(self.pause_ms));
        // Before the late thread goes on: the process's clock has what all of them did on the first node.
        let mut truth = clock.process("main", first);
        go_on.send(())?;
        truth.add_thread(join(late)??);
        stage.done("late", &clock, vec![truth])
    }
}

type Early = (mpsc::Sender<()>, thread::JoinHandle<()>);

/// A thread that has run, and ends when the sender is dropped; it is there when this returns.
fn early(number: u32) -> Result<Early> {
    let (let_go, gone) = mpsc::channel::<()>();
    let (started, has_started) = mpsc::channel::<()>();
    let thread = thread::Builder::new().name(format!("early-{number}"));
    let thread = thread.spawn(move || {
        work(2);
        let _ = started.send(());
        let _ = gone.recv();
    })?;
    has_started.recv().context("an early thread failed")?;
    Ok((let_go, thread))
}

fn join<T>(thread: thread::JoinHandle<T>) -> Result<T> {
    thread
        .join()
        .map_err(|_| anyhow::anyhow!("a thread panicked"))
}

/// Computes for this much CPU time, and leaves the CPU every millisecond; nanoseconds that it took.
fn work(ms: u64) -> u64 {
    let began = sys::thread_cpu_ns();
    for _ in 0..ms {
        compute_for(1_000_000);
        thread::sleep(Duration::from_micros(100));
    }
    sys::thread_cpu_ns() - began
}
