//! The format of `/proc/PID/numa_maps`: one mapping a line, its policy and its pages by node.

use model::mounts::MountPoints;
use model::policy::{OwnPolicy, Policy};
use model::process::{ByNode, MemoryKind};
use model::topology::NodeId;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The mappings of a process, summed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    /// Resident bytes by node.
    pub(crate) by_node_bytes: ByNode,
    /// The same by kind; adds up to `by_node_bytes` node by node.
    pub(crate) by_kind: BTreeMap<MemoryKind, ByNode>,
    /// The policy of the first mapping, in numactl's words.
    pub(crate) policy: Option<String>,
    /// All mappings by their policy; those whose policy the kernel cuts off are in none.
    policies: BTreeMap<String, OwnPolicy>,
}

impl Sum {
    /// Adds a line. `page_size` is the size of a page where the line names none, bytes;
    /// `mounts` are the process's.
    ///
    /// Kinds follow from the line: hugetlb is `huge`; a file below a tmpfs, a memfd, System V and
    /// shared anonymous memory is `shared`; another file is `file`; the rest is `anonymous`. The
    /// private copies of a private file mapping are `anonymous`, but the line counts them over all
    /// nodes (`anon=`): on a mapping with both, spread over several nodes, they are divided in the
    /// proportion of its pages. The sums by node are exact in any case, the kinds approximate there.
    pub(crate) fn add(&mut self, line: &str, page_size: u64, mounts: &MountPoints<'_>) {
        let Some(mapping) = Mapping::parse(line) else {
            return;
        };
        let page_bytes = mapping.page_kib.map_or(page_size, |kib| kib * 1024);
        if let Some(policy) = first_policy(line) {
            let own = self.policies.entry(policy.to_string());
            let own = own.or_insert_with(|| OwnPolicy {
                policy,
                mappings: 0,
                by_node_bytes: ByNode::new(),
            });
            own.mappings += 1;
            for (node, pages) in &mapping.pages {
                *own.by_node_bytes.entry(*node).or_default() += pages * page_bytes;
            }
        }
        if self.policy.is_none() {
            self.policy = Some(mapping.policy);
        }
        let private_kind = MemoryKind::Anonymous;
        let kind = match mapping.file {
            _ if mapping.huge => MemoryKind::Huge,
            None => private_kind,
            Some(path) if mounts.is_shared_memory(path) => MemoryKind::Shared,
            Some(_) => MemoryKind::File,
        };
        let private = if matches!(kind, MemoryKind::File | MemoryKind::Shared) {
            divide(&mapping.pages, mapping.anon)
        } else {
            ByNode::new()
        };
        for (node, pages) in &mapping.pages {
            let copied = private.get(node).copied().unwrap_or(0);
            *self.by_node_bytes.entry(*node).or_default() += pages * page_bytes;
            for (kind, pages) in [(kind, pages - copied), (private_kind, copied)] {
                if pages > 0 {
                    let bytes = self.by_kind.entry(kind).or_default();
                    *bytes.entry(*node).or_default() += pages * page_bytes;
                }
            }
        }
    }
}

impl Sum {
    /// Mappings with a policy of their own, the largest first: the first mapping is the executable's, which has none, and so
    /// it has the process's.
    pub(crate) fn own_policies(&self) -> Vec<OwnPolicy> {
        let own = self.policies.iter();
        let own = own.filter(|(policy, _)| self.policy.as_ref() != Some(*policy));
        let mut own: Vec<OwnPolicy> = own.map(|(_, own)| own.clone()).collect();
        own.sort_by_key(|own| Reverse(own.by_node_bytes.values().sum::<u64>()));
        own
    }
}

/// The policy that the first line in `text` names; `None` where it is cut off.
pub(crate) fn first_policy(text: &str) -> Option<Policy> {
    Policy::parse(text.split_once(' ')?.1)
}

/// One line.
struct Mapping<'a> {
    policy: String,
    /// Its path with the kernel's escapes.
    file: Option<&'a str>,
    huge: bool,
    /// Pages that no file holds, over all nodes.
    anon: u64,
    pages: BTreeMap<NodeId, u64>,
    page_kib: Option<u64>,
}

