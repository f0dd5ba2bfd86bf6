//! `workload exec`: touches and computes, replaces its program with itself, and goes on; the pid stays, the tid of a thread that isn't the leader does not.

use crate::region::Region;
use crate::spin::compute_for;
use crate::stage::{Clock, Stage};
use crate::sys::{self, Policy};
use crate::touch::disable_thp;
use anyhow::{Context as _, Result};
use clap::Args;
use model::topology::NodeId;
use serde::{Deserialize, Serialize};
use std::os::unix::process::CommandExt as _;
use tests::truth::{ProcessTruth, pairs};

/// The arguments.
#[derive(Args, Clone, Debug)]
pub(crate) struct Exec {
    /// Pages touched before, and as many after.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    pages: u32,
    /// CPU time spent before, and as much after, milliseconds.
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 200, value_parser = clap::value_parser!(u64).range(0..=60_000))]
    spin_ms: u64,
    /// The node whose CPUs the thread runs on that does all this.
    #[arg(long, default_value_t = 0)]
    cpu_node: NodeId,
    /// The node whose CPUs the leader runs on, where that is another thread.
    #[arg(long, default_value_t = 0)]
    leader_cpu_node: NodeId,
    /// The node that the pages come from.
    #[arg(long, default_value_t = 0)]
    memory_node: NodeId,
    /// The leader does it, instead of another thread.
    #[arg(long)]
    leader: bool,
    /// What was done before; the program gives it to itself.
    #[arg(long, hide = true)]
    before: Option<String>,
}

/// What goes over the exec.
#[derive(Serialize, Deserialize)]
struct Before {
    monotonic_ns: u64,
    process_cpu_ns: u64,
    truth: ProcessTruth,
}

impl Exec {
    /// Runs it.
    pub(crate) fn run(&self, stage: &Stage) -> Result<()> {
        disable_thp();
        if let Some(before) = &self.before {
            return self.after(stage, &serde_json::from_str(before).context("--before")?);
        }
        sys::need_memory_node(self.memory_node)?;
        sys::cpus_of(self.cpu_node)?;
        sys::pin_to_node(if self.leader {
            self.cpu_node
        } else {
            self.leader_cpu_node
        })?;
        stage.ready()?;
        let clock = Clock::start();
        if self.leader {
            return self.before(stage, &clock);
        }
        std::thread::scope(|scope| {
            std::thread::Builder::new()
                .name("exec".to_owned())
                .spawn_scoped(scope, || {
                    sys::pin_to_node(self.cpu_node)?;
                    let own = Clock {
                        thread_cpu: 0,
                        ..clock
                    };
                    self.before(stage, &own)
                })
                .context("thread")?
                .join()
                .map_err(|_| anyhow::anyhow!("the thread panicked"))?
        })
    }

    /// Comes back only with an error.
    fn before(&self, stage: &Stage, clock: &Clock) -> Result<()> {
        let mut truth = self.work(clock)?;
        truth.threads.clear();
        let before = Before {
            monotonic_ns: clock.monotonic,
            process_cpu_ns: clock.process_cpu,
            truth,
        };
        // By its path: through /proc/self/exe its name would become `exe`.
        let mut command =
            std::process::Command::new(std::env::current_exe().context("/proc/self/exe")?);
        command
            .arg0("workload")
            .arg("exec")
            .args([
                "--pages",
                &self.pages.to_string(),
                "--spin-ms",
                &self.spin_ms.to_string(),
            ])
            .args(["--cpu-node", &self.cpu_node.to_string()])
            .args(["--memory-node", &self.memory_node.to_string()])
            .args(["--before", &serde_json::to_string(&before)?])
            .args(stage.as_arguments());
        Err(command.exec()).context("exec")
    }

    fn after(&self, stage: &Stage, before: &Before) -> Result<()> {
        let clock = Clock {
            monotonic: before.monotonic_ns,
            process_cpu: before.process_cpu_ns,
            // The thread's clock went on over the exec.
            thread_cpu: sys::thread_cpu_ns(),
        };
        let mut truth = self.work(&clock)?;
        truth.add_cpu_time(&before.truth.cpu_time_ns_by_node);
        truth.dead_threads = before.truth.dead_threads;
        for (after, before) in truth.first_touch.iter_mut().zip(&before.truth.first_touch) {
            after.pages += before.pages;
        }
        stage.done("exec", &clock, vec![truth])
    }

    fn work(&self, clock: &Clock) -> Result<ProcessTruth> {
        sys::set_policy(Policy::Bind(self.memory_node))?;
        let region = Region::anonymous(self.pages as usize)?;
        region.write(region.all());
        sys::set_policy(Policy::Default)?;
        let pages_by_node = region.pages_by_node()?;
        compute_for(self.spin_ms * 1_000_000);
        let mut truth = clock.process("main", self.cpu_node);
        truth.pages_by_node = pages_by_node;
        truth.first_touch = pairs(self.cpu_node, &truth.pages_by_node);
        truth.dead_threads = u64::from(!self.leader);
        // The pages stay for as long as the program does.
        std::mem::forget(region);
        Ok(truth)
    }
}
