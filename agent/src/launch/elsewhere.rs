//! Commands that have a process started by somebody else: what is bound here is the client alone.

use crate::launch::wrappers::{Options, options, split, unwrapped};
use model::launch::Plan;
use model::list;
use std::ffi::OsString;

/// Such a command, and what does the same as launch would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Elsewhere {
    /// The client, as it was typed.
    client: &'static str,
    starter: &'static str,
    /// What to do, with this plan's numbers.
    pub(crate) instead: String,
    /// Whether something of the binding gets there all the same.
    pub(crate) in_part: bool,
}

impl std::fmt::Display for Elsewhere {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            client,
            starter,
            instead,
            in_part,
        } = self;
        if *in_part {
            write!(f, "{client}: {starter}; {instead}")
        } else {
            write!(
                f,
                "{client}: {starter} starts the process elsewhere, so that binding {client} does nothing: {instead}"
            )
        }
    }
}

/// Who starts what a client asks for.
const STARTERS: [(&str, &str); 16] = [
    ("docker", "its daemon"),
    ("docker-compose", "docker's daemon"),
    ("nerdctl", "containerd"),
    ("ctr", "containerd"),
    ("crictl", "the container runtime"),
    ("podman", "podman's service"),
    ("podman-remote", "podman's service"),
    ("kubectl", "the kubelet"),
    ("oc", "the kubelet"),
    ("helm", "the kubelet"),
    ("systemctl", "systemd"),
    ("systemd-run", "systemd"),
    ("machinectl", "systemd"),
    ("ssh", "the other host"),
    ("srun", "Slurm"),
    ("sbatch", "Slurm"),
];

/// Those that come before the subcommand.
const PODMAN: Options = options(
    "podman",
    "cH",
    &[
        "cdi-spec-dir",
        "cgroup-manager",
        "config",
        "conmon",
        "connection",
        "context",
        "events-backend",
        "hooks-dir",
        "host",
        "identity",
        "imagestore",
        "log-level",
        "module",
        "namespace",
        "network-cmd-path",
        "network-config-dir",
        "out",
        "root",
        "runroot",
        "runtime",
        "runtime-flag",
        "ssh",
        "storage-driver",
        "storage-opt",
        "tls-ca",
        "tls-cert",
        "tls-key",
        "tmpdir",
        "url",
        "volumepath",
    ],
    0,
);

/// Its options that name a service, which imply `--remote`.
const PODMANS_SERVICE: [&str; 4] = ["--url", "--connection", "--host", "--context"];
/// Variables that do the same; podman doesn't look at what is in them.
const PODMANS_VARIABLES: [&str; 2] = ["CONTAINER_HOST", "CONTAINER_CONNECTION"];

/// Whether this process's environment has podman ask its service.
pub(crate) fn podman_is_remote() -> bool {
    let mut variables = PODMANS_VARIABLES.iter();
    variables.any(|name| std::env::var_os(name).is_some())
}

/// What to do instead of launching the command; `None` for one that runs below this process.
pub(crate) fn of(command: &[OsString], plan: &Plan, podman_is_remote: bool) -> Option<Elsewhere> {
    let words: Vec<String> = command
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (before, program, arguments) = unwrapped(&words)?;
    let (client, starter) = *STARTERS.iter().find(|(client, _)| *client == program)?;
    let in_part = client == "podman" && {
        let assigned = |word: &&str| {
            let name = word.split_once('=').map(|(name, _)| name);
            name.is_some_and(|name| PODMANS_VARIABLES.contains(&name))
        };
        let preset = podman_is_remote || before.iter().any(assigned);
        !asks_the_service(arguments, preset)
    };
    let starter = if in_part {
        "crun (since 1.9.2) and runc (since 1.2.7 and 1.3.1) give containers back all CPUs, and keep the memory policy"
    } else {
        starter
    };
    Some(Elsewhere {
        client,
        starter,
        instead: instead(client, plan),
        in_part,
    })
}

fn instead(client: &str, plan: &Plan) -> String {
    let cpus = list::format(&plan.cpus);
    let node = plan.memory_node;
    match client {
        "docker" | "nerdctl" | "podman" | "podman-remote" => {
            format!("give the container --cpuset-cpus {cpus} --cpuset-mems {node}")
        }
        "docker-compose" => format!(
            "give the service `cpuset: {cpus}`; compose has nothing for memory, docker run --cpuset-cpus {cpus} --cpuset-mems {node} has"
        ),
        "ctr" | "crictl" => format!(
            "give the container linux.resources with cpuset_cpus {cpus} and cpuset_mems {node}"
        ),
        "kubectl" | "oc" | "helm" => {
            "set the kubelet's topologyManagerPolicy to single-numa-node, with cpuManagerPolicy static and memoryManagerPolicy Static, and give the pod whole CPUs and memory with limits as requests".to_owned()
        }
        "systemctl" | "machinectl" => format!(
            "give the unit, by systemctl edit, {}",
            unit(&cpus, node, " ")
        ),
        "systemd-run" => format!("give it -p {}", unit(&cpus, node, " -p ")),
        "ssh" => "run numawatch launch on that host".to_owned(),
        _ => "put numawatch launch before the program, within the job: srun numawatch launch … -- COMMAND".to_owned(),
    }
}

/// A unit's properties.
fn unit(cpus: &str, node: u32, between: &str) -> String {
    [
        format!("AllowedCPUs={cpus}"),
        format!("AllowedMemoryNodes={node}"),
        "NUMAPolicy=bind".to_owned(),
        format!("NUMAMask={node}"),
    ]
    .join(between)
}

