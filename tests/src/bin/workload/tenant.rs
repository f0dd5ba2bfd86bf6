//! `workload tenant`: a process as findings see one. It holds a device, memory and weights, binds itself late, has a thread at
//! work, and says where its pages lie at its start and at its end.

use crate::region::Region;
use crate::spin::compute_for;
use crate::sys::{self, Policy};
use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use model::process::ByNode;
use model::topology::NodeId;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::time::Duration;
use tests::findings::{Told, VISIT, VISIT_NS};

/// The arguments.
#[derive(Args, Clone, Debug)]
pub(crate) struct Tenant {
    /// Keep this device open.
    #[arg(long, value_name = "FILE")]
    device: Option<PathBuf>,
    /// Private anonymous pages, touched under the policy that it was started with.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4_194_304))]
    pages: u32,
    /// Map this file and read all of it.
    #[arg(long, value_name = "FILE")]
    weights: Option<PathBuf>,
    /// Bind to this node when all of that is there.
    #[arg(long, value_name = "NODE")]
    bind_late: Option<NodeId>,
    /// What its other thread does until the end of stdin; without it there is none.
    #[arg(long, value_enum)]
    work: Option<Work>,
}

/// After a turn that touches much.
const PAUSE: Duration = Duration::from_millis(400);

/// Work in short turns, so that an emulated machine has time for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Work {
    /// Compute, wherever it may run.
    Compute,
    /// Compute on each CPU that it may run on, one after the other.
    Hop,
    /// Give all pages back and touch them again.
    Churn,
}

impl Tenant {
    /// Runs it.
    pub(crate) fn run(&self) -> Result<()> {
        let open = |path: &PathBuf| File::open(path).with_context(|| path.display().to_string());
        let _device = self.device.as_ref().map(open).transpose()?;
        let memory = Region::anonymous(self.pages as usize)?;
        memory.write(memory.all());
        let weights = self.weights.as_ref().map(map_file).transpose()?;
        if let Some(node) = self.bind_late {
            sys::set_policy(Policy::Bind(node))?;
        }
        tell(&memory, weights.as_ref())?;
        std::thread::scope(|scope| {
            if let Some(work) = self.work {
                let memory = &memory;
                std::thread::Builder::new()
                    .name("work".to_owned())
                    .spawn_scoped(scope, move || -> Result<()> {
                        let cpus = sys::allowed()?;
                        for turn in 0.. {
                            work.turn(turn, &cpus, memory)?;
                        }
                        Ok(())
                    })
                    .context("thread")?;
            }
            std::io::stdin().read_to_end(&mut Vec::new())?;
            if self.work != Some(Work::Churn) {
                tell(&memory, weights.as_ref())?;
            }
            // The other thread goes on for ever.
            std::process::exit(0)
        })
    }
}

impl Work {
    fn turn(self, turn: usize, cpus: &[u32], memory: &Region) -> Result<()> {
        match self {
            Self::Compute => compute_for(VISIT_NS),
            Self::Hop => {
                sys::pin(0, &[cpus[turn % cpus.len()]])?;
                compute_for(VISIT_NS);
            }
            Self::Churn => {
                memory.advise(libc::MADV_DONTNEED)?;
                memory.write(memory.all());
                std::thread::sleep(PAUSE);
            }
        }
        std::thread::sleep(VISIT * 9);
        Ok(())
    }
}

/// As llama.cpp maps its model.
fn map_file(path: &PathBuf) -> Result<Region> {
    let file = File::open(path).with_context(|| path.display().to_string())?;
    let bytes = file.metadata().context("metadata")?.len();
    let pages = usize::try_from(bytes)? / sys::PAGE;
    let region = Region::map_to_read(pages, file.as_fd())?;
    region.read(region.all());
    Ok(region)
}

fn tell(memory: &Region, weights: Option<&Region>) -> Result<()> {
    let weights = weights.map(Region::pages_by_node).transpose()?;
    let told = Told {
        pid: std::process::id(),
        pages: memory.pages_by_node()?,
        weights: weights.unwrap_or_else(ByNode::new),
    };
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, &told)?;
    writeln!(out)?;
    out.flush().context("stdout")
}
