//! `workload fork`: a child writes to each page that its parent touched, and gets a copy of it.

use crate::children::{Child, fork};
use crate::region::Region;
use crate::stage::{Clock, Stage};
use crate::sys::{self, Policy};
use crate::touch::disable_thp;
use anyhow::Result;
use clap::Args;
use model::topology::NodeId;
use tests::truth::pairs;

/// The arguments.
#[derive(Args, Clone, Debug)]
pub(crate) struct Fork {
    /// Pages that the parent touches and the child copies.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=4_194_304))]
    pages: u32,
    /// The node whose CPUs the parent runs on.
    #[arg(long, default_value_t = 0)]
    cpu_node: NodeId,
    /// The node that the parent's pages come from.
    #[arg(long, default_value_t = 0)]
    memory_node: NodeId,
    /// The node whose CPUs the child runs on.
    #[arg(long, default_value_t = 0)]
    child_cpu_node: NodeId,
    /// The node that the child's copies come from.
    #[arg(long, default_value_t = 0)]
    child_memory_node: NodeId,
}

impl Fork {
    /// Runs it.
    pub(crate) fn run(&self, stage: &Stage) -> Result<()> {
        sys::need_memory_node(self.memory_node)?;
        sys::need_memory_node(self.child_memory_node)?;
        sys::cpus_of(self.child_cpu_node)?;
        disable_thp();
        sys::pin_to_node(self.cpu_node)?;
        stage.ready()?;

        let clock = Clock::start();
        sys::set_policy(Policy::Bind(self.memory_node))?;
        let region = Region::anonymous(self.pages as usize)?;
        region.write(region.all());
        sys::set_policy(Policy::Default)?;
        let mut child = fork(stage, |_| {
            sys::pin_to_node(self.child_cpu_node)?;
            let clock = Clock::start();
            sys::set_policy(Policy::Bind(self.child_memory_node))?;
            region.write(region.all());
            let mut truth = clock.process("child", self.child_cpu_node);
            truth.pages_by_node = region.pages_by_node()?;
            truth.first_touch = pairs(self.child_cpu_node, &truth.pages_by_node);
            Ok(vec![truth])
        })?;
        let children = child.truths()?;
        let mut truth = clock.process("main", self.cpu_node);
        truth.pages_by_node = region.pages_by_node()?;
        truth.first_touch = pairs(self.cpu_node, &truth.pages_by_node);
        let mut processes = vec![truth];
        processes.extend(children);
        stage.done("fork", &clock, processes)?;
        Child::end(child)
    }
}
