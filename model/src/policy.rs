//! What a process or thread may use: memory policy, CPUs and the cgroup's bounds. Words are numactl's.

use crate::list;
use crate::process::ByNode;
use crate::topology::NodeId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A memory policy, as `numa_maps` writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// The mode.
    pub mode: PolicyMode,
    /// Its nodes, ascending; empty for `default` and `local`.
    pub nodes: Vec<NodeId>,
    /// What it was set with besides.
    #[serde(default)]
    pub flags: Vec<PolicyFlag>,
}

/// What a policy was set with besides its nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyFlag {
    /// The nodes stay what they are when the cpuset changes.
    Static,
    /// The nodes count from the cpuset's first.
    Relative,
    /// NUMA balancing may move pages among the nodes.
    Balancing,
}

/// Modes of a memory policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyMode {
    /// On the node of the CPU that touches first.
    #[default]
    Default,
    /// Only on the nodes.
    Bind,
    /// On the nodes while they have room: a hint.
    Preferred,
    /// As `preferred`, with several nodes.
    PreferredMany,
    /// In turn on the nodes.
    Interleave,
    /// In turn, by the nodes' weights.
    WeightedInterleave,
    /// On the node of the CPU, whatever the task's policy.
    Local,
}

/// Modes, and the kernel's words for them: the same from 5.10 on, where it has the mode at all.
const KERNEL_WORDS: [(&str, PolicyMode); 7] = [
    ("default", PolicyMode::Default),
    ("bind", PolicyMode::Bind),
    ("prefer (many)", PolicyMode::PreferredMany),
    ("prefer", PolicyMode::Preferred),
    ("interleave", PolicyMode::Interleave),
    ("weighted interleave", PolicyMode::WeightedInterleave),
    ("local", PolicyMode::Local),
];

/// Mappings that share a memory policy of their own, which the process's program gave them (`mbind`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnPolicy {
    /// It; the process's own policy is another one.
    pub policy: Policy,
    /// How many mappings.
    pub mappings: u64,
    /// Their resident bytes by node.
    pub by_node_bytes: ByNode,
}

impl Policy {
    /// Reads the policy of a line of `numa_maps`: what follows the mapping's address, and whatever follows it.
    ///
    /// `None` for words that no kernel writes, and for a policy that is cut off, by the end of what was read or by the
    /// kernel, which writes 63 bytes at most.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (rest, mode) = KERNEL_WORDS
            .iter()
            .find_map(|(word, mode)| Some((text.strip_prefix(word)?, *mode)))?;
        // Without the blank or the line's end behind it, more may have followed.
        let end = rest.find([' ', '\n'])?;
        let word_length = text.len() - rest.len();
        if word_length + end >= KERNEL_LIMIT {
            return None;
        }
        let (flags, nodes) = match rest[..end].split_once(':') {
            Some((flags, nodes)) => (flags, list::parse(nodes)?),
            None => (&rest[..end], Vec::new()),
        };
        let flags = match flags.strip_prefix('=') {
            // 5.12 to 6.8 write nothing behind it for a policy that lets NUMA balancing go on.
            Some("") => vec![PolicyFlag::Balancing],
            Some(flags) => flags
                .split('|')
                .map(PolicyFlag::parse)
                .collect::<Option<_>>()?,
            None if flags.is_empty() => Vec::new(),
            None => return None,
        };
        Some(Self { mode, nodes, flags })
    }

    /// Only on this node.
    #[must_use]
    pub fn bind(node: NodeId) -> Self {
        Self {
            mode: PolicyMode::Bind,
            nodes: vec![node],
            flags: Vec::new(),
        }
    }
}

/// Bytes that the kernel has room for (`show_numa_map`), the final zero not counted.
const KERNEL_LIMIT: usize = 63;

/// In numactl's words: `bind:0-1`, `preferred:1`, `weighted-interleave:0,2`.
impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.mode.as_str())?;
        for (number, flag) in self.flags.iter().enumerate() {
            f.write_str(if number == 0 { "=" } else { "|" })?;
            f.write_str(flag.as_str())?;
        }
        if self.nodes.is_empty() {
            return Ok(());
        }
        write!(f, ":{}", list::format(&self.nodes))
    }
}

impl PolicyMode {
    /// numactl's word, without blanks.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Bind => "bind",
            Self::Preferred => "preferred",
            Self::PreferredMany => "preferred-many",
            Self::Interleave => "interleave",
            Self::WeightedInterleave => "weighted-interleave",
            Self::Local => "local",
        }
    }
}

impl PolicyFlag {
    fn as_str(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Relative => "relative",
            Self::Balancing => "balancing",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        [Self::Static, Self::Relative, Self::Balancing]
            .into_iter()
            .find(|flag| flag.as_str() == word)
    }
}

