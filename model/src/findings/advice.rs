//! What to do about a process that is in the wrong place: start it anew, move it as it runs, or widen its cgroup's bounds.
//!
//! What is typed reaches whoever shares a server, a container or a cgroup: where these belong to different nodes, no command
//! is offered that would bring all of them to one.

use super::subject::{Home, Subject, list, named, share_away, typed};
use crate::finding::Finding;
use crate::policy::{Container, PolicyMode};
use crate::process::{ByNode, Process};
use crate::topology::NodeId;
use std::collections::BTreeSet;

/// Who places pods beside their devices.
const KUBELET: &str = "let the kubelet place pods beside their devices: topologyManagerPolicy single-numa-node, with the static CPU and memory managers";

/// Behind what is typed instead of starting anew.
pub(super) const AS_IT_RUNS: &str = "   # or as it runs; what is pinned stays";

/// What an engine's server starts, and nobody else.
const STARTED_BY_A_SERVER: [&str; 6] = [
    "worker",
    "engine-core",
    "scheduler",
    "detokenizer",
    "coordinator",
    "runner",
];

impl Finding {
    /// What starts it anew where it belongs; a worker is started by its server, a contained process by its runtime.
    pub(super) fn start_anew(self, subject: &Subject<'_>, home: &Home) -> Self {
        let server = subject.server();
        let place = Place::of(subject, home);
        if is_started_by_another(server) {
            return self.hint(format!(
                "it is started by a server that isn't watched: start that anew on {}, or with the engine's own flags, which numawatch launch --dry-run prints",
                named(&place.nodes)
            ));
        }
        let command = typed(server);
        let launch = place.launch();
        if others(subject, home, |p| {
            Subject::new(subject.view, p).server().pid == server.pid
        }) {
            let found = match place.target() {
                Some(target) => self.advise(format!(
                    "numawatch launch {target} --dry-run -- {command}   # starts nothing"
                )),
                None => self,
            };
            return found.hint(format!(
                "its workers belong to different nodes: start the server, process {}, with the engine's own flags, which numawatch launch --dry-run prints",
                server.pid
            ));
        }
        if let Some(container) = &subject.process.placing.container {
            return self.contain(container, subject, home);
        }
        if forbidden(subject, home) != (false, false) {
            return self.hint(format!(
                "its cgroup forbids {}: widen its cpuset first, then: {launch} {command}",
                named(&place.nodes)
            ));
        }
        let user = server.other_uid;
        let user = user.map_or_else(String::new, |uid| format!("sudo -u '#{uid}' "));
        self.advise(format!(
            "{user}{launch} {command}   # once {} has stopped",
            server.pid
        ))
    }

    /// What brings it there as it runs; nothing where policy or cpuset would bring it back.
    pub(super) fn move_as_it_runs(
        self,
        subject: &Subject<'_>,
        home: &Home,
        memory: &ByNode,
    ) -> Self {
        let place = Place::of(subject, home);
        let is_away = policy_is_elsewhere(subject, home);
        if forbidden(subject, home) != (false, false) || is_away || place.cpus.is_empty() {
            return self;
        }
        let away = |(node, bytes): (&NodeId, &u64)| {
            (*bytes > 0 && !home.nodes.contains(node)).then_some(*node)
        };
        let from: BTreeSet<NodeId> = memory.iter().filter_map(away).collect();
        let pid = subject.pid();
        let migrate = format!(
            "migratepages {pid} {} {}{AS_IT_RUNS}",
            list(&from),
            list(&place.nodes)
        );
        let time = subject.cpu_time();
        let away = time.and_then(|time| share_away(&time, &home.nodes));
        let runs_elsewhere = away.is_some_and(|away| away >= subject.view.thresholds.mixed_from);
        self.advise(if runs_elsewhere || is_confined_elsewhere(subject, home) {
            format!("taskset -apc {} {pid} && {migrate}", place.cpus)
        } else {
            migrate
        })
    }

