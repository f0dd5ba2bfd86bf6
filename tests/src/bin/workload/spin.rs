//! `workload spin`: threads that compute on given nodes, and what CPU time it cost them.

use crate::stage::{Clock, Stage, thread_name};
use crate::sys;
use anyhow::{Context as _, Result};
use clap::Args;
use model::process::{ByNode, MovePair};
use model::topology::NodeId;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use tests::truth::{ProcessTruth, ThreadTruth};

/// The arguments.
#[derive(Args, Clone, Debug)]
pub(crate) struct Spin {
    /// CPU time of each thread on each node.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// The nodes to compute on, each once, one after the other.
    #[arg(long, value_delimiter = ',', default_value = "0")]
    cpu_nodes: Vec<NodeId>,
    /// Threads that do so.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: u32,
    /// Go on after the report, on the last node, without ever sleeping; a second report at the end says how long.
    #[arg(long)]
    keep_spinning: bool,
    /// Compute on the first node before the release too: such a thread has no switch to be seen.
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
        let parties = self.threads as usize + 1;
        let shared = Arc::new(Shared {
            released: AtomicBool::new(false),
            begin: Barrier::new(parties),
            let_go: AtomicBool::new(false),
            end: Barrier::new(parties),
        });
        let (sender, reports) = mpsc::channel();
        let handles = (0..self.threads)
            .map(|number| {
                let (own, shared, sender) = (self.clone(), Arc::clone(&shared), sender.clone());
                thread::Builder::new()
                    .name(format!("spin-{number}"))
                    .spawn(move || own.thread(&shared, &sender))
                    .context("thread")
            })
            .collect::<Result<Vec<_>>>()?;
        stage.ready()?;

        let clock = Clock::start();
        shared.released.store(true, Ordering::Relaxed);
        shared.begin.wait();
        stage.done("spin", &clock, vec![self.report(&clock, first, &reports)?])?;
        shared.let_go.store(true, Ordering::Relaxed);
        if self.keep_spinning {
            let truth = self.report(&clock, first, &reports)?;
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

    fn report(
        &self,
        clock: &Clock,
        node: NodeId,
        reports: &mpsc::Receiver<ThreadTruth>,
    ) -> Result<ProcessTruth> {
        let threads: Vec<_> = (0..self.threads)
            .map(|_| reports.recv())
            .collect::<Result<_, _>>()
            .context("a thread failed")?;
        let mut truth = clock.process("main", node);
        for thread in threads {
            truth.add_thread(thread);
        }
        let went = self.cpu_nodes.windows(2).filter(|pair| pair[0] != pair[1]);
        truth.moves = went
            .map(|pair| MovePair {
                from: pair[0],
                to: pair[1],
                count: u64::from(self.threads),
            })
            .collect();
        Ok(truth)
    }

    fn thread(&self, shared: &Shared, sender: &mpsc::Sender<ThreadTruth>) -> Result<()> {
        while self.already_spinning && !shared.released.load(Ordering::Relaxed) {
            compute();
        }
        shared.begin.wait();
        let mut by_node = ByNode::new();
        let mut since = sys::thread_cpu_ns();
        let mut on = self.cpu_nodes[0];
        let mut moves = 0;
        for node in &self.cpu_nodes {
            if *node != on {
                sys::pin_to_node(*node)?;
                on = *node;
                moves += 1;
            }
            let enough = sys::thread_cpu_ns() + self.seconds * 1_000_000_000;
            while sys::thread_cpu_ns() < enough {
                compute();
            }
            add_until_now(&mut by_node, on, &mut since);
        }
        let report = |by_node: &ByNode| ThreadTruth {
            tid: sys::tid(),
            name: thread_name(),
            cpu_time_ns_by_node: by_node.clone(),
            moves,
        };
        sender.send(report(&by_node))?;
        if self.keep_spinning {
            while !shared.let_go.load(Ordering::Relaxed) {
                compute();
            }
            add_until_now(&mut by_node, on, &mut since);
            sender.send(report(&by_node))?;
        }
        shared.end.wait();
        Ok(())
    }
}

fn add_until_now(by_node: &mut ByNode, node: NodeId, since: &mut u64) {
    let now = sys::thread_cpu_ns();
    *by_node.entry(node).or_default() += now - *since;
    *since = now;
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
