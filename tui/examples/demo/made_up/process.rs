//! Made-up processes: counters that follow from their habits and from the tick.

use super::host::devices_used;
use super::{GIB, SECOND, at, id, wander};
use model::cgroup::{Cgroup, CgroupMemoryKind};
use model::mapping::MemoryClass;
use model::policy::{Placing, Policy};
use model::process::{
    ByNode, HintCounter, MemoryKind, MigrationPair, Migrations, MovePair, Moves, NodePages, Pinned,
    Placement, Process, Thread, TouchCounter, TouchPair, Touches,
};
use model::verdict::{RemoteShare, ShareSignal, Verdict};
use std::collections::BTreeMap;

/// A made-up process's habits; counters follow from them and from the tick.
pub(super) struct Habits {
    pub(super) pid: u32,
    pub(super) engine: Option<&'static str>,
    pub(super) role: Option<&'static str>,
    pub(super) rank: Option<u32>,
    pub(super) name: &'static str,
    pub(super) model: Option<&'static str>,
    /// CPUs' worth of time and GiB on each node.
    pub(super) cpus: Vec<f64>,
    pub(super) memory: Vec<f64>,
    /// Remote share, and whether hint touches told it.
    pub(super) share: Option<f64>,
    pub(super) hint: bool,
    pub(super) moves: u64,
    pub(super) migrated: u64,
    pub(super) policy: Option<&'static str>,
    /// Numbers of its GPUs.
    pub(super) gpus: Vec<usize>,
}

