//! Which pages of a range are resident, from `/proc/PID/pagemap`: nothing else finds 64 MiB in the 400 GiB that CUDA reserves.
//!
//! `PAGEMAP_SCAN` (Linux 6.7) passes over what is empty; on older kernels the file is read, 8 bytes a page.

use crate::host::error::Error;
use crate::host::process::ProcessDir;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

/// Bytes of a page.
pub(crate) const PAGE: u64 = 4096;

/// The most resident pages that one call of `PAGEMAP_SCAN` passes.
const MOST_PAGES: u64 = 8_192;

/// The most ranges that one call gives.
const MOST_RANGES: usize = 1_024;

/// The most that one read takes, bytes: 32 MiB of addresses.
const PIECE: usize = 64 << 10;

/// The widest gap between mappings that is read along with them, bytes: 64 pages' entries take less than a call.
const WIDEST_GAP: u64 = 64 * PAGE;

/// Resident pages that follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resident {
    /// Their addresses.
    pub(crate) range: Range<u64>,
    /// Whether a file or shared memory holds them.
    pub(crate) of_file: bool,
}

/// Finds resident pages.
#[derive(Debug)]
pub(crate) struct Pagemap {
    file: File,
    scans: bool,
    ranges: Vec<ScanRange>,
    entries: Vec<u8>,
}

impl Pagemap {
    /// Opens a process's.
    ///
    /// # Errors
    /// [`Error::Gone`], [`Error::Denied`] or [`Error::Io`].
    pub(crate) fn open(process: &ProcessDir) -> Result<Self, Error> {
        let file = process.open_file("pagemap")?;
        let mut pagemap = Self {
            file,
            scans: true,
            ranges: Vec::new(),
            entries: Vec::new(),
        };
        // An empty range, which every kernel that has the call takes.
        pagemap.scans = pagemap.scan(0..0, &mut Vec::new()).is_ok();
        Ok(pagemap)
    }

    /// Whether one look may go over mappings with so many bytes between them: a scan passes over what is not mapped, a read
    /// has 8 bytes of each page there.
    pub(crate) fn spans(&self, gap: u64) -> bool {
        self.scans || gap <= WIDEST_GAP
    }

    /// Adds resident pages of the start of `range`, ascending, and says up to where it looked. One look is short.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn look(&mut self, range: Range<u64>, found: &mut Vec<Resident>) -> io::Result<u64> {
        if self.scans {
            self.scan(range, found)
        } else {
            self.read(range, found)
        }
    }

    fn scan(&mut self, range: Range<u64>, found: &mut Vec<Resident>) -> io::Result<u64> {
        self.ranges.resize(MOST_RANGES, ScanRange::default());
        let mut argument = Scan {
            size: size_of::<Scan>() as u64,
            start: range.start,
            end: range.end,
            vec: self.ranges.as_mut_ptr() as u64,
            vec_len: MOST_RANGES as u64,
            max_pages: MOST_PAGES,
            // Present, and not the page of zeros that nobody owns.
            category_inverted: IS_ZERO_PAGE,
            category_mask: IS_PRESENT | IS_ZERO_PAGE,
            return_mask: IS_OF_FILE,
            ..Scan::default()
        };
        // SAFETY: the kernel reads and writes the argument, whose size it is told, and writes `vec_len` ranges at most.
        let count = unsafe { libc::ioctl(self.file.as_raw_fd(), PAGEMAP_SCAN, &raw mut argument) };
        let Ok(count) = usize::try_from(count) else {
            return Err(io::Error::last_os_error());
        };
        found.extend(self.ranges.iter().take(count).map(|found| Resident {
            range: found.start..found.end,
            of_file: found.categories & IS_OF_FILE != 0,
        }));
        Ok(argument.walk_end.clamp(range.start, range.end))
    }

    fn read(&mut self, range: Range<u64>, found: &mut Vec<Resident>) -> io::Result<u64> {
        let pages = (range.end - range.start) / PAGE;
        let bytes = usize::try_from(pages * 8).map_or(PIECE, |bytes| bytes.min(PIECE));
        self.entries.resize(bytes, 0);
        let read = self
            .file
            .read_at(&mut self.entries, range.start / PAGE * 8)?;
        if read == 0 {
            // Above the addresses that a process may have, or the process is gone.
            return Ok(range.end);
        }
        let entries = self.entries.get(..read).unwrap_or_default();
        Ok(runs(range.start, entries, found))
    }
}

