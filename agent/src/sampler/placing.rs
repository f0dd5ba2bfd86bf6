//! What a process and its threads may use: read with little, and not all of it on each tick.

use crate::host::cgroup::{MemoryCgroup, read_cgroup};
use crate::host::cpulist;
use crate::host::placement::{is_available, read_policy};
use crate::host::process::ProcessDir;
use crate::host::root::Root;
use crate::host::status::{self, Status};
use model::policy::{Placing, Policy};
use std::collections::BTreeMap;

/// How many ticks the cgroup is believed, which is four files, and the policy of a process with one thread: the kernel walks
/// the first mapping to tell it.
pub(super) const TICKS: u32 = 10;

/// Threads of a process whose affinity and policy are asked in one tick, 9 and 10 µs each; all have their turn.
#[derive(Clone, Copy, Debug)]
pub(super) enum Haste {
    /// For an agent that watches on and on.
    Steady = 32,
    /// For whoever watches for seconds and then judges.
    Hurried = 1024,
}

/// The lines that are needed come within this, whatever is in front of them.
const STATUS: u64 = 8192;

/// See the module's doc.
#[derive(Default)]
pub(super) struct Known {
    placing: Placing,
    memory_cgroup: Option<MemoryCgroup>,
    /// Why there is no policy.
    policy_reason: Option<String>,
    /// Why something of the cgroup is missing.
    cgroup_reason: Option<String>,
    /// Ticks until policy and cgroup are read again.
    due: u32,
    /// Each thread that was asked.
    threads: BTreeMap<u32, OfThread>,
    /// The thread that was asked last.
    asked: u32,
}

/// What a thread may use.
struct OfThread {
    /// Its affinity as the kernel's list.
    cpus: String,
    /// Its memory policy; `None` where it can't be read, and until it is asked anew after the leader's has changed.
    policy: Option<Policy>,
}

impl Known {
    /// Of a process that was not looked at yet: if it ends before that, this stands.
    pub(super) fn unread() -> Self {
        let mut known = Self::default();
        known.placing.reason = Some("the process ended before it was asked".to_owned());
        known
    }

    /// Reads what is due. `status` is the process's; `tids` are its live threads, ascending.
    pub(super) fn look(
        &mut self,
        root: &Root,
        dir: &ProcessDir,
        status: &Status,
        tids: &[u32],
        haste: Haste,
    ) {
        let list = |text: &Option<String>| cpulist::parse(text.as_deref()?);
        self.placing.cpus_allowed = list(&status.cpus_allowed);
        self.placing.mems_allowed = list(&status.memory_allowed);
        let due = self.due.checked_sub(1);
        if due.is_none() {
            self.read_cgroup(root, dir);
        }
        // Threads are compared with the leader as it is now.
        if due.is_none() || tids.iter().any(|tid| *tid != dir.pid()) {
            self.read_policy(root, dir);
        }
        // Not all processes on the same tick.
        self.due = due.unwrap_or(TICKS - 1 - dir.pid() % (TICKS / 2));
        let reasons = [&self.policy_reason, &self.cgroup_reason];
        let reasons: Vec<&str> = reasons.into_iter().flatten().map(String::as_str).collect();
        self.placing.reason = (!reasons.is_empty()).then(|| reasons.join("; "));
        self.ask_threads(dir, tids, haste as usize);
    }

    /// What is read anew when the program changes: a launcher may have bound itself first.
    pub(super) fn changed(&mut self) {
        self.due = 0;
    }

    fn read_policy(&mut self, root: &Root, dir: &ProcessDir) {
        let read = match read_policy(dir, dir.pid()) {
            Ok(Some(policy)) => Ok(policy),
            Ok(None) => Err("its memory policy is no line of numa_maps".to_owned()),
            Err(_) if !is_available(root) => {
                Err("this kernel has no numa_maps (CONFIG_NUMA)".to_owned())
            }
            Err(error) => Err(error.to_string()),
        };
        let (policy, reason) = match read {
            Ok(policy) => (Some(policy), None),
            Err(reason) => (None, Some(reason)),
        };
        if policy != self.placing.policy {
            // Theirs may have changed with it: those whose turn comes later would be compared as they were.
            for thread in self.threads.values_mut() {
                thread.policy = None;
            }
        }
        (self.placing.policy, self.policy_reason) = (policy, reason);
    }

    fn read_cgroup(&mut self, root: &Root, dir: &ProcessDir) {
        match dir.read_start("cgroup", STATUS) {
            Ok(text) => {
                let cgroup = read_cgroup(root, &text);
                self.placing.cgroup = cgroup.path;
                self.placing.container = cgroup.container;
                self.placing.cpuset_cpus = cgroup.cpus;
                self.placing.cpuset_mems = cgroup.mems;
                self.memory_cgroup = cgroup.memory;
                self.cgroup_reason = cgroup.reason;
            }
            Err(error) => self.cgroup_reason = Some(error.to_string()),
        }
    }

