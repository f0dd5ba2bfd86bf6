//! `workload threads`: threads that are born, touch and compute, and die.

use crate::region::Region;
use crate::spin::compute_for;
use crate::stage::{Clock, Stage};
use crate::sys::{self, Policy};
use crate::touch::disable_thp;
use anyhow::{Context as _, Result};
use clap::Args;
use model::topology::NodeId;
use std::sync::Arc;
use std::thread;
use tests::truth::pairs;

/// The arguments.
#[derive(Args, Clone, Debug)]
pub(crate) struct Threads {
    /// Threads in all.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    count: u32,
    /// Threads alive at the same time.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1024))]
    alive: u32,
    /// Pages that each touches.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(0..=4096))]
    pages: u32,
    /// CPU time that each spends besides, microseconds.
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 500, value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    spin_us: u64,
    /// The node whose CPUs they run on.
    #[arg(long, default_value_t = 0)]
    cpu_node: NodeId,
    /// The node that the pages come from.
    #[arg(long, default_value_t = 0)]
    memory_node: NodeId,
}

impl Threads {
    /// Runs it.
    pub(crate) fn run(&self, stage: &Stage) -> Result<()> {
        sys::need_memory_node(self.memory_node)?;
        disable_thp();
        sys::pin_to_node(self.cpu_node)?;
        let each = self.pages as usize;
        let region = Arc::new(Region::anonymous((each * self.count as usize).max(1))?);
        stage.ready()?;

        let clock = Clock::start();
        // Threads inherit policy and CPUs.
        sys::set_policy(Policy::Bind(self.memory_node))?;
        let mut cpu_ns = 0;
        let numbers: Vec<usize> = (0..self.count as usize).collect();
        for batch in numbers.chunks(self.alive as usize) {
            let threads = batch
                .iter()
                .map(|number| self.spawn(*number, Arc::clone(&region)))
                .collect::<Result<Vec<_>>>()?;
            for thread in threads {
                cpu_ns += thread
                    .join()
                    .map_err(|_| anyhow::anyhow!("a thread panicked"))?;
            }
        }
        sys::set_policy(Policy::Default)?;

        let mut truth = clock.process("main", self.cpu_node);
        truth.add_cpu_time(&[(self.cpu_node, cpu_ns)].into());
        truth.dead_threads = u64::from(self.count);
        if each > 0 {
            truth.pages_by_node = region.pages_by_node()?;
            truth.first_touch = pairs(self.cpu_node, &truth.pages_by_node);
        }
        stage.done("threads", &clock, vec![truth])
    }

    fn spawn(&self, number: usize, region: Arc<Region>) -> Result<thread::JoinHandle<u64>> {
        let (each, spin_ns) = (self.pages as usize, self.spin_us * 1000);
        thread::Builder::new()
            .name(format!("short-{number}"))
            .stack_size(64 << 10)
            .spawn(move || {
                region.write(number * each..(number + 1) * each);
                compute_for(spin_ns);
                drop(region);
                // Born with 0; its exit is on no clock of its own.
                sys::thread_cpu_ns()
            })
            .context("thread")
    }
}
