//! A process's cgroup: which container it belongs to, the CPUs and nodes that its cpuset leaves, and which one its memory is
//! charged to.

use crate::host::cpulist;
use crate::host::root::{Root, read_if_present};
use model::container;
use model::policy::Container;
use model::topology::NodeId;
use std::path::PathBuf;

/// What a cgroup tells of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cgroup {
    /// Its path below the hierarchy's root.
    pub(crate) path: Option<String>,
    /// The container that the path names.
    pub(crate) container: Option<Container>,
    /// CPUs of the effective cpuset; `None` without that controller.
    pub(crate) cpus: Option<Vec<u32>>,
    /// Nodes of the same.
    pub(crate) mems: Option<Vec<NodeId>>,
    /// Why the cpuset can't be told, where there may be one.
    pub(crate) reason: Option<String>,
    /// The one that its memory is charged to; `None` outside of any hierarchy.
    pub(crate) memory: Option<MemoryCgroup>,
}

/// A cgroup that memory is charged to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemoryCgroup {
    /// Its path below the hierarchy's root.
    pub(crate) path: String,
    /// Its `memory.numa_stat`, and the hierarchy's version; or why there is none.
    pub(crate) file: Result<(PathBuf, u8), String>,
}

/// Reads it; `memberships` is the process's `/proc/PID/cgroup`.
pub(crate) fn read_cgroup(root: &Root, memberships: &str) -> Cgroup {
    let lines: Vec<Line> = memberships.lines().filter_map(Line::parse).collect();
    // Version 1 has a path for each controller, and the unified one may be at the root meanwhile.
    let unified = lines.iter().find(|line| line.controllers.is_empty());
    let cpuset = lines.iter().find(|line| line.has("cpuset"));
    let memory = lines.iter().find(|line| line.has("memory"));
    let in_order = unified.into_iter().chain(cpuset).chain(&lines);
    let named = in_order
        .clone()
        .find_map(|line| Some((line.path, container::of(line.path)?)));
    let path = named.as_ref().map(|(path, _)| *path);
    let mut paths = in_order.map(|line| line.path);
    let path = path.or_else(|| paths.clone().find(|path| *path != "/"));
    let path = path.or_else(|| paths.next());
    let (mut cgroup, place) = (
        Cgroup {
            path: path.map(str::to_owned),
            container: named.map(|(_, container)| container),
            memory: memory
                .or(unified)
                .map(|line| MemoryCgroup::find(root, line)),
            ..Cgroup::default()
        },
        cpuset.or(unified),
    );
    let Some(line) = place else {
        return cgroup;
    };
    if let Err(reason) = line.is_inside() {
        cgroup.reason = Some(reason);
        return cgroup;
    }
    match effective(root, line) {
        Ok(Some(set)) => (cgroup.cpus, cgroup.mems) = (Some(set.cpus), Some(set.mems)),
        Ok(None) => {}
        Err(reason) => cgroup.reason = Some(reason),
    }
    cgroup
}

impl MemoryCgroup {
    /// The nearest at or above that accounts for memory by node.
    fn find(root: &Root, line: &Line) -> Self {
        const NAME: &str = "memory.numa_stat";
        let version_1 = line.has("memory");
        let own = |reason| Self {
            path: line.path.to_owned(),
            file: Err(reason),
        };
        if let Err(reason) = line.is_inside() {
            return own(reason);
        }
        for base in line.mounts(root, "memory") {
            for path in upwards(line.path) {
                let file = base.join(path).join(NAME);
                // Whoever may not look is told so by the reading.
                if file.try_exists().unwrap_or(true) {
                    return Self {
                        path: format!("/{path}"),
                        file: Ok((file, if version_1 { 1 } else { 2 })),
                    };
                }
            }
        }
        own(if version_1 {
            format!("no {NAME}: the kernel has no CONFIG_NUMA, or the hierarchy is not mounted")
        } else {
            format!(
                "no {NAME}: it is there from Linux 5.9 on, where the memory controller is enabled"
            )
        })
    }
}

/// A cgroup's path without slashes around it, and those above it; the hierarchy's root is empty.
fn upwards(path: &str) -> impl Iterator<Item = &str> {
    fn above<'a>(path: &&'a str) -> Option<&'a str> {
        let above = path.rsplit_once('/').map_or("", |(above, _)| above);
        (!path.is_empty()).then_some(above)
    }
    std::iter::successors(Some(path.trim_matches('/')), above)
}

