//! Memory of the watched processes' cgroups: read once for all of a cgroup's processes, and not on each tick.

use super::placing::TICKS;
use crate::host::cgroup::MemoryCgroup;
use crate::host::root::read;
use model::cgroup::{self, Cgroup, CgroupMemoryKind};
use model::process::{ByNode, Process};
use procfs::page_size;
use std::collections::BTreeMap;

/// See the module's doc.
#[derive(Default)]
pub(super) struct Cgroups {
    known: BTreeMap<String, Known>,
}

/// What was read, and for how many ticks it is believed still: the kernel adds up its CPUs' counts to tell it.
struct Known {
    memory: Result<BTreeMap<CgroupMemoryKind, ByNode>, String>,
    due: u32,
}

impl Cgroups {
    /// All of them, ascending by path. `charged` has the cgroup of each process that lives, by pid.
    pub(super) fn of(
        &mut self,
        charged: &BTreeMap<u32, &MemoryCgroup>,
        processes: &[Process],
    ) -> Vec<Cgroup> {
        let by_path: BTreeMap<&str, &MemoryCgroup> = charged
            .values()
            .map(|cgroup| (cgroup.path.as_str(), *cgroup))
            .collect();
        self.known
            .retain(|path, _| by_path.contains_key(path.as_str()));
        let of_path = |(path, place): (&str, &MemoryCgroup)| {
            let within = charged
                .iter()
                .filter(|(_, other)| cgroup::is_within(&other.path, path));
            let pids: Vec<u32> = within.map(|(pid, _)| *pid).collect();
            let members = processes
                .iter()
                .filter(|p| p.alive && pids.binary_search(&p.pid).is_ok());
            let private = cgroup::private_by_node(members);
            let memory = self.memory(place);
            Cgroup {
                path: path.to_owned(),
                pids,
                memory_by_kind: memory.as_ref().ok().cloned(),
                source: place.file.as_ref().ok().map(source),
                reason: memory.as_ref().err().cloned(),
                private_by_node_bytes: private.as_ref().ok().cloned(),
                private_reason: private.err(),
            }
        };
        by_path.into_iter().map(of_path).collect()
    }

    /// Makes the next snapshot read anew.
    pub(super) fn expire(&mut self) {
        self.known.clear();
    }

    fn memory(
        &mut self,
        place: &MemoryCgroup,
    ) -> &Result<BTreeMap<CgroupMemoryKind, ByNode>, String> {
        let fresh = || Known {
            memory: read_memory(place),
            due: TICKS - 1,
        };
        let known = self
            .known
            .entry(place.path.clone())
            .and_modify(|known| match known.due.checked_sub(1) {
                Some(due) => known.due = due,
                None => *known = fresh(),
            })
            .or_insert_with(fresh);
        &known.memory
    }
}

fn source((_, version): &(std::path::PathBuf, u8)) -> String {
    format!("memory.numa_stat of cgroup v{version}")
}

fn read_memory(place: &MemoryCgroup) -> Result<BTreeMap<CgroupMemoryKind, ByNode>, String> {
    let (file, _) = place.file.as_ref().map_err(Clone::clone)?;
    let text = read(file).map_err(|error| error.to_string())?;
    let parsed = cgroup::parse(&text, page_size());
    parsed.ok_or_else(|| format!("{} has another form than any that is known", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::cgroup::read_cgroup;
    use crate::host::fixture::Fixture;

    const STAT: &str = "sys/fs/cgroup/a/memory.numa_stat";

    fn text(bytes: u64) -> String {
        format!("anon N0={bytes}\nfile N0=0\nshmem N0=0\n")
    }

    fn charged(fixture: &Fixture, memberships: &str) -> MemoryCgroup {
        read_cgroup(&fixture.root(), memberships).memory.unwrap()
    }

    fn anonymous(cgroups: &[Cgroup]) -> Option<u64> {
        let kinds = cgroups[0].memory_by_kind.as_ref()?;
        kinds.get(&CgroupMemoryKind::Anonymous)?.get(&0).copied()
    }

    #[test]
    fn a_cgroup_is_read_once_in_ten_snapshots_and_when_asked() {
        let fixture = Fixture::with(&[(STAT, &text(5))]);
        let place = charged(&fixture, "0::/a\n");
        let all = BTreeMap::from([(7, &place), (8, &place)]);
        let mut cgroups = Cgroups::default();
        assert_eq!(anonymous(&cgroups.of(&all, &[])), Some(5));
        fixture.file(STAT, &text(6));
        for _ in 1..10 {
            assert_eq!(anonymous(&cgroups.of(&all, &[])), Some(5));
        }
        assert_eq!(anonymous(&cgroups.of(&all, &[])), Some(6));
        fixture.file(STAT, &text(7));
        cgroups.expire();
        assert_eq!(anonymous(&cgroups.of(&all, &[])), Some(7));
    }

    #[test]
    fn it_has_the_processes_below_it_too() {
        let below = "sys/fs/cgroup/a/b/memory.numa_stat";
        let fixture = Fixture::with(&[(STAT, &text(5)), (below, &text(1))]);
        let (outer, inner) = (charged(&fixture, "0::/a\n"), charged(&fixture, "0::/a/b\n"));
        let all = BTreeMap::from([(7, &outer), (8, &inner)]);
        let found = Cgroups::default().of(&all, &[]);
        let found: Vec<_> = found
            .iter()
            .map(|c| (c.path.as_str(), c.pids.as_slice()))
            .collect();
        assert_eq!(found, [("/a", &[7, 8][..]), ("/a/b", &[8])]);
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let fixture = Fixture::with(&[(STAT, "nonsense\n")]);
        let place = charged(&fixture, "0::/a\n");
        let told = |place: &MemoryCgroup| {
            let all = BTreeMap::from([(7, place)]);
            let cgroup = Cgroups::default().of(&all, &[]).remove(0);
            assert_eq!(cgroup.memory_by_kind, None);
            cgroup.reason.unwrap()
        };
        assert!(told(&place).contains("another form"), "{}", told(&place));
        fixture.unreadable(STAT);
        assert!(told(&place).contains(STAT), "{}", told(&place));
        let none = charged(&Fixture::new(), "0::/a\n");
        assert!(told(&none).contains("Linux 5.9"), "{}", told(&none));
    }
}
