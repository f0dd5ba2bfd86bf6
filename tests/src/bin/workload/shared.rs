//! `workload shared`: two processes map the same pages, one after the other.

use crate::children::{Child, fork};
use crate::region::Region;
use crate::stage::{Clock, Stage};
use crate::sys::{self, Policy};
use crate::touch::{cached_file, disable_thp, memfd};
use anyhow::Result;
use clap::{Args, ValueEnum};
use model::topology::NodeId;
use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use tests::truth::{ProcessTruth, pairs};

/// The arguments.
#[derive(Args, Clone, Debug)]
pub(crate) struct Shared {
    /// Pages that both map.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=4_194_304))]
    pages: u32,
    /// What they map.
    #[arg(long, value_enum, default_value_t = Backing::Memfd)]
    backing: Backing,
    /// The node whose CPUs the first process runs on.
    #[arg(long, default_value_t = 0)]
    cpu_node: NodeId,
    /// The node whose CPUs the second process runs on.
    #[arg(long, default_value_t = 0)]
    child_cpu_node: NodeId,
    /// The node that the pages come from.
    #[arg(long, default_value_t = 0)]
    memory_node: NodeId,
    /// Where the file is; it is unlinked at once.
    #[arg(long, value_name = "DIR", default_value = "/tmp")]
    directory: PathBuf,
}

/// What is mapped, and how it is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Backing {
    /// Shared memory: the first process's writes allocate it, the second writes to it.
    Memfd,
    /// A file in the page cache, which both read (faults map many pages at once).
    File,
}

impl Shared {
    /// Runs it.
    pub(crate) fn run(&self, stage: &Stage) -> Result<()> {
        sys::need_memory_node(self.memory_node)?;
        sys::cpus_of(self.child_cpu_node)?;
        disable_thp();
        sys::pin_to_node(self.cpu_node)?;
        let pages = self.pages as usize;
        let file = match self.backing {
            Backing::Memfd => memfd(pages)?,
            Backing::File => cached_file(&self.directory, pages, self.memory_node)?,
        };
        stage.ready()?;

        let clock = Clock::start();
        let (first, _region) = self.map("main", self.cpu_node, &file, &clock)?;
        // A new mapping of its own: what a fork hands down would not be faulted in alike.
        let other = Region::map(pages, libc::MAP_SHARED, Some(file.as_fd()))?;
        let mut child = fork(stage, |_| {
            sys::pin_to_node(self.child_cpu_node)?;
            let clock = Clock::start();
            self.touch(&other);
            let truth = truth_of("child", self.child_cpu_node, &other, &clock)?;
            Ok(vec![truth])
        })?;
        let mut processes = vec![first];
        processes.extend(child.truths()?);
        stage.done("shared", &clock, processes)?;
        Child::end(child)
    }

    fn map(
        &self,
        part: &str,
        node: NodeId,
        file: &File,
        clock: &Clock,
    ) -> Result<(ProcessTruth, Region)> {
        sys::set_policy(Policy::Bind(self.memory_node))?;
        let region = Region::map(self.pages as usize, libc::MAP_SHARED, Some(file.as_fd()))?;
        self.touch(&region);
        sys::set_policy(Policy::Default)?;
        Ok((truth_of(part, node, &region, clock)?, region))
    }

    fn touch(&self, region: &Region) {
        match self.backing {
            Backing::Memfd => region.write(region.all()),
            Backing::File => region.read(region.all()),
        }
    }
}

fn truth_of(part: &str, node: NodeId, region: &Region, clock: &Clock) -> Result<ProcessTruth> {
    let mut truth = clock.process(part, node);
    truth.pages_by_node = region.pages_by_node()?;
    truth.map = pairs(node, &truth.pages_by_node);
    Ok(truth)
}
