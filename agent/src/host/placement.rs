//! Where a process's resident pages lie, all of them, from `/proc/PID/numa_maps`; only when somebody asks for it.
//!
//! The kernel walks the page tables under the process's lock to write that file: 10 ms for 1 GiB.

use crate::host::error::Error;
use crate::host::numa_maps::{self, Sum};
use crate::host::process::ProcessDir;
use model::mounts::MountPoints;
use model::policy::Policy;
use model::process::{MemoryKind, Placement};
use model::time::Timestamp;
use procfs::page_size;
use std::io::{BufRead, BufReader};

/// Reads and sums all mappings; `None` for a process without any: kernel threads and zombies.
///
/// It blocks for as long as the kernel walks: call it off the async threads.
///
/// # Errors
/// [`Error::Gone`]; [`Error::Denied`] for another user's process without CAP_SYS_PTRACE;
/// [`Error::Io`], with "not found" as [`Error::Gone`], so check that the kernel has the file
/// with [`is_available`] first.
pub(crate) fn read_placement(process: &ProcessDir) -> Result<Option<Sum>, Error> {
    let mountinfo = process
        .read_start("mountinfo", u64::MAX)
        .unwrap_or_default();
    let mounts = MountPoints::of_mountinfo(&mountinfo);
    let file = match process.open_file("numa_maps") {
        // Newer kernels say ESRCH where there is no memory, too.
        Err(error) if error.is_gone() && !process.stat()?.has_address_space => return Ok(None),
        file => file?,
    };
    let mut sum = Sum::default();
    let mut line = Vec::new();
    let mut reader = BufReader::new(file);
    loop {
        line.clear();
        let length = reader.read_until(b'\n', &mut line).map_err(|source| {
            Error::process_io(process.pid(), &process.path("numa_maps"), source)
        })?;
        if length == 0 {
            break;
        }
        sum.add(&String::from_utf8_lossy(&line), page_size(), &mounts);
    }
    if sum.policy.is_none() && process.resident_bytes().is_ok_and(|b| b.unwrap_or(0) > 0) {
        let what = "is empty, though some memory is resident: is something mounted over it?";
        return Err(Error::format(&process.path("numa_maps"), what));
    }
    Ok(sum.policy.is_some().then_some(sum))
}

/// Whether this kernel writes `numa_maps`: one without NUMA doesn't.
pub(crate) fn is_available(root: &crate::host::root::Root) -> bool {
    root.proc("self/numa_maps").exists()
}

/// A thread's memory policy, from the first bytes of its file: 10 µs whatever the process's size, as the first mapping is
/// the executable's, which has no policy of its own. `None` for a thread without mappings, and for a list of nodes that is
/// longer than the kernel writes.
///
/// # Errors
/// As [`read_placement`].
pub(crate) fn read_policy(process: &ProcessDir, tid: u32) -> Result<Option<Policy>, Error> {
    // The kernel walks mappings until it has as many bytes as asked for: the second number is for long lists alone.
    const ENOUGH: u64 = 64;
    const EVER: u64 = 128;
    let file = format!("task/{tid}/numa_maps");
    let start = process.read_start(&file, ENOUGH)?;
    let policy = numa_maps::first_policy(&start);
    if policy.is_some() || (start.len() as u64) < ENOUGH {
        return Ok(policy);
    }
    Ok(numa_maps::first_policy(&process.read_start(&file, EVER)?))
}

