//! What to do about a process that is in the wrong place: start it anew, move it as it runs, or widen its cgroup's bounds.

use super::subject::{Home, Subject, list, named, share_away, typed};
use crate::finding::Finding;
use crate::policy::{Container, PolicyMode};
use crate::process::ByNode;
use crate::topology::NodeId;
use std::collections::BTreeSet;

/// Who places pods beside their devices.
const KUBELET: &str = "let the kubelet place pods beside their devices: topologyManagerPolicy single-numa-node, with the static CPU and memory managers";

/// Behind what is typed instead of starting anew.
pub(super) const AS_IT_RUNS: &str = "   # or as it runs; what is pinned stays";

impl Finding {
    /// What starts it anew where it belongs; a worker is started by its server, a contained process by its runtime.
    pub(super) fn start_anew(self, subject: &Subject<'_>, home: &Home) -> Self {
        if let Some(container) = &subject.process.placing.container {
            return self.contain(container, subject, home);
        }
        let server = subject.server();
        let (nodes, command) = (list(&home.nodes), typed(server));
        let target = target(home);
        if forbidden(subject, home) != (false, false) {
            return self.hint(format!(
                "its cgroup forbids {}: widen its cpuset first, then: numawatch launch {target} -- {command}",
                named(&home.nodes)
            ));
        }
        let is_apart = |p: &&crate::process::Process| {
            let other = Subject::new(subject.view, p);
            let same = p.pid != subject.pid() && other.server().pid == server.pid;
            same && other.device_home().is_some_and(|h| h.nodes != home.nodes)
        };
        let is_worker = server.rank.is_some() || server.role.as_deref() == Some("worker");
        if is_worker && server.pid == subject.pid() {
            return self.hint(format!(
                "it is a worker whose server isn't watched: start that anew by numawatch launch {target}; with --dry-run it prints the engine's own flags"
            ));
        }
        let stopped = format!("   # once {} has stopped", server.pid);
        if subject.view.now.processes.iter().any(|p| is_apart(&p)) {
            self.advise(format!(
                "numawatch launch {target} --dry-run -- {command}"
            ))
            .hint("its workers belong to different nodes: start the server with the engine's own flags, which that prints")
        } else if home.nodes.len() == 1 {
            self.advise(format!("numawatch launch {target} -- {command}{stopped}"))
        } else {
            self.advise(format!(
                "numactl --cpunodebind={nodes} --membind={nodes} {command}{stopped}"
            ))
        }
    }

    /// What brings it there as it runs; nothing where policy or cpuset would bring it back.
    pub(super) fn move_as_it_runs(
        self,
        subject: &Subject<'_>,
        home: &Home,
        memory: &ByNode,
    ) -> Self {
        if forbidden(subject, home) != (false, false) || policy_is_elsewhere(subject, home) {
            return self;
        }
        let away = |(node, bytes): (&NodeId, &u64)| {
            (*bytes > 0 && !home.nodes.contains(node)).then_some(*node)
        };
        let from: BTreeSet<NodeId> = memory.iter().filter_map(away).collect();
        let pid = subject.pid();
        let to = list(&home.nodes);
        let migrate = format!("migratepages {pid} {} {to}{AS_IT_RUNS}", list(&from));
        let time = subject.cpu_time();
        let away = time.and_then(|time| share_away(&time, &home.nodes));
        let runs_elsewhere = away.is_some_and(|away| away >= subject.view.thresholds.mixed_from);
        self.advise(if runs_elsewhere || is_confined_elsewhere(subject, home) {
            format!("taskset -apc {} {pid} && {migrate}", cpus(subject, home))
        } else {
            migrate
        })
    }

    /// What widens its cgroup's bounds, by whoever made it.
    pub(super) fn widen(self, subject: &Subject<'_>, home: &Home) -> Self {
        let (nodes, cpus) = (list(&home.nodes), cpus(subject, home));
        let placing = &subject.process.placing;
        if let Some(container) = &placing.container {
            return self.contain(container, subject, home);
        }
        let path = placing.cgroup.as_deref().unwrap_or("/");
        let plain = |c: char| c.is_ascii_alphanumeric() || "_@:.,/-".contains(c);
        let name = path.rsplit('/').next().unwrap_or_default();
        let is_unit = [".service", ".scope", ".slice"]
            .iter()
            .any(|end| name.ends_with(end));
        if path == "/" || !path.chars().all(plain) {
            self.hint(format!(
                "give its cgroup cpuset.mems {nodes} and cpuset.cpus {cpus}"
            ))
        } else if is_unit {
            self.advise(format!(
                "systemctl set-property {name} AllowedMemoryNodes={nodes} AllowedCPUs={cpus}"
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
        let (nodes, cpus) = (list(&home.nodes), cpus(subject, home));
        let id = &container.id;
        match (container.runtime.as_deref(), &container.pod_uid) {
            (_, Some(_)) => self.hint(KUBELET),
            (Some(runtime @ ("docker" | "podman")), None) => self
                .advise(format!(
                    "{runtime} update --cpuset-mems {nodes} --cpuset-cpus {cpus} {id}"
                ))
                .hint("as it runs; what is pinned stays until the container is started anew"),
            _ => self.hint(format!(
                "start its container with cpuset mems {nodes} and cpus {cpus}"
            )),
        }
    }
}

/// How `numawatch launch` is told where.
fn target(home: &Home) -> String {
    let first = home.because.split(", ").next().unwrap_or_default();
    match first.strip_prefix("GPU").filter(|_| home.is_device) {
        Some(gpu) => format!("--gpu {gpu}"),
        None => format!("--node {}", list(&home.nodes)),
    }
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

/// The CPUs of these nodes, as the kernel's list.
fn cpus(subject: &Subject<'_>, home: &Home) -> String {
    let topology = &subject.view.now.topology;
    let nodes = home.nodes.iter().filter_map(|id| topology.node(*id));
    let cpus: Vec<u32> = nodes.flat_map(|node| node.cpus.iter().copied()).collect();
    crate::list::format(&cpus)
}
