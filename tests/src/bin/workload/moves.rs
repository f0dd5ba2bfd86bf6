//! `workload moves`: threads that change node a known number of times.

use crate::spin::{compute, compute_for};
use crate::stage::{Clock, Stage, thread_name};
use crate::sys;
use anyhow::{Context as _, Result, ensure};
use clap::Args;
use model::process::{ByNode, MovePair};
use model::topology::NodeId;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::Duration;
use tests::truth::ThreadTruth;

/// The arguments.
#[derive(Args, Clone, Debug)]
pub(crate) struct Moves {
    /// Moves of all threads together.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    count: u32,
    /// Threads that move.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    threads: u32,
    /// Nodes to go round; threads start on the first.
    #[arg(long, value_delimiter = ',', default_value = "0,1")]
    nodes: Vec<NodeId>,
    /// CPU time that each spends where it went, microseconds.
    #[arg(long, value_name = "MICROSECONDS", conflicts_with = "never_sleep", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    spin_us: u64,
    /// Threads that compute without a pause, before and after, and are moved by another thread.
    #[arg(long)]
    never_sleep: bool,
}

/// A moving thread's report, with what it did between which nodes.
type Report = (ThreadTruth, BTreeMap<(NodeId, NodeId), u64>);

impl Moves {
    /// Runs it.
    pub(crate) fn run(&self, stage: &Stage) -> Result<()> {
        ensure!(
            self.nodes.len() > 1 && self.nodes.windows(2).all(|pair| pair[0] != pair[1]),
            "--nodes needs at least two, no two the same in a row"
        );
        ensure!(
            self.nodes.first() != self.nodes.last(),
            "--nodes is a round: the last leads to the first"
        );
        let cpus = self
            .nodes
            .iter()
            .map(|node| sys::cpus_of(*node))
            .collect::<Result<Vec<_>>>()?;
        // Main keeps to one CPU, and threads that never sleep to another one.
        sys::pin(0, &cpus[0][..1])?;
        if self.never_sleep {
            self.move_spinners(stage, &cpus)
        } else {
            self.move_themselves(stage, &cpus)
        }
    }

    fn share(&self, thread: u32) -> u32 {
        self.count / self.threads + u32::from(thread < self.count % self.threads)
    }

    fn move_themselves(&self, stage: &Stage, cpus: &[Vec<u32>]) -> Result<()> {
        let gates = Arc::new([
            Barrier::new(self.threads as usize + 1),
            Barrier::new(self.threads as usize + 1),
        ]);
        let (sender, reports) = mpsc::channel::<Report>();
        let mut handles = Vec::new();
        for number in 0..self.threads {
            let (gates, sender) = (Arc::clone(&gates), sender.clone());
            let (nodes, cpus, count) = (self.nodes.clone(), cpus.to_vec(), self.share(number));
            let spin_ns = self.spin_us * 1000;
            handles.push(spawn(number, move || {
                sys::pin(0, &cpus[0])?;
                gates[0].wait();
                let mut log = Log::start(&nodes);
                for step in 1..=count as usize {
                    sys::pin(0, &cpus[step % nodes.len()])?;
                    log.went_to(sys::current_node());
                    compute_for(spin_ns);
                }
                sender.send(log.report())?;
                gates[1].wait();
                Ok(())
            })?);
        }
        stage.ready()?;
        let clock = Clock::start();
        gates[0].wait();
        self.report(stage, &clock, &reports)?;
        gates[1].wait();
        join(handles)
    }

