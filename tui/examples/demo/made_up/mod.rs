//! Made-up snapshots, for the demo and for the tests: nothing here was measured.

mod host;

use host::{devices_used, gpu, nic, node, signals};
use model::devices::Device;
use model::judge::Judge;
use model::mapping::MemoryClass;
use model::policy::{Placing, Policy};
use model::process::{
    ByNode, HintCounter, MemoryKind, MigrationPair, Migrations, MovePair, Moves, NodePages, Pinned,
    Placement, Process, Thread, TouchCounter, TouchPair, Touches,
};
use model::signal::{Signal, SignalName};
use model::snapshot::{
    AgentCost, BalancingCounters, Coverage, Host, Lost, MapUse, SCHEMA_VERSION, Snapshot,
};
use model::thresholds::Thresholds;
use model::time::Timestamp;
use model::topology::{Node, NodeId, Topology};
use model::verdict::{RemoteShare, ShareSignal, Verdict};
use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

const GIB: u64 = 1 << 30;
const SECOND: u64 = 1_000_000_000;

fn at(tick: u64) -> Timestamp {
    Timestamp(UNIX_EPOCH + Duration::from_secs(1_796_040_271 + tick))
}

/// A made-up process's habits; counters follow from them and from the tick.
struct Habits {
    pid: u32,
    engine: Option<&'static str>,
    role: Option<&'static str>,
    rank: Option<u32>,
    name: &'static str,
    model: Option<&'static str>,
    /// CPUs' worth of time and GiB on each node.
    cpus: Vec<f64>,
    memory: Vec<f64>,
    /// Remote share, and whether hint touches told it.
    share: Option<f64>,
    hint: bool,
    moves: u64,
    migrated: u64,
    policy: Option<&'static str>,
    /// Numbers of its GPUs.
    gpus: Vec<usize>,
}

fn by_node(values: &[f64], unit: f64) -> ByNode {
    values
        .iter()
        .enumerate()
        .map(|(node, v)| (id(node), scaled(*v, unit)))
        .collect()
}

fn id(index: usize) -> NodeId {
    NodeId::try_from(index).unwrap_or(0)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn scaled(value: f64, unit: f64) -> u64 {
    (value * unit) as u64
}

/// A share that wanders a little from tick to tick.
fn wander(share: f64, tick: u64) -> f64 {
    let phase = (tick % 24) as f64 / 24.0 * std::f64::consts::TAU;
    (share + share.min(1.0 - share) * 0.25 * phase.sin()).clamp(0.0, 1.0)
}

fn process(habits: &Habits, tick: u64) -> Process {
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
        parent_pid: Some(4711),
        name: habits.name.to_owned(),
        executable: None,
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
        driver_allocated_pages: NodePages::default(),
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
        cgroup: Some("/system.slice/inference.service".to_owned()),
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
        })
        .collect()
}

/// A snapshot with the conclusions that the agent would draw from it and from the one half a minute before.
fn snapshot(
    nodes: usize,
    sockets: usize,
    balancing: bool,
    habits: &[Habits],
    tick: u64,
) -> Snapshot {
    let made = |tick| counted(nodes, sockets, balancing, habits, tick);
    let mut judge = Judge::new(Thresholds::default(), Some(105 << 20));
    judge.judge(&mut made(tick.saturating_sub(30)));
    let mut snapshot = made(tick);
    judge.judge(&mut snapshot);
    snapshot
}

/// Eight GPUs and two NICs on a machine of two nodes, none on others.
fn devices(nodes: usize) -> Vec<Device> {
    if nodes != 2 {
        return Vec::new();
    }
    (0..8).map(gpu).chain((0..2).map(nic)).collect()
}

/// The same without conclusions.
fn counted(
    nodes: usize,
    sockets: usize,
    balancing: bool,
    habits: &[Habits],
    tick: u64,
) -> Snapshot {
    let processes: Vec<Process> = habits.iter().map(|h| process(h, tick)).collect();
    Snapshot {
        schema_version: SCHEMA_VERSION,
        taken_at: at(tick),
        monotonic_ns: tick.saturating_add(1000).saturating_mul(SECOND),
        host: Host {
            name: "gpu-host-3".to_owned(),
            kernel: "6.8.0-45-generic".to_owned(),
            cpus: 96,
            numa_balancing: Some(u32::from(balancing)),
            hypervisor: None,
            may_hide_nodes: false,
            agent: AgentCost {
                pid: 3210,
                cpu_time_ns: Some(tick * 3_000_000),
                resident_bytes: Some(22 << 20),
                kernel_memory_bytes: Some(4 << 20),
                probes_time_ns: Some(tick * 1_300_000),
            },
            lost: Lost {
                rows: Some(0),
                news: Some(0),
                events: Some(0),
                events_reason: None,
            },
            maps: vec![MapUse {
                name: "THREADS".to_owned(),
                used: 96,
                max: 8_192,
            }],
        },
        topology: Topology {
            nodes: (0..nodes).map(|n| node(n, sockets, nodes, tick)).collect(),
            devices: devices(nodes),
            ..Topology::default()
        },
        signals: signals(balancing),
        coverage: Coverage {
            host: BalancingCounters {
                hint_faults: balancing.then_some(tick * 400),
                hint_faults_local: balancing.then_some(tick * 250),
                migrated_pages: balancing.then_some(tick * 2300),
            },
            attributed: BalancingCounters {
                hint_faults: balancing.then_some(tick * 364),
                hint_faults_local: balancing.then_some(tick * 240),
                migrated_pages: balancing.then_some(tick * 2212),
            },
        },
        processes,
        findings: Vec::new(),
        findings_cleared: Vec::new(),
    }
}

