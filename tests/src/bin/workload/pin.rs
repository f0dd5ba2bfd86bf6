//! `workload pin`: pages that io_uring pins for as long as its ring lives, as RDMA and GPU drivers pin theirs.

use crate::region::{Region, need_huge};
use crate::stage::{Clock, Stage};
use crate::sys::{self, HUGE_PAGES, PAGE, Policy};
use crate::touch::disable_thp;
use anyhow::{Context as _, Result, ensure};
use clap::Args;
use model::topology::NodeId;
use std::io::Error;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use tests::truth::pairs;

/// The arguments.
#[derive(Args, Clone, Debug)]
pub(crate) struct Pin {
    /// Pages of 4 KiB.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=262_144))]
    pages: u32,
    /// The node whose CPUs pin.
    #[arg(long, default_value_t = 0)]
    cpu_node: NodeId,
    /// The node that the pages come from.
    #[arg(long, default_value_t = 0)]
    memory_node: NodeId,
    /// Buffers that they are registered as: the kernel pins each by a call of its own.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    buffers: u32,
    /// Leave them to the pinning to be made, instead of touching them before.
    #[arg(long, conflicts_with = "thp")]
    untouched: bool,
    /// Huge pages.
    #[arg(long)]
    thp: bool,
}

impl Pin {
    /// Runs it.
    pub(crate) fn run(&self, stage: &Stage) -> Result<()> {
        let pages = self.pages as usize;
        let buffers = self.buffers as usize;
        sys::need_memory_node(self.memory_node)?;
        ensure!(
            pages.is_multiple_of(buffers),
            "--pages must be a multiple of --buffers"
        );
        ensure!(
            !self.thp || pages.is_multiple_of(HUGE_PAGES),
            "--thp needs --pages as a multiple of {HUGE_PAGES}"
        );
        if !self.thp {
            disable_thp();
        }
        sys::pin_to_node(self.cpu_node)?;
        let ring = ring()?;
        stage.ready()?;

        let clock = Clock::start();
        sys::set_policy(Policy::Bind(self.memory_node))?;
        let region = if self.thp {
            let region = Region::map_aligned(pages, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS)?;
            region.advise(libc::MADV_HUGEPAGE)?;
            region
        } else {
            Region::anonymous(pages)?
        };
        if !self.untouched {
            region.write(region.all());
        }
        if self.thp {
            need_huge(&region)?;
        }
        register(&ring, &region, buffers)?;
        sys::set_policy(Policy::Default)?;

        let mut truth = clock.process("main", self.cpu_node);
        truth.pages_by_node = region.pages_by_node()?;
        truth.first_touch = pairs(self.cpu_node, &truth.pages_by_node);
        truth.pinned = pairs(self.cpu_node, &truth.pages_by_node);
        // The kernel gives the pins back when the ring goes: both stay until the end.
        truth.pinned_bytes_now = pinned_bytes()?;
        stage.done("pin", &clock, vec![truth])?;
        drop(ring);
        Ok(())
    }
}

/// An io_uring with room for one request, which nobody makes.
fn ring() -> Result<OwnedFd> {
    /// Bytes of the kernel's `struct io_uring_params`.
    const PARAMETERS: usize = 120;
    let mut parameters = [0u64; PARAMETERS / 8];
    // SAFETY: the kernel reads and writes PARAMETERS bytes; the descriptor is new and ours.
    unsafe {
        let fd = libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr());
        if fd < 0 {
            return Err(Error::last_os_error()).context("io_uring_setup");
        }
        Ok(OwnedFd::from_raw_fd(i32::try_from(fd)?))
    }
}

/// Registers the region as so many buffers of the same size.
fn register(ring: &OwnedFd, region: &Region, buffers: usize) -> Result<()> {
    const REGISTER_BUFFERS: u32 = 0;
    let each = region.bytes() / buffers;
    debug_assert!(each.is_multiple_of(PAGE));
    let vectors: Vec<libc::iovec> = (0..buffers)
        .map(|number| libc::iovec {
            iov_base: region.start().wrapping_add(number * each).cast(),
            iov_len: each,
        })
        .collect();
    // SAFETY: the kernel reads `buffers` vectors, and pins memory that is the region's own.
    let done = unsafe {
        libc::syscall(
            libc::SYS_io_uring_register,
            ring.as_raw_fd(),
            REGISTER_BUFFERS,
            vectors.as_ptr(),
            buffers,
        )
    };
    if done == 0 {
        Ok(())
    } else {
        Err(Error::last_os_error()).context("io_uring_register of buffers")
    }
}

/// `VmPin`, which some kernels keep for io_uring and some don't.
fn pinned_bytes() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status").context("/proc/self/status")?;
    let kib = status.lines().find_map(|line| {
        let value = line.strip_prefix("VmPin:")?;
        value.split_ascii_whitespace().next()?.parse::<u64>().ok()
    });
    Ok(kib.unwrap_or(0) * 1024)
}