/// What a process may use, and who else decides about it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placing {
    /// The task's memory policy; `None` where the kernel has no NUMA or it can't be read.
    pub policy: Option<Policy>,
    /// CPUs that it may run on, ascending (`Cpus_allowed_list`).
    pub cpus_allowed: Option<Vec<u32>>,
    /// Nodes that it may allocate on, ascending (`Mems_allowed_list`).
    pub mems_allowed: Option<Vec<NodeId>>,
    /// The cgroup's effective cpuset; `None` without that controller.
    pub cpuset_cpus: Option<Vec<u32>>,
    /// The same of nodes.
    pub cpuset_mems: Option<Vec<NodeId>>,
    /// The cgroup's path below its root.
    pub cgroup: Option<String>,
    /// The container it runs in.
    pub container: Option<Container>,
    /// Live threads whose affinity and policy have not been asked yet, or whose policy can't be read though the leader's can:
    /// they may be bound otherwise.
    #[serde(default)]
    pub threads_unasked: usize,
    /// Why something above is missing.
    pub reason: Option<String>,
}

/// A container, as its cgroup's path tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// Its id; a name where the runtime has no ids.
    pub id: String,
    /// `docker`, `containerd`, `cri-o`, `podman`, `lxc`; `None` where the path doesn't tell.
    pub runtime: Option<String>,
    /// The Kubernetes pod's uid.
    pub pod_uid: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use PolicyFlag::{Balancing, Relative, Static};
    use PolicyMode::{
        Bind, Default, Interleave, Local, Preferred, PreferredMany, WeightedInterleave,
    };

    #[test]
    fn what_the_kernel_writes_is_read_and_said_in_numactls_words() {
        for (text, mode, nodes, flags, words) in [
            (
                "default file=/bin/x N0=1",
                Default,
                &[][..],
                &[][..],
                "default",
            ),
            ("default\n", Default, &[], &[], "default"),
            ("local heap anon=1", Local, &[], &[], "local"),
            ("bind:1 anon=1 N1=1", Bind, &[1], &[], "bind:1"),
            ("bind:0-1,8 anon=1", Bind, &[0, 1, 8], &[], "bind:0-1,8"),
            (
                "bind=static:0-1 x",
                Bind,
                &[0, 1],
                &[Static],
                "bind=static:0-1",
            ),
            (
                "bind=relative:1 x",
                Bind,
                &[1],
                &[Relative],
                "bind=relative:1",
            ),
            // 5.12 to 6.8, then 6.9 and later, of the same policy.
            ("bind=:1 x", Bind, &[1], &[Balancing], "bind=balancing:1"),
            (
                "bind=balancing:1 x",
                Bind,
                &[1],
                &[Balancing],
                "bind=balancing:1",
            ),
            (
                "bind=static|balancing:0,2 x",
                Bind,
                &[0, 2],
                &[Static, Balancing],
                "bind=static|balancing:0,2",
            ),
            ("prefer:1 x", Preferred, &[1], &[], "preferred:1"),
            (
                "prefer=static:0 x",
                Preferred,
                &[0],
                &[Static],
                "preferred=static:0",
            ),
            (
                "prefer (many):0-1 x",
                PreferredMany,
                &[0, 1],
                &[],
                "preferred-many:0-1",
            ),
            (
                "prefer (many)=relative:0 x",
                PreferredMany,
                &[0],
                &[Relative],
                "preferred-many=relative:0",
            ),
            (
                "interleave:0-3 x",
                Interleave,
                &[0, 1, 2, 3],
                &[],
                "interleave:0-3",
            ),
            (
                "weighted interleave:0,2 heap",
                WeightedInterleave,
                &[0, 2],
                &[],
                "weighted-interleave:0,2",
            ),
        ] {
            let want = Policy {
                mode,
                nodes: nodes.to_vec(),
                flags: flags.to_vec(),
            };
            let policy = Policy::parse(text);
            assert_eq!(policy.as_ref(), Some(&want), "{text:?}");
            assert_eq!(want.to_string(), words);
        }
    }

    #[test]
    fn what_is_cut_off_or_no_policy_is_none() {
        let long = format!("bind:{} file=x", ["0"; 40].join(","));
        for text in [
            "",
            "bind:1",
            "bind:0,",
            "bin",
            "unknown x",
            "bind=odd:1 x",
            "bindings x",
            "bind:x y",
            "prefer",
            long.as_str(),
        ] {
            assert_eq!(Policy::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn json_has_the_mode_in_numactls_words() {
        let json = serde_json::to_value(Policy::bind(1)).unwrap();
        assert_eq!(
            json,
            serde_json::json!({"mode": "bind", "nodes": [1], "flags": []})
        );
        for mode in [
            Default,
            Bind,
            Preferred,
            PreferredMany,
            Interleave,
            WeightedInterleave,
            Local,
        ] {
            assert_eq!(serde_json::to_value(mode).unwrap(), mode.as_str());
        }
    }
}
