//! The sampler: turns one tick into one immutable [`Snapshot`].
//!
//! Each tick it asks the scanner who is there, the kernel side what they did, and procfs what they are; the ledger and
//! the model do the thinking. It blocks for a few milliseconds and so has a thread of its own ([`feed`]).

mod cgroups;
mod counting;
mod coverage;
mod devices;
pub(crate) mod feed;
mod following;
pub(crate) mod placement;
mod placing;
mod probe_runs;
mod strata;
mod survey;
mod watched;

use crate::engines::scan::Scanner;
use crate::engines::selection::Selection;
use crate::host::cache::read_largest_cache;
use crate::host::cpu_time::{CpuTime, busy_by_node, read_cpu_times};
use crate::host::kernel::{read_host, read_numa_balancing};
use crate::host::own_bpf::OwnBpf;
use crate::host::process::{ProcessDir, ancestors, own_pid};
use crate::host::root::Root;
use crate::host::self_cost::read_self_cost;
use crate::host::topology::read_topology;
use crate::host::vmstat::{read_balancing, read_page_faults};
use crate::probes::assemble::Meaning;
use crate::probes::attach;
use crate::probes::ledger::{Ledger, ThreadId};
use crate::probes::procfs_threads::ProcfsThreads;
use crate::probes::reader::{Happened, now_ns};
use crate::probes::running::Owner;
use crate::probes::slots::Slots;
use crate::probes::source::Source;
use crate::selftest;
use agent_ebpf::Tracked;
use anyhow::{Context, Result};
use cgroups::Cgroups;
pub(crate) use counting::Refused;
use counting::{Counting, all_under_balancing};
use devices::Devices;
use model::cost::probes_time_ns;
use model::judge::Judge;
use model::process::Process;
use model::selftest::Report;
use model::signal::{Signal, SignalName};
use model::snapshot::{AgentCost, Host, Lost, SCHEMA_VERSION, Snapshot};
use model::thresholds::Thresholds;
use model::time::Timestamp;
use model::topology::Topology;
use placement::{Placements, read_own_policies};
use placing::Haste;
use probe_runs::probe_runs;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use watched::Watched;

/// What is read of `numa_maps`, at the end of a span only: the kernel looks at every page to write it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum NumaMaps {
    /// Nothing.
    #[default]
    Unread,
    /// The policies of mappings.
    Policies,
    /// The placement, exactly.
    Placement,
}

/// What a sampler is asked for.
pub(crate) struct Options {
    /// Where procfs and sysfs are.
    pub(crate) root: Root,
    /// Whom to watch.
    pub(crate) selection: Selection,
    /// What to attach.
    pub(crate) attach: attach::Options,
    /// Keep processes that ended in every later snapshot, for a snapshot at the end of a span; else in one.
    pub(crate) keep_ended: bool,
    /// Make known events first, and mark signals that don't see them.
    pub(crate) self_test: bool,
    /// NVIDIA's library, when it is another than the driver's.
    pub(crate) nvml: Option<PathBuf>,
    /// What is read of `numa_maps` at the end.
    pub(crate) numa_maps: NumaMaps,
    /// From when on a number is worth a word.
    pub(crate) thresholds: Thresholds,
}

/// See the module's doc.
pub(crate) struct Sampler {
    root: Root,
    keep_ended: bool,
    source: Source,
    /// Why there is no eBPF; `None` when there is.
    refused: Option<Refused>,
    self_test: Option<Report>,
    scanner: Scanner,
    ledger: Ledger,
    placements: Placements,
    devices: Devices,
    cgroups: Cgroups,
    slots: Slots,
    signals: Vec<Signal>,
    /// By cookie: a pid that came back and its predecessor are two.
    watched: BTreeMap<u64, Watched>,
    /// The cookie of the newest process of each pid.
    current: HashMap<u32, u64>,
    /// Processes that ended, kept for later snapshots.
    ended: Vec<Process>,
    /// Threads that had ended by the last tick: their last slice is in their rows by now.
    ending: HashSet<ThreadId>,
    host: Host,
    account: coverage::Account,
    faults_at_start: Option<u64>,
    /// The agent's own parent, its parent and so on.
    ancestors: HashSet<u32>,
    /// Start times of the processes that `--pid` named.
    asked: HashMap<u32, u64>,
    /// Processes that should be watched and found no room.
    unwatched: u64,
    cpu_times: BTreeMap<u32, CpuTime>,
    judge: Judge,
    own_policies: bool,
    haste: Haste,
}

