//! `numawatch launch` on the machine that runs the tests: its first node with CPUs and memory.
#![allow(
    clippy::expect_used,
    reason = "a helper that cannot go on fails its test"
)]

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output, Stdio};
use tests::built::numawatch;
use tests::launch::Inherited;
use tests::process::Running;

fn node() -> String {
    tests::bound::node().to_string()
}

fn launch(arguments: &[&str]) -> Output {
    Command::new(numawatch())
        .arg("launch")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("numawatch starts")
}

fn on_node(arguments: &[&str]) -> Output {
    launch(&[&["--node", &node()], arguments].concat())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn refused(output: &Output, words: &str) {
    says_why(output, words);
    assert_eq!(text(&output.stdout), "");
}

fn says_why(output: &Output, words: &str) {
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.contains(words), "{stderr}");
}

#[test]
fn the_command_inherits_a_bound_policy_and_the_nodes_cpus() {
    let node = node();
    let workload = env!("CARGO_BIN_EXE_workload");
    let output = on_node(&["--", workload, "inherited", "--pages", "64"]);
    let inherited: Inherited = serde_json::from_slice(&output.stdout).expect("the workload's line");
    let policy = format!(" bind:{node} ");
    assert!(inherited.numa_maps.contains(&policy), "{inherited:?}");
    let cpus = format!("/sys/devices/system/node/node{node}/cpulist");
    let cpus = model::list::parse(&fs::read_to_string(cpus).expect("its CPUs"));
    let cpus = cpus.expect("a list of CPUs");
    assert!(
        inherited.cpus.iter().all(|cpu| cpus.contains(cpu)),
        "{inherited:?}"
    );
    let node = node.parse().expect("a number");
    assert_eq!(inherited.nodes, [node]);
    for pages in [&inherited.pages, &inherited.thread_pages] {
        assert_eq!(pages.get(&node), Some(&64), "{inherited:?}");
    }
}

#[test]
fn no_process_of_numawatch_stays() {
    let mut command = Command::new(numawatch());
    command.args(["launch", "--node", &node(), "--", "cat"]);
    // The pipe is there before it becomes cat.
    let mut cat = Running::start(&mut command).expect("numawatch starts");
    let name = format!("/proc/{}/comm", cat.pid());
    let end = std::time::Instant::now() + tests::process::LIMIT;
    while fs::read_to_string(&name).expect("it runs").trim() != "cat" {
        assert!(std::time::Instant::now() < end, "it isn't cat yet");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    cat.close_stdin();
    let (status, _) = cat.wait().expect("cat ends");
    assert_eq!(status.code(), Some(0));
}

#[test]
fn codes_are_envs() {
    let directory = std::env::temp_dir();
    let directory = directory.to_str().expect("a directory's name");
    for (command, code) in [
        (&["sh", "-c", "exit 7"][..], 7),
        (&["/no/such/command"], 127),
        (&["no-such-command-on-path"], 127),
        (&[directory], 126),
    ] {
        let output = on_node(&[&["--"], command].concat());
        assert_eq!(output.status.code(), Some(code), "{command:?} {output:?}");
    }
}

#[test]
fn a_closed_pipe_still_ends_the_command() {
    let mut command = Command::new(numawatch());
    command.args([
        "launch",
        "--node",
        &node(),
        "--",
        "sh",
        "-c",
        "kill -PIPE $$; exit 3",
    ]);
    let status = command.status().expect("numawatch starts");
    assert_eq!(status.code(), None, "the signal ends it: {status:?}");
}

#[test]
fn arguments_arrive_as_they_are() {
    let output = on_node(&["--", "printf", "%s|", "a b", "--node", "", "$x"]);
    assert_eq!(text(&output.stdout), "a b|--node||$x|");
}

#[test]
fn dry_run_prints_a_line_for_a_shell_and_runs_nothing() {
    let node = node();
    let output = on_node(&["--dry-run", "--", "vllm", "serve", "a model", "--x=$y"]);
    let stdout = text(&output.stdout);
    let first = stdout.lines().next();
    let want =
        format!("numactl --cpunodebind={node} --membind={node} vllm serve 'a model' '--x=$y'");
    assert_eq!(first, Some(want.as_str()));
    assert!(
        stdout.contains(&format!(
            "# vllm's own: --numa-bind --numa-bind-nodes {node} ("
        )),
        "{stdout}"
    );
    let output = on_node(&["--dry-run", "--", "sleep", "600"]);
    assert!(text(&output.stdout).contains("none known"), "{output:?}");
}

#[test]
fn dry_run_prints_the_line_though_the_node_lacks_room_and_says_so() {
    let output = on_node(&["--dry-run", "--needs", "1000T", "--", "true"]);
    assert!(text(&output.stdout).starts_with("numactl --"), "{output:?}");
    says_why(&output, "1000.0 TiB of --needs");
}

#[test]
fn what_is_not_launched_says_why() {
    refused(&launch(&["--", "true"]), "--gpu ID or --node N");
    refused(&launch(&["--node", "1023", "--", "true"]), "no node 1023");
    refused(
        &launch(&["--gpu", "ff:1f.7", "--", "true"]),
        "no GPU ff:1f.7",
    );
    refused(&launch(&["--node", "one", "--", "true"]), "one");
    refused(&launch(&["--node", "0"]), "COMMAND");
    refused(&on_node(&["--needs", "much", "--", "true"]), "60G");
    refused(
        &on_node(&["--needs", "1000T", "--", "true"]),
        "1000.0 TiB of --needs",
    );
}

#[test]
fn a_negative_number_is_no_node_and_no_size() {
    for (option, words) in [
        ("--node", "no node; write its number"),
        ("--needs", "no size; write 60G"),
    ] {
        let output = launch(&[option, "-1", "--", "true"]);
        refused(&output, words);
        assert!(!text(&output.stderr).contains("tip:"), "{output:?}");
    }
}

#[test]
fn a_client_whose_daemon_starts_the_process_is_told_its_own_flags() {
    let node = node();
    let flag = format!("--cpuset-mems {node}");
    refused(&on_node(&["--", "docker", "run", "i"]), &flag);
    let output = on_node(&["--dry-run", "--", "docker", "run", "i"]);
    says_why(&output, &flag);
    let stdout = text(&output.stdout);
    assert!(stdout.contains(&flag), "{stdout}");
    assert!(
        stdout.lines().all(|line| line.starts_with("# ")),
        "{stdout}"
    );
}

#[test]
fn an_option_that_undoes_the_binding_is_warned_of_and_launched() {
    let folder = std::env::temp_dir().join(format!("numawatch-spread-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let server = folder.join("llama-server");
    std::os::unix::fs::symlink("/bin/true", &server).expect("a link");
    let server = server.to_str().expect("a path");
    let output = on_node(&["--", server, "--numa", "distribute"]);
    fs::remove_dir_all(&folder).expect("the folder");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let stderr = text(&output.stderr);
    assert!(stderr.contains("--numa distribute spreads"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1);
}

#[test]
fn a_user_without_privileges_may_launch() {
    let copy = tests::built::PublicCopy::of(&numawatch());
    let status = Command::new(copy.path())
        .args(["launch", "--node", &node(), "--", "true"])
        .uid(tests::built::NOBODY)
        .gid(tests::built::NOBODY)
        .status()
        .expect("it starts as nobody: the tests run as root");
    assert_eq!(status.code(), Some(0));
}
