//! The lowest rung: what `/proc` tells of processes without any eBPF, as the same rows that the kernel side would write.
//!
//! CPU time is `schedstat`'s. What a thread ran since the last reading counts to the node of the CPU that it ran on last:
//! exact while the CPUs that it may use lie on one node, a sample otherwise. Moves are not seen.

use super::ledger::Reading;
use super::reader::{now_ns, registered};
use crate::host::process::{ProcessDir, descendants};
use crate::host::root::{Root, read};
use agent_ebpf::{BalanceRow, RowKey, SLOT_UNKNOWN, SLOTS, SchedRow, Tracked};
use model::topology::Topology;
use std::collections::{BTreeMap, HashMap};

/// How often children are looked for, nanoseconds: it reads every process's `stat`.
const CHILDREN_NS: u64 = 2_000_000_000;

/// See the module's doc.
pub(crate) struct Procfs {
    root: Root,
    node_of_cpu: BTreeMap<usize, u32>,
    /// By thread-group id.
    processes: HashMap<u32, Process>,
    children_at_ns: u64,
    migrations: bool,
}

struct Process {
    tracked: Tracked,
    /// Pids come back.
    start_time: Option<u64>,
    threads: BTreeMap<u32, Thread>,
}

#[derive(Default)]
struct Thread {
    run_time_ns: u64,
    /// Pages that were migrated for it before it was watched.
    migrated_before: u64,
    migrated: u64,
    on_cpu_ns: BTreeMap<u32, u64>,
    node: u32,
}

impl Procfs {
    /// Watches nobody yet.
    pub(crate) fn new(root: Root, topology: &Topology) -> Self {
        let cpus = |node: &model::topology::Node| {
            let id = node.id;
            node.cpus
                .iter()
                .map(move |cpu| (*cpu as usize, id))
                .collect::<Vec<_>>()
        };
        Self {
            node_of_cpu: topology.nodes.iter().flat_map(cpus).collect(),
            migrations: tells_migrations(&root),
            processes: HashMap::new(),
            children_at_ns: now_ns(),
            root,
        }
    }

    /// Begins to count a process; `threads` are those that it has, with their run time so far.
    pub(crate) fn track(&mut self, tgid: u32, threads: &[(u32, u64)]) -> Tracked {
        // Cookies tell processes apart: no two are tracked in the same nanosecond.
        let newest = self.processes.values().map(|p| p.tracked.cookie).max();
        let tracked = Tracked {
            cookie: now_ns().max(newest.unwrap_or(0) + 1),
            parent: 0,
            exited: 0,
        };
        self.adopt(tgid, tracked, threads);
        tracked
    }

    /// Counts a process that the kernel side tracks; `threads` as for [`Self::track`].
    pub(super) fn adopt(&mut self, tgid: u32, tracked: Tracked, threads: &[(u32, u64)]) {
        let thread = |(tid, run_time_ns): &(u32, u64)| {
            let thread = Thread {
                run_time_ns: *run_time_ns,
                migrated_before: self.migrated(tgid, *tid).unwrap_or(0),
                ..Thread::default()
            };
            (*tid, thread)
        };
        let process = Process {
            tracked,
            start_time: self.start_time(tgid),
            threads: threads.iter().map(thread).collect(),
        };
        self.processes.insert(tgid, process);
    }

    /// Stops counting it.
    pub(crate) fn untrack(&mut self, tgid: u32, cookie: u64) {
        if self
            .processes
            .get(&tgid)
            .is_some_and(|p| p.tracked.cookie == cookie)
        {
            self.processes.remove(&tgid);
        }
    }

    /// Everybody who is counted; one whose pid is gone, or another's, has exited.
    pub(crate) fn tracked(&self) -> HashMap<u32, Tracked> {
        let entry = |(tgid, process): (&u32, &Process)| {
            let lives =
                process.start_time.is_some() && self.start_time(*tgid) == process.start_time;
            let tracked = Tracked {
                exited: u32::from(!lives),
                ..process.tracked
            };
            (*tgid, tracked)
        };
        self.processes.iter().map(entry).collect()
    }