/// Whether podman's options say that its service runs the container; `preset` is what it does without any.
fn asks_the_service(arguments: &[&str], preset: bool) -> bool {
    let (own, _) = split(arguments, &PODMAN);
    let mut remote = preset;
    for word in own {
        let (name, value) = word.split_once('=').unwrap_or((word, "true"));
        if PODMANS_SERVICE.contains(&name) {
            return true;
        }
        if name == "--remote" {
            remote = is_true(value);
        } else if !word.starts_with("--") {
            let letters = word.strip_prefix('-').unwrap_or_default();
            if letters.starts_with(['c', 'H']) {
                return true;
            }
            if let Some(value) = letters.strip_prefix('r') {
                remote = value.strip_prefix('=').is_none_or(is_true);
            }
        }
    }
    remote
}

/// As Go reads a flag.
fn is_true(value: &str) -> bool {
    ["1", "t", "T", "true", "TRUE", "True"].contains(&value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(command: &str) -> Option<Elsewhere> {
        told_with(command, false)
    }

    fn told_with(command: &str, podman_is_remote: bool) -> Option<Elsewhere> {
        let plan = Plan {
            memory_node: 1,
            cpu_node: 1,
            cpus: vec![4, 5, 6, 7],
        };
        let command: Vec<OsString> = command.split(' ').map(Into::into).collect();
        of(&command, &plan, podman_is_remote)
    }

    #[test]
    fn each_clients_own_way() {
        for (command, want) in [
            ("docker run -it i", "--cpuset-cpus 4-7 --cpuset-mems 1"),
            (
                "/usr/bin/docker compose up",
                "--cpuset-cpus 4-7 --cpuset-mems 1",
            ),
            ("nerdctl run i", "--cpuset-cpus 4-7 --cpuset-mems 1"),
            ("docker-compose up", "`cpuset: 4-7`"),
            ("crictl create a b c", "cpuset_cpus 4-7 and cpuset_mems 1"),
            ("kubectl apply -f pod.yaml", "single-numa-node"),
            (
                "systemctl start llama",
                "AllowedCPUs=4-7 AllowedMemoryNodes=1 NUMAPolicy=bind",
            ),
            (
                "systemd-run ./server",
                "-p AllowedCPUs=4-7 -p AllowedMemoryNodes=1 -p NUMAPolicy=bind -p NUMAMask=1",
            ),
            ("ssh gpu7 vllm serve m", "on that host"),
            ("srun vllm serve m", "within the job"),
            ("podman --remote run i", "--cpuset-cpus 4-7 --cpuset-mems 1"),
        ] {
            let told = told(command).unwrap();
            assert!(!told.in_part, "{command}");
            let line = told.to_string();
            assert!(line.contains(want), "{line}");
            assert!(line.contains("starts the process elsewhere"), "{line}");
            assert_eq!(line.lines().count(), 1);
        }
    }

    #[test]
    fn podman_without_its_service_keeps_the_memory_policy() {
        let told = told("podman run i").unwrap();
        assert!(told.in_part);
        let line = told.to_string();
        assert!(line.contains("keep the memory policy"), "{line}");
        assert!(line.contains("--cpuset-cpus 4-7 --cpuset-mems 1"), "{line}");
    }

    #[test]
    fn podman_is_remote_by_its_own_options_alone() {
        for (command, preset, remote) in [
            ("podman run i", false, false),
            ("podman run image server -r", false, false),
            ("podman run image server --remote --url u", false, false),
            ("podman --log-level debug run i -r", false, false),
            ("podman -r run i", false, true),
            ("podman --remote=true run i", false, true),
            ("podman --remote=false run i", true, false),
            ("podman --log-level debug --remote run i", false, true),
            ("podman --url ssh://gpu7 run i", false, true),
            ("podman --url=ssh://gpu7 run i", false, true),
            ("podman -c gpu7 run i", false, true),
            ("podman --connection=gpu7 run i", false, true),
            ("podman-remote run i", false, true),
            ("podman run i", true, true),
            ("env CONTAINER_HOST=ssh://gpu7 podman run i", false, true),
            ("podman run -e CONTAINER_HOST=u i", false, false),
        ] {
            let told = told_with(command, preset).unwrap();
            assert_eq!(told.in_part, !remote, "{command}");
            assert!(told.instead.contains("--cpuset-mems 1"), "{command}");
        }
    }

    #[test]
    fn a_unit_with_scope_among_its_programs_arguments_is_refused() {
        for command in [
            "systemd-run ./server --scope",
            "systemd-run --unit x ./server --scope",
            "systemd-run -p CPUWeight=5 -- ./server --scope",
        ] {
            assert_eq!(told(command).unwrap().client, "systemd-run", "{command}");
        }
    }

    #[test]
    fn wrappers_are_looked_behind() {
        for command in [
            "sudo -u alice -E docker run i",
            "env -i A=1 docker run i",
            "nohup nice -n 5 docker run i",
            "timeout -s INT 5m docker run i",
            "sudo taskset -c 0-3 docker run i",
            "sudo --user alice docker run i",
            "timeout --signal INT 5m docker run i",
            "numactl --membind 1 docker run i",
            "chrt -r 50 docker run i",
            "systemd-run --scope -p CPUWeight=5 docker run i",
        ] {
            assert!(told(command).is_some(), "{command}");
        }
    }

    #[test]
    fn what_runs_below_is_launched() {
        for command in [
            "llama-server -m docker",
            "sudo ls docker",
            "env A=1",
            "sudo",
            "systemd-run --scope ./server",
            "systemd-run --unit x --scope ./server",
            "sudo --user docker ls",
            "timeout --signal INT 5m ls docker",
            "numactl -m 1 ls docker",
            "python3 docker",
        ] {
            assert_eq!(told(command), None, "{command}");
        }
    }
}