    /// The next threads in turn; the leader's affinity is the process's.
    fn ask_threads(&mut self, dir: &ProcessDir, tids: &[u32], most: usize) {
        self.threads
            .retain(|tid, _| tids.binary_search(tid).is_ok());
        for tid in in_turn(tids, self.asked).take(most) {
            self.asked = tid;
            if tid == dir.pid() {
                continue;
            }
            // A thread that ended meanwhile has none.
            let Ok(text) = dir.read_start(&format!("task/{tid}/status"), STATUS) else {
                continue;
            };
            if let Some(cpus) = status::parse(&text).cpus_allowed {
                // Where the leader's can't be read neither can another thread's.
                let known = self.placing.policy.is_some();
                let policy = known.then(|| read_policy(dir, tid).ok().flatten());
                let policy = policy.flatten();
                self.threads.insert(tid, OfThread { cpus, policy });
            }
        }
        let known = |thread: &OfThread| thread.policy.is_some() || self.placing.policy.is_none();
        let is_asked = |tid: &u32| *tid == dir.pid() || self.threads.get(tid).is_some_and(known);
        let is_unasked = |tid: &&u32| !is_asked(tid);
        self.placing.threads_unasked = tids.iter().filter(is_unasked).count();
    }

    /// What is known.
    pub(super) fn placing(&self) -> &Placing {
        &self.placing
    }

    /// The cgroup that its memory is charged to.
    pub(super) fn memory_cgroup(&self) -> Option<&MemoryCgroup> {
        self.memory_cgroup.as_ref()
    }

    /// A thread's CPUs, where they aren't the process's.
    pub(super) fn thread_cpus(&self, tid: u32) -> Option<Vec<u32>> {
        let cpus = cpulist::parse(&self.threads.get(&tid)?.cpus)?;
        (self.placing.cpus_allowed.as_ref() != Some(&cpus)).then_some(cpus)
    }

    /// A thread's memory policy, where it isn't the process's.
    pub(super) fn thread_policy(&self, tid: u32) -> Option<Policy> {
        let own = self.threads.get(&tid)?.policy.as_ref()?;
        (self.placing.policy.as_ref() != Some(own)).then(|| own.clone())
    }
}

