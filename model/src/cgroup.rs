//! A cgroup's memory by kind and node, as the kernel accounts for it, and beside it what its watched processes have alone.
//!
//! A page that several processes map is resident in each of them, but its cgroup is charged for it once.

use crate::list;
use crate::process::{ByNode, MemoryKind, Placement, Process};
use crate::topology::NodeId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A cgroup with watched processes: the one that their memory is charged to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cgroup {
    /// Its path below the hierarchy's root: of v1, the one with the memory controller.
    pub path: String,
    /// Watched processes in it and in the cgroups below it, ascending.
    pub pids: Vec<u32>,
    /// Bytes that it and the cgroups below it are charged for, by kind and node, each page once. Its processes that aren't
    /// watched are in it, and page cache that none maps.
    pub memory_by_kind: Option<BTreeMap<CgroupMemoryKind, ByNode>>,
    /// Where that was read: `memory.numa_stat`, with the hierarchy's version.
    pub source: Option<String>,
    /// Why there is none.
    pub reason: Option<String>,
    /// Sum of the private anonymous memory of `pids` by node, from samples. Files and shared memory are not in it: they may
    /// be several processes', and only the cgroup's numbers have them once.
    pub private_by_node_bytes: Option<ByNode>,
    /// Why there is no such sum.
    pub private_reason: Option<String>,
}

/// Kinds of memory that a cgroup is charged for, each page in one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CgroupMemoryKind {
    /// Anonymous memory.
    Anonymous,
    /// Anonymous and shared memory, which v1 does not tell apart.
    AnonymousAndShared,
    /// Page cache of files.
    File,
    /// Shared memory: tmpfs, memfd, System V.
    Shared,
    /// The kernel's own: slabs, stacks, page tables.
    Kernel,
    /// Locked memory of any of the kinds, which v1 counts apart.
    Unevictable,
}

impl CgroupMemoryKind {
    /// The word in JSON and in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Anonymous => "anonymous",
            Self::AnonymousAndShared => "anonymous_and_shared",
            Self::File => "file",
            Self::Shared => "shared",
            Self::Kernel => "kernel",
            Self::Unevictable => "unevictable",
        }
    }
}

/// What `memory.numa_stat` says; `None` of a text that is none.
///
/// Version 2 (from Linux 5.9 on) has bytes, of which `file` has shared memory in it; version 1 has pages of `page_bytes`,
/// and the cgroups below only in the lines named `hierarchical_`.
#[must_use]
pub fn parse(text: &str, page_bytes: u64) -> Option<BTreeMap<CgroupMemoryKind, ByNode>> {
    let mut kinds = BTreeMap::new();
    if let Some(line) = text.lines().find_map(|l| l.strip_prefix("total=")) {
        version_1_nodes(line, page_bytes)?;
        for (name, kind) in [
            ("hierarchical_anon=", CgroupMemoryKind::AnonymousAndShared),
            ("hierarchical_file=", CgroupMemoryKind::File),
            ("hierarchical_unevictable=", CgroupMemoryKind::Unevictable),
        ] {
            let line = text.lines().find_map(|l| l.strip_prefix(name))?;
            kinds.insert(kind, version_1_nodes(line, page_bytes)?);
        }
        return Some(kinds);
    }
    let told = |name: &str| {
        let lines = text.lines();
        let mut rest = lines.filter_map(|l| l.strip_prefix(name)?.strip_prefix(' '));
        nodes(rest.next()?, 1)
    };
    let shared = told("shmem")?;
    let mut file = told("file")?;
    for (node, bytes) in &mut file {
        // Not read at one instant: the part may be larger than the whole.
        *bytes = bytes.saturating_sub(shared.get(node).copied().unwrap_or(0));
    }
    kinds.insert(CgroupMemoryKind::Anonymous, told("anon")?);
    kinds.insert(CgroupMemoryKind::File, file);
    kinds.insert(CgroupMemoryKind::Shared, shared);
    let kernel = [
        "kernel_stack",
        "pagetables",
        "sec_pagetables",
        "slab_reclaimable",
        "slab_unreclaimable",
    ];
    let kernel: Vec<ByNode> = kernel.into_iter().filter_map(told).collect();
    if !kernel.is_empty() {
        kinds.insert(CgroupMemoryKind::Kernel, sum(&kernel));
    }
    Some(kinds)
}

/// `44611 N0=32631 N1=11980`: the sum comes first.
fn version_1_nodes(line: &str, page_bytes: u64) -> Option<ByNode> {
    let (all, rest) = line.split_once(' ')?;
    all.parse::<u64>().ok()?;
    nodes(rest, page_bytes)
}

/// `N0=32631 N1=11980`, each so many bytes.
fn nodes(line: &str, unit: u64) -> Option<ByNode> {
    let number = |word: &str| {
        let (node, number) = word.strip_prefix('N')?.split_once('=')?;
        let number: u64 = number.parse().ok()?;
        Some((node.parse::<NodeId>().ok()?, number.saturating_mul(unit)))
    };
    line.split_whitespace().map(number).collect()
}

