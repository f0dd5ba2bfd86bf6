//! A machine whose GPU is on node 1: what `numawatch topo` shows, and whose the GPU is in a snapshot.
#![allow(
    clippy::expect_used,
    reason = "a helper that cannot go on fails its test"
)]

use serde_json::Value;
use std::sync::OnceLock;
use tests::vm::in_guest;

/// Prints topo's document and a snapshot's, of a process that has the GPU open and one that hasn't.
const SCRIPT: &str = "\
    sleep 600 & without=$!
    exec 9<>/dev/dri/renderD128
    sleep 600 & with=$!
    exec 9>&-
    numawatch topo --json
    numawatch snapshot --json --for 1s --pid $with --pid $without
    echo \"[$with, $without]\"";

/// The documents, one boot for all tests.
fn documents() -> &'static [Value] {
    static DOCUMENTS: OnceLock<Vec<Value>> = OnceLock::new();
    DOCUMENTS.get_or_init(|| {
        let text = in_guest(&["--gpu-node", "1"], SCRIPT).expect("the guest");
        let documents = serde_json::Deserializer::from_str(&text).into_iter();
        documents
            .collect::<Result<_, _>>()
            .expect("three documents")
    })
}

#[test]
fn the_gpu_hangs_on_its_node() {
    let topo = &documents()[0];
    let device = &topo["topology"]["devices"][0];
    assert_eq!(
        (&device["label"], &device["kind"]),
        (&"GPU0".into(), &"gpu".into())
    );
    assert_eq!(device["node"], 1);
    let files = device["files"].as_array().expect("files");
    assert!(files.contains(&"renderD128".into()), "{device}");
    assert_eq!(
        device["bridges"].as_array().map(Vec::len),
        Some(1),
        "a root port: {device}"
    );
    assert_eq!(topo["sockets"], 2);
}

#[test]
fn a_process_uses_the_gpu_that_it_has_open_and_no_other_process_does() {
    let [_, snapshot, pids] = documents() else {
        panic!("three documents: {:?}", documents());
    };
    let devices = |pid: &Value| {
        let processes = snapshot["processes"].as_array().expect("processes");
        let process = processes.iter().find(|p| p["pid"] == *pid);
        process.expect("the process")["devices"].clone()
    };
    let used = devices(&pids[0]);
    assert_eq!(used[0]["label"], "GPU0");
    assert_eq!(used[0]["node"], 1);
    assert_eq!(used[0]["source"], "open_files");
    assert_eq!(devices(&pids[1]), serde_json::json!([]));
}