    /// What sends its threads to these CPUs as they run.
    pub(super) fn move_threads(self, subject: &Subject<'_>, cpus: &[u32]) -> Self {
        let cpus = crate::list::format(cpus);
        self.advise(format!("taskset -apc {cpus} {}", subject.pid()))
    }

    /// What widens its cgroup's bounds, by whoever made it.
    pub(super) fn widen(self, subject: &Subject<'_>, home: &Home) -> Self {
        let placing = &subject.process.placing;
        if let Some(container) = &placing.container {
            return self.contain(container, subject, home);
        }
        let Place { nodes, cpus, .. } = Place::of(subject, home);
        let nodes = list(&nodes);
        let path = placing.cgroup.as_deref().unwrap_or("/");
        let shared = others(subject, home, |p| p.placing.cgroup == placing.cgroup);
        if path == "/" || !path.chars().all(is_plain) || cpus.is_empty() || shared {
            let others = if shared {
                "; others in it belong to other nodes, which it needs as well"
            } else {
                ""
            };
            self.hint(format!(
                "give its cgroup cpuset.mems {nodes} and cpuset.cpus {cpus}{others}"
            ))
        } else if let Some(unit) = system_unit(path) {
            self.advise(format!(
                "systemctl set-property {unit} AllowedMemoryNodes={nodes} AllowedCPUs={cpus}"
            ))
        } else {
            let set =
                |file: &str, to: &str| format!("echo {to} > /sys/fs/cgroup{path}/cpuset.{file}");
            self.advise(set("mems", &nodes))
                .advise(set("cpus", &cpus))
                .hint("under cgroup v1 these files are below /sys/fs/cgroup/cpuset")
        }
    }

    fn contain(self, container: &Container, subject: &Subject<'_>, home: &Home) -> Self {
        let Place { nodes, cpus, .. } = Place::of(subject, home);
        let nodes = list(&nodes);
        let id = &container.id;
        let is_in_it = |p: &Process| p.placing.container.as_ref().is_some_and(|c| c.id == *id);
        let known = container.runtime.as_deref();
        let known = known.filter(|_| id.chars().all(is_plain) && !cpus.is_empty());
        if container.pod_uid.is_some() {
            self.hint(KUBELET)
        } else if others(subject, home, is_in_it) {
            self.hint("processes in its container belong to different nodes: give each a container of its own")
        } else if let Some(runtime @ ("docker" | "podman")) = known {
            self.advise(format!(
                "{runtime} update --cpuset-mems {nodes} --cpuset-cpus {cpus} {id}"
            ))
            .hint("as it runs; what is pinned stays until the container is started anew")
        } else {
            self.hint(format!(
                "start its container with cpuset mems {nodes} and cpus {cpus}"
            ))
        }
    }
}

/// Where a process is to be brought, in the words of what is typed.
struct Place {
    /// Nodes for memory: a GPU's own memory is none.
    nodes: BTreeSet<NodeId>,
    /// Their CPUs, as the kernel's list; empty where nobody tells.
    cpus: String,
    /// The first GPU's number, where one says so.
    gpu: Option<String>,
}

impl Place {
    fn of(subject: &Subject<'_>, home: &Home) -> Self {
        let topology = &subject.view.now.topology;
        let near = |id: &NodeId| topology.nearest_with_cpus(*id);
        let with_cpus: BTreeSet<NodeId> = home.nodes.iter().filter_map(near).collect();
        let here = with_cpus.iter().filter_map(|id| topology.node(*id));
        let cpus: Vec<u32> = here.flat_map(|node| node.cpus.iter().copied()).collect();
        let first = home.because.split(", ").next().unwrap_or_default();
        let gpu = first.strip_prefix("GPU").filter(|_| home.is_device);
        Self {
            cpus: crate::list::format(&cpus),
            // A policy may name a node without CPUs, and means it.
            nodes: if home.is_device {
                with_cpus
            } else {
                home.nodes.clone()
            },
            gpu: gpu.map(str::to_owned),
        }
    }