fn vllm(pid: u32, rank: u32) -> Habits {
    Habits {
        pid,
        engine: Some("vllm"),
        role: Some("worker"),
        rank: Some(rank),
        name: "vllm",
        model: Some("meta-llama/llama-3-70b"),
        cpus: vec![0.0, 0.0],
        memory: vec![0.0, 0.0],
        share: None,
        hint: true,
        moves: 0,
        migrated: 0,
        policy: Some("default"),
        gpus: Vec::new(),
    }
}

/// Two sockets with a node each, balancing on: one process pays, one doesn't, others are in between.
pub(crate) fn two_nodes(tick: u64) -> Snapshot {
    let habits = [
        Habits {
            cpus: vec![8.2, 0.1],
            memory: vec![57.5, 3.7],
            share: Some(0.03),
            migrated: 12,
            policy: Some("bind:0"),
            gpus: vec![0],
            ..vllm(48121, 0)
        },
        Habits {
            cpus: vec![0.6, 7.4],
            memory: vec![56.0, 4.9],
            share: Some(0.71),
            moves: 48,
            migrated: 2200,
            gpus: vec![4],
            ..vllm(48122, 1)
        },
        Habits {
            engine: Some("llama.cpp"),
            role: Some("server"),
            rank: None,
            name: "llama-server",
            model: Some("qwen3-235b-a22b-q4_k_m"),
            cpus: vec![15.0, 15.2],
            memory: vec![86.0, 56.0],
            share: Some(0.44),
            hint: false,
            moves: 9,
            policy: Some("interleave:0-1"),
            ..vllm(51007, 0)
        },
        Habits {
            engine: None,
            role: None,
            rank: None,
            name: "python3",
            model: None,
            cpus: vec![0.0, 0.0],
            memory: vec![0.3, 0.2],
            hint: false,
            policy: None,
            ..vllm(912, 0)
        },
    ];
    snapshot(2, 2, true, &habits, tick)
}

/// A host with one node, balancing off.
#[allow(dead_code)]
pub(crate) fn one_node(tick: u64) -> Snapshot {
    let habits = [Habits {
        engine: Some("llama.cpp"),
        role: Some("server"),
        rank: None,
        cpus: vec![1.9],
        memory: vec![0.6],
        share: Some(0.0),
        hint: false,
        ..vllm(77, 0)
    }];
    snapshot(1, 1, false, &habits, tick)
}

/// Two sockets with eight nodes each.
#[allow(dead_code)]
pub(crate) fn sixteen_nodes(tick: u64) -> Snapshot {
    let habits = [Habits {
        cpus: (0..16).map(f64::from).collect(),
        memory: (0..16).map(|n| f64::from(16 - n)).collect(),
        share: Some(0.62),
        moves: 3,
        migrated: 5,
        ..vllm(4_194_303, 15)
    }];
    snapshot(16, 2, true, &habits, tick)
}

/// More processes than any screen has rows.
#[allow(dead_code)]
pub(crate) fn many_processes(n: u32) -> Snapshot {
    let habits: Vec<Habits> = (0..n)
        .map(|at| Habits {
            cpus: vec![1.0, f64::from(at)],
            memory: vec![1.0, 2.0],
            share: Some(f64::from(at) / f64::from(n.max(1))),
            ..vllm(1000 + at, at)
        })
        .collect();
    snapshot(2, 2, true, &habits, 1)
}

/// A host and a process that nothing is known of.
#[allow(dead_code)]
pub(crate) fn nothing_known() -> Snapshot {
    let mut snapshot = snapshot(2, 1, false, &[vllm(5, 0)], 1);
    snapshot.host = Host {
        name: "host".to_owned(),
        kernel: "6.1.0".to_owned(),
        agent: AgentCost {
            pid: 3210,
            ..AgentCost::default()
        },
        ..Host::default()
    };
    for node in &mut snapshot.topology.nodes {
        *node = Node {
            id: node.id,
            ..Node::default()
        };
    }
    snapshot.signals = SignalName::ALL
        .into_iter()
        .map(|name| Signal::unavailable(name, "no privileges: CAP_BPF is missing"))
        .collect();
    snapshot.topology.devices.clear();
    snapshot.coverage = Coverage::default();
    for process in &mut snapshot.processes {
        *process = Process {
            pid: process.pid,
            start_time: process.start_time,
            tracked_since: process.tracked_since,
            parent_pid: None,
            name: "odd".to_owned(),
            executable: None,
            command: String::new(),
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
        };
    }
    snapshot.findings.clear();
    Judge::default().judge(&mut snapshot);
    snapshot
}
