//! The system calls that make events on chosen nodes and say where things are. For the self-test's own processes only.

pub(crate) use crate::host::bind::{allocate_on, run_on};
pub(crate) use crate::host::self_cost::cpu_time_ns;

use crate::host::bind::{mask, mask_bits};
use model::topology::NodeId;
use std::io::{Error, Result};

/// Bytes of a page of the kind that is counted.
pub(crate) const PAGE: usize = 4096;

/// Ends the caller with the thread that started it, and after `seconds` in any case.
pub(crate) fn die_with_parent(seconds: u32) {
    // SAFETY: neither call touches memory.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::alarm(seconds);
    }
}

/// The node that the caller runs on now.
pub(crate) fn current_node() -> Result<NodeId> {
    let mut node: u32 = 0;
    // SAFETY: the kernel writes one u32; the null arguments are allowed.
    let done = unsafe {
        libc::syscall(
            libc::SYS_getcpu,
            std::ptr::null_mut::<u32>(),
            &raw mut node,
            std::ptr::null_mut::<u32>(),
        )
    };
    result(done).map(|()| node)
}

/// Whole pages of memory, unmapped on drop.
#[derive(Debug)]
pub(crate) struct Region {
    start: *mut u8,
    pages: usize,
}

impl Region {
    /// Private memory in base pages.
    pub(crate) fn private(pages: usize) -> Result<Self> {
        Self::map(pages, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)
    }

    /// A file's pages, shared with whoever maps it too.
    pub(crate) fn shared(pages: usize, file: &Memfd) -> Result<Self> {
        Self::map(pages, libc::MAP_SHARED, file.0)
    }

    fn map(pages: usize, flags: i32, fd: i32) -> Result<Self> {
        // SAFETY: the kernel chooses the address, so nothing that exists is overlaid.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                pages * PAGE,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                fd,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(Error::last_os_error());
        }
        let region = Self {
            start: start.cast(),
            pages,
        };
        // SAFETY: the advice changes no content. A kernel without huge pages refuses it, and has none.
        unsafe { libc::madvise(start, region.bytes(), libc::MADV_NOHUGEPAGE) };
        Ok(region)
    }

    /// Its first byte.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    /// Its length, bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.pages * PAGE
    }

    /// Its pages come from this node and no other.
    pub(crate) fn bind(&self, node: NodeId) -> Result<()> {
        let mask = mask(&[node]);
        // SAFETY: the mapping is this region's own, and the kernel reads as many bits as the mask has.
        let done = unsafe {
            libc::syscall(
                libc::SYS_mbind,
                self.start,
                self.bytes(),
                libc::MPOL_BIND,
                mask.as_ptr(),
                mask_bits(&mask),
                0,
            )
        };
        result(done)
    }

    /// Stores to each page, and loads nothing.
    pub(crate) fn touch(&self) {
        for page in 0..self.pages {
            // SAFETY: within the mapping.
            unsafe { self.start.add(page * PAGE).write_volatile(1) };
        }
    }

    /// Sends its pages to swap, as many as go.
    pub(crate) fn page_out(&self) -> Result<()> {
        // SAFETY: the mapping is this region's own; its content comes back with the next touch.
        result(unsafe { libc::madvise(self.start.cast(), self.bytes(), libc::MADV_PAGEOUT) }.into())
    }

    /// The node of each page, by `move_pages`; `None` for one that isn't resident.
    pub(crate) fn nodes(&self) -> Result<Vec<Option<NodeId>>> {
        const CHUNK: usize = 512;
        let mut found = Vec::with_capacity(self.pages);
        let mut addresses = [std::ptr::null_mut::<u8>(); CHUNK];
        let mut nodes = [0i32; CHUNK];
        while found.len() < self.pages {
            let count = CHUNK.min(self.pages - found.len());
            for (offset, address) in addresses.iter_mut().take(count).enumerate() {
                *address = self.start.wrapping_add((found.len() + offset) * PAGE);
            }
            // SAFETY: both arrays have `count` entries; without target nodes the call only asks.
            let done = unsafe {
                libc::syscall(
                    libc::SYS_move_pages,
                    0,
                    count,
                    addresses.as_ptr(),
                    std::ptr::null::<i32>(),
                    nodes.as_mut_ptr(),
                    0,
                )
            };
            result(done)?;
            found.extend(nodes.iter().take(count).map(|n| u32::try_from(*n).ok()));
        }
        Ok(found)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping is this region's own, and nothing borrows from it.
        unsafe { libc::munmap(self.start.cast(), self.bytes()) };
    }
}

/// A file in memory without a name.
#[derive(Debug)]
pub(crate) struct Memfd(i32);

impl Memfd {
    /// Of so many pages.
    pub(crate) fn new(pages: usize) -> Result<Self> {
        // SAFETY: the name is a C string.
        let fd = unsafe { libc::memfd_create(c"numawatch-self-test".as_ptr(), libc::MFD_CLOEXEC) };
        result(fd.into())?;
        let file = Self(fd);
        let bytes = i64::try_from(pages * PAGE).map_err(Error::other)?;
        // SAFETY: the descriptor is open.
        result(unsafe { libc::ftruncate(file.0, bytes) }.into())?;
        Ok(file)
    }
}

impl Drop for Memfd {
    fn drop(&mut self) {
        // SAFETY: the descriptor is this value's own.
        unsafe { libc::close(self.0) };
    }
}

/// An io_uring that holds pages pinned for as long as it lives.
#[derive(Debug)]
pub(crate) struct Pins(i32);

impl Pins {
    /// Pins all pages of these regions for long, as io_uring's registered buffers.
    pub(crate) fn of(regions: &[Region]) -> Result<Self> {
        /// `struct io_uring_params`, of which nothing is asked and nothing read.
        #[repr(C, align(8))]
        struct Params([u8; 120]);
        /// `IORING_REGISTER_BUFFERS`.
        const REGISTER_BUFFERS: u32 = 0;
        let mut params = Params([0; 120]);
        // SAFETY: the kernel reads and writes one `io_uring_params`.
        let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, &raw mut params) };
        result(fd)?;
        let ring = Self(i32::try_from(fd).map_err(Error::other)?);
        let buffers: Vec<libc::iovec> = regions
            .iter()
            .map(|region| libc::iovec {
                iov_base: region.start().cast(),
                iov_len: region.bytes(),
            })
            .collect();
        // SAFETY: the kernel reads `buffers.len()` entries, each of which is a mapping that the caller keeps.
        let done = unsafe {
            libc::syscall(
                libc::SYS_io_uring_register,
                ring.0,
                REGISTER_BUFFERS,
                buffers.as_ptr(),
                buffers.len(),
            )
        };
        result(done)?;
        Ok(ring)
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        // SAFETY: the descriptor is this value's own.
        unsafe { libc::close(self.0) };
    }
}

fn result(done: i64) -> Result<()> {
    if done < 0 {
        Err(Error::last_os_error())
    } else {
        Ok(())
    }
}