impl Sum {
    /// The placement as a snapshot has it.
    pub(crate) fn into_placement(mut self, taken_at: Timestamp) -> Placement {
        // All mappings are in it: of a kind that none has there is nothing.
        for kind in MemoryKind::ALL {
            self.by_kind.entry(kind).or_default();
        }
        Placement {
            own_policies: Some(self.own_policies()),
            by_node_bytes: Some(self.by_node_bytes),
            by_kind: Some(self.by_kind),
            source: Some("numa_maps".to_owned()),
            taken_at: Some(taken_at),
            ..Placement::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fixture::{Fixture, kernel_thread_stat};
    use crate::host::root::Root;
    use model::process::ByNode;

    #[test]
    fn a_file_is_read_with_its_tmpfs_mounts() {
        let fixture = Fixture::with(&[
            (
                "proc/7/numa_maps",
                "1 bind:1 file=/bin/x mapped=1 N0=1 kernelpagesize_kB=4\n\
                 2 default file=/ram/w mapped=2 N1=2 kernelpagesize_kB=4\n",
            ),
            ("proc/7/mountinfo", "23 22 0:21 / /ram rw - tmpfs none rw\n"),
        ]);
        let process = ProcessDir::open(&fixture.root(), 7).unwrap();
        let sum = read_placement(&process).unwrap().unwrap();
        assert_eq!(sum.policy.as_deref(), Some("bind:1"));
        assert_eq!(sum.by_kind[&MemoryKind::Shared], ByNode::from([(1, 8192)]));
        assert_eq!(sum.by_node_bytes, ByNode::from([(0, 4096), (1, 8192)]));
    }

    #[test]
    fn a_kind_that_no_mapping_has_is_none_and_not_unknown() {
        let fixture =
            Fixture::with(&[("proc/7/numa_maps", "1 default file=/bin/x mapped=1 N1=1\n")]);
        let process = ProcessDir::open(&fixture.root(), 7).unwrap();
        let sum = read_placement(&process).unwrap().unwrap();
        let kinds = sum
            .into_placement(Timestamp(std::time::SystemTime::UNIX_EPOCH))
            .by_kind
            .unwrap();
        assert_eq!(kinds.keys().copied().collect::<Vec<_>>(), MemoryKind::ALL);
        assert_eq!(kinds[&MemoryKind::Anonymous], ByNode::new());
    }

    #[test]
    fn a_kernel_thread_has_no_placement() {
        let fixture = Fixture::with(&[("proc/2/numa_maps", "")]);
        let process = ProcessDir::open(&fixture.root(), 2).unwrap();
        assert_eq!(read_placement(&process).unwrap(), None);
    }

    #[test]
    fn a_masked_file_is_no_process_without_memory() {
        let files = [
            ("proc/7/numa_maps", ""),
            ("proc/7/statm", "1024 100 1 1 0 1 0\n"),
        ];
        let fixture = Fixture::with(&files);
        let process = ProcessDir::open(&fixture.root(), 7).unwrap();
        let error = read_placement(&process).unwrap_err().to_string();
        assert!(error.contains("numa_maps: is empty"), "{error}");
    }

    #[test]
    fn a_kernel_that_refuses_to_open_it_for_a_kernel_thread_says_the_same() {
        let fixture = Fixture::with(&[("proc/2/stat", &kernel_thread_stat(2, 5, "kthreadd"))]);
        let process = ProcessDir::open(&fixture.root(), 2).unwrap();
        assert_eq!(read_placement(&process).unwrap(), None);
    }

    #[test]
    fn a_process_that_ended_has_an_error_and_no_placement() {
        let fixture = Fixture::new();
        fixture.process(7, 1, "x", &["x"]);
        let process = ProcessDir::open(&fixture.root(), 7).unwrap();
        fixture.end(7);
        assert!(read_placement(&process).unwrap_err().is_gone());
    }

    #[test]
    fn a_policy_is_read_from_the_first_bytes() {
        let fixture = Fixture::with(&[(
            "proc/7/task/9/numa_maps",
            "5595d5650000 interleave:0-1 file=/root/.pyenv/versions/3.11.7/bin/python3.11 mapped=1",
        )]);
        let process = ProcessDir::open(&fixture.root(), 7).unwrap();
        let policy = read_policy(&process, 9).unwrap().unwrap();
        assert_eq!(policy.to_string(), "interleave:0-1");
    }

    #[test]
    fn a_policy_of_many_nodes_is_read_whole() {
        let nodes = "0,2,4,6,8,10,12,14,16,18,20,22";
        let fixture = Fixture::with(&[(
            "proc/7/task/7/numa_maps",
            &format!("5595d5650000 weighted interleave=static:{nodes} file=/bin/x mapped=1\n"),
        )]);
        let process = ProcessDir::open(&fixture.root(), 7).unwrap();
        let policy = read_policy(&process, 7).unwrap().unwrap();
        assert_eq!(policy.nodes.len(), 12);
    }

    #[test]
    fn this_very_process_has_pages_where_the_kernel_tells() {
        let root = Root::system();
        if !is_available(&root) {
            return;
        }
        let process = ProcessDir::open(&root, std::process::id()).unwrap();
        let sum = read_placement(&process).unwrap().unwrap();
        assert!(sum.by_node_bytes.values().sum::<u64>() > 0);
        assert!(read_policy(&process, std::process::id()).unwrap().is_some());
    }
}
