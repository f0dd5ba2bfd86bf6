//! A mapping whose pages are touched one by one, and that says on which nodes they lie.

use crate::sys::{HUGE_PAGES, PAGE};
use anyhow::{Context as _, Result, bail};
use model::process::ByNode;
use std::io::Error;
use std::ops::Range;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Whole pages of memory, unmapped on drop.
#[derive(Debug)]
pub(crate) struct Region {
    start: *mut u8,
    pages: usize,
    mapped: (*mut u8, usize),
}

// SAFETY: all access is by volatile loads and stores of single bytes, whose values nobody depends on.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Private anonymous memory that stays in base pages.
    pub(crate) fn anonymous(pages: usize) -> Result<Self> {
        let region = Self::map(pages, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, None)?;
        region.advise(libc::MADV_NOHUGEPAGE)?;
        Ok(region)
    }

    /// `pages` pages, from the start of `file` if there is one; `flags` are mmap's.
    pub(crate) fn map(pages: usize, flags: i32, file: Option<BorrowedFd<'_>>) -> Result<Self> {
        Self::map_for(pages, flags, libc::PROT_READ | libc::PROT_WRITE, file)
    }

    /// `pages` pages from the start of `file`, shared and never written.
    pub(crate) fn map_to_read(pages: usize, file: BorrowedFd<'_>) -> Result<Self> {
        Self::map_for(pages, libc::MAP_SHARED, libc::PROT_READ, Some(file))
    }

    fn map_for(
        pages: usize,
        flags: i32,
        protection: i32,
        file: Option<BorrowedFd<'_>>,
    ) -> Result<Self> {
        let fd = file.map_or(-1, |file| file.as_raw_fd());
        // SAFETY: the kernel chooses the address, so nothing that exists is overlaid.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), pages * PAGE, protection, flags, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(Error::last_os_error()).context(format!("mmap of {pages} pages"));
        }
        let start = start.cast();
        Ok(Self {
            start,
            pages,
            mapped: (start, pages * PAGE),
        })
    }

    /// As [`Region::map`], starting at a huge page's boundary.
    pub(crate) fn map_aligned(pages: usize, flags: i32) -> Result<Self> {
        let mut region = Self::map(pages + HUGE_PAGES, flags, None)?;
        let offset = region.start.align_offset(HUGE_PAGES * PAGE);
        region.start = region.start.wrapping_add(offset);
        region.pages = pages;
        Ok(region)
    }

    /// As [`Region::map_aligned`], from the start of `file`, shared: the file's huge pages are at the memory's.
    pub(crate) fn map_aligned_file(pages: usize, file: BorrowedFd<'_>) -> Result<Self> {
        let region = Self::map_aligned(pages, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS)?;
        // SAFETY: overlays nothing but this region's own memory, which nobody has touched.
        let start = unsafe {
            libc::mmap(
                region.start.cast(),
                region.bytes(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_FIXED,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(Error::last_os_error()).context(format!("mmap of {pages} pages"));
        }
        Ok(region)
    }

    /// mlock over all of it: the kernel touches what isn't there yet.
    pub(crate) fn lock(&self) -> Result<()> {
        // SAFETY: changes no contents.
        if unsafe { libc::mlock(self.start.cast(), self.bytes()) } == 0 {
            Ok(())
        } else {
            Err(Error::last_os_error()).context("mlock")
        }
    }

    /// Pages of the region.
    pub(crate) fn all(&self) -> Range<usize> {
        0..self.pages
    }

    /// Where it starts.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    /// Its length in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.pages * PAGE
    }

    /// Stores a byte in each page, and loads nothing: an emulated CPU runs a read-modify-write as a read fault and a write fault.
    pub(crate) fn write(&self, pages: Range<usize>) {
        debug_assert!(pages.end <= self.pages);
        for page in pages {
            // SAFETY: within the mapping.
            unsafe { self.start.add(page * PAGE).write_volatile(1) };
        }
    }

    /// Loads a byte from each page.
    pub(crate) fn read(&self, pages: Range<usize>) {
        debug_assert!(pages.end <= self.pages);
        for page in pages {
            // SAFETY: as in `write`.
            unsafe { self.start.add(page * PAGE).read_volatile() };
        }
    }

    /// madvise over all of it.
    pub(crate) fn advise(&self, advice: i32) -> Result<()> {
        // SAFETY: no advice that is used here changes the contents of other mappings.
        let done = unsafe { libc::madvise(self.start.cast(), self.bytes(), advice) };
        if done == 0 {
            Ok(())
        } else {
            Err(Error::last_os_error()).context(format!("madvise {advice}"))
        }
    }

    /// Resident pages by node, as `move_pages` tells; fails if one isn't resident.
    pub(crate) fn pages_by_node(&self) -> Result<ByNode> {
        let (by_node, absent) = self.query()?;
        if absent == 0 {
            Ok(by_node)
        } else {
            bail!("{absent} of {} pages are not resident", self.pages)
        }
    }

    /// As [`Region::pages_by_node`], while NUMA balancing is at work: a page that it has unmapped to see who uses it
    /// is none to `move_pages` of 6.1, until it is touched.
    pub(crate) fn pages_by_node_touching(&self) -> Result<ByNode> {
        for _ in 0..50 {
            let (by_node, absent) = self.query()?;
            if absent == 0 {
                return Ok(by_node);
            }
            self.write(self.all());
        }
        self.pages_by_node()
    }

    /// Resident pages by node, and how many are not resident.
    pub(crate) fn query(&self) -> Result<(ByNode, usize)> {
        pages_by_node(self.start, self.pages)
    }

    /// Bytes in huge pages: smaps knows those that were merged, split or never got.
    pub(crate) fn huge_bytes(&self) -> Result<u64> {
        let smaps = std::fs::read_to_string("/proc/self/smaps").context("/proc/self/smaps")?;
        let end = self.start.addr() + self.bytes();
        let mut inside = false;
        let mut kib = 0;
        for line in smaps.lines() {
            let mut words = line.split_ascii_whitespace();
            let first = words.next().unwrap_or_default();
            if let Some((from, to)) = first.split_once('-') {
                let from = usize::from_str_radix(from, 16)?;
                let to = usize::from_str_radix(to, 16)?;
                inside = from < end && self.start.addr() < to;
            } else if inside && HUGE_FIELDS.contains(&first) {
                kib += words
                    .next()
                    .unwrap_or_default()
                    .parse::<u64>()
                    .context("smaps")?;
            }
        }
        Ok(kib * 1024)
    }
}

