//! Which pages are locked (`mlock`): `pagemap` has a page's frame, and `/proc/kpageflags` the frame's flags. Both tell only
//! whoever has CAP_SYS_ADMIN. 1 µs a page.

use super::error::Error;
use super::pagemap::PAGE;
use super::process::ProcessDir;
use super::root::Root;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// Bits of an entry of `pagemap` that are the page's frame; 0 where it is not told.
const FRAME: u64 = (1 << 55) - 1;

/// The bit of an entry of `pagemap` that says that the page is in memory.
const PRESENT: u64 = 1 << 63;

/// Bits of `kpageflags`, from the kernel's `kernel-page-flags.h`.
const COMPOUND_HEAD: u64 = 1 << 15;
const COMPOUND_TAIL: u64 = 1 << 16;
const MLOCKED: u64 = 1 << 33;

/// A huge page has at most 2^9 pages of 4 KiB, but for those of hugetlb, which are not told of here.
const LARGEST_ORDER: u32 = 9;

/// Reads them of one process.
#[derive(Debug)]
pub(crate) struct PageFlags {
    pagemap: File,
    flags: File,
}

impl PageFlags {
    /// Opens a process's.
    ///
    /// # Errors
    /// [`Error::Gone`], [`Error::Denied`] or [`Error::Io`].
    pub(crate) fn open(root: &Root, process: &ProcessDir) -> Result<Self, Error> {
        let path = root.proc("kpageflags");
        let flags = File::open(&path).map_err(|source| Error::io(&path, source))?;
        Ok(Self {
            pagemap: process.open_file("pagemap")?,
            flags,
        })
    }

    /// Whether the page at an address is locked; `None` of one that is not resident, or whose frame isn't told.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn is_locked(&self, address: u64) -> io::Result<Option<bool>> {
        let page = entry(&self.pagemap, address / PAGE)?;
        let frame = page & FRAME;
        // In swap these bits are the place there.
        if page & PRESENT == 0 || frame == 0 {
            return Ok(None);
        }
        let flags = entry(&self.flags, frame)?;
        if flags & COMPOUND_TAIL == 0 {
            return Ok(Some(flags & MLOCKED != 0));
        }
        // Older kernels tell it of a huge page's first page only.
        for order in 1..=LARGEST_ORDER {
            let first = frame >> order << order;
            let flags = entry(&self.flags, first)?;
            if first != frame && flags & COMPOUND_HEAD != 0 {
                return Ok(Some(flags & MLOCKED != 0));
            }
        }
        Ok(None)
    }
}

fn entry(file: &File, at: u64) -> io::Result<u64> {
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, at * 8)?;
    Ok(u64::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fixture::Fixture;

    /// Frames of three pages: 5, none since it is in swap, and 515, in the middle of a huge page from frame 512 on.
    fn told(flags: &[(usize, u64)]) -> Vec<Option<bool>> {
        let fixture = Fixture::new();
        let bytes =
            |entries: &[u64]| -> Vec<u8> { entries.iter().flat_map(|e| e.to_ne_bytes()).collect() };
        let mut all = vec![0; 520];
        for (frame, flags) in flags {
            all[*frame] = *flags;
        }
        fixture.bytes("proc/kpageflags", &bytes(&all));
        fixture.bytes(
            "proc/7/pagemap",
            &bytes(&[5 | PRESENT, 1 << 62 | 5, 0x203 | PRESENT]),
        );
        let root = fixture.root();
        let process = ProcessDir::open(&root, 7).unwrap();
        let flags = PageFlags::open(&root, &process).unwrap();
        let page = |at: u64| flags.is_locked(at * PAGE + 8).unwrap();
        (0..3).map(page).collect()
    }

    #[test]
    fn a_frames_flags_tell_and_without_a_frame_nothing_does() {
        assert_eq!(told(&[(5, MLOCKED)]), [Some(true), None, Some(false)]);
        assert_eq!(told(&[]), [Some(false), None, Some(false)]);
    }

    #[test]
    fn a_huge_pages_first_page_tells_for_all() {
        let tail = (515, COMPOUND_TAIL);
        let locked = told(&[tail, (512, COMPOUND_HEAD | MLOCKED)]);
        assert_eq!(locked[2], Some(true));
        let not = told(&[tail, (512, COMPOUND_HEAD)]);
        assert_eq!(not[2], Some(false));
        assert_eq!(told(&[tail])[2], None);
    }

    #[test]
    fn a_kernel_that_has_no_such_file_says_so() {
        let fixture = Fixture::new();
        fixture.process(7, 1, "x", &["x"]);
        let root = fixture.root();
        let process = ProcessDir::open(&root, 7).unwrap();
        assert!(PageFlags::open(&root, &process).is_err());
    }
}
