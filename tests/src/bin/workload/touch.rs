//! `workload touch`: one thread touches N pages of a kind, under a policy for a node.

use crate::again::Again;
use crate::region::{Region, need_huge, pages_by_node};
use crate::stage::{Clock, Stage};
use crate::sys::{self, HUGE_PAGES, PAGE, Policy};
use anyhow::{Context as _, Result, bail, ensure};
use clap::{Args, ValueEnum};
use model::process::ByNode;
use model::topology::NodeId;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, FromRawFd as _};
use std::path::{Path, PathBuf};
use tests::truth::pairs;

/// The arguments.
#[derive(Args, Clone, Debug)]
pub(crate) struct Touch {
    /// Pages of 4 KiB.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=4_194_304))]
    pages: u32,
    /// The node whose CPUs touch.
    #[arg(long, default_value_t = 0)]
    cpu_node: NodeId,
    /// The node that the pages come from.
    #[arg(long, default_value_t = 0)]
    memory_node: NodeId,
    /// What is touched, and how.
    #[arg(long, value_enum, default_value_t = Kind::Anon)]
    kind: Kind,
    /// Where the kinds of file have theirs; it is unlinked at once.
    #[arg(long, value_name = "DIR", default_value = "/tmp")]
    directory: PathBuf,
    #[command(flatten)]
    again: Again,
}

/// Kinds of touch. All write, unless told otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Private anonymous memory in base pages.
    Anon,
    /// The same, touched by mmap itself.
    Populate,
    /// The same, touched by the kernel: read(2) fills it.
    Kernel,
    /// The same, read first: the zero page is mapped, then replaced.
    ZeroPage,
    /// The same, touched by mlock(2).
    Mlock,
    /// The same, given back page by page, each after a page of page cache was written.
    GivenBack,
    /// The main thread's stack.
    Stack,
    /// Private anonymous memory in huge pages.
    Thp,
    /// Private anonymous memory in large pages of 64 KiB (6.8 and later).
    Mthp,
    /// Private hugetlb pages.
    Hugetlb,
    /// Shared hugetlb pages.
    HugetlbShared,
    /// A private mapping of a file: each write makes a private copy.
    PrivateFile,
    /// The same, read first: page cache is mapped, then copied.
    PrivateFileRead,
    /// A shared mapping of a file in the page cache, read (faults map many pages at once).
    File,
    /// A shared mapping of a file in the page cache.
    FileWrite,
    /// Shared anonymous memory.
    Shm,
    /// The same in huge pages.
    ShmThp,
    /// Shared memory that has a file descriptor.
    Memfd,
    /// The same in huge pages.
    MemfdThp,
}

/// What the touching showed.
struct Touched {
    /// The memory, mapped until the end.
    region: Option<Region>,
    first_touch: ByNode,
    map: ByNode,
}

impl Kind {
    fn needs_file(self) -> bool {
        matches!(
            self,
            Self::GivenBack
                | Self::PrivateFile
                | Self::PrivateFileRead
                | Self::File
                | Self::FileWrite
        )
    }

    fn is_huge(self) -> bool {
        matches!(
            self,
            Self::Thp | Self::Hugetlb | Self::HugetlbShared | Self::ShmThp | Self::MemfdThp
        )
    }

    fn is_transparent(self) -> bool {
        matches!(self, Self::Thp | Self::Mthp | Self::ShmThp | Self::MemfdThp)
    }
}

impl Touch {
    /// Runs it.
    pub(crate) fn run(&self, stage: &Stage) -> Result<()> {
        self.check()?;
        if !self.kind.is_transparent() {
            disable_thp();
        }
        sys::pin_to_node(self.cpu_node)?;
        let pages = self.pages as usize;
        let file = self
            .kind
            .needs_file()
            .then(|| cached_file(&self.directory, pages, self.memory_node))
            .transpose()?;
        stage.ready()?;

        let clock = Clock::start();
        sys::set_policy(Policy::Bind(self.memory_node))?;
        let touched = touch(self.kind, pages, file.as_ref())?;
        if let Some(region) = touched.region.as_ref().filter(|_| self.kind.is_huge()) {
            need_huge(region)?;
        }
        // Memory bound to a node is never moved: what happens again happens under the default.
        sys::set_policy(Policy::Default)?;
        if let Some(region) = touched.region.as_ref().filter(|_| self.again.is_wanted()) {
            let deadline = self.again.deadline();
            while !deadline.has_come()? {
                region.write(region.all());
            }
        }

        let mut truth = clock.process("main", self.cpu_node);
        truth.first_touch = pairs(self.cpu_node, &touched.first_touch);
        truth.map = pairs(self.cpu_node, &touched.map);
        if let Some(region) = &touched.region {
            truth.pages_by_node = if self.again.is_wanted() {
                region.pages_by_node_touching()?
            } else {
                region.pages_by_node()?
            };
            truth.huge_bytes = region.huge_bytes()?;
            if self.kind == Kind::Mlock {
                truth.locked_bytes_now = region.bytes() as u64;
            }
        }
        stage.done("touch", &clock, vec![truth])
    }