/// Fails unless all of the region is in huge pages, which the kernel gives when it can and likes to.
pub(crate) fn need_huge(region: &Region) -> Result<()> {
    let huge = region.huge_bytes()?;
    if huge == region.bytes() as u64 {
        Ok(())
    } else {
        bail!(
            "{huge} of {} bytes are in huge pages: see /sys/kernel/mm/transparent_hugepage/{{enabled,shmem_enabled}}",
            region.bytes()
        )
    }
}

const HUGE_FIELDS: [&str; 4] = [
    "AnonHugePages:",
    "ShmemPmdMapped:",
    "Private_Hugetlb:",
    "Shared_Hugetlb:",
];

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping is this region's own, and nothing borrows from it.
        unsafe { libc::munmap(self.mapped.0.cast(), self.mapped.1) };
    }
}

/// As [`Region::query`], for memory that is no region: a stack.
pub(crate) fn pages_by_node(start: *mut u8, pages: usize) -> Result<(ByNode, usize)> {
    /// So small that the query itself touches hardly any memory.
    const CHUNK: usize = 256;
    let mut by_node = ByNode::new();
    let mut absent = 0;
    for first in (0..pages).step_by(CHUNK) {
        let count = CHUNK.min(pages - first);
        let mut addresses = [std::ptr::null_mut::<u8>(); CHUNK];
        let mut nodes = [0i32; CHUNK];
        for (offset, address) in addresses.iter_mut().take(count).enumerate() {
            *address = start.wrapping_add((first + offset) * PAGE);
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
        if done != 0 {
            return Err(Error::last_os_error()).context("move_pages");
        }
        for node in &nodes[..count] {
            match u32::try_from(*node) {
                Ok(node) => *by_node.entry(node).or_default() += 1,
                Err(_) => absent += 1,
            }
        }
    }
    Ok((by_node, absent))
}
