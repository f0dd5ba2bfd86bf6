//! `workload drm`: a GPU's driver allocates pages inside an ioctl of this process.

use crate::stage::{Clock, Stage};
use crate::sys::{self, Policy};
use anyhow::{Context as _, Result, ensure};
use clap::Args;
use model::process::ByNode;
use model::topology::NodeId;
use std::fs::File;
use std::io::Error;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use tests::truth::pairs;

/// The arguments.
#[derive(Args, Clone, Debug)]
pub(crate) struct Drm {
    /// Pages of 4 KiB.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=262_144))]
    pages: u32,
    /// Buffers that they are allocated as, each by an ioctl of its own.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    buffers: u32,
    /// The node whose CPUs call the driver.
    #[arg(long, default_value_t = 0)]
    cpu_node: NodeId,
    /// The node that the pages come from.
    #[arg(long, default_value_t = 0)]
    memory_node: NodeId,
    /// The device; its driver must keep its buffers in the machine's memory, as virtio-gpu does.
    #[arg(long, default_value = "/dev/dri/card0")]
    device: PathBuf,
}

/// `struct drm_mode_create_dumb` of the kernel's uapi.
#[repr(C)]
#[derive(Default)]
struct CreateDumb {
    height: u32,
    width: u32,
    bits_per_pixel: u32,
    flags: u32,
    handle: u32,
    pitch: u32,
    size: u64,
}

/// `DRM_IOWR(0xB2, struct drm_mode_create_dumb)`: read and write, its size, `d`, its number.
const CREATE_DUMB: u64 =
    3 << 30 | (size_of::<CreateDumb>() as u64) << 16 | (b'd' as u64) << 8 | 0xb2;

/// A line of pixels that is a page.
const WIDTH: u32 = 1024;
const BITS: u32 = 32;

impl Drm {
    /// Runs it.
    pub(crate) fn run(&self, stage: &Stage) -> Result<()> {
        sys::need_memory_node(self.memory_node)?;
        ensure!(
            self.pages.is_multiple_of(self.buffers),
            "--pages must be a multiple of --buffers"
        );
        sys::pin_to_node(self.cpu_node)?;
        let device = File::options()
            .read(true)
            .write(true)
            .open(&self.device)
            .with_context(|| self.device.display().to_string())?;
        stage.ready()?;

        let clock = Clock::start();
        let before = shared_pages(self.memory_node)?;
        sys::set_policy(Policy::Bind(self.memory_node))?;
        for _ in 0..self.buffers {
            create(&device, self.pages / self.buffers)?;
        }
        sys::set_policy(Policy::Default)?;
        let made = shared_pages(self.memory_node)?.saturating_sub(before);
        // The driver's mappings are not to be asked for their pages: the node's own count is.
        ensure!(
            made.abs_diff(u64::from(self.pages)) <= u64::from(self.pages) / 50 + 8,
            "the driver allocated {made} pages on node {}, not {}",
            self.memory_node,
            self.pages
        );

        let mut truth = clock.process("main", self.cpu_node);
        let by_node: ByNode = [(self.memory_node, u64::from(self.pages))].into();
        truth.driver_allocated = pairs(self.cpu_node, &by_node);
        stage.done("drm", &clock, vec![truth])
    }
}

/// Makes one buffer; it is freed with the device's file.
fn create(device: &File, pages: u32) -> Result<()> {
    let mut request = CreateDumb {
        height: pages,
        width: WIDTH,
        bits_per_pixel: BITS,
        ..CreateDumb::default()
    };
    // SAFETY: the kernel reads and writes one CreateDumb.
    let done = unsafe { libc::ioctl(device.as_raw_fd(), CREATE_DUMB, &raw mut request) };
    if done != 0 {
        return Err(Error::last_os_error()).context("DRM_IOCTL_MODE_CREATE_DUMB");
    }
    ensure!(
        request.size == u64::from(pages) * sys::PAGE as u64,
        "the driver made {} bytes of {pages} pages",
        request.size
    );
    Ok(())
}

/// Pages of shared memory on a node, those included that a CPU has counted for itself so far.
fn shared_pages(node: NodeId) -> Result<u64> {
    std::fs::write("/proc/sys/vm/stat_refresh", "1").context("/proc/sys/vm/stat_refresh")?;
    let path = format!("/sys/devices/system/node/node{node}/vmstat");
    let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    text.lines()
        .find_map(|line| line.strip_prefix("nr_shmem ")?.trim().parse().ok())
        .with_context(|| format!("{path} has no nr_shmem"))
}
