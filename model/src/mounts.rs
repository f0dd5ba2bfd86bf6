//! A process's mounts as its `mountinfo` tells them: which file systems keep their files in memory, by device for whoever has
//! it, and by path for whoever has that alone.

use crate::mapping::{Device, device, is_shared_memory_path};
use std::collections::{BTreeMap, BTreeSet};

/// A line of `mountinfo`.
struct Mount<'a> {
    device: Device,
    /// Where it is, with the kernel's escapes.
    point: &'a str,
    filesystem: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        // Optional fields are in front of the dash, as many as there are.
        let (mount, filesystem) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(2);
        let device = device(mount.next()?, 10)?;
        let mut words = filesystem.split(' ');
        Some(Self {
            device,
            point: mount.nth(1)?,
            filesystem: words.next()?,
            options: words.nth(1).unwrap_or_default(),
        })
    }
}

fn mounts(mountinfo: &str) -> impl Iterator<Item = Mount<'_>> {
    mountinfo.lines().filter_map(Mount::parse)
}

/// File systems that keep their files in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryFilesystems {
    /// tmpfs, the kernel's own for memfd, System V and shared anonymous memory too.
    pub tmpfs: BTreeSet<Device>,
    /// hugetlbfs, with the bytes of its pages.
    pub hugetlb: BTreeMap<Device, u64>,
}

impl MemoryFilesystems {
    /// Those that a process's `mountinfo` tells. `huge_page_bytes` is the size of a huge page where a mount names none.
    #[must_use]
    pub fn of_mountinfo(mountinfo: &str, huge_page_bytes: u64) -> Self {
        let mut found = Self::default();
        for mount in mounts(mountinfo) {
            match mount.filesystem {
                "tmpfs" => {
                    found.tmpfs.insert(mount.device);
                }
                "hugetlbfs" => {
                    let bytes = mount.options.split(',').find_map(page_size_option);
                    let bytes = bytes.unwrap_or(huge_page_bytes);
                    found.hugetlb.insert(mount.device, bytes);
                }
                _ => {}
            }
        }
        found
    }
}

/// Every mount point, and whether a tmpfs is there: for whoever knows a file's path and not its device, as `numa_maps`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MountPoints<'a>(BTreeMap<&'a str, bool>);

impl<'a> MountPoints<'a> {
    /// Those that a process's `mountinfo` tells.
    #[must_use]
    pub fn of_mountinfo(mountinfo: &'a str) -> Self {
        // The last mount at a place hides those before.
        let points = mounts(mountinfo).map(|m| (m.point, m.filesystem == "tmpfs"));
        Self(points.collect())
    }

    /// Whether a mapped path, with the kernel's escapes, is shared memory rather than a file on a disk, by where it is.
    #[must_use]
    pub fn is_shared_memory(&self, path: &str) -> bool {
        // A file may itself be a mount point: containers are given single files so.
        let has_it = |mount: &str| {
            let rest = path.strip_prefix(mount);
            rest.is_some_and(|rest| mount == "/" || rest.is_empty() || rest.starts_with('/'))
        };
        let mounts = self.0.iter().filter(|(mount, _)| has_it(mount));
        let nearest = mounts.max_by_key(|(mount, _)| mount.len());
        is_shared_memory_path(path) || nearest.is_some_and(|(_, is_tmpfs)| *is_tmpfs)
    }
}

/// `pagesize=2M` or `pagesize=1024M`, as hugetlbfs shows it.
fn page_size_option(option: &str) -> Option<u64> {
    let size = option.strip_prefix("pagesize=")?;
    let unit = match size.chars().last()? {
        'K' => 10,
        'M' => 20,
        'G' => 30,
        _ => return size.parse().ok(),
    };
    let number: u64 = size.get(..size.len() - 1)?.parse().ok()?;
    number.checked_shl(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_in_memory_are_found_behind_optional_fields() {
        let mountinfo = "22 1 254:0 / / rw - ext4 /dev/vda rw\n\
                         23 22 0:21 / /dev/shm rw,nosuid shared:4 - tmpfs tmpfs rw\n\
                         24 22 0:22 / /mnt/ram\\040disk rw - tmpfs none rw\n\
                         25 22 0:23 / /h rw shared:9 - hugetlbfs hugetlbfs rw,pagesize=1024M\n\
                         26 22 0:24 / /g rw - hugetlbfs hugetlbfs rw\n";
        assert_eq!(
            MemoryFilesystems::of_mountinfo(mountinfo, 2 << 20),
            MemoryFilesystems {
                tmpfs: BTreeSet::from([(0, 21), (0, 22)]),
                hugetlb: BTreeMap::from([((0, 23), 1 << 30), ((0, 24), 2 << 20)]),
            }
        );
    }

    #[test]
    fn a_path_is_of_the_nearest_mount_above_it() {
        let mountinfo = "22 1 0:20 / / rw - tmpfs none rw\n\
                         23 22 254:0 / /models rw shared:4 - ext4 /dev/vda rw\n\
                         24 23 0:22 / /models/ram\\040disk rw - tmpfs none rw\n\
                         25 22 0:23 / /twice rw - tmpfs none rw\n\
                         26 25 254:1 / /twice rw - xfs /dev/vdb rw\n\
                         27 22 254:0 /a.gguf /a.gguf rw - ext4 /dev/vda rw\n\
                         28 23 0:22 /b /models/b.gguf rw - tmpfs none rw\n";
        let found = MountPoints::of_mountinfo(mountinfo);
        for (path, want) in [
            ("/a", true),
            ("/models/a.gguf", false),
            ("/models2/a", true),
            ("/models/ram\\040disk/a", true),
            ("/twice/a", false),
            ("/a.gguf", false),
            ("/a.gguf2", true),
            ("/models/b.gguf", true),
            ("/memfd:x", true),
            ("/SYSV00000000", true),
        ] {
            assert_eq!(found.is_shared_memory(path), want, "{path}");
        }
    }
}
