//! Commands that have a process started by somebody else: what is bound here is the client alone.

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
const STARTERS: [(&str, &str); 15] = [
    ("docker", "its daemon"),
    ("docker-compose", "docker's daemon"),
    ("nerdctl", "containerd"),
    ("ctr", "containerd"),
    ("crictl", "the container runtime"),
    ("podman", "podman's service"),
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

/// Programs that become another or run it below themselves, those of their options that take the next word as a value, and
/// how many words of their own come before the program.
const WRAPPERS: [(&str, &str, usize); 10] = [
    ("sudo", "ughpCDrRtT", 0),
    ("doas", "uC", 0),
    ("env", "uCS", 0),
    ("nice", "n", 0),
    ("ionice", "cn", 0),
    ("nohup", "", 0),
    ("setsid", "", 0),
    ("stdbuf", "ioe", 0),
    ("timeout", "sk", 1),
    ("taskset", "", 1),
];

/// What to do instead of launching the command; `None` for one that runs below this process.
pub(crate) fn of(command: &[OsString], plan: &Plan) -> Option<Elsewhere> {
    let words: Vec<String> = command
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (program, arguments) = unwrapped(&words)?;
    let (client, starter) = *STARTERS.iter().find(|(client, _)| *client == program)?;
    let has = |option: &str| arguments.contains(&option);
    // It becomes the command itself, in a new cgroup.
    if client == "systemd-run" && has("--scope") {
        return None;
    }
    let in_part = client == "podman" && !arguments.iter().any(|a| ["--remote", "-r"].contains(a));
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
        "docker" | "nerdctl" | "podman" => {
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

/// The program's name behind wrappers, and its arguments.
fn unwrapped<'a>(mut words: &'a [&'a str]) -> Option<(&'a str, &'a [&'a str])> {
    loop {
        let (first, rest) = words.split_first()?;
        let name = first.rsplit_once('/').map_or(*first, |(_, name)| name);
        let Some((_, with_value, own)) = WRAPPERS.iter().find(|(wrapper, ..)| *wrapper == name)
        else {
            return Some((name, rest));
        };
        words = behind(rest, with_value, *own);
    }
}

/// What follows a wrapper's options, assignments and own words.
fn behind<'a>(mut words: &'a [&'a str], with_value: &str, mut own: usize) -> &'a [&'a str] {
    while let Some((word, rest)) = words.split_first() {
        let letter = word.strip_prefix('-').filter(|l| l.len() == 1);
        words = if letter.is_some_and(|l| with_value.contains(l)) {
            rest.get(1..).unwrap_or_default()
        } else if word.starts_with('-') || word.contains('=') {
            rest
        } else if own > 0 {
            own -= 1;
            rest
        } else {
            return words;
        };
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(command: &str) -> Option<Elsewhere> {
        let plan = Plan {
            memory_node: 1,
            cpu_node: 1,
            cpus: vec![4, 5, 6, 7],
        };
        let command: Vec<OsString> = command.split(' ').map(Into::into).collect();
        of(&command, &plan)
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
    fn wrappers_are_looked_behind() {
        for command in [
            "sudo -u alice -E docker run i",
            "env -i A=1 docker run i",
            "nohup nice -n 5 docker run i",
            "timeout -s INT 5m docker run i",
            "sudo taskset -c 0-3 docker run i",
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
            "python3 docker",
        ] {
            assert_eq!(told(command), None, "{command}");
        }
    }
}