/// CPUs and nodes, ascending.
struct Cpuset {
    cpus: Vec<u32>,
    mems: Vec<NodeId>,
}

/// The nearest cpuset at or above: a cgroup without that controller has its parent's.
fn effective(root: &Root, line: &Line) -> Result<Option<Cpuset>, String> {
    let version_1 = line.has("cpuset");
    let (cpus, mems) = if version_1 {
        ("cpuset.effective_cpus", "cpuset.effective_mems")
    } else {
        ("cpuset.cpus.effective", "cpuset.mems.effective")
    };
    for base in line.mounts(root, "cpuset") {
        for path in upwards(line.path) {
            let directory = base.join(path);
            let list = |name: &str| {
                let file = directory.join(name);
                let text = read_if_present(&file).map_err(|error| error.to_string())?;
                // An empty one of version 1 has never been set, and nobody is in it.
                Ok::<_, String>(
                    text.and_then(|text| cpulist::parse(&text))
                        .filter(|l| !l.is_empty()),
                )
            };
            if let (Some(cpus), Some(mems)) = (list(cpus)?, list(mems)?) {
                return Ok(Some(Cpuset { cpus, mems }));
            }
        }
    }
    Ok(None)
}

/// A line of `/proc/PID/cgroup`.
struct Line<'a> {
    /// Empty for the unified hierarchy.
    controllers: &'a str,
    path: &'a str,
}

