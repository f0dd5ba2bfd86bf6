//! `workload place`: memory of several kinds, each on a node, that stays where it is; many mappings, and a reserve that is
//! nearly empty.

use crate::region::{Region, need_huge};
use crate::stage::{Clock, Stage};
use crate::sys::{self, PAGE, Policy};
use crate::touch::{cached_file, memfd};
use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueEnum as _};
use model::process::ByNode;
use model::topology::NodeId;
use std::io::Error;
use std::path::PathBuf;
use tests::truth::pairs;

/// The arguments.
#[derive(Args, Clone, Debug)]
pub(crate) struct Place {
    /// Pages of 4 KiB of a kind on a node; can be repeated.
    #[arg(long = "part", value_name = "KIND:NODE:PAGES", value_parser = part)]
    parts: Vec<Part>,
    /// Mappings of a page each, on node 0.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=60_000))]
    mappings: u32,
    /// Addresses to reserve.
    #[arg(long, value_name = "GIB", default_value_t = 0)]
    reserve: usize,
    /// Pages to touch in the middle of them, on node 0.
    #[arg(long, value_name = "PAGES", default_value_t = 0, requires = "reserve")]
    reserve_pages: usize,
    /// Where files are; they are unlinked at once.
    #[arg(long, value_name = "DIR", default_value = "/tmp")]
    directory: PathBuf,
}

/// Some of the memory.
#[derive(Clone, Debug)]
struct Part {
    kind: Kind,
    node: NodeId,
    pages: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    Anon,
    Thp,
    Hugetlb,
    File,
    Memfd,
}

fn part(text: &str) -> Result<Part, String> {
    let mut words = text.split(':');
    let mut word = || words.next().unwrap_or_default();
    let kind = Kind::from_str(word(), false)?;
    let node = word().parse().map_err(|_| "no node")?;
    let pages = word().parse().map_err(|_| "no number of pages")?;
    Ok(Part { kind, node, pages })
}

impl Place {
    /// Runs it.
    pub(crate) fn run(&self, stage: &Stage) -> Result<()> {
        stage.ready()?;
        let clock = Clock::start();
        let mut regions = Vec::new();
        let mut by_node = ByNode::new();
        for part in &self.parts {
            let region = self.make(part)?;
            for (node, pages) in region.pages_by_node()? {
                *by_node.entry(node).or_default() += pages;
            }
            regions.push(region);
        }
        sys::set_policy(Policy::Bind(0))?;
        for number in 0..self.mappings {
            // Two of the same permissions would be one.
            map_pages(1, 1, number % 2 == 0)?;
        }
        if self.reserve > 0 {
            map_pages((self.reserve << 30) / PAGE, self.reserve_pages, true)?;
        }
        let node = sys::current_node();
        let mut truth = clock.process("main", node);
        truth.first_touch = pairs(node, &by_node);
        truth.pages_by_node = by_node;
        stage.done("place", &clock, vec![truth])
    }

    fn make(&self, part: &Part) -> Result<Region> {
        let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let file = match part.kind {
            Kind::File => Some(cached_file(&self.directory, part.pages, part.node)?),
            Kind::Memfd => Some(memfd(part.pages)?),
            _ => None,
        };
        sys::set_policy(Policy::Bind(part.node))?;
        let region = match part.kind {
            Kind::Anon => Region::anonymous(part.pages)?,
            Kind::Thp => {
                let region = Region::map_aligned(part.pages, private)?;
                region.advise(libc::MADV_HUGEPAGE)?;
                region
            }
            Kind::Hugetlb => Region::map(part.pages, private | libc::MAP_HUGETLB, None)?,
            Kind::File | Kind::Memfd => {
                let file = file.as_ref().map(std::os::fd::AsFd::as_fd);
                Region::map(part.pages, libc::MAP_SHARED, file)?
            }
        };
        if part.kind == Kind::File {
            region.read(region.all());
        } else {
            region.write(region.all());
        }
        // Transparent ones are given as far as there are any: placement must be right either way.
        if part.kind == Kind::Hugetlb {
            need_huge(&region)?;
        }
        sys::set_policy(Policy::Default)?;
        Ok(region)
    }
}

/// Private memory of `pages` pages, of which `touched` in the middle are written; it stays until the process ends.
fn map_pages(pages: usize, touched: usize, writable: bool) -> Result<()> {
    if touched > pages {
        bail!("{touched} of {pages} pages cannot be touched");
    }
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping, written within its bounds, which nothing else refers to.
    unsafe {
        let start = libc::mmap(
            std::ptr::null_mut(),
            pages * PAGE,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            -1,
            0,
        );
        if start == libc::MAP_FAILED {
            return Err(Error::last_os_error()).context(format!("mmap of {pages} pages"));
        }
        libc::madvise(start, pages * PAGE, libc::MADV_NOHUGEPAGE);
        let first = (pages - touched) / 2;
        for page in first..first + touched {
            start.cast::<u8>().add(page * PAGE).write_volatile(1);
        }
        if !writable && libc::mprotect(start, pages * PAGE, libc::PROT_READ) != 0 {
            return Err(Error::last_os_error()).context("mprotect");
        }
    }
    Ok(())
}