/// Adds the resident pages that entries of `pagemap` tell, the first of which is of the page at `start`; gives the end.
fn runs(start: u64, entries: &[u8], found: &mut Vec<Resident>) -> u64 {
    let mut at = start;
    for entry in entries.chunks_exact(8) {
        let entry = entry.try_into().map_or(0, u64::from_ne_bytes);
        if entry & PRESENT != 0 {
            let of_file = entry & OF_FILE != 0;
            match found.last_mut() {
                Some(last) if last.range.end == at && last.of_file == of_file && at > start => {
                    last.range.end = at + PAGE;
                }
                _ => found.push(Resident {
                    range: at..at + PAGE,
                    of_file,
                }),
            }
        }
        at += PAGE;
    }
    at
}

/// Bits of an entry of `pagemap`.
const PRESENT: u64 = 1 << 63;
const OF_FILE: u64 = 1 << 61;

/// `_IOWR('f', 16, struct pm_scan_arg)`: direction, size, type and number.
const PAGEMAP_SCAN: libc::Ioctl =
    ((3 << 30) | ((size_of::<Scan>() as u64) << 16) | ((b'f' as u64) << 8) | 16) as libc::Ioctl;

const IS_OF_FILE: u64 = 1 << 2;
const IS_PRESENT: u64 = 1 << 3;
const IS_ZERO_PAGE: u64 = 1 << 5;

/// The kernel's `struct pm_scan_arg`.
#[repr(C)]
#[derive(Default)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// The kernel's `struct page_region`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct ScanRange {
    start: u64,
    end: u64,
    categories: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::root::Root;

    #[test]
    fn entries_become_runs_that_end_where_the_holder_changes() {
        let file = PRESENT | OF_FILE;
        let entries = [0, PRESENT, PRESENT | 7, file, 0, OF_FILE, file];
        let bytes: Vec<u8> = entries.iter().flat_map(|e| e.to_ne_bytes()).collect();
        let mut found = Vec::new();
        assert_eq!(runs(0x10_000, &bytes, &mut found), 0x17_000);
        let run = |range, of_file| Resident { range, of_file };
        assert_eq!(
            found,
            [
                run(0x11_000..0x13_000, false),
                run(0x13_000..0x14_000, true),
                run(0x16_000..0x17_000, true),
            ]
        );
    }

    /// Touched pages of a mapping with holes, as both ways find them.
    #[test]
    fn both_ways_find_the_same_pages() {
        const PAGES: usize = 10_000;
        let bytes = PAGES * 4096;
        // SAFETY: a new mapping, which nothing else uses; its pages are written within its bounds.
        let start = unsafe {
            let start = libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            );
            assert_ne!(start, libc::MAP_FAILED);
            libc::madvise(start, bytes, libc::MADV_NOHUGEPAGE);
            for page in (0..PAGES).filter(|page| page % 100 < 3) {
                start.cast::<u8>().add(page * 4096).write_volatile(1);
            }
            start as u64
        };
        let range = start..start + bytes as u64;
        let process = ProcessDir::open(&Root::system(), std::process::id()).unwrap();
        let mut pagemap = Pagemap::open(&process).unwrap();
        let mut ways = Vec::new();
        for scans in [pagemap.scans, false] {
            pagemap.scans = scans;
            let mut found = Vec::new();
            let mut at = range.start;
            while at < range.end {
                at = pagemap.look(at..range.end, &mut found).unwrap();
            }
            let bytes: u64 = found.iter().map(|r| r.range.end - r.range.start).sum();
            assert!(found.iter().all(|r| !r.of_file));
            ways.push((found.first().map(|r| r.range.start), bytes));
        }
        // SAFETY: the mapping made above.
        unsafe { libc::munmap(start as *mut _, bytes) };
        assert_eq!(ways, [(Some(start), 300 * 4096); 2]);
    }
}
