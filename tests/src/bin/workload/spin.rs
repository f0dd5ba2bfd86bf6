//! `workload spin`: threads that compute on given nodes, and what CPU time it cost them.

use crate::stage::{Clock, Stage};
use crate::sys;
use anyhow::{Context as _, Result};
use clap::Args;
use model::topology::NodeId;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use tests::truth::{ProcessTruth, ThreadTruth};

/// The arguments.
#[derive(Args, Clone, Debug)]
pub(crate) struct Spin {
    /// CPU time of each thread.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// The nodes to compute on, all at the same time.
    #[arg(long, value_delimiter = ',', default_value = "0")]
    cpu_nodes: Vec<NodeId>,
    /// Threads on each node.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: u32,
    /// Go on after the report, without ever sleeping; a second report at the end says how long.
    #[arg(long)]
    keep_spinning: bool,
    /// Compute before the release too: such a thread has no switch to be seen.
    #[arg(long)]
    already_spinning: bool,
}

/// What main and the spinning threads share.
struct Shared {
    released: AtomicBool,
    begin: Barrier,
    let_go: AtomicBool,
    end: Barrier,
}

impl Spin {
    /// Runs it.
    pub(crate) fn run(&self, stage: &Stage) -> Result<()> {
        for node in &self.cpu_nodes {
            sys::cpus_of(*node)?;
        }
        let first = self.cpu_nodes[0];
        sys::pin_to_node(first)?;
        let parties = self.threads as usize * self.cpu_nodes.len() + 1;
        let shared = Arc::new(Shared {
            released: AtomicBool::new(false),
            begin: Barrier::new(parties),
            let_go: AtomicBool::new(false),
            end: Barrier::new(parties),
        });
        let (start, started) = mpsc::channel();
        let (sender, reports) = mpsc::channel();
        let mut handles = Vec::new();
        for node in self.cpu_nodes.iter().copied() {
            for number in 0..self.threads {
                let (own, shared) = (self.clone(), Arc::clone(&shared));
                let (start, sender) = (start.clone(), sender.clone());
                let body = move || {
                    sys::pin_to_node(node)?;
                    start.send(sys::tid())?;
                    own.thread(node, &shared, &sender)
                };
                let name = format!("spin-{node}-{number}");
                handles.push(
                    thread::Builder::new()
                        .name(name)
                        .spawn(body)
                        .context("thread")?,
                );
            }
        }
        let tids: Vec<u32> = handles
            .iter()
            .map(|_| started.recv())
            .collect::<Result<_, _>>()?;
        stage.ready()?;

        let clock = Clock::start();
        let before: BTreeMap<u32, u64> = tids
            .iter()
            .map(|tid| (*tid, sys::cpu_ns_of(*tid)))
            .collect();
        shared.released.store(true, Ordering::Relaxed);
        if !self.already_spinning {
            shared.begin.wait();
        }
        let truth = self.report(&clock, first, &before, &reports)?;
        stage.done("spin", &clock, vec![truth])?;
        shared.let_go.store(true, Ordering::Relaxed);
        if self.keep_spinning {
            let truth = self.report(&clock, first, &before, &reports)?;
            stage.done("spin", &clock, vec![truth])?;
        }
        shared.end.wait();
        for handle in handles {
            handle
                .join()
                .map_err(|_| anyhow::anyhow!("a thread panicked"))??;
        }
        Ok(())
    }

    /// The threads' clocks are read by main, once they sleep: what it costs them to report is in it.
    fn report(
        &self,
        clock: &Clock,
        node: NodeId,
        before: &BTreeMap<u32, u64>,
        reports: &mpsc::Receiver<ThreadTruth>,
    ) -> Result<ProcessTruth> {
        let threads: Vec<ThreadTruth> = before
            .iter()
            .map(|_| reports.recv())
            .collect::<Result<_, _>>()
            .context("a thread failed")?;
        let mut truth = clock.process("main", node);
        for mut thread in threads {
            if !self.keep_spinning {
                sys::wait_until_asleep(thread.tid);
            }
            for ns in thread.cpu_time_ns_by_node.values_mut() {
                *ns = sys::cpu_ns_of(thread.tid) - before[&thread.tid];
            }
            truth.add_thread(thread);
        }
        Ok(truth)
    }

    fn thread(
        &self,
        node: NodeId,
        shared: &Shared,
        sender: &mpsc::Sender<ThreadTruth>,
    ) -> Result<()> {
        if self.already_spinning {
            while !shared.released.load(Ordering::Relaxed) {
                compute();
            }
        } else {
            shared.begin.wait();
        }
        let clock = Clock::start();
        compute_for(self.seconds * 1_000_000_000);
        sender.send(clock.thread(node))?;
        if self.keep_spinning {
            while !shared.let_go.load(Ordering::Relaxed) {
                compute();
            }
            sender.send(clock.thread(node))?;
        }
        shared.end.wait();
        Ok(())
    }
}

/// Some microseconds of arithmetic, without a system call.
pub(crate) fn compute() {
    for step in 0..10_000u32 {
        std::hint::black_box(step);
    }
}

/// Computes for this much CPU time of the calling thread.
pub(crate) fn compute_for(nanoseconds: u64) {
    let enough = sys::thread_cpu_ns() + nanoseconds;
    while sys::thread_cpu_ns() < enough {
        compute();
    }
}
