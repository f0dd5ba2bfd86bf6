//! The machine as text, with colours for terminals: each node has one, and each kind of link.

use super::Report;
use super::tree::Branch;
use model::devices::{Device, DeviceKind};
use model::link::{LEGEND, Link};
use model::topology::{Node, NodeId, Topology};
use std::fmt::Write as _;

/// As in the dashboard: none of them a verdict's.
const NODES: [u8; 8] = [39, 208, 141, 37, 205, 137, 69, 107];

/// How text is coloured; not at all when it isn't for a terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    /// Whether it is.
    pub(crate) colour: bool,
}

impl Paint {
    fn with(self, code: &str, text: &str) -> String {
        if self.colour {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    fn title(self, text: &str) -> String {
        self.with("1", text)
    }

    fn faint(self, text: &str) -> String {
        self.with("2", text)
    }

    /// In the node's colour; what has none is faint.
    fn node(self, topology: &Topology, id: Option<NodeId>, text: &str) -> String {
        let at = id.and_then(|id| topology.nodes.iter().position(|n| n.id == id));
        match at {
            Some(at) => self.with(&format!("38;5;{}", NODES[at % NODES.len()]), text),
            None => self.faint(text),
        }
    }

    fn link(self, link: Link, text: &str) -> String {
        let code = match link {
            Link::Itself | Link::Unknown => "2",
            Link::NvLink(_) => "1;32",
            Link::Pix | Link::Pxb => "32",
            Link::Phb | Link::Node => "33",
            Link::Sys => "31",
        };
        self.with(code, text)
    }
}

/// All of it.
pub(crate) fn report(report: &Report, paint: Paint) -> String {
    let topology = &report.topology;
    let mut text = format!("{}\n\n", paint.title(&summary(report)));
    for branch in branches(topology, paint) {
        branch.draw(&mut text);
    }
    if topology.nodes.len() > 1 {
        let _ = writeln!(text, "\n{}", paint.title("Distances between nodes"));
        text.push_str(&distances(topology, paint));
    }
    if topology.devices.len() > 1 {
        let _ = writeln!(text, "\n{}", paint.title("Between devices"));
        text.push_str(&links(report, paint));
        text.push('\n');
        text.push_str(&legend(report, paint));
    }
    let reasons = reasons(report);
    if !reasons.is_empty() {
        text.push('\n');
    }
    for reason in reasons {
        let _ = writeln!(text, "{reason}");
    }
    text
}

/// `2 sockets, 2 nodes, 8 CPUs, 4 GPUs, 1 NIC`.
fn summary(report: &Report) -> String {
    let topology = &report.topology;
    let mut parts = Vec::new();
    let mut say = |n: Option<usize>, one: &str| {
        let plural = if n == Some(1) { "" } else { "s" };
        let n = n.map_or_else(|| "?".to_owned(), |n| n.to_string());
        parts.push(format!("{n} {one}{plural}"));
    };
    // Below it says why they are hidden.
    let known = topology.hides_nodes().is_none();
    if let Some(sockets) = report.sockets.filter(|_| known) {
        say(Some(sockets), "socket");
    }
    let cpus = topology.nodes.iter().map(|n| n.cpus.len()).sum();
    say(known.then_some(topology.nodes.len()), "node");
    say(known.then_some(cpus), "CPU");
    for (kind, one) in [
        (DeviceKind::Gpu, "GPU"),
        (DeviceKind::Accelerator, "accelerator"),
        (DeviceKind::Nic, "RDMA NIC"),
    ] {
        let n = topology.devices.iter().filter(|d| d.kind == kind).count();
        if n > 0 || kind == DeviceKind::Gpu {
            let known = n > 0 || topology.devices_reason.is_none();
            say(known.then_some(n), one);
        }
    }
    parts.join(", ")
}

/// A tree for each socket, and one for what belongs to none.
fn branches(topology: &Topology, paint: Paint) -> Vec<Branch> {
    let mut sockets: Vec<(Option<u32>, Branch)> = Vec::new();
    for node in &topology.nodes {
        let socket = topology.socket_of(node.id);
        let at = sockets.iter().position(|(s, _)| *s == socket);
        let at = at.unwrap_or_else(|| {
            let name =
                socket.map_or_else(|| "unknown socket".to_owned(), |s| format!("socket {s}"));
            sockets.push((socket, Branch::new(paint.title(&name))));
            sockets.len() - 1
        });
        let mut branch = Branch::new(node_line(topology, node, paint));
        hang(&mut branch, topology, Some(node.id), paint);
        sockets[at].1.push(branch);
    }
    let mut branches: Vec<Branch> = sockets.into_iter().map(|(_, branch)| branch).collect();
    // A node may be offline, or unreadable: its devices are shown all the same.
    let mut elsewhere: Vec<Option<NodeId>> = topology
        .devices
        .iter()
        .map(|d| d.node)
        .filter(|node| node.is_none_or(|id| topology.node(id).is_none()))
        .collect();
    elsewhere.sort_unstable();
    elsewhere.dedup();
    for node in elsewhere {
        let name = node.map_or_else(
            || "unknown node".to_owned(),
            |id| format!("node {id}, not online or unreadable"),
        );
        let mut branch = Branch::new(paint.title(&name));
        hang(&mut branch, topology, node, paint);
        branches.push(branch);
    }
    branches
}

/// `node 0  CPUs 0-3  memory 512.0 GiB, 100.0 GiB free`.
fn node_line(topology: &Topology, node: &Node, paint: Paint) -> String {
    let name = paint.node(topology, Some(node.id), &format!("node {}", node.id));
    let cpus = match node.cpus.as_slice() {
        [] => "no CPUs".to_owned(),
        cpus => model::list::cpus(cpus),
    };
    let memory = match (node.memory_total_bytes, node.memory_free_bytes) {
        (Some(0), _) => "no memory".to_owned(),
        (total, free) => format!("memory {}, {} free", bytes(total), bytes(free)),
    };
    let owners = match topology.gpus_of_memory(node.id).as_slice() {
        [] => String::new(),
        labels => format!("  memory of {}", labels.join(", ")),
    };
    format!("{name}  {cpus}  {memory}{owners}")
}

/// The devices of a node below their root complexes and switches.
fn hang(branch: &mut Branch, topology: &Topology, node: Option<NodeId>, paint: Paint) {
    let here: Vec<&Device> = topology.devices.iter().filter(|d| d.node == node).collect();
    let width = here.iter().map(|d| d.label.len()).max().unwrap_or(0);
    for device in here {
        let complex = device
            .root_complex
            .as_deref()
            .unwrap_or("unknown root complex");
        let mut place = branch.at(&paint.faint(complex));
        if let Some(switch) = device.switch() {
            place = place.at(&paint.faint(&format!("switch {switch}")));
        }
        place.push(Branch::new(device_line(topology, device, width, paint)));
    }
}

/// `GPU0  0000:3b:00.0  NVIDIA H100 80GB HBM3, driver nvidia  nvidia0`.
fn device_line(topology: &Topology, device: &Device, width: usize, paint: Paint) -> String {
    let label = paint.node(topology, device.node, &format!("{:<width$}", device.label));
    let what = device.name.as_deref().unwrap_or(&device.vendor);
    let driver = match &device.driver {
        Some(driver) => format!("driver {driver}"),
        None => "no driver".to_owned(),
    };
    let memory = match device.memory_nodes.as_slice() {
        [] => String::new(),
        [id] => format!("  its memory is node {id}"),
        ids => format!("  its memory is nodes {}", model::list::format(ids)),
    };
    let files = if device.files.is_empty() {
        String::new()
    } else {
        format!("  {}", paint.faint(&device.files.join(" ")))
    };
    format!(
        "{label}  {}  {what}, {driver}{memory}{files}",
        device.address
    )
}

/// A row and a column for each node.
fn distances(topology: &Topology, paint: Paint) -> String {
    let width = |id: NodeId| id.to_string().len().max(3) + 1;
    let first = topology
        .nodes
        .iter()
        .map(|n| width(n.id))
        .max()
        .unwrap_or(4);
    let mut text = " ".repeat(first);
    for to in &topology.nodes {
        let cell = format!("{:>w$}", to.id, w = width(to.id));
        text.push_str(&paint.node(topology, Some(to.id), &cell));
    }
    text.push('\n');
    for from in &topology.nodes {
        text.push_str(&paint.node(topology, Some(from.id), &format!("{:>first$}", from.id)));
        for to in &topology.nodes {
            let distance = topology.distance(from.id, to.id);
            let distance = distance.map_or_else(|| "-".to_owned(), |d| d.to_string());
            let _ = write!(text, "{distance:>w$}", w = width(to.id));
        }
        text.push('\n');
    }
    text
}

/// A row and a column for each device; a row ends with the device's node.
fn links(report: &Report, paint: Paint) -> String {
    let matrix = &report.matrix;
    let topology = &report.topology;
    let width = matrix
        .labels
        .iter()
        .map(String::len)
        .max()
        .unwrap_or(0)
        .max(4)
        + 1;
    let mut text = " ".repeat(width);
    for (label, device) in matrix.labels.iter().zip(&topology.devices) {
        text.push_str(&paint.node(topology, device.node, &format!("{label:<width$}")));
    }
    text.push_str("node\n");
    for ((label, row), device) in matrix
        .labels
        .iter()
        .zip(&matrix.links)
        .zip(&topology.devices)
    {
        text.push_str(&paint.node(topology, device.node, &format!("{label:<width$}")));
        for link in row {
            let word = format!("{:<width$}", link.to_string());
            text.push_str(&paint.link(*link, &word));
        }
        let node = device
            .node
            .map_or_else(|| "?".to_owned(), |n| n.to_string());
        text.push_str(&paint.node(topology, device.node, &node));
        text.push('\n');
    }
    text
}

/// The words that occur.
fn legend(report: &Report, paint: Paint) -> String {
    let occurring: Vec<String> = report
        .matrix
        .links
        .iter()
        .flatten()
        .map(|link| match link {
            Link::NvLink(_) => "NV#".to_owned(),
            other => other.to_string(),
        })
        .collect();
    let mut text = String::new();
    for (word, meaning) in LEGEND {
        if occurring.iter().any(|w| w == word) {
            let _ = writeln!(text, "{}", paint.faint(&format!("{word:<5}{meaning}")));
        }
    }
    text
}

/// Why something is missing, a line each.
fn reasons(report: &Report) -> Vec<String> {
    let topology = &report.topology;
    let mut reasons = Vec::new();
    reasons.extend(
        report
            .nodes_reason
            .as_ref()
            .map(|why| format!("nodes: {why}")),
    );
    let of_device = |d: &Device| Some(format!("{}: {}", d.label, d.reason.as_ref()?));
    reasons.extend(topology.devices.iter().filter_map(of_device));
    reasons.extend(
        topology
            .devices_reason
            .as_ref()
            .map(|why| format!("devices: {why}")),
    );
    // Without an NVIDIA GPU nothing is missing, but who named a library wants to know of it.
    if report.nvml.named || topology.devices.iter().any(|d| d.vendor == "NVIDIA") {
        let nvml = report.nvml.reason.as_ref();
        reasons.extend(nvml.map(|why| format!("NVML unavailable: {why}; NVLinks are not shown")));
    }
    reasons
}

fn bytes(bytes: Option<u64>) -> String {
    let Some(bytes) = bytes else {
        return "-".to_owned();
    };
    let mib = bytes as f64 / f64::from(1 << 20);
    if mib < 1024.0 {
        format!("{mib:.0} MiB")
    } else {
        format!("{:.1} GiB", mib / 1024.0)
    }
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