impl<'a> Mapping<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        words.next()?;
        let policy = words.next()?.to_owned();
        let policy = first_policy(line).map_or(policy, |policy| policy.to_string());
        let mut mapping = Self {
            policy,
            file: None,
            huge: false,
            anon: 0,
            pages: BTreeMap::new(),
            page_kib: None,
        };
        for word in words {
            match word.split_once('=') {
                None if word == "huge" => mapping.huge = true,
                Some(("file", path)) => mapping.file = Some(path),
                Some(("anon", pages)) => mapping.anon = pages.parse().unwrap_or(0),
                Some(("kernelpagesize_kB", kib)) => mapping.page_kib = kib.parse().ok(),
                Some((key, pages)) => {
                    let node = key.strip_prefix('N').and_then(|id| id.parse().ok());
                    if let (Some(node), Ok(pages)) = (node, pages.parse::<u64>()) {
                        mapping.pages.insert(node, pages);
                    }
                }
                None => {}
            }
        }
        Some(mapping)
    }
}

/// Divides `amount` over the nodes in the proportion of their pages; no node gets more than its
/// pages, and the parts add up to `amount` or to all pages, whichever is less.
fn divide(pages: &BTreeMap<NodeId, u64>, amount: u64) -> ByNode {
    let mut left = amount;
    let mut total: u64 = pages.values().sum();
    let mut parts = ByNode::new();
    for (node, pages) in pages {
        // Dividing what is left by what is left gives the last node exactly the rest.
        let share = u128::from(left.min(total)) * u128::from(*pages);
        let part = u64::try_from(share.checked_div(u128::from(total)).unwrap_or(0))
            .unwrap_or(*pages)
            .min(*pages);
        parts.insert(*node, part);
        left -= part.min(left);
        total -= pages;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use MemoryKind::{Anonymous, File, Huge, Shared};

    fn sum(text: &str) -> Sum {
        let mut sum = Sum::default();
        let mounts = MountPoints::of_mountinfo("24 22 0:22 / /mnt/ram rw - tmpfs none rw\n");
        for line in text.lines() {
            sum.add(line, 4096, &mounts);
        }
        sum
    }

    #[test]
    fn mappings_with_a_policy_of_their_own_are_summed_by_it() {
        let sum = sum("1 bind:1 file=/bin/x mapped=1 N1=1 kernelpagesize_kB=4\n\
             2 interleave:0-1 anon=2 N0=1 N1=1 kernelpagesize_kB=4\n\
             3 bind:0 anon=3 N0=3 kernelpagesize_kB=4\n\
             4 bind:1 anon=9 N1=9 kernelpagesize_kB=4\n\
             5 bind:0 huge anon=1 N0=1 kernelpagesize_kB=2048\n");
        let own: Vec<_> = sum
            .own_policies()
            .into_iter()
            .map(|own| (own.policy.to_string(), own.mappings, own.by_node_bytes))
            .collect();
        assert_eq!(
            own,
            [
                ("bind:0".into(), 2, ByNode::from([(0, 12_288 + (2 << 20))])),
                (
                    "interleave:0-1".into(),
                    1,
                    ByNode::from([(0, 4096), (1, 4096)])
                ),
            ]
        );
    }

    fn sum_of(line: &str) -> Sum {
        let mut sum = Sum::default();
        sum.add(line, 4096, &MountPoints::default());
        sum
    }

    #[test]
    fn each_mapping_is_of_one_kind() {
        for (line, kind) in [
            (
                "7f00 default anon=2 dirty=2 N1=2 kernelpagesize_kB=4",
                Anonymous,
            ),
            (
                "7f00 default heap anon=2 dirty=2 N1=2 kernelpagesize_kB=4",
                Anonymous,
            ),
            (
                "7f00 default stack anon=2 N1=2 kernelpagesize_kB=4",
                Anonymous,
            ),
            (
                "7f00 default file=/m/a.gguf mapped=2 active=0 N1=2 kernelpagesize_kB=4",
                File,
            ),
            (
                "7f00 default file=/dev/shm/psm dirty=2 mapmax=3 N1=2 kernelpagesize_kB=4",
                Shared,
            ),
            (
                "7f00 default file=/memfd:x\\040(deleted) dirty=2 N1=2 kernelpagesize_kB=4",
                Shared,
            ),
            (
                "7f00 default file=/SYSV00000000\\040(deleted) dirty=2 N1=2",
                Shared,
            ),
            (
                "7f00 default file=/dev/zero\\040(deleted) dirty=2 N1=2",
                Shared,
            ),
            (
                "7f00 default file=/mnt/ram/a.gguf mapped=2 N1=2 kernelpagesize_kB=4",
                Shared,
            ),
            (
                "7f00 default file=/mnt/rampart/a.gguf mapped=2 N1=2 kernelpagesize_kB=4",
                File,
            ),
            (
                "7f00 default file=/m/a.so anon=2 dirty=2 N1=2 kernelpagesize_kB=4",
                Anonymous,
            ),
        ] {
            let want = BTreeMap::from([(kind, ByNode::from([(1, 8192)]))]);
            assert_eq!(sum(line).by_kind, want, "{line}");
        }
    }

    #[test]
    fn huge_pages_have_their_own_size() {
        let s = sum(
            "7f00 bind:0 file=/anon_hugepage\\040(deleted) huge anon=3 dirty=3 N0=3 \
                     kernelpagesize_kB=2048",
        );
        assert_eq!(
            s.by_kind,
            BTreeMap::from([(Huge, ByNode::from([(0, 3 << 21)]))])
        );
    }

    #[test]
    fn private_copies_of_a_file_are_divided_by_its_pages() {
        let s = sum(
            "7f00 default file=/lib/x.so anon=3 dirty=3 mapped=7 N0=8 N1=2 \
                     kernelpagesize_kB=4",
        );
        assert_eq!(
            s.by_node_bytes,
            ByNode::from([(0, 8 * 4096), (1, 2 * 4096)])
        );
        assert_eq!(
            s.by_kind[&Anonymous],
            ByNode::from([(0, 2 * 4096), (1, 4096)])
        );
        assert_eq!(s.by_kind[&File], ByNode::from([(0, 6 * 4096), (1, 4096)]));
    }

    #[test]
    fn the_kinds_add_up_to_the_nodes() {
        let s = sum("1 default file=/bin/x mapped=1 N0=1 kernelpagesize_kB=4\n\
             2 default heap anon=9 dirty=9 N0=4 N1=5 kernelpagesize_kB=4\n\
             3 default file=/dev/shm/a anon=1 dirty=5 N0=2 N1=4 kernelpagesize_kB=4\n\
             4 default file=/lib/b anon=5 mapped=9 N0=3 N1=3 N2=1 kernelpagesize_kB=4\n\
             5 default file=/lib/c\n\
             6 default\n");
        for (node, bytes) in &s.by_node_bytes {
            let kinds: u64 = s.by_kind.values().filter_map(|k| k.get(node)).sum();
            assert_eq!(kinds, *bytes, "node {node}");
        }
        assert_eq!(s.by_node_bytes.values().sum::<u64>(), 23 * 4096);
    }

    #[test]
    fn policies_are_in_numactls_words() {
        for (line, want) in [
            ("1 default file=/bin/x", "default"),
            ("1 bind:1 anon=1 N1=1", "bind:1"),
            ("1 bind=static:0-1 anon=1", "bind=static:0-1"),
            ("1 prefer:1", "preferred:1"),
            ("1 prefer (many):0-1 heap", "preferred-many:0-1"),
            ("1 interleave:0-3", "interleave:0-3"),
            ("1 weighted interleave:0,2 heap", "weighted-interleave:0,2"),
            ("1 local", "local"),
        ] {
            let sum = sum_of(&format!("{line}\n"));
            assert_eq!(sum.policy.as_deref(), Some(want), "{line}");
        }
    }

    #[test]
    fn the_first_mapping_gives_the_policy() {
        let s = sum("1 bind:1 N1=1\n2 default N0=1\n");
        assert_eq!(s.policy.as_deref(), Some("bind:1"));
    }
}
