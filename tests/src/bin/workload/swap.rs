//! `workload swap`: pages that are touched, sent to swap, and touched again.

use crate::region::Region;
use crate::stage::{Clock, Stage};
use crate::sys::{self, Policy};
use crate::touch::disable_thp;
use anyhow::{Result, ensure};
use clap::Args;
use model::topology::NodeId;
use tests::truth::pairs;

/// The arguments.
#[derive(Args, Clone, Debug)]
pub(crate) struct Swap {
    /// Pages of 4 KiB.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=262_144))]
    pages: u32,
    /// The node whose CPUs touch.
    #[arg(long, default_value_t = 0)]
    cpu_node: NodeId,
    /// The node that the pages come from.
    #[arg(long, default_value_t = 0)]
    memory_node: NodeId,
}

impl Swap {
    /// Runs it.
    pub(crate) fn run(&self, stage: &Stage) -> Result<()> {
        let swaps = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
        ensure!(
            swaps.lines().count() > 1,
            "no swap is on: mkswap and swapon a file first"
        );
        sys::need_memory_node(self.memory_node)?;
        disable_thp();
        sys::pin_to_node(self.cpu_node)?;
        stage.ready()?;

        let clock = Clock::start();
        sys::set_policy(Policy::Bind(self.memory_node))?;
        let region = Region::anonymous(self.pages as usize)?;
        region.write(region.all());
        let first_touch = region.pages_by_node()?;
        // Pages that wait in a CPU's list for the LRU can't be taken at once.
        let mut out = 0;
        for _ in 0..20 {
            region.advise(libc::MADV_PAGEOUT)?;
            (_, out) = region.query()?;
            if out == self.pages as usize {
                break;
            }
        }
        ensure!(out > 0, "not one page went out");
        region.write(region.all());
        sys::set_policy(Policy::Default)?;

        let mut truth = clock.process("main", self.cpu_node);
        truth.first_touch = pairs(self.cpu_node, &first_touch);
        truth.swap_in_pages = out as u64;
        truth.pages_by_node = region.pages_by_node()?;
        stage.done("swap", &clock, vec![truth])
    }
}
