//! Made-up snapshots, for the demo and for the tests: nothing here was measured.

mod host;
mod process;

use host::{gpu, nic, node, signals};
use model::devices::Device;
use model::judge::Judge;
use model::process::Process;
use model::signal::{Signal, SignalName};
use model::snapshot::{
    AgentCost, BalancingCounters, Coverage, Host, Lost, MapUse, SCHEMA_VERSION, Snapshot,
};
use model::thresholds::Thresholds;
use model::time::Timestamp;
use model::topology::{Node, NodeId, Topology};
use process::{Habits, cgroup, process, unknown};
use std::time::{Duration, UNIX_EPOCH};

const GIB: u64 = 1 << 30;
const SECOND: u64 = 1_000_000_000;

fn at(tick: u64) -> Timestamp {
    Timestamp(UNIX_EPOCH + Duration::from_secs(1_796_040_271 + tick))
}

fn id(index: usize) -> NodeId {
    NodeId::try_from(index).unwrap_or(0)
}

/// A share that wanders a little from tick to tick.
fn wander(share: f64, tick: u64) -> f64 {
    let phase = (tick % 24) as f64 / 24.0 * std::f64::consts::TAU;
    (share + share.min(1.0 - share) * 0.25 * phase.sin()).clamp(0.0, 1.0)
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
            cpus: Some(96),
            numa_balancing: Some(u32::from(balancing)),
            numa_balancing_reason: None,
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
        signals: signals(balancing, !devices(nodes).is_empty()),
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
        cgroups: vec![cgroup(&processes)],
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
            role: Some("api-server"),
            rank: None,
            cpus: vec![0.9, 0.2],
            memory: vec![1.6, 0.3],
            ..vllm(4711, 0)
        },
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
        *process = unknown(process);
    }
    snapshot.cgroups.clear();
    snapshot.findings.clear();
    Judge::default().judge(&mut snapshot);
    snapshot
}