    /// Adds children of those that are counted, now and then.
    pub(crate) fn find_children(&mut self) {
        let now = now_ns();
        if now.saturating_sub(self.children_at_ns) < CHILDREN_NS {
            return;
        }
        self.children_at_ns = now;
        let parents: Vec<u32> = self.processes.keys().copied().collect();
        // A list that can't be read is tried again the next time.
        for (child, parent) in descendants(&self.root, &parents).unwrap_or_default() {
            if self.processes.contains_key(&child) || child == std::process::id() {
                continue;
            }
            self.track(child, &self.born_since(child));
            if let Some(process) = self.processes.get_mut(&child) {
                process.tracked.parent = parent;
            }
        }
    }

    /// The threads of a process that began after it was to be watched: all of their run time counts.
    pub(super) fn born_since(&self, tgid: u32) -> Vec<(u32, u64)> {
        crate::sampler::run_times(&self.root, tgid)
            .into_iter()
            .map(|(tid, _)| (tid, 0))
            .collect()
    }

    /// Looks at every thread.
    pub(crate) fn read(&mut self) -> Reading {
        let mut reading = Reading::default();
        let mut processes = std::mem::take(&mut self.processes);
        for (tgid, process) in &mut processes {
            self.look(*tgid, process);
            rows(*tgid, process, &mut reading);
        }
        self.processes = processes;
        reading
    }

    fn look(&self, tgid: u32, process: &mut Process) {
        let Ok(dir) = ProcessDir::open(&self.root, tgid) else {
            return;
        };
        let tids = dir.thread_ids().unwrap_or_default();
        process.threads.retain(|tid, _| tids.contains(tid));
        for tid in tids {
            // It may end in the middle: what was read the last time stands.
            let (Ok(run_time_ns), Ok((_, cpu))) = (dir.thread_run_time(tid), dir.thread_state(tid))
            else {
                continue;
            };
            let migrated = self.migrated(tgid, tid);
            let thread = process.threads.entry(tid).or_default();
            if let Some(node) = self.node_of_cpu.get(&cpu) {
                thread.node = *node;
                let spent = run_time_ns.saturating_sub(thread.run_time_ns);
                *thread.on_cpu_ns.entry(*node).or_default() += spent;
                thread.run_time_ns = thread.run_time_ns.max(run_time_ns);
            }
            if let Some(migrated) = migrated {
                thread.migrated = migrated.saturating_sub(thread.migrated_before);
            }
        }
    }

    fn start_time(&self, pid: u32) -> Option<u64> {
        let stat = ProcessDir::open(&self.root, pid).and_then(|dir| dir.stat());
        stat.ok().map(|stat| stat.start_time)
    }

    fn migrated(&self, pid: u32, tid: u32) -> Option<u64> {
        if !self.migrations {
            return None;
        }
        let text = read(&self.root.process(pid).join(format!("task/{tid}/sched"))).ok()?;
        migrated(&text)
    }
}

fn rows(tgid: u32, process: &Process, reading: &mut Reading) {
    let cookie = process.tracked.cookie;
    for (tid, thread) in &process.threads {
        reading
            .threads
            .push((*tid, registered(cookie, tgid, thread.run_time_ns)));
        for (node, on_cpu_ns) in &thread.on_cpu_ns {
            let row = SchedRow {
                cookie,
                tgid: tgid.into(),
                on_cpu_ns: *on_cpu_ns,
                moves_from: [0; SLOTS],
            };
            let key = RowKey {
                tid: *tid,
                node: *node,
            };
            reading.sched.push((key, row));
        }
        if thread.migrated > 0 {
            let mut row = BalanceRow {
                cookie,
                tgid: tgid.into(),
                hint_faults: 0,
                hint_faults_local: 0,
                failed_pages: 0,
                hint_pages: [0; SLOTS],
                migrated_from: [0; SLOTS],
            };
            row.migrated_from[SLOT_UNKNOWN] = thread.migrated;
            // One key for good, or the same pages would stand in two rows.
            let key = RowKey {
                tid: *tid,
                node: thread
                    .on_cpu_ns
                    .keys()
                    .next()
                    .copied()
                    .unwrap_or(thread.node),
            };
            reading.balance.push((key, row));
        }
    }
}

