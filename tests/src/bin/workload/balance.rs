//! `workload balance`: threads on given nodes keep touching memory that lies on another, while NUMA balancing moves it.

use crate::again::Again;
use crate::region::{Region, need_huge};
use crate::stage::{Clock, Stage, thread_name};
use crate::sys::{self, HUGE_PAGES, Policy};
use crate::touch::disable_thp;
use anyhow::{Context as _, Result, ensure};
use clap::Args;
use model::topology::NodeId;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::Duration;
use tests::truth::{ThreadTruth, pairs};

/// The arguments.
#[derive(Args, Clone, Debug)]
pub(crate) struct Balance {
    /// Pages of 4 KiB.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=4_194_304))]
    pages: u32,
    /// The node that the pages come from.
    #[arg(long, default_value_t = 0)]
    memory_node: NodeId,
    /// Threads and their node, as NODE:THREADS; may be repeated. The first node's CPUs make the first touch.
    #[arg(long = "on", value_name = "NODE:THREADS", required = true, value_parser = parse_on)]
    on: Vec<(NodeId, u32)>,
    /// Each thread has a part of the pages to itself, instead of all touching all.
    #[arg(long)]
    private: bool,
    /// Huge pages.
    #[arg(long)]
    thp: bool,
    #[command(flatten)]
    again: Again,
}

fn parse_on(text: &str) -> Result<(NodeId, u32), String> {
    let parsed = text
        .split_once(':')
        .and_then(|(node, threads)| Some((node.parse().ok()?, threads.parse().ok()?)));
    parsed
        .filter(|(_, threads)| (1..=256).contains(threads))
        .ok_or_else(|| "expected NODE:THREADS, such as 1:2".to_owned())
}

impl Balance {
    /// Runs it.
    pub(crate) fn run(&self, stage: &Stage) -> Result<()> {
        let pages = self.pages as usize;
        sys::need_memory_node(self.memory_node)?;
        self.again.check()?;
        ensure!(self.again.is_wanted(), "balance needs --again SECONDS");
        ensure!(
            !self.thp || pages.is_multiple_of(HUGE_PAGES),
            "--thp needs --pages as a multiple of {HUGE_PAGES}"
        );
        let nodes: Vec<NodeId> = self
            .on
            .iter()
            .flat_map(|(node, threads)| (0..*threads).map(|_| *node))
            .collect();
        ensure!(nodes.len() <= pages, "more threads than pages");
        for node in &nodes {
            sys::cpus_of(*node)?;
        }
        if !self.thp {
            disable_thp();
        }
        sys::pin_to_node(nodes[0])?;
        let region = Arc::new(self.region()?);
        let gates = Arc::new([Barrier::new(nodes.len() + 1), Barrier::new(nodes.len() + 1)]);
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, reports) = mpsc::channel::<ThreadTruth>();
        let mut handles = Vec::new();
        for (number, node) in nodes.iter().copied().enumerate() {
            let (region, gates, stop) =
                (Arc::clone(&region), Arc::clone(&gates), Arc::clone(&stop));
            let sender = sender.clone();
            let part = if self.private {
                number * pages / nodes.len()..(number + 1) * pages / nodes.len()
            } else {
                region.all()
            };
            let body = move || -> Result<()> {
                sys::pin_to_node(node)?;
                gates[0].wait();
                let clock = Clock::start();
                while !stop.load(Ordering::Relaxed) {
                    region.write(part.clone());
                }
                sender.send(ThreadTruth {
                    name: thread_name(),
                    ..clock.thread(node)
                })?;
                gates[1].wait();
                Ok(())
            };
            handles.push(
                thread::Builder::new()
                    .name(format!("touch-{number}"))
                    .spawn(body)
                    .context("thread")?,
            );
        }
        stage.ready()?;

        let clock = Clock::start();
        sys::set_policy(Policy::Bind(self.memory_node))?;
        region.write(region.all());
        let first_touch = region.pages_by_node()?;
        if self.thp {
            need_huge(&region)?;
        }
        sys::set_policy(Policy::Default)?;
        let deadline = self.again.deadline();
        gates[0].wait();
        while !deadline.has_come()? {
            thread::sleep(Duration::from_millis(20));
        }
        stop.store(true, Ordering::Relaxed);
        let threads: Vec<ThreadTruth> = nodes
            .iter()
            .map(|_| reports.recv())
            .collect::<Result<_, _>>()
            .context("a thread failed")?;
        let mut truth = clock.process("main", nodes[0]);
        truth.first_touch = pairs(nodes[0], &first_touch);
        truth.pages_by_node = region.pages_by_node_touching()?;
        truth.huge_bytes = region.huge_bytes()?;
        for thread in threads {
            truth.add_thread(thread);
        }
        stage.done("balance", &clock, vec![truth])?;
        gates[1].wait();
        for handle in handles {
            handle
                .join()
                .map_err(|_| anyhow::anyhow!("a thread panicked"))??;
        }
        Ok(())
    }

    fn region(&self) -> Result<Region> {
        let pages = self.pages as usize;
        if self.thp {
            let region = Region::map_aligned(pages, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS)?;
            region.advise(libc::MADV_HUGEPAGE)?;
            Ok(region)
        } else {
            Region::anonymous(pages)
        }
    }
}