impl<'a> Line<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        Some(Self { controllers, path })
    }

    fn has(&self, controller: &str) -> bool {
        self.controllers.split(',').any(|name| name == controller)
    }

    /// Whether its files can be where this cgroup namespace looks; why not.
    fn is_inside(&self) -> Result<(), String> {
        if self.path.split('/').any(|part| part == "..") {
            let path = self.path;
            return Err(format!("cgroup {path} is outside this cgroup namespace"));
        }
        Ok(())
    }

    /// Where its hierarchy is mounted by custom: of version 1 by this controller's name, or all of its controllers'.
    fn mounts(&self, root: &Root, controller: &str) -> Vec<PathBuf> {
        if self.controllers.is_empty() {
            return vec![root.sys("fs/cgroup"), root.sys("fs/cgroup/unified")];
        }
        vec![
            root.sys("fs/cgroup").join(controller),
            root.sys("fs/cgroup").join(self.controllers),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fixture::Fixture;

    fn cpuset(
        files: &[(&str, &str)],
        memberships: &str,
    ) -> (Option<Vec<u32>>, Option<Vec<NodeId>>) {
        let fixture = Fixture::with(files);
        let cgroup = read_cgroup(&fixture.root(), memberships);
        assert_eq!(cgroup.reason, None);
        (cgroup.cpus, cgroup.mems)
    }

    #[test]
    fn a_cgroup_without_a_cpuset_has_that_above_it() {
        let files = [
            ("sys/fs/cgroup/cpuset.cpus.effective", "0-7\n"),
            ("sys/fs/cgroup/cpuset.mems.effective", "0-1\n"),
            ("sys/fs/cgroup/llm.slice/cpuset.cpus.effective", "4-5\n"),
            ("sys/fs/cgroup/llm.slice/cpuset.mems.effective", "1\n"),
            ("sys/fs/cgroup/llm.slice/vllm.service/cgroup.procs", "7\n"),
        ];
        for (path, want) in [
            ("/llm.slice/vllm.service", (vec![4, 5], vec![1])),
            ("/llm.slice", (vec![4, 5], vec![1])),
            ("/user.slice", ((0..8).collect(), vec![0, 1])),
            ("/", ((0..8).collect(), vec![0, 1])),
        ] {
            let found = cpuset(&files, &format!("0::{path}\n"));
            assert_eq!(found, (Some(want.0), Some(want.1)), "{path}");
        }
    }

    #[test]
    fn version_1_has_a_hierarchy_of_its_own() {
        let memberships = "9:cpuset:/docker/a\n4:memory:/docker/a\n1:name=systemd:/\n0::/\n";
        for mount in ["sys/fs/cgroup/cpuset", "sys/fs/cgroup/cpuset,cpu"] {
            let (cpus, mems) = (
                format!("{mount}/docker/cpuset.effective_cpus"),
                format!("{mount}/docker/cpuset.effective_mems"),
            );
            let memberships = memberships.replace("cpuset", &mount["sys/fs/cgroup/".len()..]);
            // The cgroup's own was never set: an empty line.
            let own = format!("{mount}/docker/a/cpuset.effective_cpus");
            let found = cpuset(
                &[(&cpus, "2-3\n"), (&mems, "1\n"), (&own, "\n")],
                &memberships,
            );
            assert_eq!(found, (Some(vec![2, 3]), Some(vec![1])), "{mount}");
        }
    }

    #[test]
    fn without_the_controller_there_is_none() {
        assert_eq!(cpuset(&[], "0::/user.slice\n"), (None, None));
        assert_eq!(cpuset(&[], ""), (None, None));
    }

    #[test]
    fn a_cgroup_of_another_namespace_says_so() {
        let fixture = Fixture::with(&[("sys/fs/cgroup/cpuset.cpus.effective", "0\n")]);
        let cgroup = read_cgroup(&fixture.root(), "0::/../other\n");
        assert_eq!(cgroup.cpus, None);
        assert!(cgroup.reason.is_some_and(|why| why.contains("namespace")));
    }

    #[test]
    fn the_path_that_names_a_container_is_the_one_to_show() {
        let id = "a1".repeat(32);
        let memberships = format!("9:cpuset:/docker/{id}\n1:name=systemd:/docker/{id}\n0::/\n");
        let cgroup = read_cgroup(&Fixture::new().root(), &memberships);
        assert_eq!(cgroup.path, Some(format!("/docker/{id}")));
        assert_eq!(cgroup.container.map(|c| c.id), Some(id));
    }

    fn memory(files: &[&str], memberships: &str) -> (String, Result<(String, u8), String>) {
        let fixture = Fixture::new();
        for file in files {
            fixture.file(&format!("sys/fs/cgroup/{file}"), "");
        }
        let cgroup = read_cgroup(&fixture.root(), memberships);
        let memory = cgroup.memory.unwrap();
        let below = |file: PathBuf| {
            let sys = fixture.root().sys("fs/cgroup");
            file.strip_prefix(sys).unwrap().display().to_string()
        };
        let file = memory.file.map(|(file, version)| (below(file), version));
        (memory.path, file)
    }

    #[test]
    fn memory_is_charged_to_the_nearest_cgroup_that_accounts_for_it() {
        for (files, memberships, path, file) in [
            (
                &["a/memory.numa_stat", "a/b/cgroup.procs"][..],
                "0::/a/b\n",
                "/a",
                ("a/memory.numa_stat", 2),
            ),
            (
                &["memory.numa_stat", "a/memory.numa_stat"],
                "0::/a\n",
                "/a",
                ("a/memory.numa_stat", 2),
            ),
            (
                &["memory.numa_stat"],
                "0::/a\n",
                "/",
                ("memory.numa_stat", 2),
            ),
            // Version 1 has it in a hierarchy of its own, whatever the unified one says.
            (
                &["memory/m/memory.numa_stat", "unified/a/cgroup.procs"],
                "4:memory:/m\n0::/a\n",
                "/m",
                ("memory/m/memory.numa_stat", 1),
            ),
            (
                &["cpu,memory/m/memory.numa_stat"],
                "4:cpu,memory:/m\n",
                "/m",
                ("cpu,memory/m/memory.numa_stat", 1),
            ),
        ] {
            let want = (path.to_owned(), Ok((file.0.to_owned(), file.1)));
            assert_eq!(memory(files, memberships), want, "{files:?}");
        }
    }

    #[test]
    fn where_nobody_accounts_for_memory_by_node_it_says_so() {
        for (memberships, path, want) in [
            ("0::/a\n", "/a", "Linux 5.9"),
            ("0::/../a\n", "/../a", "namespace"),
            ("4:memory:/m\n0::/\n", "/m", "CONFIG_NUMA"),
        ] {
            let (at, file) = memory(&[], memberships);
            assert_eq!(at, path);
            let reason = file.unwrap_err();
            assert!(reason.contains(want), "{reason}");
        }
        let fixture = Fixture::new();
        assert_eq!(read_cgroup(&fixture.root(), "").memory, None);
    }
}