impl Sampler {
    /// Loads and attaches the probes, and begins to track whoever is selected. Takes about a second.
    ///
    /// # Errors
    /// In one line, what can't be started, why, and what to do.
    pub(crate) fn start(options: Options) -> Result<Self> {
        let root = options.root;
        options.selection.check_pids(&root)?;
        let topology = read_topology(&root);
        let slots = Slots::new(&topology);
        let Counting {
            mut source,
            mut signals,
            refused,
        } = Counting::start(&root, &topology, &slots, &options.attach)?;
        let find = placement::Options {
            exact: options.numa_maps == NumaMaps::Placement,
            broken: options.attach.broken.contains(&SignalName::Placement),
            off: options.attach.forced.get(&SignalName::Placement) == Some(&None),
        };
        signals.push(placement::signal(&root, find));
        let described = read_host(&root)?;
        let self_test = if options.self_test {
            let under = all_under_balancing(&signals, &described);
            let mut host = selftest::Host {
                root: &root,
                source: &mut source,
                meaning: Meaning {
                    slots: &slots,
                    topology: &topology,
                    signals: &under,
                },
                placement_broken: find.broken,
            };
            let report = selftest::run(&mut host);
            signals = signals.iter().map(|s| report.mark(s)).collect();
            Some(report)
        } else {
            None
        };
        let mut sampler = Self {
            scanner: Scanner::new(root.clone(), options.selection, own_pid(&root)),
            placements: Placements::start(root.clone(), options.keep_ended, find)?,
            devices: Devices::start(root.clone(), options.nvml),
            cgroups: Cgroups::default(),
            host: described,
            cpu_times: read_cpu_times(&root)?,
            account: coverage::Account::new(read_balancing(&root)?),
            faults_at_start: read_page_faults(&root),
            ancestors: ancestors(&root),
            asked: HashMap::new(),
            unwatched: 0,
            own_policies: options.numa_maps == NumaMaps::Policies,
            haste: if options.numa_maps == NumaMaps::Unread {
                Haste::Steady
            } else {
                Haste::Hurried
            },
            judge: Judge::new(options.thresholds, read_largest_cache(&root)),
            keep_ended: options.keep_ended,
            ledger: Ledger::default(),
            watched: BTreeMap::new(),
            current: HashMap::new(),
            ended: Vec::new(),
            ending: HashSet::new(),
            root,
            source,
            refused,
            self_test,
            slots,
            signals,
        };
        sampler.follow(&Happened::default())?;
        Ok(sampler)
    }

    /// How many processes are watched.
    pub(crate) fn watching(&self) -> usize {
        self.watched.len()
    }

    /// Every signal as it stands now.
    pub(crate) fn signals(&self) -> Vec<Signal> {
        all_under_balancing(&self.signals, &self.host)
    }

    /// Why there is no eBPF; `None` where there is.
    pub(crate) fn refused(&self) -> Option<&Refused> {
        self.refused.as_ref()
    }

    /// From when on a number is worth a word.
    pub(crate) fn thresholds(&self) -> &Thresholds {
        self.judge.thresholds()
    }

    /// What the self-test found, when it was asked for.
    pub(crate) fn self_test(&self) -> Option<&Report> {
        self.self_test.as_ref()
    }

    /// Takes a snapshot, and draws the conclusions.
    ///
    /// # Errors
    /// If the host's own files or the kernel side's maps can't be read; a process that ends is no error.
    pub(crate) fn tick(&mut self) -> Result<Snapshot> {
        let mut snapshot = self.take()?;
        self.judge.judge(&mut snapshot);
        Ok(snapshot)
    }

    /// What is there, without conclusions.
    fn take(&mut self) -> Result<Snapshot> {
        let happened = self.source.news();
        self.follow(&happened)?;
        for process in self.watched.values_mut() {
            process.look(&self.root, self.haste);
        }
        self.count()?;
        self.placements.collect();
        let mut topology = self.topology()?;
        let balancing = read_numa_balancing(&self.root);
        self.host.numa_balancing = balancing.clone().ok().flatten();
        self.host.numa_balancing_reason = balancing.err();
        self.host.may_hide_nodes = topology.may_hide_nodes(self.host.hypervisor.as_deref());
        let signals = self.signals();
        let now = now_ns();
        let meaning = Meaning {
            slots: &self.slots,
            topology: &topology,
            signals: &signals,
        };
        let mut processes = Vec::with_capacity(self.watched.len());
        for watched in self.watched.values_mut() {
            let placement = self.placements.of(watched.id(), watched.resident_bytes());
            processes.push(watched.report(
                &mut self.ledger,
                &meaning,
                placement,
                now,
                (self.host.balancing(), self.judge.thresholds()),
            ));
        }
        self.devices.add(&mut topology, &mut processes);
        let counted = read_balancing(&self.root)?;
        let coverage = self.account.coverage(&counted, &processes, &signals);
        self.let_go(&processes);
        let (rows, news) = self.source.lost();
        let rows = rows.map(|rows| rows + self.unwatched);
        let own = OwnBpf::read(&self.root);
        let missed = match self.refused {
            Some(_) => Err("there are no probes"),
            None => own.missed(),
        };
        self.host.lost = Lost {
            rows,
            news,
            events: missed.ok(),
            events_reason: missed.err().map(str::to_owned),
        };
        let faults = read_page_faults(&self.root)
            .zip(self.faults_at_start)
            .and_then(|(now, then)| now.checked_sub(then));
        self.host.agent = AgentCost {
            probes_time_ns: probes_time_ns(probe_runs(self.source.switches(), faults, &signals)),
            ..read_self_cost(&self.root, &own)
        };
        processes.sort_by_key(|p| (p.pid, p.start_time));
        let charged = self.watched.values().filter_map(Watched::memory_cgroup);
        let cgroups = self.cgroups.of(&charged.collect(), &processes);
        Ok(Snapshot {
            schema_version: SCHEMA_VERSION,
            taken_at: Timestamp(SystemTime::now()),
            monotonic_ns: now,
            host: self.host.clone(),
            topology,
            signals,
            coverage,
            processes,
            cgroups,
            findings: Vec::new(),
            findings_cleared: Vec::new(),
        })
    }