    fn check(&self) -> Result<()> {
        sys::need_memory_node(self.memory_node)?;
        self.again.check()?;
        let pages = self.pages as usize;
        if self.kind.is_huge() {
            ensure!(
                pages.is_multiple_of(HUGE_PAGES),
                "--kind of huge pages needs --pages as a multiple of {HUGE_PAGES}"
            );
        }
        ensure!(
            !(self.again.is_wanted() && self.kind == Kind::Stack),
            "--kind stack cannot be touched again"
        );
        ensure!(
            self.kind != Kind::Stack || pages <= MOST_STACK_PAGES,
            "--kind stack has room for {MOST_STACK_PAGES} pages"
        );
        if self.kind == Kind::Mthp {
            ensure!(
                pages.is_multiple_of(MTHP_PAGES),
                "--kind mthp needs --pages as a multiple of {MTHP_PAGES}"
            );
            ensure!(
                Path::new(MTHP).exists(),
                "this kernel has no large pages of 64 KiB: {MTHP} (6.8 and later)"
            );
        }
        if matches!(self.kind, Kind::Hugetlb | Kind::HugetlbShared) {
            let pool = format!(
                "/sys/devices/system/node/node{}/hugepages/hugepages-2048kB",
                self.memory_node
            );
            let free = sys::number_in(format!("{pool}/free_hugepages"))?.unwrap_or(0);
            let need = (pages / HUGE_PAGES) as u64;
            ensure!(
                free >= need,
                "{free} free hugetlb pages, {need} needed: echo {need} > {pool}/nr_hugepages"
            );
        }
        Ok(())
    }
}

fn touch(kind: Kind, pages: usize, file: Option<&File>) -> Result<Touched> {
    const PRIVATE: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    const SHARED: i32 = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    let whole = file;
    let file = file.map(File::as_fd);
    Ok(match kind {
        Kind::Anon => first(written(Region::anonymous(pages)?))?,
        Kind::Populate => first(Region::map(pages, PRIVATE | libc::MAP_POPULATE, None)?)?,
        Kind::Kernel => first(read_into(Region::anonymous(pages)?)?)?,
        Kind::Mlock => {
            let region = Region::anonymous(pages)?;
            region.lock()?;
            first(region)?
        }
        Kind::ZeroPage => {
            let region = Region::anonymous(pages)?;
            region.read(region.all());
            first(written(region))?
        }
        Kind::GivenBack => {
            let region = written(Region::anonymous(pages)?);
            let first_touch = region.pages_by_node()?;
            give_back(&region, whole.context("a file")?)?;
            Touched {
                region: None,
                first_touch,
                map: ByNode::new(),
            }
        }
        Kind::Stack => grow_stack(pages)?,
        Kind::Thp => {
            let region = Region::map_aligned(pages, PRIVATE)?;
            region.advise(libc::MADV_HUGEPAGE)?;
            first(written(region))?
        }
        Kind::Mthp => {
            let region = Region::map_aligned(pages, PRIVATE)?;
            region.advise(libc::MADV_HUGEPAGE)?;
            let before = large_pages()?;
            let touched = first(written(region))?;
            let made = before.zip(large_pages()?).map(|(before, now)| now - before);
            let want = (pages / MTHP_PAGES) as u64;
            ensure!(
                made.is_none_or(|made| made == want),
                "{made:?} large pages of 64 KiB, not {want}: {MTHP}/enabled must be madvise, and hugepages-2048kB's never"
            );
            touched
        }
        Kind::Hugetlb => first(written(Region::map(
            pages,
            PRIVATE | libc::MAP_HUGETLB,
            None,
        )?))?,
        Kind::HugetlbShared => mapped(written(Region::map(
            pages,
            SHARED | libc::MAP_HUGETLB,
            None,
        )?))?,
        Kind::PrivateFile => first(written(Region::map(pages, libc::MAP_PRIVATE, file)?))?,
        Kind::PrivateFileRead => {
            let region = Region::map(pages, libc::MAP_PRIVATE, file)?;
            region.read(region.all());
            let map = region.pages_by_node()?;
            Touched {
                map,
                ..first(written(region))?
            }
        }
        Kind::File => {
            let region = Region::map(pages, libc::MAP_SHARED, file)?;
            region.read(region.all());
            mapped(region)?
        }
        Kind::FileWrite => mapped(written(Region::map(pages, libc::MAP_SHARED, file)?))?,
        Kind::Shm => mapped(written(Region::map(pages, SHARED, None)?))?,
        Kind::Memfd => {
            let file = memfd(pages)?;
            mapped(written(Region::map(
                pages,
                libc::MAP_SHARED,
                Some(file.as_fd()),
            )?))?
        }
        Kind::MemfdThp => {
            let file = memfd(pages)?;
            let region = Region::map_aligned_file(pages, file.as_fd())?;
            region.advise(libc::MADV_HUGEPAGE)?;
            mapped(written(region))?
        }
        Kind::ShmThp => {
            let region = Region::map_aligned(pages, SHARED)?;
            region.advise(libc::MADV_HUGEPAGE)?;
            mapped(written(region))?
        }
    })
}