fn by_node(values: &[f64], unit: f64) -> ByNode {
    values
        .iter()
        .enumerate()
        .map(|(node, v)| (id(node), scaled(*v, unit)))
        .collect()
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn scaled(value: f64, unit: f64) -> u64 {
    (value * unit) as u64
}

pub(super) fn process(habits: &Habits, tick: u64) -> Process {
    let seconds = tick + 60;
    let share = habits.share.map(|s| wander(s, tick));
    let hinted = if habits.hint { seconds * 9100 } else { 0 };
    let far = scaled(share.unwrap_or(0.0), hinted as f64);
    let remote_share = RemoteShare {
        value: share,
        signal: share.map(|_| {
            if habits.hint {
                ShareSignal::Hint
            } else {
                ShareSignal::Estimate
            }
        }),
        window_s: share.map(|_| 30.0),
        pages: share.map(|_| 30 * 9100),
    };
    let cpu = by_node(&habits.cpus, (seconds * SECOND) as f64);
    let memory = by_node(&habits.memory, GIB as f64);
    let files: ByNode = memory.iter().map(|(n, b)| (*n, b / 4)).collect();
    let anonymous: ByNode = memory.iter().map(|(n, b)| (*n, b - b / 4)).collect();
    let last = habits.cpus.len() > 1;
    Process {
        pid: habits.pid,
        start_time: u64::from(habits.pid) * 7,
        tracked_since: at(0),
        // Workers have their server.
        parent_pid: Some(if habits.role == Some("worker") {
            4711
        } else {
            1
        }),
        name: habits.name.to_owned(),
        executable: None,
        other_uid: None,
        command: format!(
            "/opt/venv/bin/{} --model {} --port 8000 --tensor-parallel-size 2",
            habits.name,
            habits.model.unwrap_or("none")
        ),
        engine: habits.engine.map(str::to_owned),
        role: habits.role.map(str::to_owned),
        rank: habits.rank,
        model: habits.model.map(str::to_owned),
        alive: true,
        cpu_time_ns_by_node: Some(cpu.clone()),
        moves: Moves {
            total: Some(habits.moves * seconds),
            cross_socket: Some(habits.moves * seconds),
            by_pair: Some(if last && habits.moves > 0 {
                vec![
                    MovePair {
                        from: 0,
                        to: 1,
                        count: habits.moves * seconds / 2,
                    },
                    MovePair {
                        from: 1,
                        to: 0,
                        count: habits.moves * seconds - habits.moves * seconds / 2,
                    },
                ]
            } else {
                Vec::new()
            }),
        },
        touches: touches(habits, seconds, hinted, far, last),
        migrations: Migrations {
            pages: habits.hint.then_some(habits.migrated * seconds),
            failed_pages: habits.hint.then_some(seconds / 10),
            by_pair: habits.hint.then(|| {
                vec![MigrationPair {
                    from: 0,
                    to: id(usize::from(last)),
                    pages: habits.migrated * seconds,
                }]
            }),
        },
        scan_time_ns: habits.hint.then_some(seconds * 4_000_000),
        scan_cpu_time_ns: habits.hint.then_some(seconds * 3_600_000),
        pinned: Pinned::default(),
        driver_allocated_pages: driver_allocated(habits),
        placement: placement(&memory, anonymous, files, tick),
        resident_bytes: Some(memory.values().sum()),
        policy: habits.policy.map(str::to_owned),
        cpus_allowed: Some(model::list::format(&cpus(habits))),
        placing: placing(habits),
        verdict: Verdict::Unknown,
        verdict_reason: None,
        findings: Vec::new(),
        findings_cleared: Vec::new(),
        remote_share,
        devices: devices_used(&habits.gpus),
        devices_reason: None,
        threads: threads(habits, &cpu),
    }
}

/// Where all of them run.
const CGROUP: &str = "/system.slice/inference.service";

/// Their cgroup: it has the page cache once, and a little that isn't theirs.
pub(super) fn cgroup(processes: &[Process]) -> Cgroup {
    let private = model::cgroup::private_by_node(processes);
    let files = processes.iter().filter_map(|p| {
        let kinds = p.placement.by_kind.as_ref()?;
        kinds.get(&MemoryKind::File).cloned()
    });
    let anonymous = private.iter().flatten().map(|(n, b)| (*n, b + GIB / 8));
    let files = files.max_by_key(|nodes| nodes.values().sum::<u64>());
    Cgroup {
        path: CGROUP.to_owned(),
        pids: processes.iter().map(|p| p.pid).collect(),
        memory_by_kind: Some(BTreeMap::from([
            (CgroupMemoryKind::Anonymous, anonymous.collect()),
            (CgroupMemoryKind::File, files.unwrap_or_default()),
        ])),
        source: Some("memory.numa_stat of cgroup v2".to_owned()),
        reason: None,
        private_by_node_bytes: private.ok(),
        private_reason: None,
    }
}

/// Page tables and queues of its GPUs, on their nodes.
fn driver_allocated(habits: &Habits) -> NodePages {
    const OF_A_GPU: u64 = 6_144;
    let mut by_node = ByNode::new();
    for node in devices_used(&habits.gpus).iter().filter_map(|gpu| gpu.node) {
        *by_node.entry(node).or_default() += OF_A_GPU;
    }
    NodePages {
        pages: Some(by_node.values().sum()),
        by_node: Some(by_node),
    }
}

/// All CPUs: 48 on each node.
fn cpus(habits: &Habits) -> Vec<u32> {
    (0..id(habits.cpus.len() * 48)).collect()
}

/// The whole machine, and the policy.
fn placing(habits: &Habits) -> Placing {
    // The kernel's words are the same as numactl's, with something behind them.
    let policy = habits
        .policy
        .and_then(|words| Policy::parse(&format!("{words} ")));
    Placing {
        policy,
        cpus_allowed: Some(cpus(habits)),
        mems_allowed: Some((0..id(habits.cpus.len())).collect()),
        cgroup: Some(CGROUP.to_owned()),
        ..Placing::default()
    }
}

fn placement(memory: &ByNode, anonymous: ByNode, files: ByNode, tick: u64) -> Placement {
    Placement {
        own_policies: None,
        locked_by_node_bytes: Some(BTreeMap::new()),
        by_node_bytes: Some(memory.clone()),
        margin_by_node_bytes: Some(memory.iter().map(|(n, b)| (*n, b / 64)).collect()),
        by_class: Some(BTreeMap::from([
            (MemoryClass::LargeAnonymous, anonymous.clone()),
            (MemoryClass::Weights, files.clone()),
        ])),
        weights_by_file: None,
        by_kind: Some(BTreeMap::from([
            (MemoryKind::Anonymous, anonymous),
            (MemoryKind::File, files),
            (MemoryKind::Shared, ByNode::new()),
            (MemoryKind::Huge, ByNode::new()),
        ])),
        coverage: Some(1.0),
        source: Some("move_pages".to_owned()),
        taken_at: Some(at(tick)),
        reason: None,
    }
}

fn touches(habits: &Habits, seconds: u64, hinted: u64, far: u64, many_nodes: bool) -> Touches {
    let other = id(usize::from(many_nodes));
    Touches {
        first_touch: TouchCounter {
            pages: Some(seconds * 310),
            local_pages: Some(seconds * 300),
            same_socket_pages: Some(0),
            cross_socket_pages: Some(seconds * 10),
            unknown_node_pages: Some(0),
            by_pair: Some(vec![TouchPair {
                cpu_node: 0,
                memory_node: 0,
                pages: seconds * 310,
            }]),
        },
        map: TouchCounter {
            pages: Some(seconds * 12),
            unknown_node_pages: Some(seconds * 12),
            ..TouchCounter::default()
        },
        hint: if habits.hint {
            HintCounter {
                counter: TouchCounter {
                    pages: Some(hinted),
                    local_pages: Some(hinted - far),
                    same_socket_pages: Some(0),
                    cross_socket_pages: Some(far),
                    unknown_node_pages: Some(0),
                    by_pair: Some(vec![
                        TouchPair {
                            cpu_node: 0,
                            memory_node: 0,
                            pages: hinted - far,
                        },
                        TouchPair {
                            cpu_node: other,
                            memory_node: 0,
                            pages: far,
                        },
                    ]),
                },
                faults: Some(hinted / 50),
                local_faults: Some((hinted - far) / 50),
            }
        } else {
            HintCounter::default()
        },
        swap_in_pages: Some(0),
    }
}

fn threads(habits: &Habits, cpu: &ByNode) -> Vec<Thread> {
    let names = ["main", "worker-0", "worker-1", "cuda-events", "tokenizer"];
    names
        .iter()
        .enumerate()
        .map(|(at, name)| Thread {
            tid: habits.pid + id(at),
            name: (*name).to_owned(),
            cpu_time_ns_by_node: Some(cpu.iter().map(|(n, ns)| (*n, ns >> (at + 1))).collect()),
            moves: Some((habits.moves * 10) >> at),
            scan_time_ns: habits.hint.then_some(1_000_000 << at),
            cpus_allowed: None,
            policy: None,
        })
        .collect()
}

/// The same process, with nothing known of it but who it is.
pub(super) fn unknown(process: &Process) -> Process {
    Process {
        pid: process.pid,
        start_time: process.start_time,
        tracked_since: process.tracked_since,
        parent_pid: None,
        name: "odd".to_owned(),
        executable: None,
        command: String::new(),
        other_uid: None,
        engine: None,
        role: None,
        rank: None,
        model: None,
        alive: true,
        cpu_time_ns_by_node: None,
        moves: Moves::default(),
        touches: Touches::default(),
        migrations: Migrations::default(),
        scan_time_ns: None,
        scan_cpu_time_ns: None,
        pinned: Pinned::default(),
        driver_allocated_pages: NodePages::default(),
        placement: Placement::default(),
        resident_bytes: None,
        policy: None,
        cpus_allowed: None,
        placing: Placing::default(),
        remote_share: RemoteShare::default(),
        verdict: Verdict::Unknown,
        verdict_reason: None,
        findings: Vec::new(),
        findings_cleared: Vec::new(),
        devices: Vec::new(),
        devices_reason: None,
        threads: Vec::new(),
    }
}
