//! `workload write-child`: a process whose writes make pages in its child's memory, which are the touches of neither.

use crate::children::{Child, fork};
use crate::region::Region;
use crate::stage::{Clock, Stage};
use crate::sys::{self, PAGE, Policy};
use crate::touch::disable_thp;
use anyhow::{Context as _, Result};
use clap::Args;
use model::topology::NodeId;
use tests::truth::pairs;

/// The arguments.
#[derive(Args, Clone, Debug)]
pub(crate) struct WriteChild {
    /// Pages that the parent writes in the child.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=262_144))]
    pages: u32,
    /// Pages that the child touches itself.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=262_144))]
    own_pages: u32,
    /// The node whose CPUs they run on.
    #[arg(long, default_value_t = 0)]
    cpu_node: NodeId,
    /// The node that the child's own pages come from.
    #[arg(long, default_value_t = 0)]
    memory_node: NodeId,
}

impl WriteChild {
    /// Runs it.
    pub(crate) fn run(&self, stage: &Stage) -> Result<()> {
        sys::need_memory_node(self.memory_node)?;
        disable_thp();
        sys::pin_to_node(self.cpu_node)?;
        let written = Region::anonymous(self.pages as usize)?;
        let own = Region::anonymous(self.own_pages as usize)?;
        stage.ready()?;

        let clock = Clock::start();
        sys::set_policy(Policy::Bind(self.memory_node))?;
        let mut child = fork(stage, |parent| {
            let clock = Clock::start();
            parent.wait();
            own.write(own.all());
            let mut truth = clock.process("child", self.cpu_node);
            truth.pages_by_node = own.pages_by_node()?;
            truth.first_touch = pairs(self.cpu_node, &truth.pages_by_node);
            // All of them must be there now, or the parent wrote elsewhere.
            written.pages_by_node()?;
            Ok(vec![truth])
        })?;
        write_to(child.pid, &written)?;
        child.go()?;
        let mut processes = vec![clock.process("main", self.cpu_node)];
        processes.extend(child.truths()?);
        stage.done("write-child", &clock, processes)?;
        Child::end(child)
    }
}

/// Writes one word to each page of `region` in another process that maps it at the same address.
fn write_to(pid: i32, region: &Region) -> Result<()> {
    let word = 1u64;
    for page in region.all() {
        let from = libc::iovec {
            iov_base: (&raw const word).cast_mut().cast(),
            iov_len: size_of_val(&word),
        };
        let to = libc::iovec {
            iov_base: region.start().wrapping_add(page * PAGE).cast(),
            iov_len: size_of_val(&word),
        };
        // SAFETY: reads one word here, writes it there; both vectors have one entry.
        let done = unsafe { libc::process_vm_writev(pid, &raw const from, 1, &raw const to, 1, 0) };
        if done != size_of_val(&word).cast_signed() {
            return Err(std::io::Error::last_os_error()).context("process_vm_writev");
        }
    }
    Ok(())
}
