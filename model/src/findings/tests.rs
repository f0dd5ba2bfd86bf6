//! Each rule with a case that raises it and cases that must not.

use super::*;
use crate::devices::{DeviceKind, DeviceUse, DeviceUseSource};
use crate::mapping::MemoryClass;
use crate::policy::{OwnPolicy, Placing, Policy, PolicyMode};
use crate::process::{ByNode, MemoryKind, MigrationPair, Process, Thread};
use crate::signal::{Mechanism, Signal, SignalName, SignalState};
use crate::snapshot::{Coverage, Host, SCHEMA_VERSION};
use crate::time::Timestamp;
use crate::topology::{Node, NumaStat, Topology};
use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

const GIB: u64 = 1 << 30;

/// Two sockets, a node each with four CPUs and 64 GiB.
fn topology() -> Topology {
    let node = |id: u32| Node {
        id,
        cpus: (id * 4..id * 4 + 4).collect(),
        socket: Some(id),
        memory_total_bytes: Some(64 * GIB),
        memory_free_bytes: Some(32 * GIB),
        distances: [(id, 10), (1 - id, 21)].into(),
        numastat: Some(NumaStat::default()),
        cpu_busy: Some(0.5),
    };
    Topology {
        nodes: vec![node(0), node(1)],
        ..Topology::default()
    }
}