    /// How `numawatch launch` is told where; `None` of several nodes, which it does not bind to.
    fn target(&self) -> Option<String> {
        match &self.gpu {
            _ if self.nodes.len() > 1 => None,
            Some(gpu) => Some(format!("--gpu {gpu}")),
            None => Some(format!("--node {}", list(&self.nodes))),
        }
    }

    /// What stands in front of a command that is to run there.
    fn launch(&self) -> String {
        let nodes = list(&self.nodes);
        self.target().map_or_else(
            || format!("numactl --cpunodebind={nodes} --membind={nodes} --"),
            |target| format!("numawatch launch {target} --"),
        )
    }
}

/// Whether one of the others that `are_meant` has devices elsewhere.
fn others(subject: &Subject<'_>, home: &Home, are_meant: impl Fn(&Process) -> bool) -> bool {
    let processes = subject.view.now.processes.iter();
    let mut others = processes.filter(|p| p.alive && p.pid != subject.pid() && are_meant(p));
    others.any(|p| {
        let other = Subject::new(subject.view, p).device_home();
        other.is_some_and(|other| other.nodes != home.nodes)
    })
}

/// Whether a process whose server isn't watched has one all the same.
fn is_started_by_another(process: &Process) -> bool {
    let program = process.command.split(' ').next().unwrap_or_default();
    // A title, as setproctitle writes it: no program.
    let is_title = program.contains("::");
    let is_part = process
        .role
        .as_deref()
        .is_some_and(|role| STARTED_BY_A_SERVER.contains(&role));
    is_title || (is_part && process.rank.is_some())
}

/// A unit of the system's manager: a user's own are below a service of it.
#[allow(
    clippy::case_sensitive_file_extension_comparisons,
    reason = "units have no other case"
)]
fn system_unit(path: &str) -> Option<&str> {
    let (above, name) = path.rsplit_once('/')?;
    let is_slice = |part: &str| part.is_empty() || part.ends_with(".slice");
    let is_unit = [".service", ".scope", ".slice"]
        .iter()
        .any(|end| name.ends_with(end));
    (is_unit && above.split('/').all(is_slice)).then_some(name)
}

/// A character that no shell reads more in.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_@:.,/-".contains(c)
}

/// Whether its cgroup's cpuset leaves it no memory, and no CPUs, of these nodes.
pub(super) fn forbidden(subject: &Subject<'_>, home: &Home) -> (bool, bool) {
    let placing = &subject.process.placing;
    let topology = &subject.view.now.topology;
    let no_memory = placing
        .cpuset_mems
        .as_ref()
        .is_some_and(|mems| !mems.iter().any(|node| home.nodes.contains(node)));
    let is_there = |cpu: &u32| {
        let node = topology.node_of_cpu(*cpu);
        node.is_some_and(|node| home.nodes.contains(&node))
    };
    let no_cpus = placing
        .cpuset_cpus
        .as_ref()
        .is_some_and(|cpus| !cpus.iter().any(is_there));
    (no_memory, no_cpus)
}

/// Whether new memory would go elsewhere.
fn policy_is_elsewhere(subject: &Subject<'_>, home: &Home) -> bool {
    let policy = subject.process.placing.policy.as_ref();
    policy.is_some_and(|policy| {
        !matches!(policy.mode, PolicyMode::Default | PolicyMode::Local)
            && !policy.nodes.iter().any(|node| home.nodes.contains(node))
    })
}

/// Whether none of the CPUs that it may run on is there.
fn is_confined_elsewhere(subject: &Subject<'_>, home: &Home) -> bool {
    let topology = &subject.view.now.topology;
    let allowed = subject.process.placing.cpus_allowed.as_ref();
    allowed.is_some_and(|cpus| {
        !cpus
            .iter()
            .filter_map(|cpu| topology.node_of_cpu(*cpu))
            .any(|node| home.nodes.contains(&node))
    })
}