fn sum<'a>(parts: impl IntoIterator<Item = &'a ByNode>) -> ByNode {
    let mut sum = ByNode::new();
    for (node, bytes) in parts.into_iter().flatten() {
        let of_node = sum.entry(*node).or_default();
        *of_node = of_node.saturating_add(*bytes);
    }
    sum
}

/// Private anonymous memory of these processes by node.
///
/// # Errors
/// Whose isn't known, and why: a part of the sum would pass for the whole.
pub fn private_by_node<'a>(
    processes: impl IntoIterator<Item = &'a Process>,
) -> Result<ByNode, String> {
    let mut unknown = Vec::new();
    let mut known = Vec::new();
    let mut why = None;
    for process in processes {
        match private(&process.placement) {
            Ok(bytes) => known.push(bytes),
            Err(reason) => {
                unknown.push(process.pid);
                why = why.or(reason);
            }
        }
    }
    if unknown.is_empty() {
        return Ok(sum(known));
    }
    let why = why.map_or_else(String::new, |why| format!(": {why}"));
    unknown.sort_unstable();
    let pids = list::format(&unknown);
    Err(format!("the placement of pid {pids} is unknown{why}"))
}

/// All of a process's private anonymous memory by node; why it isn't known.
fn private(placement: &Placement) -> Result<&ByNode, Option<String>> {
    let Some(kinds) = &placement.by_kind else {
        return Err(placement.reason.clone());
    };
    // `numa_maps` has no coverage: it is of all addresses.
    if placement.coverage.is_some_and(|coverage| coverage < 1.0) {
        return Err(Some("not all of its addresses were looked at".to_owned()));
    }
    let untold = || {
        let no_answer = || "nothing tells where its anonymous memory lies".to_owned();
        Some(placement.reason.clone().unwrap_or_else(no_answer))
    };
    kinds.get(&MemoryKind::Anonymous).ok_or_else(untold)
}

/// The cgroup that a process's memory is charged to: the innermost of those that have it.
#[must_use]
pub fn of(cgroups: &[Cgroup], pid: u32) -> Option<&Cgroup> {
    let having = cgroups
        .iter()
        .filter(|c| c.pids.binary_search(&pid).is_ok());
    having.max_by_key(|cgroup| cgroup.path.trim_matches('/').len())
}