    fn move_spinners(&self, stage: &Stage, cpus: &[Vec<u32>]) -> Result<()> {
        let last: Vec<u32> = cpus
            .iter()
            .filter_map(|cpus| cpus.last().copied())
            .collect();
        let shared = Arc::new(Spinners {
            tids: (0..self.threads).map(|_| AtomicU32::new(0)).collect(),
            nodes: (0..self.threads)
                .map(|_| AtomicU32::new(u32::MAX))
                .collect(),
            let_go: AtomicBool::new(false),
        });
        let mut handles = Vec::new();
        for number in 0..self.threads {
            let (shared, first) = (Arc::clone(&shared), last[0]);
            handles.push(spawn(number, move || {
                sys::pin(0, &[first])?;
                shared.tids[number as usize].store(sys::tid(), Ordering::Release);
                while !shared.let_go.load(Ordering::Relaxed) {
                    shared.nodes[number as usize].store(sys::current_node(), Ordering::Relaxed);
                    compute();
                }
                Ok(())
            })?);
        }
        for number in 0..self.threads {
            shared.wait_for(number, self.nodes[0]);
        }
        stage.ready()?;
        let clock = Clock::start();
        let (sender, reports) = mpsc::channel::<Report>();
        for number in 0..self.threads {
            let tid = shared.tids[number as usize].load(Ordering::Acquire);
            let mut log = Log::start(&self.nodes);
            for step in 1..=self.share(number) as usize {
                sys::pin(tid, &[last[step % last.len()]])?;
                shared.wait_for(number, self.nodes[step % last.len()]);
                log.went_to(self.nodes[step % last.len()]);
            }
            let (truth, pairs) = log.report();
            // Its CPU time is its own affair, which another thread's clock can't tell.
            let name = format!("move-{number}");
            sender.send((
                ThreadTruth {
                    tid,
                    name,
                    cpu_time_ns_by_node: ByNode::new(),
                    ..truth
                },
                pairs,
            ))?;
        }
        self.report(stage, &clock, &reports)?;
        shared.let_go.store(true, Ordering::Relaxed);
        join(handles)
    }

    fn report(&self, stage: &Stage, clock: &Clock, reports: &mpsc::Receiver<Report>) -> Result<()> {
        let reports: Vec<Report> = (0..self.threads)
            .map(|_| reports.recv())
            .collect::<Result<_, _>>()
            .context("a thread failed")?;
        let mut truth = clock.process("main", self.nodes[0]);
        let mut pairs = BTreeMap::<_, u64>::new();
        for (thread, moved) in reports {
            for (pair, count) in moved {
                *pairs.entry(pair).or_default() += count;
            }
            truth.add_thread(thread);
        }
        truth.moves = pairs
            .into_iter()
            .map(|((from, to), count)| MovePair { from, to, count })
            .collect();
        stage.done("moves", clock, vec![truth])
    }
}

/// Threads that never sleep, as their mover sees them.
struct Spinners {
    tids: Vec<AtomicU32>,
    nodes: Vec<AtomicU32>,
    let_go: AtomicBool,
}

impl Spinners {
    /// Until the thread itself has seen that it runs there.
    fn wait_for(&self, number: u32, node: NodeId) {
        while self.nodes[number as usize].load(Ordering::Relaxed) != node {
            thread::sleep(Duration::from_micros(100));
        }
    }
}

/// One thread's way from node to node.
struct Log {
    on: NodeId,
    since: u64,
    cpu_time: ByNode,
    pairs: BTreeMap<(NodeId, NodeId), u64>,
}

impl Log {
    fn start(nodes: &[NodeId]) -> Self {
        Self {
            on: nodes[0],
            since: sys::thread_cpu_ns(),
            cpu_time: ByNode::new(),
            pairs: BTreeMap::new(),
        }
    }

    fn went_to(&mut self, node: NodeId) {
        let now = sys::thread_cpu_ns();
        *self.cpu_time.entry(self.on).or_default() += now - self.since;
        self.since = now;
        if node != self.on {
            *self.pairs.entry((self.on, node)).or_default() += 1;
        }
        self.on = node;
    }

    fn report(mut self) -> Report {
        self.went_to(self.on);
        let truth = ThreadTruth {
            tid: sys::tid(),
            name: thread_name(),
            cpu_time_ns_by_node: self.cpu_time,
            moves: self.pairs.values().sum(),
        };
        (truth, self.pairs)
    }
}

type Handle = thread::JoinHandle<Result<()>>;

fn spawn(number: u32, body: impl FnOnce() -> Result<()> + Send + 'static) -> Result<Handle> {
    thread::Builder::new()
        .name(format!("move-{number}"))
        .spawn(body)
        .context("thread")
}

fn join(handles: Vec<Handle>) -> Result<()> {
    for handle in handles {
        handle
            .join()
            .map_err(|_| anyhow::anyhow!("a thread panicked"))??;
    }
    Ok(())
}