fn written(region: Region) -> Region {
    region.write(region.all());
    region
}

fn first(region: Region) -> Result<Touched> {
    let first_touch = region.pages_by_node()?;
    Ok(Touched {
        region: Some(region),
        first_touch,
        map: ByNode::new(),
    })
}

fn mapped(region: Region) -> Result<Touched> {
    let map = region.pages_by_node()?;
    Ok(Touched {
        region: Some(region),
        first_touch: ByNode::new(),
        map,
    })
}

/// Base pages of a large page of 64 KiB.
const MTHP_PAGES: usize = 16;
/// The kernel's settings and counts of them.
const MTHP: &str = "/sys/kernel/mm/transparent_hugepage/hugepages-64kB";

/// Large pages that the machine's faults have got; `None` before 6.10, which doesn't say.
fn large_pages() -> Result<Option<u64>> {
    sys::number_in(format!("{MTHP}/stats/anon_fault_alloc"))
}

/// The kernel fills the region: user code never faults on it.
fn read_into(region: Region) -> Result<Region> {
    let zero = File::open("/dev/zero").context("/dev/zero")?;
    let mut done = 0;
    while done < region.bytes() {
        // SAFETY: the rest of the region, which nothing else refers to.
        let read = unsafe {
            libc::read(
                std::os::fd::AsRawFd::as_raw_fd(&zero),
                region.start().add(done).cast(),
                region.bytes() - done,
            )
        };
        match usize::try_from(read) {
            Ok(read) if read > 0 => done += read,
            _ => return Err(std::io::Error::last_os_error()).context("read of /dev/zero"),
        }
    }
    Ok(region)
}

/// An allocation that no account follows, and then an account that no allocation came before.
fn give_back(region: &Region, mut file: &File) -> Result<()> {
    for page in 0..region.bytes() / PAGE {
        file.write_all(&[0x5a; PAGE])
            .context("a page of page cache")?;
        // SAFETY: a page of the region's own, which nothing refers to.
        let done = unsafe {
            let start = region.start().add(page * PAGE);
            libc::madvise(start.cast(), PAGE, libc::MADV_DONTNEED)
        };
        if done != 0 {
            return Err(std::io::Error::last_os_error()).context("madvise(MADV_DONTNEED)");
        }
    }
    Ok(())
}

/// The stack may be 8 MiB by default; some of it is taken.
const MOST_STACK_PAGES: usize = 1024;

/// Writes below the stack pointer, so far below that no page there has been touched before.
#[inline(never)]
fn grow_stack(pages: usize) -> Result<Touched> {
    const UNTOUCHED: usize = 64;
    let mut here = 0u8;
    let here = &raw mut here;
    let top = here
        .wrapping_sub(here.addr() % PAGE)
        .wrapping_sub(UNTOUCHED * PAGE);
    for page in 1..=pages {
        // SAFETY: the kernel grows the main thread's stack down to here; nothing lives below the stack pointer.
        unsafe { top.wrapping_sub(page * PAGE).write_volatile(1) };
    }
    let (first_touch, absent) = pages_by_node(top.wrapping_sub(pages * PAGE), pages)?;
    if absent > 0 {
        bail!("{absent} of {pages} stack pages are not resident");
    }
    Ok(Touched {
        region: None,
        first_touch,
        map: ByNode::new(),
    })
}

/// A file without a name whose pages are in the page cache, on one node.
pub(crate) fn cached_file(directory: &Path, pages: usize, node: NodeId) -> Result<File> {
    let path = directory.join(format!("workload.{}", std::process::id()));
    let mut file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)
        .with_context(|| path.display().to_string())?;
    std::fs::remove_file(&path).with_context(|| path.display().to_string())?;
    sys::set_policy(Policy::Bind(node))?;
    let page = [0x5au8; PAGE];
    for _ in 0..pages {
        file.write_all(&page)
            .with_context(|| format!("{pages} pages in {}", directory.display()))?;
    }
    sys::set_policy(Policy::Default)?;
    Ok(file)
}

/// Shared memory with a descriptor.
pub(crate) fn memfd(pages: usize) -> Result<File> {
    // SAFETY: the name is a C string; the descriptor is new and ours.
    let file = unsafe {
        let fd = libc::memfd_create(c"workload".as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 {
            return Err(std::io::Error::last_os_error()).context("memfd_create");
        }
        File::from_raw_fd(fd)
    };
    file.set_len((pages * PAGE) as u64).context("memfd")?;
    Ok(file)
}

/// No transparent huge pages in this process, whatever the machine's setting.
pub(crate) fn disable_thp() {
    // SAFETY: touches no memory.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
}