    /// The last snapshot of a span: processes that ended within it are there too.
    ///
    /// # Errors
    /// As [`Self::tick`].
    pub(crate) fn finish(&mut self) -> Result<Snapshot> {
        self.placements.find_now();
        let busy = self.tick()?.topology;
        self.placements.settle();
        self.cgroups.expire();
        let ended = std::mem::take(&mut self.ended);
        let mut snapshot = self.take()?;
        // The time since the tick above is too short for ticks of the kernel's clock.
        for node in &mut snapshot.topology.nodes {
            node.cpu_busy = busy.node(node.id).and_then(|node| node.cpu_busy);
        }
        if self.own_policies {
            for process in snapshot.processes.iter_mut().filter(|p| p.alive) {
                process.placement.own_policies = read_own_policies(&self.root, process);
            }
        }
        snapshot.processes.extend(ended);
        snapshot.processes.sort_by_key(|p| (p.pid, p.start_time));
        self.judge.judge(&mut snapshot);
        Ok(snapshot)
    }

    /// Reads the rows into the ledger, and retires threads that had ended by the last tick.
    fn count(&mut self) -> Result<()> {
        let mut owners: HashMap<u32, Owner> = HashMap::new();
        for watched in self.watched.values() {
            // The leader's tid is there as long as its process: an exec hands it from thread to thread.
            let leader = Some(watched.id().0).filter(|_| !watched.has_ended());
            for tid in watched.tids().chain(leader) {
                owners.insert(
                    tid,
                    Owner {
                        tgid: watched.id().0,
                        cookie: watched.cookie(),
                    },
                );
            }
        }
        let threads = ProcfsThreads {
            root: &self.root,
            owners,
        };
        let reading = self.source.read(&threads)?;
        self.ledger.absorb(&reading);
        // Read after the rows: a child that was forked meanwhile is known.
        let tracked = self.source.tracked()?;
        self.host.maps = self.source.maps(tracked.len());
        let mut known: HashSet<u64> = tracked.values().map(|entry| entry.cookie).collect();
        known.extend(self.watched.keys());
        for (id, nodes) in self.ledger.retain(&known) {
            self.source.delete(&id, &nodes);
        }
        let ended = self.ledger.ended(|id| {
            let owner = threads.owners.get(&id.tid);
            owner.is_some_and(|o| o.cookie == id.cookie)
        });
        let (retired, ending): (Vec<_>, Vec<_>) =
            ended.into_iter().partition(|id| self.ending.contains(id));
        self.source.retire(&mut self.ledger, &retired);
        self.ending = ending.into_iter().collect();
        Ok(())
    }

    fn topology(&mut self) -> Result<Topology> {
        let mut topology = read_topology(&self.root);
        let times = read_cpu_times(&self.root)?;
        let busy = busy_by_node(&topology, &self.cpu_times, &times);
        for node in &mut topology.nodes {
            node.cpu_busy = busy.get(&node.id).copied();
        }
        self.cpu_times = times;
        Ok(topology)
    }
}

/// The threads of a process and their run time so far, nanoseconds; none of one that has ended.
pub(crate) fn run_times(root: &Root, pid: u32) -> Vec<(u32, u64)> {
    let Ok(dir) = ProcessDir::open(root, pid) else {
        return Vec::new();
    };
    let threads = dir.thread_ids().unwrap_or_default();
    let of = |tid: u32| Some((tid, dir.thread_run_time(tid).ok()?));
    threads.into_iter().filter_map(of).collect()
}

/// When a process began to be tracked, by the wall clock.
pub(crate) fn since(entry: &Tracked) -> Timestamp {
    let age = Duration::from_nanos(now_ns().saturating_sub(entry.cookie));
    Timestamp(
        SystemTime::now()
            .checked_sub(age)
            .unwrap_or(SystemTime::UNIX_EPOCH),
    )
}

/// Adds what to do to errors that have no remedy of their own.
pub(crate) fn start(options: Options) -> Result<Sampler> {
    Sampler::start(options).context("cannot start watching")
}
