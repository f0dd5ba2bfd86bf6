//! Which file systems keep their files in memory, as a process sees them: `mountinfo`, and those that the kernel mounts for
//! itself.

use crate::host::process::ProcessDir;
use crate::host::root::Root;
use model::mapping::Device;
use model::mounts::MemoryFilesystems;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::fd::FromRawFd;
use std::os::unix::fs::MetadataExt;

/// The kernel's own hugetlbfs mounts, one a page size, with the bytes of a page. They are in no `mountinfo`: a file of each
/// is made, of no size, and asked for its device.
pub(crate) fn kernels_own_hugetlb(root: &Root) -> BTreeMap<Device, u64> {
    let sizes = fs::read_dir(root.sys("kernel/mm/hugepages"));
    let size = |entry: fs::DirEntry| -> Option<u64> {
        let name = entry.file_name().into_string().ok()?;
        let kib = name.strip_prefix("hugepages-")?.strip_suffix("kB")?;
        Some(kib.parse::<u64>().ok()? * 1024)
    };
    let sizes = sizes.into_iter().flatten().filter_map(Result::ok);
    let device = |bytes: u64| Some((device_of_huge_pages(bytes)?, bytes));
    sizes.filter_map(size).filter_map(device).collect()
}

fn device_of_huge_pages(bytes: u64) -> Option<Device> {
    let size = bytes.checked_ilog2()? << libc::MFD_HUGE_SHIFT;
    let flags = libc::MFD_CLOEXEC | libc::MFD_HUGETLB | size;
    // SAFETY: the name ends in a zero; the kernel gives a new file descriptor, or an error.
    let file = unsafe {
        let fd = libc::memfd_create(c"numawatch".as_ptr(), flags);
        (fd >= 0).then(|| File::from_raw_fd(fd))?
    };
    let device = file.metadata().ok()?.dev();
    Some((libc::major(device), libc::minor(device)))
}

/// Those of a process; `own` are the kernel's.
pub(crate) fn of(process: &ProcessDir, own: &BTreeMap<Device, u64>) -> MemoryFilesystems {
    let smallest = own.values().min().copied().unwrap_or(2 << 20);
    let mountinfo = process.read_start("mountinfo", u64::MAX);
    let mut found = MemoryFilesystems::of_mountinfo(&mountinfo.unwrap_or_default(), smallest);
    found.hugetlb.extend(own);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_of_this_kernel_has_a_file_system() {
        let root = Root::system();
        let sizes = fs::read_dir(root.sys("kernel/mm/hugepages")).map_or(0, Iterator::count);
        assert_eq!(kernels_own_hugetlb(&root).len(), sizes);
    }
}
