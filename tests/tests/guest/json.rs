//! The names in the JSON document, as somebody reads them who has no Rust.

use serde_json::Value;
use tests::vm::Guest;

on_each_kernel!(
    the_document_has_every_promised_name,
    a_process_has_every_promised_name,
    nodes_are_keyed_by_decimal_strings,
    pairs_have_the_promised_form,
);

fn document(guest: &Guest, session: &str) -> Value {
    let report = guest.session(session);
    report
        .snapshot
        .clone()
        .unwrap_or_else(|| panic!("{}", report.trouble()))
}

fn process(guest: &Guest, session: &str, workload: &str) -> Value {
    let pid = guest.session(session).workload(workload).pid;
    let document = document(guest, session);
    let processes = document["processes"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    match processes.into_iter().find(|process| process["pid"] == pid) {
        Some(process) => process,
        None => panic!("no process {pid}"),
    }
}

#[track_caller]
fn has(value: &Value, pointers: &[&str]) {
    for pointer in pointers {
        assert!(value.pointer(pointer).is_some(), "no {pointer} in {value}");
    }
}

fn the_document_has_every_promised_name(guest: &Guest) {
    let document = document(guest, "balancing");
    has(
        &document,
        &[
            "/schema_version",
            "/taken_at",
            "/host",
            "/host/lost/events",
            "/host/lost/events_reason",
            "/host/maps/0/name",
            "/host/maps/0/used",
            "/host/maps/0/max",
            "/host/hypervisor",
            "/host/may_hide_nodes",
            "/topology/nodes/0/id",
            "/topology/nodes/0/cpus",
            "/topology/nodes/0/socket",
            "/topology/nodes/0/memory_total_bytes",
            "/topology/nodes/0/memory_free_bytes",
            "/topology/nodes/0/distances",
            "/topology/nodes/0/numastat",
            "/signals/0/name",
            "/signals/0/state",
            "/signals/0/mechanism",
            "/signals/0/target",
            "/signals/0/reason",
            "/cgroups",
            "/coverage",
        ],
    );
    assert_eq!(
        document.pointer("/topology/nodes/1/distances/0"),
        Some(&Value::from(21))
    );
    assert_eq!(
        document.pointer("/topology/nodes/1/cpus"),
        Some(&serde_json::json!([2, 3]))
    );
}

fn a_process_has_every_promised_name(guest: &Guest) {
    has(
        &process(guest, "balancing", "one-way"),
        &[
            "/pid",
            "/start_time",
            "/tracked_since",
            "/parent_pid",
            "/executable",
            "/command",
            "/engine",
            "/role",
            "/rank",
            "/cpu_time_ns_by_node",
            "/moves/total",
            "/moves/cross_socket",
            "/moves/by_pair",
            "/touches/first_touch/local_pages",
            "/touches/first_touch/same_socket_pages",
            "/touches/first_touch/cross_socket_pages",
            "/touches/first_touch/by_pair",
            "/touches/map/local_pages",
            "/touches/map/by_pair",
            "/touches/hint/local_pages",
            "/touches/hint/cross_socket_pages",
            "/touches/hint/by_pair",
            "/touches/hint/faults",
            "/migrations/pages",
            "/migrations/failed_pages",
            "/migrations/by_pair",
            "/scan_time_ns",
            "/pinned/bytes",
            "/pinned/locked_bytes",
            "/pinned/made/pages",
            "/pinned/made/by_node",
            "/driver_allocated_pages/pages",
            "/placement/by_node_bytes",
            "/placement/by_kind",
            "/placement/source",
            "/placing/policy/mode",
            "/placing/policy/nodes",
            "/placing/policy/flags",
            "/placing/cpus_allowed",
            "/placing/mems_allowed",
            "/placing/cpuset_cpus",
            "/placing/cpuset_mems",
            "/placing/cgroup",
            "/placing/container",
            "/placing/reason",
            "/remote_share/value",
            "/remote_share/signal",
            "/remote_share/window_s",
            "/remote_share/pages",
            "/verdict",
            "/threads/0/tid",
            "/threads/0/name",
            "/threads/0/cpu_time_ns_by_node",
            "/threads/0/moves",
            "/threads/0/scan_time_ns",
            "/threads/0/cpus_allowed",
        ],
    );
}

fn nodes_are_keyed_by_decimal_strings(guest: &Guest) {
    let spin = process(guest, "counts", "spin");
    for node in ["0", "1"] {
        assert!(
            spin["cpu_time_ns_by_node"][node].as_u64() > Some(1_000_000_000),
            "{}",
            spin["cpu_time_ns_by_node"]
        );
    }
}

fn pairs_have_the_promised_form(guest: &Guest) {
    let touch = process(guest, "counts", "first-touch");
    let pairs = touch
        .pointer("/touches/first_touch/by_pair")
        .and_then(Value::as_array);
    let pair = pairs.and_then(|pairs| pairs.iter().max_by_key(|pair| pair["pages"].as_u64()));
    let pair = pair.unwrap_or_else(|| panic!("no pair: {touch}"));
    assert_eq!(
        (&pair["cpu_node"], &pair["memory_node"]),
        (&Value::from(1), &Value::from(0))
    );
    let moves = process(guest, "counts", "moves");
    let pair = moves
        .pointer("/moves/by_pair/0")
        .cloned()
        .unwrap_or_default();
    has(&pair, &["/from", "/to", "/count"]);
}