/// A server with GPU0 on node 1, whose memory and time are there too, bound there.
pub(crate) fn process() -> Process {
    let document = serde_json::json!({
        "pid": 42, "start_time": 7, "tracked_since": "1970-01-01T00:00:00Z", "parent_pid": 1,
        "name": "server", "executable": "server", "command": "server -m model.gguf",
        "engine": "llama.cpp", "role": "server", "rank": null, "model": null, "alive": true,
        "cpu_time_ns_by_node": {"1": 10_000_000_000_u64},
        "moves": {"total": 0, "cross_socket": 0, "by_pair": []},
        "touches": {"first_touch": {}, "map": {}, "hint": {}, "swap_in_pages": null},
        "migrations": {"pages": 0, "failed_pages": 0, "by_pair": []},
        "scan_time_ns": 0, "scan_cpu_time_ns": 0,
        "pinned": {"bytes": 0, "locked_bytes": 0, "made": {"pages": 0, "by_node": {}}},
        "driver_allocated_pages": {"pages": 0, "by_node": {}},
        "placement": {"by_node_bytes": {"0": 0, "1": GIB}, "by_class": {"weights": {"1": GIB / 2}}, "source": "move_pages"},
        "resident_bytes": GIB, "policy": "bind:1", "cpus_allowed": "4-7",
        "remote_share": {"value": 0.5, "signal": "estimate", "window_s": 30.0, "pages": GIB / 4096},
        "verdict": "remote", "threads": []
    });
    Process {
        placing: Placing {
            policy: policy(PolicyMode::Bind, &[1]),
            cpus_allowed: Some(vec![4, 5, 6, 7]),
            ..Placing::default()
        },
        devices: vec![gpu(0, Some(1))],
        ..serde_json::from_value(document).unwrap()
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the fields are options")]
fn policy(mode: PolicyMode, nodes: &[u32]) -> Option<Policy> {
    Some(Policy {
        mode,
        nodes: nodes.to_vec(),
        flags: Vec::new(),
    })
}

fn gpu(number: u32, node: Option<u32>) -> DeviceUse {
    DeviceUse {
        address: format!("0000:{number:02x}:00.0"),
        kind: DeviceKind::Gpu,
        label: format!("GPU{number}"),
        node,
        source: DeviceUseSource::OpenFiles,
    }
}

fn thread(name: &str, cpus_allowed: Option<Vec<u32>>) -> Thread {
    Thread {
        tid: 43,
        name: name.to_owned(),
        cpu_time_ns_by_node: None,
        moves: None,
        scan_time_ns: None,
        cpus_allowed,
    }
}

fn attached(name: SignalName) -> Signal {
    Signal {
        name,
        state: SignalState::Attached,
        mechanism: Some(Mechanism::Fentry),
        target: None,
        reason: None,
    }
}

pub(crate) fn snapshot(seconds: u64, processes: Vec<Process>) -> Snapshot {
    Snapshot {
        schema_version: SCHEMA_VERSION,
        taken_at: Timestamp(UNIX_EPOCH + Duration::from_secs(seconds)),
        monotonic_ns: seconds * 1_000_000_000,
        host: Host::default(),
        topology: topology(),
        signals: SignalName::ALL.map(attached).to_vec(),
        coverage: Coverage::default(),
        processes,
        findings: Vec::new(),
        findings_cleared: Vec::new(),
    }
}

/// The ids of what is found on a snapshot, ten seconds after the same processes had done nothing yet.
fn ids(now: &Snapshot) -> Vec<String> {
    ids_with(now, None)
}

fn ids_with(now: &Snapshot, cache_bytes: Option<u64>) -> Vec<String> {
    let mut start = process();
    start.cpu_time_ns_by_node = Some(ByNode::new());
    let begun = |now: &Process| Process {
        pid: now.pid,
        ..start.clone()
    };
    let mut past = Past::default();
    past.record(&snapshot(0, now.processes.iter().map(begun).collect()));
    let view = View {
        now,
        past: &past,
        thresholds: &Thresholds::default(),
        cache_bytes,
    };
    let found = findings(&view);
    for finding in &found {
        assert!(
            !finding.summary.is_empty() && !finding.unless.is_empty(),
            "{finding:?}"
        );
        assert!(IDS.contains(&finding.id.as_str()), "{}", finding.id);
        assert!(
            !finding.advice.is_empty() || finding.severity == Severity::Info,
            "{finding:?}"
        );
    }
    found.into_iter().map(|f| f.id).collect()
}

/// What is found on one process that is as it should be, but for `change`.
fn found(change: impl FnOnce(&mut Process)) -> Vec<String> {
    let mut process = process();
    change(&mut process);
    ids(&snapshot(10, vec![process]))
}

#[track_caller]
fn raised(id: &str, change: impl FnOnce(&mut Process)) {
    let found = found(change);
    assert!(found.iter().any(|f| f == id), "{id} not in {found:?}");
}

#[track_caller]
fn silent(id: &str, change: impl FnOnce(&mut Process)) {
    let found = found(change);
    assert!(!found.iter().any(|f| f == id), "{id} in {found:?}");
}

#[expect(clippy::unnecessary_wraps, reason = "the fields are options")]
fn memory(by_node: &[(u32, u64)]) -> Option<ByNode> {
    Some(by_node.iter().copied().collect())
}

#[test]
fn a_process_as_it_should_be_has_none() {
    assert_eq!(found(|_| ()), Vec::<String>::new());
}

#[test]
fn without_signals_nothing_is_concluded() {
    let found = found(|p| {
        p.cpu_time_ns_by_node = None;
        p.placement = crate::process::Placement::default();
        p.placing = Placing::default();
        p.pinned = crate::process::Pinned::default();
        p.driver_allocated_pages = crate::process::NodePages::default();
        p.remote_share = crate::verdict::RemoteShare::default();
    });
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn memory_away_from_gpu() {
    let away = |p: &mut Process| p.placement.by_node_bytes = memory(&[(0, GIB), (1, 0)]);
    raised("memory-away-from-gpu", away);
    silent("memory-away-from-gpu", |p| {
        away(p);
        p.devices = vec![gpu(0, None)];
    });
    silent("memory-away-from-gpu", |p| {
        p.placement.by_node_bytes = memory(&[(0, 63 * 4096), (1, 0)]);
    });
    silent("memory-away-from-gpu", |p| {
        away(p);
        p.devices[0].source = DeviceUseSource::Environment;
    });
}

/// The first line to type for process 42, a worker that is away from its GPU, beside others.
fn relaunch_of_worker(others: Vec<Process>) -> String {
    let mut worker = process();
    worker.parent_pid = Some(41);
    worker.command = "worker".to_owned();
    worker.placement.by_node_bytes = memory(&[(0, GIB)]);
    let now = snapshot(10, [others, vec![worker]].concat());
    let view = View {
        now: &now,
        past: &Past::default(),
        thresholds: &Thresholds::default(),
        cache_bytes: None,
    };
    let found = findings(&view);
    let mut found = found.iter().filter(|f| f.pid == Some(42));
    let found = found.find(|f| f.id == "memory-away-from-gpu");
    found.map_or_else(String::new, |f| f.advice[0].clone())
}

#[test]
fn a_strangers_command_is_not_typed_where_a_shell_would_read_more_in_it() {
    for (command, plain) in [
        ("server -m /m/a.gguf --port=80", true),
        ("server; rm -rf ~", false),
        ("server --config {\"temperature\": 0}", false),
        ("server 'a b'", false),
        ("server\nreboot", false),
        ("server $(reboot)", false),
    ] {
        let mut process = process();
        process.command = command.to_owned();
        let typed = subject::typed(&process);
        assert_eq!(typed == command, plain, "{typed}");
        assert!(plain || typed.starts_with("COMMAND   # "), "{typed}");
    }
}

#[test]
fn a_worker_is_started_anew_by_its_server() {
    let server = || Process {
        pid: 41,
        ..process()
    };
    let shell = Process {
        engine: None,
        ..server()
    };
    let sibling = Process {
        pid: 43,
        parent_pid: Some(41),
        devices: vec![gpu(1, Some(0))],
        ..process()
    };
    let launch = "numawatch launch --gpu 0";
    for (others, want) in [
        (vec![server()], format!("{launch} -- server -m model.gguf")),
        (vec![shell], format!("{launch} -- worker")),
        (
            vec![server(), sibling],
            format!(
                "{launch} --dry-run -- server -m model.gguf   # each of its workers belongs elsewhere: see the engine's own flags there"
            ),
        ),
    ] {
        assert_eq!(relaunch_of_worker(others), want);
    }
}

#[test]
fn severity_follows_the_share_that_is_away() {
    for (away, expected) in [
        (9, None),
        (10, Some(Severity::Warn)),
        (49, Some(Severity::Warn)),
        (50, Some(Severity::Fail)),
    ] {
        let mut process = process();
        process.placement.by_node_bytes = memory(&[(0, away * GIB), (1, (100 - away) * GIB)]);
        let now = snapshot(10, vec![process]);
        let view = View {
            now: &now,
            past: &Past::default(),
            thresholds: &Thresholds::default(),
            cache_bytes: None,
        };
        let found = findings(&view);
        let found = found.iter().find(|f| f.id == "memory-away-from-gpu");
        assert_eq!(found.map(|f| f.severity), expected, "{away} %");
    }
}

#[test]
fn weights_in_remote_page_cache() {
    let away = |p: &mut Process| {
        p.placement.by_class = Some(BTreeMap::from([(
            MemoryClass::Weights,
            ByNode::from([(0, GIB)]),
        )]));
    };
    raised("weights-in-remote-page-cache", away);
    // Without a GPU its CPUs say where it is at home.
    raised("weights-in-remote-page-cache", |p| {
        away(p);
        p.devices.clear();
    });
    silent("weights-in-remote-page-cache", |p| {
        p.placement.by_class = Some(BTreeMap::from([(
            MemoryClass::Heap,
            ByNode::from([(0, GIB)]),
        )]));
    });
    silent("weights-in-remote-page-cache", |p| {
        away(p);
        p.devices.clear();
        p.cpu_time_ns_by_node = memory(&[(0, 5), (1, 5)]);
    });
}

#[test]
fn weights_in_remote_page_cache_are_named_by_their_files() {
    let mut process = process();
    process.placement.by_class = Some(BTreeMap::from([(
        MemoryClass::Weights,
        ByNode::from([(0, 5 * GIB), (1, 2 * GIB)]),
    )]));
    process.placement.weights_by_file = Some(BTreeMap::from([
        ("/m/1.gguf".to_owned(), ByNode::from([(0, GIB), (1, GIB)])),
        ("/m/2.gguf".to_owned(), ByNode::from([(0, 4 * GIB)])),
        ("/m/3.gguf".to_owned(), ByNode::from([(1, GIB)])),
    ]));
    let now = snapshot(10, vec![process]);
    let view = View {
        now: &now,
        past: &Past::default(),
        thresholds: &Thresholds::default(),
        cache_bytes: None,
    };
    let found = findings(&view);
    let found = found
        .iter()
        .find(|f| f.id == "weights-in-remote-page-cache")
        .unwrap();
    assert_eq!(
        found.summary,
        "71 % of its weights lie in the page cache away from GPU0 on node 1: /m/2.gguf and 1 more"
    );
    let names: Vec<&str> = found.evidence.iter().map(|e| e.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "weights on node 0",
            "weights on node 1",
            "/m/2.gguf on node 0",
            "/m/1.gguf on node 0",
            "/m/1.gguf on node 1",
        ]
    );
}

#[test]
fn pinned_memory() {
    let away = |p: &mut Process| p.pinned.made.by_node = memory(&[(0, 1_000)]);
    raised("pinned-before-bind", away);
    raised("pinned-on-wrong-node", |p| {
        away(p);
        p.placing.policy = policy(PolicyMode::Default, &[]);
    });
    let near = |p: &mut Process| p.pinned.made.by_node = memory(&[(1, 1_000)]);
    silent("pinned-before-bind", near);
    silent("pinned-on-wrong-node", near);
    silent("pinned-before-bind", |p| {
        p.pinned.made.by_node = memory(&[(0, 63)]);
    });
}

#[test]
fn driver_memory_on_wrong_node() {
    raised("driver-memory-on-wrong-node", |p| {
        p.driver_allocated_pages.by_node = memory(&[(0, 1_000)]);
    });
    silent("driver-memory-on-wrong-node", |p| {
        p.driver_allocated_pages.by_node = memory(&[(1, 1_000)]);
    });
}

#[test]
fn locked_on_wrong_node() {
    let halves = |p: &mut Process| p.placement.by_node_bytes = memory(&[(0, GIB), (1, GIB)]);
    raised("locked-on-wrong-node", |p| {
        halves(p);
        p.pinned.locked_bytes = Some(2 * GIB);
    });
    // Locked address space need not be resident.
    silent("locked-on-wrong-node", |p| {
        p.pinned.locked_bytes = Some(8 * GIB);
    });
    // All that is locked may lie on the right half.
    silent("locked-on-wrong-node", |p| {
        halves(p);
        p.pinned.locked_bytes = Some(GIB);
    });
}

#[test]
fn locked_on_wrong_node_by_a_sample_of_the_pages() {
    let locked = |by_node: &[(u32, u64)]| {
        let by_node: ByNode = by_node.iter().copied().collect();
        move |p: &mut Process| {
            p.pinned.locked_bytes = Some(by_node.values().sum());
            p.placement.locked_by_node_bytes = Some(by_node);
        }
    };
    // Less is locked than lies at home, and it is elsewhere all the same.
    raised("locked-on-wrong-node", locked(&[(0, GIB / 8)]));
    raised(
        "locked-on-wrong-node",
        locked(&[(0, GIB / 8), (1, GIB / 2)]),
    );
    silent("locked-on-wrong-node", locked(&[(1, 2 * GIB)]));
    silent("locked-on-wrong-node", locked(&[(0, 32 * 4096)]));
    silent("locked-on-wrong-node", locked(&[]));
}

#[test]
fn gpus_span_sockets() {
    let by_nvml = |number, node| DeviceUse {
        source: DeviceUseSource::Nvml,
        ..gpu(number, node)
    };
    raised("gpus-span-sockets", |p| {
        p.devices = vec![by_nvml(0, Some(1)), by_nvml(1, Some(0))];
    });
    // CUDA opens every GPU that it may see.
    silent("gpus-span-sockets", |p| p.devices.push(gpu(1, Some(0))));
    silent("gpus-span-sockets", |p| p.devices.push(gpu(1, Some(1))));
    silent("gpus-span-sockets", |p| p.devices.push(gpu(1, None)));
    silent("gpus-span-sockets", |p| {
        p.devices.push(DeviceUse {
            kind: DeviceKind::Nic,
            label: "NIC0".to_owned(),
            ..by_nvml(1, Some(0))
        });
    });
}

#[test]
fn pinning_buys_little() {
    raised("pinning-buys-little", |p| p.remote_share.value = Some(0.02));
    silent("pinning-buys-little", |p| p.remote_share.value = Some(0.2));
    silent("pinning-buys-little", |p| {
        p.remote_share.value = Some(0.02);
        p.placement.by_node_bytes = memory(&[(0, GIB), (1, 0)]);
    });
    let now = snapshot(10, vec![process()]);
    assert_eq!(ids_with(&now, Some(2 * GIB)), ["pinning-buys-little"]);
    assert_eq!(ids_with(&now, Some(GIB / 2)), Vec::<String>::new());
}

#[test]
fn threads_away_from_memory() {
    raised("threads-away-from-memory", |p| {
        p.cpu_time_ns_by_node = memory(&[(0, 9), (1, 1)]);
    });
    silent("threads-away-from-memory", |p| {
        p.cpu_time_ns_by_node = memory(&[(0, 9), (1, 1)]);
        p.placement.by_node_bytes = memory(&[(0, GIB), (1, GIB)]);
    });
}

#[test]
fn threads_wander() {
    let moves = |p: &mut Process| p.moves.cross_socket = Some(100);
    raised("threads-wander", |p| {
        moves(p);
        p.cpu_time_ns_by_node = memory(&[(0, 5), (1, 5)]);
    });
    silent("threads-wander", moves);
    silent("threads-wander", |p| {
        p.moves.cross_socket = Some(9);
        p.cpu_time_ns_by_node = memory(&[(0, 5), (1, 5)]);
    });
}

#[test]
fn worker_affinity_differs() {
    raised("worker-affinity-differs", |p| {
        p.threads = vec![thread("worker", Some((0..8).collect()))];
    });
    silent("worker-affinity-differs", |p| {
        p.threads = vec![thread("worker", Some(vec![5]))];
    });
    silent("worker-affinity-differs", |p| {
        p.threads = vec![thread("worker", None)];
    });
}

#[test]
fn balancing_scan_is_dear() {
    raised("balancing-scan-is-dear", |p| {
        p.scan_cpu_time_ns = Some(600_000_000);
    });
    silent("balancing-scan-is-dear", |p| {
        p.scan_cpu_time_ns = Some(400_000_000);
    });
}

#[test]
fn pages_move_to_and_fro() {
    let pairs = |there, back| {
        let pair = |from, to, pages| MigrationPair { from, to, pages };
        Some(vec![pair(0, 1, there), pair(1, 0, back)])
    };
    raised("pages-move-to-and-fro", |p| {
        p.migrations.by_pair = pairs(5_000, 1_000);
    });
    silent("pages-move-to-and-fro", |p| {
        p.migrations.by_pair = pairs(50_000, 999);
    });
}

#[test]
fn policy_is_a_hint() {
    raised("policy-is-a-hint", |p| {
        p.placing.policy = policy(PolicyMode::Preferred, &[1]);
    });
    raised("policy-is-a-hint", |p| {
        p.placing.policy = policy(PolicyMode::Default, &[]);
    });
    silent("policy-is-a-hint", |p| {
        p.placing.policy = policy(PolicyMode::Default, &[]);
        p.placing.cpus_allowed = Some((0..8).collect());
    });
    silent("policy-is-a-hint", |p| {
        p.placing.policy = policy(PolicyMode::Interleave, &[0, 1]);
    });
}

#[test]
fn bound_to_wrong_node() {
    raised("bound-to-wrong-node", |p| {
        p.placing.policy = policy(PolicyMode::Bind, &[0]);
    });
    silent("bound-to-wrong-node", |p| {
        p.placing.policy = policy(PolicyMode::Bind, &[0, 1]);
    });
}

#[test]
fn mappings_bound_elsewhere() {
    let own = |mode, nodes: &[u32], bytes| {
        Some(vec![OwnPolicy {
            policy: policy(mode, nodes).unwrap(),
            mappings: 2,
            by_node_bytes: ByNode::from([(nodes[0], bytes)]),
        }])
    };
    for mode in [PolicyMode::Bind, PolicyMode::Preferred] {
        raised("mappings-bound-elsewhere", |p| {
            p.placement.own_policies = own(mode, &[0], GIB / 4);
        });
    }
    raised("mappings-bound-elsewhere", |p| {
        p.devices.clear();
        p.placement.own_policies = own(PolicyMode::Bind, &[0], GIB / 4);
    });
    silent("mappings-bound-elsewhere", |p| {
        p.placement.own_policies = own(PolicyMode::Bind, &[1], GIB / 4);
    });
    silent("mappings-bound-elsewhere", |p| {
        p.placement.own_policies = own(PolicyMode::Interleave, &[0, 1], GIB / 4);
    });
    silent("mappings-bound-elsewhere", |p| {
        p.placement.own_policies = own(PolicyMode::Bind, &[0], GIB / 100);
    });
    silent("mappings-bound-elsewhere", |p| {
        p.placement.own_policies = None;
    });
}

#[test]
fn memory_from_before_bind() {
    raised("memory-from-before-bind", |p| {
        p.placement.by_node_bytes = memory(&[(0, GIB), (1, GIB)]);
    });
    silent("memory-from-before-bind", |p| {
        p.placement.by_node_bytes = memory(&[(0, GIB), (1, GIB)]);
        p.placing.policy = policy(PolicyMode::Default, &[]);
    });
}

#[test]
fn page_cache_is_no_memory_from_before_the_bind() {
    let by_kind = |file: u32, anonymous: u32| {
        let kind = |node| memory(&[(node, GIB)]).unwrap_or_default();
        Some(BTreeMap::from([
            (MemoryKind::File, kind(file)),
            (MemoryKind::Anonymous, kind(anonymous)),
        ]))
    };
    silent("memory-from-before-bind", |p| {
        p.placement.by_node_bytes = memory(&[(0, GIB), (1, GIB)]);
        p.placement.by_kind = by_kind(0, 1);
    });
    raised("memory-from-before-bind", |p| {
        p.placement.by_node_bytes = memory(&[(0, GIB), (1, GIB)]);
        p.placement.by_kind = by_kind(1, 0);
    });
}

#[test]
fn cpuset_forbids_gpu_node() {
    raised("cpuset-forbids-gpu-node", |p| {
        p.placing.cpuset_mems = Some(vec![0]);
    });
    raised("cpuset-forbids-gpu-node", |p| {
        p.placing.cpuset_cpus = Some(vec![0, 1]);
    });
    silent("cpuset-forbids-gpu-node", |p| {
        p.placing.cpuset_mems = Some(vec![0, 1]);
        p.placing.cpuset_cpus = Some(vec![1, 7]);
    });
}

#[test]
fn node_is_full() {
    let with = |free: u64, foreign: u64| {
        let mut now = snapshot(10, vec![process()]);
        now.topology.nodes[1].memory_free_bytes = Some(free);
        now.topology.nodes[1].numastat = Some(NumaStat {
            foreign,
            ..NumaStat::default()
        });
        ids(&now)
    };
    assert_eq!(with(GIB, 0), ["node-is-full"]);
    assert_eq!(with(32 * GIB, 1_000), ["node-is-full"]);
    assert_eq!(with(32 * GIB, 100), Vec::<String>::new());
}

#[test]
fn replicas_share_a_node() {
    let second = || Process {
        pid: 43,
        ..process()
    };
    let with = |second: Process, busy: f64| {
        let mut now = snapshot(10, vec![process(), second]);
        now.topology.nodes[0].cpu_busy = Some(busy);
        ids(&now)
    };
    assert_eq!(with(second(), 0.01), ["replicas-share-a-node"]);
    assert_eq!(with(second(), 0.5), Vec::<String>::new());
    let child = Process {
        parent_pid: Some(42),
        ..second()
    };
    assert_eq!(with(child, 0.01), Vec::<String>::new());
    let asleep = Process {
        cpu_time_ns_by_node: memory(&[(1, 1_000_000)]),
        ..second()
    };
    assert_eq!(with(asleep, 0.01), Vec::<String>::new());
    let other = Process {
        engine: Some("vllm".into()),
        ..second()
    };
    assert_eq!(with(other, 0.01), Vec::<String>::new());
}

#[test]
fn topology_is_hidden() {
    let with = |may_hide_nodes| {
        let mut now = snapshot(10, Vec::new());
        now.host.hypervisor = Some("KVM".to_owned());
        now.host.may_hide_nodes = may_hide_nodes;
        ids(&now)
    };
    assert_eq!(with(true), ["topology-is-hidden"]);
    assert_eq!(with(false), Vec::<String>::new());
}

#[test]
fn the_worst_comes_first() {
    let found = found(|p| {
        p.placing.policy = policy(PolicyMode::Preferred, &[1]);
        p.placement.by_node_bytes = memory(&[(0, GIB), (1, 0)]);
    });
    assert_eq!(found[0], "memory-away-from-gpu");
}

/// A third node, of memory alone, near node 1.
fn with_memory_only_node(mut now: Snapshot) -> Snapshot {
    now.topology.nodes.push(Node {
        id: 2,
        distances: [(0, 30), (1, 12), (2, 10)].into(),
        ..Node::default()
    });
    now
}

#[test]
fn memory_of_the_gpu_itself_is_not_away_from_it() {
    let mut process = process();
    process.placing.policy = None;
    process.placement.by_node_bytes = memory(&[(2, GIB)]);
    let mut now = with_memory_only_node(snapshot(10, vec![process]));
    assert_eq!(ids(&now), ["memory-away-from-gpu"]);
    let address = &now.processes[0].devices[0].address;
    let device = serde_json::json!({
        "address": address, "kind": "gpu", "label": "GPU0", "vendor": "NVIDIA", "name": null, "driver": null,
        "node": 1, "memory_nodes": [2], "bridges": [], "root_complex": null, "files": [], "nvlinks": [],
        "nvswitches": [], "reason": null
    });
    now.topology.devices = vec![serde_json::from_value(device).unwrap()];
    assert_eq!(ids(&now), Vec::<String>::new());
}

#[test]
fn threads_on_the_nearest_node_are_not_away_from_memory_without_cpus() {
    let mut process = process();
    process.devices.clear();
    process.placing.policy = None;
    process.placement.by_class = None;
    process.placement.by_node_bytes = memory(&[(2, GIB)]);
    let mut now = with_memory_only_node(snapshot(10, vec![process]));
    assert_eq!(ids(&now), Vec::<String>::new());
    now.processes[0].cpu_time_ns_by_node = memory(&[(0, 10_000_000_000)]);
    assert_eq!(ids(&now), ["threads-away-from-memory"]);
}

#[test]
fn little_free_memory_alone_is_no_warning() {
    let mut now = snapshot(10, vec![process()]);
    now.topology.nodes[1].memory_free_bytes = Some(GIB);
    let view = View {
        now: &now,
        past: &Past::default(),
        thresholds: &Thresholds::default(),
        cache_bytes: None,
    };
    let severities: Vec<_> = findings(&view).iter().map(|f| f.severity).collect();
    assert_eq!(severities, [Severity::Info]);
}

/// A signal that failed its self-test raises nothing.
#[test]
fn nothing_rests_on_an_unreliable_signal() {
    type Change = fn(&mut Process);
    let cases: [(&str, SignalName, Change); 7] = [
        ("memory-away-from-gpu", SignalName::Placement, |p| {
            p.placement.by_node_bytes = memory(&[(0, GIB), (1, 0)]);
        }),
        ("pinned-before-bind", SignalName::Pin, |p| {
            p.pinned.made.by_node = memory(&[(0, 1_000)]);
        }),
        (
            "driver-memory-on-wrong-node",
            SignalName::DriverAlloc,
            |p| {
                p.driver_allocated_pages.by_node = memory(&[(0, 1_000)]);
            },
        ),
        ("threads-away-from-memory", SignalName::Sched, |p| {
            p.cpu_time_ns_by_node = memory(&[(0, 9), (1, 1)]);
        }),
        ("threads-wander", SignalName::Sched, |p| {
            p.moves.cross_socket = Some(100);
            p.cpu_time_ns_by_node = memory(&[(0, 5), (1, 5)]);
        }),
        ("balancing-scan-is-dear", SignalName::Scan, |p| {
            p.scan_cpu_time_ns = Some(600_000_000);
        }),
        ("pages-move-to-and-fro", SignalName::Migration, |p| {
            let pair = |from, to| MigrationPair {
                from,
                to,
                pages: 5_000,
            };
            p.migrations.by_pair = Some(vec![pair(0, 1), pair(1, 0)]);
        }),
    ];
    for (id, name, change) in cases {
        let mut process = process();
        change(&mut process);
        let mut now = snapshot(10, vec![process]);
        assert!(ids(&now).contains(&id.to_owned()), "{id}");
        for signal in now.signals.iter_mut().filter(|s| s.name == name) {
            signal.state = SignalState::Unreliable;
        }
        assert!(!ids(&now).contains(&id.to_owned()), "{id}");
    }
}

#[test]
fn docs_have_every_id() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/findings.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, table) = text.split_once("| id | raised when |").unwrap();
    let mut documented: Vec<&str> = table
        .lines()
        .skip(1)
        .take_while(|line| line.starts_with('|'))
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(id, _)| id)
        .collect();
    documented.sort_unstable();
    assert_eq!(documented, IDS);
}

#[test]
fn threads_are_sent_to_their_memory_but_never_away_from_their_gpu() {
    let advice = |devices: Vec<DeviceUse>| {
        let mut process = process();
        process.devices = devices;
        process.placement.by_node_bytes = memory(&[(0, GIB), (1, 0)]);
        let now = snapshot(10, vec![process]);
        let view = View {
            now: &now,
            past: &Past::default(),
            thresholds: &Thresholds::default(),
            cache_bytes: None,
        };
        let found = findings(&view);
        let found = found
            .into_iter()
            .find(|f| f.id == "threads-away-from-memory");
        found.unwrap().advice.concat()
    };
    let taskset = "taskset -apc $(cat /sys/devices/system/node/node0/cpulist) 42";
    assert_eq!(advice(vec![gpu(0, Some(0))]), taskset);
    assert_eq!(advice(Vec::new()), taskset);
    let launch = "numawatch launch --gpu 0 -- server -m model.gguf";
    assert_eq!(advice(vec![gpu(0, Some(1))]), launch);
}
