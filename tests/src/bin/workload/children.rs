//! Forked children that report to their parent and stay until it lets them go; `workload children` makes a family of them.

use crate::region::Region;
use crate::spin::compute_for;
use crate::stage::{Clock, Stage};
use crate::sys::{self, Policy};
use crate::touch::disable_thp;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use model::topology::NodeId;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use tests::truth::{ProcessTruth, pairs};

/// A forked child, seen from its parent.
pub(crate) struct Child {
    /// Its pid.
    pub(crate) pid: i32,
    line: BufReader<UnixStream>,
}

/// The child's own end.
pub(crate) struct Parent(UnixStream);

impl Parent {
    /// Waits until the parent says go.
    pub(crate) fn wait(&mut self) {
        // The end of the line means that the parent is gone, and a signal is under way.
        let _ = self.0.read(&mut [0]);
    }
}

/// Forks; the child runs `body`, reports its truths and waits to be let go. The caller must be single-threaded.
pub(crate) fn fork(
    stage: &Stage,
    body: impl FnOnce(&mut Parent) -> Result<Vec<ProcessTruth>>,
) -> Result<Child> {
    let (ours, theirs) = UnixStream::pair().context("socketpair")?;
    // SAFETY: single-threaded, so the child may do all that its parent could.
    match unsafe { libc::fork() } {
        -1 => Err(std::io::Error::last_os_error()).context("fork"),
        0 => {
            sys::die_with_parent(stage.limit);
            close_all_but(theirs.as_raw_fd());
            let code = match in_child(Parent(theirs), body) {
                Ok(()) => 0,
                Err(error) => {
                    eprintln!("workload: child: {error:#}");
                    2
                }
            };
            // SAFETY: ends the process; nothing of the parent's is dropped or flushed twice.
            unsafe { libc::_exit(code) }
        }
        pid => Ok(Child {
            pid,
            line: BufReader::new(ours),
        }),
    }
}

fn in_child(
    mut parent: Parent,
    body: impl FnOnce(&mut Parent) -> Result<Vec<ProcessTruth>>,
) -> Result<()> {
    let mut line = serde_json::to_vec(&body(&mut parent)?)?;
    line.push(b'\n');
    parent.0.write_all(&line).context("report")?;
    parent.wait();
    Ok(())
}

/// Siblings' lines would otherwise stay open here, and their ends never be seen.
fn close_all_but(fd: i32) {
    let fd = fd.cast_unsigned();
    // SAFETY: closes descriptors that this child doesn't use; it leaves with _exit, so nobody closes them again.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3, fd - 1, 0);
        libc::syscall(libc::SYS_close_range, fd + 1, u32::MAX, 0);
    }
}

impl Child {
    /// Tells a child that waits to go on.
    pub(crate) fn go(&mut self) -> Result<()> {
        self.line.get_mut().write_all(b".").context("child")
    }

    /// What it did; waits for it.
    pub(crate) fn truths(&mut self) -> Result<Vec<ProcessTruth>> {
        let mut line = String::new();
        self.line.read_line(&mut line).context("child")?;
        if line.is_empty() {
            bail!("child {} ended without a report", self.pid);
        }
        Ok(serde_json::from_str(&line)?)
    }

    /// Lets it go, and waits until it is gone.
    pub(crate) fn end(mut self) -> Result<()> {
        self.go()?;
        let mut status = 0;
        // SAFETY: a child of this process that nobody else waits for.
        if unsafe { libc::waitpid(self.pid, &raw mut status, 0) } != self.pid || status != 0 {
            bail!("child {} ended with {status}", self.pid);
        }
        Ok(())
    }
}

/// The arguments.
#[derive(Args, Clone, Debug)]
pub(crate) struct Children {
    /// Children of each process that has some.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=32))]
    count: u32,
    /// Generations: 2 are children and grandchildren.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=3))]
    depth: u32,
    /// Pages that each touches.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=262_144))]
    pages: u32,
    /// CPU time that each spends besides, milliseconds.
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 50, value_parser = clap::value_parser!(u64).range(0..=60_000))]
    spin_ms: u64,
    /// The node whose CPUs they run on.
    #[arg(long, default_value_t = 0)]
    cpu_node: NodeId,
    /// The node that the pages come from.
    #[arg(long, default_value_t = 0)]
    memory_node: NodeId,
}

impl Children {
    /// Runs it.
    pub(crate) fn run(&self, stage: &Stage) -> Result<()> {
        sys::need_memory_node(self.memory_node)?;
        disable_thp();
        sys::pin_to_node(self.cpu_node)?;
        stage.ready()?;
        let clock = Clock::start();
        let mut family = Vec::new();
        let mut children = self.bear(stage, self.depth)?;
        for child in &mut children {
            family.extend(child.truths()?);
        }
        family.insert(0, clock.process("main", self.cpu_node));
        stage.done("children", &clock, family)?;
        children.into_iter().try_for_each(Child::end)
    }

    fn bear(&self, stage: &Stage, depth: u32) -> Result<Vec<Child>> {
        let count = if depth == 0 { 0 } else { self.count };
        (0..count)
            .map(|_| fork(stage, |parent| self.live(stage, parent, depth - 1)))
            .collect()
    }

    fn live(&self, stage: &Stage, parent: &mut Parent, depth: u32) -> Result<Vec<ProcessTruth>> {
        // A child's clocks begin at 0.
        let born = Clock {
            monotonic: sys::monotonic_ns(),
            thread_cpu: 0,
            process_cpu: 0,
        };
        sys::set_policy(Policy::Bind(self.memory_node))?;
        let region = Region::anonymous(self.pages as usize)?;
        region.write(region.all());
        sys::set_policy(Policy::Default)?;
        let pages_by_node = region.pages_by_node()?;
        compute_for(self.spin_ms * 1_000_000);
        let mut children = self.bear(stage, depth)?;
        let mut descendants = Vec::new();
        for child in &mut children {
            descendants.extend(child.truths()?);
        }
        let mut truth = born.process("child", self.cpu_node);
        truth.pages_by_node = pages_by_node;
        truth.first_touch = pairs(self.cpu_node, &truth.pages_by_node);
        let mut family = vec![truth];
        family.append(&mut descendants);
        if !children.is_empty() {
            // They are let go when this one is: report first, then wait, then end them.
            let mut line = serde_json::to_vec(&family)?;
            line.push(b'\n');
            parent.0.write_all(&line).context("report")?;
            parent.wait();
            children.into_iter().try_for_each(Child::end)?;
            // SAFETY: as in `fork`; the report has been made.
            unsafe { libc::_exit(0) }
        }
        // The pages stay until the child is let go, which leaves with _exit.
        std::mem::forget(region);
        Ok(family)
    }
}