/// The line `numa_pages_migrated   :   5` of `/proc/PID/sched`.
fn migrated(sched: &str) -> Option<u64> {
    let line = sched
        .lines()
        .find(|line| line.starts_with("numa_pages_migrated"))?;
    line.split_once(':')?.1.trim().parse().ok()
}

/// Whether this kernel's procfs has such a line.
pub(super) fn tells_migrations(root: &Root) -> bool {
    read(&root.proc("self/sched")).is_ok_and(|text| migrated(&text).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fixture::Fixture;
    use model::topology::Node;

    fn topology() -> Topology {
        let node = |id| Node {
            id,
            cpus: vec![id],
            ..Node::default()
        };
        Topology {
            nodes: vec![node(0), node(1)],
            ..Topology::default()
        }
    }

    fn thread(fixture: &Fixture, pid: u32, tid: u32, ns: u64, cpu: u32, migrated: u64) {
        let file = |name: &str, text: &str| {
            fixture.file(&format!("proc/{pid}/task/{tid}/{name}"), text);
        };
        file("schedstat", &format!("{ns} 0 1\n"));
        // The CPU is the 37th field from the state on.
        let zeros = "0 ".repeat(35);
        file("stat", &format!("{tid} (t) S {zeros}{cpu} 0 0\n"));
        file(
            "sched",
            &format!("t ({tid}, #threads: 1)\nnuma_pages_migrated    :   {migrated}\n"),
        );
    }

    fn host() -> Fixture {
        let fixture = Fixture::new();
        fixture.file("proc/self/sched", "numa_pages_migrated : 0\n");
        fixture.process(7, 55, "server", &["server"]);
        thread(&fixture, 7, 7, 1_000, 0, 3);
        fixture
    }

    fn cpu_time(reading: &Reading) -> Vec<(u32, u32, u64)> {
        let mut rows: Vec<_> = reading
            .sched
            .iter()
            .map(|(key, row)| (key.tid, key.node, row.on_cpu_ns))
            .collect();
        rows.sort_unstable();
        rows
    }

    #[test]
    fn cpu_time_goes_to_the_node_of_the_last_cpu() {
        let fixture = host();
        let mut procfs = Procfs::new(fixture.root(), &topology());
        procfs.track(7, &[(7, 1_000)]);
        thread(&fixture, 7, 7, 1_500, 0, 3);
        assert_eq!(cpu_time(&procfs.read()), [(7, 0, 500)]);
        thread(&fixture, 7, 7, 1_700, 1, 3);
        assert_eq!(cpu_time(&procfs.read()), [(7, 0, 500), (7, 1, 200)]);
    }

    #[test]
    fn a_new_thread_counts_from_its_birth() {
        let fixture = host();
        let mut procfs = Procfs::new(fixture.root(), &topology());
        procfs.track(7, &[(7, 1_000)]);
        thread(&fixture, 7, 8, 40, 1, 0);
        assert_eq!(cpu_time(&procfs.read()), [(7, 0, 0), (8, 1, 40)]);
    }

    #[test]
    fn migrated_pages_have_no_node() {
        let fixture = host();
        let mut procfs = Procfs::new(fixture.root(), &topology());
        procfs.track(7, &[(7, 1_000)]);
        thread(&fixture, 7, 7, 1_500, 0, 10);
        let reading = procfs.read();
        assert_eq!(reading.balance[0].1.migrated_from[SLOT_UNKNOWN], 7);
    }

    #[test]
    fn a_pid_that_came_back_has_exited() {
        let fixture = host();
        let mut procfs = Procfs::new(fixture.root(), &topology());
        let tracked = procfs.track(7, &[(7, 1_000)]);
        assert_eq!(procfs.tracked()[&7].exited, 0);
        fixture.reuse_pid(7, 99, "other", &["other"]);
        assert_eq!(procfs.tracked()[&7].exited, 1);
        procfs.untrack(7, tracked.cookie + 1);
        assert_eq!(procfs.tracked().len(), 1);
        procfs.untrack(7, tracked.cookie);
        assert_eq!(procfs.tracked().len(), 0);
    }
}