/// Whether a cgroup is another one or below it. One outside this cgroup namespace, `/../x`, is below none that is seen here:
/// it is within itself only.
#[must_use]
pub fn is_within(path: &str, above: &str) -> bool {
    if path.trim_start_matches('/').split('/').next() == Some("..") {
        return path == above;
    }
    let rest = path.strip_prefix(above.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::tests::process;

    use CgroupMemoryKind as K;

    fn kinds<const N: usize>(
        known: [(K, [(NodeId, u64); 2]); N],
    ) -> BTreeMap<CgroupMemoryKind, ByNode> {
        let known = known.map(|(kind, nodes)| (kind, ByNode::from(nodes)));
        BTreeMap::from(known)
    }

    #[test]
    fn version_2_has_bytes_and_shared_memory_within_file() {
        let text = "anon N0=1081344 N1=2048000\nfile N0=9216 N1=4096\nkernel_stack N0=16384 N1=0\n\
                    pagetables N0=8192 N1=4096\nsec_pagetables N0=0 N1=0\nshmem N0=1024 N1=8192\n\
                    file_mapped N0=77 N1=77\nfile_dirty N0=7 N1=7\nanon_thp N0=7 N1=7\ninactive_anon N0=7 N1=7\n\
                    slab_reclaimable N0=100 N1=10\nslab_unreclaimable N0=24 N1=0\n";
        let want = kinds([
            (K::Anonymous, [(0, 1_081_344), (1, 2_048_000)]),
            (K::File, [(0, 8192), (1, 0)]),
            (K::Shared, [(0, 1024), (1, 8192)]),
            (K::Kernel, [(0, 24_700), (1, 4106)]),
        ]);
        assert_eq!(parse(text, 4096), Some(want));
    }

    #[test]
    fn what_version_2_does_not_tell_is_no_zero() {
        let text = "anon N0=1 N8=2\nfile N0=3 N8=4\nshmem N0=0 N8=0\n";
        let want = kinds([
            (K::Anonymous, [(0, 1), (8, 2)]),
            (K::File, [(0, 3), (8, 4)]),
            (K::Shared, [(0, 0), (8, 0)]),
        ]);
        assert_eq!(parse(text, 4096), Some(want));
    }

    #[test]
    fn version_1_has_pages_and_those_below_in_lines_of_their_own() {
        let text = "total=3 N0=2 N1=1\nfile=1 N0=1 N1=0\nanon=1 N0=0 N1=1\nunevictable=1 N0=1 N1=0\n\
                    hierarchical_total=14 N0=9 N1=5\nhierarchical_file=6 N0=4 N1=2\nhierarchical_anon=7 N0=5 N1=2\n\
                    hierarchical_unevictable=1 N0=0 N1=1\n";
        for page in [4096, 65_536] {
            let want = kinds([
                (K::AnonymousAndShared, [(0, 5 * page), (1, 2 * page)]),
                (K::File, [(0, 4 * page), (1, 2 * page)]),
                (K::Unevictable, [(0, 0), (1, page)]),
            ]);
            assert_eq!(parse(text, page), Some(want), "{page}");
        }
    }

    #[test]
    fn a_text_of_another_kind_is_none() {
        for text in [
            "",
            "\n",
            "anon 1081344\nfile 9216\nshmem 1024\n",
            "anon N0=1\nfile N0=1\n",
            "anon N0=x\nfile N0=1\nshmem N0=0\n",
            "total=3 N0=2 N1=1\nfile=1 N0=1 N1=0\n",
            "total=3\n",
        ] {
            assert_eq!(parse(text, 4096), None, "{text:?}");
        }
    }

    fn with(pid: u32, kinds: &[(MemoryKind, u64)]) -> Process {
        let mut process = process();
        process.pid = pid;
        let kinds = kinds
            .iter()
            .map(|(kind, b)| (*kind, ByNode::from([(1, *b)])));
        process.placement.by_kind = Some(kinds.collect());
        process
    }

    #[test]
    fn only_private_anonymous_memory_is_summed() {
        let processes = [
            with(7, &[(MemoryKind::Anonymous, 5), (MemoryKind::Shared, 100)]),
            with(8, &[(MemoryKind::Anonymous, 6), (MemoryKind::File, 100)]),
            with(9, &[(MemoryKind::Anonymous, 0), (MemoryKind::Huge, 100)]),
        ];
        assert_eq!(private_by_node(&processes), Ok(ByNode::from([(1, 11)])));
        assert_eq!(private_by_node(&[]), Ok(ByNode::new()));
    }

    #[test]
    fn a_part_is_not_told_as_the_whole() {
        let mut processes = [with(7, &[(MemoryKind::Anonymous, 5)]), with(8, &[])];
        processes[1].placement.by_kind = None;
        processes[1].placement.reason = Some("not surveyed yet".to_owned());
        assert_eq!(
            private_by_node(&processes),
            Err("the placement of pid 8 is unknown: not surveyed yet".to_owned())
        );
    }

    #[test]
    fn anonymous_memory_of_which_nothing_is_told_is_not_none() {
        let of =
            |process: Process| private_by_node(&[with(7, &[(MemoryKind::Anonymous, 5)]), process]);
        assert_eq!(
            of(with(8, &[(MemoryKind::File, 100)])),
            Err(
                "the placement of pid 8 is unknown: nothing tells where its anonymous memory lies"
                    .to_owned()
            )
        );
        let mut none = with(8, &[(MemoryKind::File, 100)]);
        let kinds = none.placement.by_kind.as_mut().unwrap();
        kinds.insert(MemoryKind::Anonymous, ByNode::new());
        assert_eq!(of(none), Ok(ByNode::from([(1, 5)])));
    }

    #[test]
    fn a_placement_of_some_addresses_is_a_part() {
        for (coverage, known) in [(None, true), (Some(1.0), true), (Some(0.99), false)] {
            let mut process = with(8, &[(MemoryKind::Anonymous, 5)]);
            process.placement.coverage = coverage;
            let told = private_by_node(&[process]);
            assert_eq!(told.is_ok(), known, "{coverage:?} {told:?}");
        }
    }

    #[test]
    fn a_cgroup_is_within_those_above_it() {
        for (path, above, want) in [
            ("/a/b", "/a", true),
            ("/a", "/a", true),
            ("/a", "/", true),
            ("/", "/", true),
            ("/ab", "/a", false),
            ("/a", "/a/b", false),
            ("/../x", "/", false),
            ("/..", "/", false),
            ("/../x", "/../x", true),
            ("/../x", "/..", false),
            ("/..x", "/", true),
        ] {
            assert_eq!(is_within(path, above), want, "{path} {above}");
        }
    }

    #[test]
    fn a_process_s_own_is_the_innermost() {
        let cgroup = |path: &str, pids: &[u32]| Cgroup {
            path: path.to_owned(),
            pids: pids.to_vec(),
            ..Cgroup::default()
        };
        let all = [
            cgroup("/", &[1, 7, 8]),
            cgroup("/a", &[7, 8]),
            cgroup("/a/b", &[8]),
        ];
        for (pid, want) in [
            (1, Some("/")),
            (7, Some("/a")),
            (8, Some("/a/b")),
            (9, None),
        ] {
            assert_eq!(of(&all, pid).map(|c| c.path.as_str()), want, "{pid}");
        }
    }
}
