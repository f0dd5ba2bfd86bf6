//! `numawatch launch` in a two-node guest with a GPU on node 1.

use model::check::Report as Checked;
use model::finding::Severity;
use model::policy::{Container, PolicyMode};
use model::process::ByNode;
use std::path::Path;
use std::sync::OnceLock;
use tests::launch::{CONTAINER, Inherited, PAGES, Report};
use tests::vm::Guest;

/// `MPOL_BIND` of the kernel's interface.
const BIND: i32 = 2;

fn report() -> &'static Report {
    static GUEST: OnceLock<Guest> = OnceLock::new();
    let scenario = Path::new(env!("CARGO_BIN_EXE_scenario"));
    let guest = GUEST.get_or_init(|| Guest::play_launches("6.12", scenario));
    let report = guest.launches();
    assert_eq!(report.error, None, "{report:?}");
    report
}

/// Not launched: exit 2, nothing on stdout, one line with these words.
#[track_caller]
fn refused(name: &str, words: &[&str]) {
    let launch = report().launch(name);
    assert_eq!(
        (launch.exit_code, launch.stdout.as_str()),
        (Some(2), ""),
        "{launch:?}"
    );
    assert_eq!(launch.stderr.lines().count(), 1, "{launch:?}");
    for word in words {
        assert!(launch.stderr.contains(word), "{word}: {launch:?}");
    }
}

#[track_caller]
fn on_node_1(inherited: &Inherited) {
    assert_eq!(
        (inherited.mode, inherited.nodes.as_slice()),
        (BIND, &[1][..])
    );
    assert!(inherited.numa_maps.contains(" bind:1 "), "{inherited:?}");
    assert_eq!(inherited.cpus, [2, 3]);
    assert_eq!(inherited.pages, ByNode::from([(1, PAGES)]));
    assert_eq!(inherited.thread_pages, ByNode::from([(1, PAGES)]));
}

#[test]
fn without_launch_it_has_all_cpus_and_no_policy() {
    let inherited = report().launch("without").inherited();
    assert_eq!((inherited.mode, inherited.cpus.len()), (0, 4));
}

#[test]
fn launched_on_a_node_all_64_mib_of_each_thread_lie_there() {
    on_node_1(&report().launch("node").inherited());
}

#[test]
fn a_gpu_tells_the_node() {
    on_node_1(&report().launch("gpu by number").inherited());
    on_node_1(&report().launch("gpu by device").inherited());
}

#[test]
fn a_node_that_is_not_the_gpus_is_refused() {
    refused("gpu elsewhere", &["is on node 1, not on node 0"]);
}

#[test]
fn a_model_that_the_node_has_no_room_for_is_refused() {
    refused(
        "full",
        &["node 1 has", "64.0 GiB of /tmp/model.gguf", "--needs 0"],
    );
    refused("needs", &["100.0 GiB of --needs"]);
}

#[test]
fn needs_says_what_must_be_free() {
    for name in ["full all the same", "needs little"] {
        let launch = report().launch(name);
        assert_eq!(launch.exit_code, Some(0), "{launch:?}");
    }
}

#[test]
fn a_command_that_cannot_be_run_has_envs_codes() {
    for (name, code) in [
        ("no command", 127),
        ("no program", 126),
        ("its own code", 7),
    ] {
        let launch = report().launch(name);
        assert_eq!(launch.exit_code, Some(code), "{launch:?}");
    }
}

#[test]
fn a_node_that_is_not_there_is_refused() {
    refused("no node", &["no node 7", "0-1"]);
}

#[test]
fn a_cpuset_that_forbids_the_node_is_named() {
    refused("memory forbidden", &["cpuset.mems: 0)"]);
    refused("CPUs forbidden", &["cpuset.cpus: 0-1)"]);
}

#[test]
fn dry_run_prints_numactls_line() {
    let stdout = &report().launch("dry").stdout;
    let mut lines = stdout.lines();
    assert_eq!(
        lines.next(),
        Some("numactl --cpunodebind=1 --membind=1 llama-server -m 'a b.gguf'")
    );
    assert!(stdout.contains("--numa numactl"), "{stdout}");
    assert!(lines.all(|line| line.starts_with('#')), "{stdout}");
}

#[test]
fn the_command_has_the_launchers_pid_and_a_snapshot_tells_what_it_may_use() {
    let Some((pid, process)) = &report().watched else {
        panic!("{:?}", report().error);
    };
    assert_eq!((process.pid, process.name.as_str()), (*pid, "workload"));
    assert_eq!(process.policy.as_deref(), Some("bind:1"));
    let placing = &process.placing;
    assert_eq!(
        placing.policy.as_ref().map(|p| p.mode),
        Some(PolicyMode::Bind)
    );
    assert_eq!(placing.cpus_allowed, Some(vec![2, 3]));
    assert_eq!(placing.mems_allowed, Some(vec![0, 1]));
    assert_eq!(placing.cpuset_cpus, Some(vec![1, 2, 3]));
    assert_eq!(placing.cpuset_mems, Some(vec![0, 1]));
    assert_eq!(
        placing.container,
        Some(Container {
            id: CONTAINER.to_owned(),
            runtime: Some("docker".to_owned()),
            pod_uid: None,
        })
    );
    assert_eq!(placing.reason, None);
}

#[test]
fn a_thread_with_cpus_of_its_own_is_named() {
    let Some((pid, process)) = &report().watched else {
        panic!("{:?}", report().error);
    };
    for thread in &process.threads {
        let want = (thread.tid != *pid).then(|| vec![3]);
        assert_eq!(thread.cpus_allowed, want, "{thread:?}");
    }
    assert_eq!(process.threads.len(), 2, "{:?}", process.threads);
}

/// The ids of what costs, or may.
fn found(checked: &Checked) -> Vec<&str> {
    let costs = checked
        .findings
        .iter()
        .filter(|f| f.severity > Severity::Info);
    costs.map(|f| f.id.as_str()).collect()
}

#[test]
fn check_fails_a_process_that_is_bound_away_from_its_gpu() {
    let (exit_code, checked) = report().check("away");
    let found = found(&checked);
    for id in ["memory-away-from-gpu", "bound-to-wrong-node"] {
        assert!(found.contains(&id), "{id}: {checked:?}");
    }
    assert_eq!(exit_code, Some(1));
}

#[test]
fn check_names_a_cgroup_that_forbids_the_gpus_node() {
    let (exit_code, checked) = report().check("forbidden");
    assert!(
        found(&checked).contains(&"cpuset-forbids-gpu-node"),
        "{checked:?}"
    );
    assert_eq!(exit_code, Some(1));
}

#[test]
fn check_finds_nothing_of_a_process_that_was_launched_on_its_gpus_node() {
    let (exit_code, checked) = report().check("launched");
    assert_eq!(found(&checked), Vec::<&str>::new(), "{checked:?}");
    assert_eq!(exit_code, Some(0));
}
