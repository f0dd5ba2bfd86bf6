//! Memory, pinned or not, on the wrong node: each rule is raised, and silent where it must be.

use super::*;

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
        let found = findings_with(&now, None);
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
    let found = findings_with(&now, None);
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
fn gpus_of_an_engines_workers_span_sockets_together() {
    let worker = |pid, number, node| Process {
        pid,
        parent_pid: Some(42),
        devices: vec![gpu(number, Some(node))],
        ..process()
    };
    let server = || Process {
        devices: Vec::new(),
        ..process()
    };
    let spanning = |workers: Vec<Process>| -> Vec<(Option<u32>, String)> {
        let now = snapshot(10, [vec![server()], workers].concat());
        let found = findings_with(&now, None).into_iter();
        found
            .filter(|f| f.id == "gpus-span-sockets")
            .map(|f| (f.pid, f.summary))
            .collect()
    };
    assert_eq!(
        spanning(vec![worker(43, 0, 1), worker(44, 4, 0)]),
        [(
            Some(42),
            "its workers' devices GPU0, GPU4 are on 2 sockets".to_owned()
        )]
    );
    assert_eq!(spanning(vec![worker(43, 0, 1), worker(44, 1, 1)]), []);
}

#[test]
fn memory_is_moved_as_it_runs_only_where_it_would_stay() {
    let advice = |change: &dyn Fn(&mut Process)| {
        let found = raised("memory-away-from-gpu", |p| {
            p.placement.by_node_bytes = memory(&[(0, GIB), (1, 0)]);
            p.placing.policy = policy(PolicyMode::Default, &[]);
            change(p);
        });
        found.advice.get(1).cloned()
    };
    let migrate = "migratepages 42 0 1   # or as it runs; what is pinned stays";
    assert_eq!(advice(&|_| ()).as_deref(), Some(migrate));
    // Its threads are to come along.
    let with_threads = format!("taskset -apc 4-7 42 && {migrate}");
    let run_on_node_0 = |p: &mut Process| p.cpu_time_ns_by_node = memory(&[(0, 10_000_000_000)]);
    assert_eq!(advice(&run_on_node_0), Some(with_threads.clone()));
    let confined_to_node_0 = |p: &mut Process| p.placing.cpus_allowed = Some(vec![0, 1]);
    assert_eq!(advice(&confined_to_node_0), Some(with_threads));
    let bound_to_node_0 = |p: &mut Process| p.placing.policy = policy(PolicyMode::Bind, &[0]);
    assert_eq!(advice(&bound_to_node_0), None);
    let forbidden_node_1 = |p: &mut Process| p.placing.cpuset_mems = Some(vec![0]);
    assert_eq!(advice(&forbidden_node_1), None);
}

#[test]
fn pinning_buys_little() {
    let free = |p: &mut Process, remote| {
        p.remote_share.value = Some(remote);
        p.placing.policy = policy(PolicyMode::Default, &[]);
        p.placing.cpus_allowed = Some((0..8).collect());
    };
    raised("pinning-buys-little", |p| free(p, 0.02));
    silent("pinning-buys-little", |p| free(p, 0.2));
    // What is bound may be near because of that.
    silent("pinning-buys-little", |p| {
        p.remote_share.value = Some(0.02);
    });
    silent("pinning-buys-little", |p| {
        free(p, 0.02);
        p.placing.mems_allowed = Some(vec![1]);
    });
    silent("pinning-buys-little", |p| {
        free(p, 0.02);
        p.placement.by_node_bytes = memory(&[(0, GIB), (1, 0)]);
    });
    // Something else is wrong with it, and binding mends that.
    silent("pinning-buys-little", |p| {
        free(p, 0.02);
        p.placing.policy = policy(PolicyMode::Preferred, &[1]);
    });
    let mut fits = process();
    free(&mut fits, 0.5);
    let now = snapshot(10, vec![fits]);
    assert_eq!(ids_with(&now, Some(2 * GIB)), ["pinning-buys-little"]);
    assert_eq!(ids_with(&now, Some(GIB / 2)), Vec::<String>::new());
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
    // And no place for the host's.
    now.processes[0].placement.by_node_bytes = memory(&[(0, GIB)]);
    let found = findings_with(&now, None);
    let away = found.iter().find(|f| f.id == "memory-away-from-gpu");
    let advice = &away.unwrap().advice;
    assert!(
        advice[0].starts_with("numawatch launch --gpu 0 -- "),
        "{advice:?}"
    );
    assert!(advice[1].starts_with("migratepages 42 0 1 "), "{advice:?}");
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
