//! What is advised to type for a process.

use super::*;
use crate::findings::subject::typed;
use crate::policy::Container;

/// What starts process 42 anew, a worker that is away from its GPU, beside others; empty where no command does.
fn relaunch_of_worker(others: Vec<Process>) -> String {
    let mut worker = process();
    worker.parent_pid = Some(41);
    worker.command = "worker".to_owned();
    worker.placement.by_node_bytes = memory(&[(0, GIB)]);
    let now = snapshot(10, [others, vec![worker]].concat());
    let found = findings_with(&now, None);
    let mut found = found.iter().filter(|f| f.pid == Some(42));
    let found = found.find(|f| f.id == "memory-away-from-gpu");
    let advice = found.map_or_else(Vec::new, |f| f.advice.clone());
    let mut starts = advice.into_iter().filter(|line| line.contains(" launch "));
    starts.next().unwrap_or_default()
}

#[test]
fn a_strangers_command_is_not_typed_where_a_terminal_would_read_more_in_it() {
    for (command, plain) in [
        ("server -m /m/a.gguf --port=80", true),
        ("server --config '{\"temperature\": 0}'", true),
        ("server 'a\nreboot'", false),
        ("server '\u{1b}[2J'", false),
        ("", false),
    ] {
        let mut process = process();
        process.command = command.to_owned();
        let typed = typed(&process);
        assert_eq!(typed == command, plain, "{typed}");
        assert!(plain || typed.starts_with("COMMAND   # "), "{typed}");
    }
}

/// What is advised for a process that is bound to the wrong node.
fn where_bound_wrongly(change: impl FnOnce(&mut Process)) -> Finding {
    raised("bound-to-wrong-node", |p| {
        p.placing.policy = policy(PolicyMode::Bind, &[0]);
        change(p);
    })
}

#[test]
fn what_is_in_a_container_is_started_anew_by_its_runtime() {
    let found = where_bound_wrongly(|p| {
        p.placing.container = Some(Container {
            id: "4f1d".to_owned(),
            runtime: Some("docker".to_owned()),
            pod_uid: None,
        });
    });
    let update = "docker update --cpuset-mems 1 --cpuset-cpus 4-7 4f1d";
    assert_eq!(found.advice, [update]);
}

#[test]
fn where_its_cgroup_forbids_that_nothing_is_typed_before_the_cgroup_is_widened() {
    let found = where_bound_wrongly(|p| p.placing.cpuset_mems = Some(vec![0]));
    assert_eq!(found.advice, Vec::<String>::new());
    assert!(
        found.hints[0].contains("widen its cpuset first"),
        "{found:?}"
    );
}

#[test]
fn a_device_of_a_node_that_cannot_be_read_is_no_place_to_be() {
    let mut now = snapshot(10, vec![process()]);
    now.topology.nodes.truncate(1);
    now.processes[0].placing.cpuset_cpus = Some(vec![0, 1, 2, 3]);
    assert_eq!(ids(&now), Vec::<String>::new());
}

#[test]
fn a_worker_without_its_server_is_not_started_by_its_own_command() {
    for (command, role, is_part) in [
        ("python worker.py", "worker", true),
        ("VLLM::EngineCore", "engine-core", true),
        ("rpc-server -p 1", "server", false),
    ] {
        let found = where_bound_wrongly(|p| {
            p.command = command.to_owned();
            p.role = Some(role.to_owned());
            p.rank = Some(1);
        });
        assert_eq!(found.advice.is_empty(), is_part, "{command}");
        let hints = found.hints.concat();
        assert_eq!(
            hints.contains("server that isn't watched"),
            is_part,
            "{hints}"
        );
    }
}

#[test]
fn another_users_command_is_started_as_that_user() {
    let found = where_bound_wrongly(|p| p.other_uid = Some(1000));
    let words = "sudo -u '#1000' numawatch launch --gpu 0 -- server";
    assert!(found.advice[0].starts_with(words), "{found:?}");
}

#[test]
fn nobody_is_brought_along_to_where_another_of_its_container_does_not_belong() {
    let contained = |pid, node| {
        let mut process = Process {
            pid,
            devices: vec![gpu(node, Some(node))],
            ..process()
        };
        process.placing.policy = policy(PolicyMode::Bind, &[1 - node]);
        process.placing.container = Some(Container {
            id: "4f1d".to_owned(),
            runtime: Some("docker".to_owned()),
            pod_uid: None,
        });
        process
    };
    let now = snapshot(10, vec![contained(42, 1), contained(43, 0)]);
    for found in findings_with(&now, None) {
        let moves = |line: &String| line.starts_with("docker") || line.contains("launch");
        assert!(!found.advice.iter().any(moves), "{found:?}");
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
        (
            vec![server()],
            format!("{launch} -- server -m model.gguf   # once 41 has stopped"),
        ),
        (
            vec![shell],
            format!("{launch} -- worker   # once 42 has stopped"),
        ),
        (
            vec![server(), sibling],
            format!("{launch} --dry-run -- server -m model.gguf   # starts nothing"),
        ),
    ] {
        assert_eq!(relaunch_of_worker(others), want);
    }
}