/// Ascending threads, beginning behind the one that was last, each once.
fn in_turn(tids: &[u32], last: u32) -> impl Iterator<Item = u32> {
    let start = tids.partition_point(|tid| *tid <= last);
    tids[start..].iter().chain(&tids[..start]).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fixture::Fixture;

    fn process(fixture: &Fixture) -> ProcessDir {
        ProcessDir::open(&fixture.root(), 7).unwrap()
    }

    fn looked(fixture: &Fixture, tids: &[u32]) -> Known {
        looked_in(fixture, tids, Haste::Steady)
    }

    fn looked_in(fixture: &Fixture, tids: &[u32], haste: Haste) -> Known {
        let mut known = Known::default();
        let status = Status {
            cpus_allowed: Some("0-3".into()),
            memory_allowed: Some("0-1".into()),
            ..Status::default()
        };
        known.look(&fixture.root(), &process(fixture), &status, tids, haste);
        known
    }

    fn bound() -> Fixture {
        let fixture = Fixture::with(&[
            (
                "proc/7/task/7/numa_maps",
                "5595d5650000 bind:1 file=/bin/x N1=1\n",
            ),
            ("proc/7/cgroup", "0::/system.slice/llm.service\n"),
            ("proc/7/task/8/status", "Cpus_allowed_list:\t2-3\n"),
            ("proc/7/task/9/status", "Cpus_allowed_list:\t0-3\n"),
            ("sys/fs/cgroup/cpuset.cpus.effective", "0-7\n"),
            ("sys/fs/cgroup/cpuset.mems.effective", "0-1\n"),
        ]);
        fixture.process(7, 1, "x", &["x"]);
        fixture
    }

    #[test]
    fn all_of_it() {
        let known = looked(&bound(), &[7]);
        let placing = known.placing();
        assert_eq!(placing.policy.as_ref().unwrap().to_string(), "bind:1");
        assert_eq!(placing.cpus_allowed, Some(vec![0, 1, 2, 3]));
        assert_eq!(placing.mems_allowed, Some(vec![0, 1]));
        assert_eq!(placing.cpuset_cpus, Some((0..8).collect()));
        assert_eq!(placing.cpuset_mems, Some(vec![0, 1]));
        assert_eq!(placing.cgroup.as_deref(), Some("/system.slice/llm.service"));
        assert_eq!((&placing.container, &placing.reason), (&None, &None));
    }

    #[test]
    fn a_thread_is_named_where_it_differs_from_its_process() {
        let known = looked(&bound(), &[7, 8, 9, 10]);
        assert_eq!(known.thread_cpus(8), Some(vec![2, 3]));
        for same in [7, 9, 10] {
            assert_eq!(known.thread_cpus(same), None, "{same}");
        }
    }

    #[test]
    fn a_threads_policy_is_told_where_it_is_not_its_processs() {
        let fixture = bound();
        set_policy(&fixture, 8, "default");
        set_policy(&fixture, 9, "bind:1");
        let known = looked(&fixture, &[7, 8, 9, 10]);
        let policy = |tid| known.thread_policy(tid).map(|p| p.to_string());
        assert_eq!(policy(8).as_deref(), Some("default"));
        for same in [7, 9, 10] {
            assert_eq!(policy(same), None, "{same}");
        }
    }

    fn look_again(known: &mut Known, fixture: &Fixture, tids: &[u32]) {
        let (root, status) = (fixture.root(), Status::default());
        known.look(&root, &process(fixture), &status, tids, Haste::Steady);
    }

    fn set_policy(fixture: &Fixture, tid: u32, policy: &str) {
        let text = format!("5595d5650000 {policy} file=/bin/x N1=1\n");
        fixture.file(&format!("proc/7/task/{tid}/numa_maps"), &text);
    }

    #[test]
    fn threads_are_compared_with_their_leader_as_it_is_now() {
        let fixture = bound();
        set_policy(&fixture, 8, "bind:1");
        let mut known = looked(&fixture, &[7, 8]);
        for tid in [7, 8] {
            set_policy(&fixture, tid, "bind:0");
        }
        look_again(&mut known, &fixture, &[7, 8]);
        assert_eq!(known.placing().policy, Some(Policy::bind(0)));
        assert_eq!(known.thread_policy(8), None);
    }

    #[test]
    fn threads_whose_turn_comes_later_are_not_compared_as_they_were() {
        let fixture = bound();
        // Two turns.
        let tids: Vec<u32> = (7..7 + 64).collect();
        for tid in &tids {
            let status = "Cpus_allowed_list:\t0-3\n";
            fixture.file(&format!("proc/7/task/{tid}/status"), status);
            set_policy(&fixture, *tid, "bind:1");
        }
        let mut known = looked(&fixture, &tids);
        look_again(&mut known, &fixture, &tids);
        assert_eq!(known.placing().threads_unasked, 0);
        for tid in &tids {
            set_policy(&fixture, *tid, "bind:0");
        }
        look_again(&mut known, &fixture, &tids);
        let differs = tids
            .iter()
            .filter(|tid| known.thread_policy(**tid).is_some());
        assert_eq!(differs.count(), 0);
        assert_eq!(known.placing().threads_unasked, 32);
    }

    #[test]
    fn a_thread_whose_policy_cannot_be_read_was_not_asked() {
        let fixture = bound();
        set_policy(&fixture, 8, "bind:1");
        let known = looked(&fixture, &[7, 8, 9]);
        assert_eq!(known.placing().threads_unasked, 1);
        fixture.unreadable("proc/7/task/7/numa_maps");
        let known = looked(&fixture, &[7, 8, 9]);
        assert_eq!(known.placing().threads_unasked, 0, "nobody's can be read");
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let fixture = Fixture::new();
        fixture.process(7, 1, "x", &["x"]);
        let known = looked(&fixture, &[7]);
        assert_eq!(known.placing().policy, None);
        let reason = known.placing().reason.clone().unwrap();
        assert!(reason.contains("numa_maps"), "{reason}");
    }

    #[test]
    fn who_was_not_asked_yet_is_counted() {
        let fixture = Fixture::new();
        fixture.process(7, 1, "x", &["x"]);
        let tids: Vec<u32> = (7..107).collect();
        for tid in &tids {
            let status = "Cpus_allowed_list:\t0-3\n";
            fixture.file(&format!("proc/7/task/{tid}/status"), status);
        }
        for (haste, unasked) in [(Haste::Steady, 68), (Haste::Hurried, 0)] {
            let known = looked_in(&fixture, &tids, haste);
            assert_eq!(known.placing().threads_unasked, unasked, "{haste:?}");
        }
    }

    #[test]
    fn every_thread_has_its_turn() {
        let tids = [3, 5, 8];
        for (last, want) in [
            (0, [3, 5, 8]),
            (3, [5, 8, 3]),
            (6, [8, 3, 5]),
            (8, [3, 5, 8]),
        ] {
            assert_eq!(in_turn(&tids, last).collect::<Vec<_>>(), want, "{last}");
        }
        assert_eq!(in_turn(&[], 4).count(), 0);
    }
}
