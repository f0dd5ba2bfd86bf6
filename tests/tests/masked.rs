//! A host of which something is masked, as containers and their runtimes do: an empty folder or `/dev/null` is mounted over
//! it. The rest is shown, and what is missing has its reason.
#![allow(
    clippy::expect_used,
    reason = "a helper that cannot go on fails its test"
)]

use model::check::{Report, State};
use model::snapshot::Snapshot;
use serde_json::Value;
use std::process::{Command, Output, Stdio};
use tests::built::numawatch;
use tests::process::Running;

const NODES: &str = "/sys/devices/system/node";
const CPUS: &str = "/sys/devices/system/cpu";
const SETTINGS: &str = "/proc/sys";

/// numawatch where nothing is to be seen at `masked`; nobody else sees that.
fn behind(masked: &str, arguments: &[&str]) -> Output {
    let empty = std::env::temp_dir().join(format!("numawatch-empty-{}", std::process::id()));
    std::fs::create_dir_all(&empty).expect("a folder");
    let script =
        r#"over=/dev/null; [ -d "$0" ] && over=$1; mount --bind "$over" "$0"; shift; exec "$@""#;
    Command::new("unshare")
        .args(["--mount", "sh", "-ec", script, masked])
        .arg(&empty)
        .arg(numawatch())
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("unshare starts: the tests run as root")
}

#[track_caller]
fn fine(output: &Output) -> &[u8] {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    &output.stdout
}

fn sleeper() -> Running {
    let mut sleep = Command::new("sleep");
    Running::start(sleep.arg("600")).expect("sleep starts")
}

/// A process's snapshot or check, behind the mask.
fn watched(command: &str, masked: &str, pid: u32) -> Output {
    let pid = pid.to_string();
    behind(
        masked,
        &[command, "--json", "--for", "300ms", "--pid", &pid],
    )
}

fn snapshot(masked: &str, pid: u32) -> Snapshot {
    let output = watched("snapshot", masked, pid);
    serde_json::from_slice(fine(&output)).expect("a snapshot")
}

#[test]
fn masked_nodes_are_a_reason_and_no_pass() {
    let reason = "/sys/devices/system/node has no nodes";
    let output = behind(NODES, &["topo"]);
    let text = String::from_utf8_lossy(fine(&output));
    let line = text.lines().find(|line| line.starts_with("nodes: "));
    assert!(line.is_some_and(|line| line.contains(reason)), "{text}");
    let output = behind(NODES, &["topo", "--json"]);
    let topo: Value = serde_json::from_slice(fine(&output)).expect("JSON");
    assert!(topo["nodes_reason"].to_string().contains(reason), "{topo}");
    let sleeper = sleeper();
    let output = watched("check", NODES, sleeper.pid());
    let report: Report = serde_json::from_slice(fine(&output)).expect("a report");
    for answer in &report.answers[..2] {
        assert_eq!(answer.state, State::Unknown, "{answer:?}");
        assert!(answer.summary.contains(reason), "{answer:?}");
    }
}

#[test]
fn masked_cpus_leave_the_nodes_and_the_processes() {
    let output = behind(CPUS, &["topo", "--json"]);
    let topo: Value = serde_json::from_slice(fine(&output)).expect("JSON");
    assert_ne!(topo["topology"]["nodes"][0]["cpus"], serde_json::json!([]));
    let reason = topo["nodes_reason"].to_string();
    assert!(
        reason.contains("/sys/devices/system/cpu/online"),
        "{reason}"
    );
    let sleeper = sleeper();
    let snapshot = snapshot(CPUS, sleeper.pid());
    assert!(snapshot.host.cpus > Some(0));
    assert_eq!(snapshot.processes.len(), 1);
    fine(&watched("check", CPUS, sleeper.pid()));
}

#[test]
fn a_masked_file_is_a_reason_and_no_empty_list() {
    let node = tests::bound::node();
    let cpulist = format!("{NODES}/node{node}/cpulist");
    for masked in [format!("{CPUS}/online"), cpulist.clone()] {
        let output = behind(&masked, &["topo", "--json"]);
        let topo: Value = serde_json::from_slice(fine(&output)).expect("JSON");
        let want = format!("{masked}: is empty: is something mounted over it?");
        assert!(topo["nodes_reason"].to_string().contains(&want), "{topo}");
        let nodes = topo["topology"]["nodes"].as_array().expect("nodes");
        let known = nodes.iter().find(|known| known["id"] == node);
        match known {
            None => assert_eq!(masked, cpulist, "{topo}"),
            Some(known) => assert_ne!(known["cpus"], serde_json::json!([]), "{topo}"),
        }
        let sleeper = sleeper();
        assert!(snapshot(&masked, sleeper.pid()).host.cpus > Some(0));
    }
}

#[test]
fn masked_settings_leave_the_host_its_name() {
    let sleeper = sleeper();
    let there = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    let host = snapshot(SETTINGS, sleeper.pid()).host;
    assert_eq!(host.name, there.trim());
    let reason = host.numa_balancing_reason.unwrap_or_default();
    assert!(reason.contains("/proc/sys/kernel is masked"), "{reason}");
    fine(&watched("check", SETTINGS, sleeper.pid()));
    fine(&behind(
        SETTINGS,
        &[
            "launch",
            "--node",
            &tests::bound::node().to_string(),
            "--",
            "true",
        ],
    ));
}

/// With 8 MiB that surely are resident.
fn full() -> Running {
    let fill = r"x=$(head -c 8388608 /dev/zero | tr '\0' x); echo full >&2; read -r line";
    let mut running = Running::start(Command::new("sh").args(["-c", fill])).expect("sh starts");
    running
        .stderr_line(|line| line == "full")
        .expect("its word");
    running
}

#[test]
fn a_process_whose_files_are_masked_has_no_known_placement() {
    let sleeper = full();
    for (file, why) in [
        ("maps", "is something mounted over it?"),
        ("pagemap", "is something mounted over it?"),
        ("status", "status: lacks RssAnon"),
    ] {
        let snapshot = snapshot(&format!("/proc/{}/{file}", sleeper.pid()), sleeper.pid());
        let process = &snapshot.processes[0];
        let placement = &process.placement;
        assert_eq!(placement.by_node_bytes, None, "{file}");
        let told = placement.reason.clone().unwrap_or_default();
        assert!(told.contains(why), "{file}: {told}");
        let unread = (file == "status").then_some(None);
        assert_eq!(unread.unwrap_or(Some(0)), process.pinned.bytes, "{file}");
        assert_eq!(process.pinned.reason.is_some(), file == "status");
    }
}

#[test]
fn a_user_namespace_is_named_as_the_reason() {
    // As podman and docker do it without root: its root has not all capabilities.
    let dropped = ["setpriv", "--bounding-set=-all"];
    for wrapper in [&[][..], &dropped] {
        let output = Command::new("unshare")
            .args(["--user", "--map-root-user"])
            .args(wrapper)
            .arg(numawatch())
            .args(["doctor", "--json"])
            .stdin(Stdio::null())
            .output()
            .expect("unshare starts: the tests run as root");
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(output.status.code(), Some(1), "{report}");
        let of = |list: &str, key: &str, value: &str| {
            let entries = report[list].as_array().expect("a list");
            entries.iter().find(|entry| entry[key] == value).cloned()
        };
        let check = of("checks", "id", "host.user_namespace").expect("the check");
        assert_eq!(check["outcome"], "FAIL", "{check}");
        let sched = of("signals", "name", "sched").expect("the signal");
        let reason = sched["reason"].to_string();
        assert!(reason.contains("its own user namespace"), "{reason}");
    }
}
