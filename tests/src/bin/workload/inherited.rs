//! `workload inherited`: touches pages under whatever it was started with, and says what that was and where they lie.

use crate::region::Region;
use crate::sys;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use model::list;
use std::io::{Error, Read as _, Write as _};
use tests::launch::Inherited as Report;

/// The arguments.
#[derive(Args, Clone, Debug)]
pub(crate) struct Inherited {
    /// Pages that the main thread touches, and another one as many.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4_194_304))]
    pages: u32,
    /// Go on until the end of stdin, main with its pages, the other thread on its last CPU alone.
    #[arg(long)]
    stay: bool,
}

impl Inherited {
    /// Runs it.
    pub(crate) fn run(&self) -> Result<()> {
        let (mode, nodes) = policy()?;
        let (_held, pages) = self.touch()?;
        std::thread::scope(|scope| {
            let other = std::thread::Builder::new()
                .name("apart".to_owned())
                .spawn_scoped(scope, || self.touch().map(|(_, pages)| pages));
            let thread_pages = other.context("thread")?.join();
            let thread_pages = thread_pages.unwrap_or_else(|_| bail!("the thread panicked"))?;
            let report = Report {
                pid: std::process::id(),
                mode,
                nodes,
                numa_maps: first_line()?,
                cpus: list::parse(&status("Cpus_allowed_list")?).context("CPUs")?,
                pages,
                thread_pages,
            };
            if self.stay {
                let last = report.cpus.last().copied().context("no CPU")?;
                let (sender, pinned) = std::sync::mpsc::channel();
                std::thread::Builder::new()
                    .name("apart".to_owned())
                    .spawn(move || {
                        let _ = sender.send(sys::pin(0, &[last]));
                        loop {
                            std::thread::park();
                        }
                    })
                    .context("thread")?;
                pinned.recv().context("thread")??;
            }
            let mut out = std::io::stdout().lock();
            serde_json::to_writer(&mut out, &report)?;
            writeln!(out)?;
            out.flush()?;
            if self.stay {
                std::io::stdin().read_to_end(&mut Vec::new())?;
            }
            Ok(())
        })
    }

    /// The pages, and where they lie.
    fn touch(&self) -> Result<(Region, model::process::ByNode)> {
        let region = Region::anonymous(self.pages as usize)?;
        region.write(region.all());
        let pages = region.pages_by_node()?;
        Ok((region, pages))
    }
}

/// The task's policy by the system call: its mode and nodes.
fn policy() -> Result<(i32, Vec<u32>)> {
    let mut mode = 0i32;
    let mut mask = [0u64; 16];
    // SAFETY: the kernel writes the mode and as many bits as the mask has; without an address it tells the task's policy.
    let done = unsafe {
        libc::syscall(
            libc::SYS_get_mempolicy,
            &raw mut mode,
            mask.as_mut_ptr(),
            mask.len() * 64,
            std::ptr::null::<u8>(),
            0,
        )
    };
    if done != 0 {
        return Err(Error::last_os_error()).context("get_mempolicy");
    }
    let nodes = (0..1024u32).filter(|node| mask[*node as usize / 64] & (1 << (node % 64)) != 0);
    Ok((mode, nodes.collect()))
}

fn first_line() -> Result<String> {
    let text = std::fs::read_to_string("/proc/self/numa_maps").context("numa_maps")?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

fn status(name: &str) -> Result<String> {
    let text = std::fs::read_to_string("/proc/self/status").context("status")?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    Ok(line.with_context(|| name.to_owned())?.trim().to_owned())
}
