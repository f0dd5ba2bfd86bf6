//! The machine: what is on which node, how far the nodes are from each other, and what lies between two devices.

use super::page::rule;
use super::text;
use super::theme::{Theme, link_tone};
use crate::app::{App, Nodes, Tone, format};
use model::devices::{Device, DeviceKind};
use model::link::{LEGEND, Link, Matrix, matrix};
use model::list;
use model::topology::{Node, NodeId, Topology};
use ratatui::text::{Line, Span};

/// The page's lines.
pub(crate) fn lines(app: &App, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let Some(pair) = app.feed.shown() else {
        return vec![Line::from("  There is no snapshot yet.")];
    };
    let page = Page {
        topology: &pair.now.topology,
        nodes: Nodes::of(&pair.now),
        theme,
        width,
    };
    let mut lines = page.machine();
    lines.extend(page.distances());
    lines.extend(page.links());
    lines
}

struct Page<'a> {
    topology: &'a Topology,
    nodes: Nodes,
    theme: &'a Theme,
    width: usize,
}

impl Page<'_> {
    fn machine(&self) -> Vec<Line<'static>> {
        let mut lines = vec![rule(&summary(self.topology), self.width, self.theme)];
        for node in &self.topology.nodes {
            lines.push(self.node(node));
            lines.extend(self.devices_of(Some(node.id)));
        }
        if let Some(why) = &self.topology.nodes_reason {
            lines.extend(self.note(&format!(
                "nodes, or something of them, may be missing: {why}"
            )));
        }
        // A node may be offline, and nobody tells some devices' nodes.
        let mut elsewhere: Vec<Option<NodeId>> = self
            .topology
            .devices
            .iter()
            .map(|d| d.node)
            .filter(|node| node.is_none_or(|id| self.topology.node(id).is_none()))
            .collect();
        elsewhere.sort_unstable();
        elsewhere.dedup();
        for node in elsewhere {
            let name = node.map_or_else(
                || "? unknown node".to_owned(),
                |id| format!("? node {id}, not online or unreadable"),
            );
            lines.push(Line::from(
                self.theme.span(format!("  {name}"), Tone::Faint),
            ));
            lines.extend(self.devices_of(node));
        }
        if let Some(why) = &self.topology.devices_reason {
            lines.extend(self.note(&format!("devices may be missing: {why}")));
        } else if self.topology.devices.is_empty() {
            lines.extend(self.note("no GPU, accelerator or RDMA NIC"));
        }
        lines
    }

    /// `█ node 0    socket 0  CPUs 0-47  512 GiB, 100 GiB free`.
    fn node(&self, node: &Node) -> Line<'static> {
        let socket = match self.topology.socket_of(node.id) {
            Some(socket) => format!("socket {socket}"),
            None => "socket -".to_owned(),
        };
        let cpus = match node.cpus.as_slice() {
            [] => "no CPUs".to_owned(),
            cpus => list::cpus(cpus),
        };
        let memory = match (node.memory_total_bytes, node.memory_free_bytes) {
            (Some(0), _) => "no memory".to_owned(),
            (total, free) => format!(
                "{}, {} free",
                format::or_dash(total, format::bytes),
                format::or_dash(free, format::bytes)
            ),
        };
        let owners = match self.topology.gpus_of_memory(node.id).as_slice() {
            [] => String::new(),
            labels => format!("  memory of {}", labels.join(", ")),
        };
        let said = format!("{socket}  {cpus}  {memory}{owners}");
        let name = format!("  {} node {:<4}", self.nodes.glyph(node.id), node.id);
        let free = self.width.saturating_sub(text::width(&name));
        Line::from(vec![
            Span::styled(name, self.theme.node(&self.nodes, node.id)),
            Span::raw(text::fit(&said, free)),
        ])
    }

    fn devices_of(&self, node: Option<NodeId>) -> Vec<Line<'static>> {
        let here = self.topology.devices.iter().filter(|d| d.node == node);
        here.flat_map(|device| self.device(device)).collect()
    }

    /// `GPU0  0000:3d:00.0 NVIDIA H100 80GB HBM3, switch 0000:3b:00.0`, and why something of it is missing.
    fn device(&self, device: &Device) -> Vec<Line<'static>> {
        const INDENT: usize = 11;
        let what = device.name.as_deref().unwrap_or(&device.vendor);
        // The matrix tells who shares a root complex; a switch says more.
        let place = match (device.switch(), device.root_complex.as_deref()) {
            (Some(switch), _) => format!("switch {switch}"),
            (None, Some(complex)) => complex.to_owned(),
            (None, None) => "root complex -".to_owned(),
        };
        let mut said = format!("{} {}, {place}", device.address, text::clean(what));
        if let Some(reason) = &device.reason {
            said = format!("{said} ({})", text::clean(reason));
        }
        let label = format!("{:<6}", device.label);
        let room = self.width.saturating_sub(INDENT + text::width(&label));
        let mut label = Some(label);
        text::wrap(&said, room)
            .into_iter()
            .map(|line| {
                let first = label.take().unwrap_or_else(|| " ".repeat(6));
                let style = device.node.map_or_else(
                    || self.theme.tone(Tone::Faint),
                    |id| self.theme.node(&self.nodes, id),
                );
                Line::from(vec![
                    Span::raw(" ".repeat(INDENT)),
                    Span::styled(first, style),
                    Span::raw(line),
                ])
            })
            .collect()
    }

    fn distances(&self) -> Vec<Line<'static>> {
        let nodes = &self.topology.nodes;
        if nodes.len() < 2 {
            return Vec::new();
        }
        let title = "distances between nodes, 10 is local";
        let mut lines = vec![rule(title, self.width, self.theme)];
        let name = |id: NodeId| Span::styled(id.to_string(), self.theme.node(&self.nodes, id));
        let cell = |from: NodeId, to: NodeId| {
            let distance = self.topology.distance(from, to);
            Span::raw(format::or_dash(distance, |d| d.to_string()))
        };
        let ids: Vec<NodeId> = nodes.iter().map(|n| n.id).collect();
        lines.extend(self.square(&ids, name, cell));
        lines
    }

    fn links(&self) -> Vec<Line<'static>> {
        let devices = &self.topology.devices;
        if devices.len() < 2 {
            return Vec::new();
        }
        let matrix = matrix(devices);
        let mut lines = vec![rule("between devices", self.width, self.theme)];
        let indices: Vec<usize> = (0..devices.len()).collect();
        let name = |at: usize| {
            let device = &devices[at];
            let style = device.node.map_or_else(
                || self.theme.tone(Tone::Faint),
                |id| self.theme.node(&self.nodes, id),
            );
            Span::styled(device.label.clone(), style)
        };
        let cell = |from: usize, to: usize| {
            let link = matrix.links[from][to];
            self.theme.span(link.to_string(), link_tone(link))
        };
        lines.extend(self.square(&indices, name, cell));
        lines.extend(self.legend(&matrix));
        lines
    }

    /// A row and a column for each; columns that have no room come in further squares below.
    fn square<T: Copy>(
        &self,
        all: &[T],
        name: impl Fn(T) -> Span<'static>,
        cell: impl Fn(T, T) -> Span<'static>,
    ) -> Vec<Line<'static>> {
        let names = all.iter().map(|one| name(*one).width());
        let cells = all.iter().map(|from| {
            let widths = all.iter().map(|to| cell(*from, *to).width());
            widths.max().unwrap_or(0)
        });
        let widest = names.chain(cells).max().unwrap_or(0) + 2;
        let fit = (self.width.saturating_sub(2) / widest)
            .saturating_sub(1)
            .max(1);
        let mut lines = Vec::new();
        for (at, columns) in all.chunks(fit).enumerate() {
            if at > 0 {
                lines.push(Line::default());
            }
            let mut head = vec![Span::raw(" ".repeat(2 + widest))];
            head.extend(columns.iter().map(|to| padded(name(*to), widest)));
            lines.push(Line::from(head));
            for from in all {
                let mut row = vec![Span::raw("  "), padded(name(*from), widest)];
                row.extend(columns.iter().map(|to| padded(cell(*from, *to), widest)));
                lines.push(Line::from(row));
            }
        }
        lines
    }

    /// The words that occur, and what they mean.
    fn legend(&self, matrix: &Matrix) -> Vec<Line<'static>> {
        let mut lines = vec![Line::default()];
        for (word, meaning) in LEGEND {
            let link = matrix.links.iter().flatten().find(|link| match link {
                Link::NvLink(_) => word == "NV#",
                other => other.to_string() == word,
            });
            if let Some(link) = link {
                lines.push(Line::from(vec![
                    Span::raw("  "),
                    self.theme.span(text::left(word, 6), link_tone(*link)),
                    self.theme.span(meaning, Tone::Faint),
                ]));
            }
        }
        lines
    }

    fn note(&self, said: &str) -> Vec<Line<'static>> {
        text::wrap(&text::clean(said), self.width.saturating_sub(2))
            .into_iter()
            .map(|line| Line::from(self.theme.span(format!("  {line}"), Tone::Faint)))
            .collect()
    }
}

fn padded(mut span: Span<'static>, width: usize) -> Span<'static> {
    span.content = text::left(&span.content, width).into();
    span
}

/// `2 sockets, 2 nodes, 96 CPUs, 8 GPUs, 2 RDMA NICs`.
fn summary(topology: &Topology) -> String {
    let mut parts = Vec::new();
    if topology.hides_nodes().is_some() {
        parts.push("? nodes".to_owned());
    } else {
        if let Some(sockets) = topology.sockets() {
            parts.push(format::plural(sockets, "socket", "sockets"));
        }
        parts.push(format::plural(topology.nodes.len(), "node", "nodes"));
        let cpus = topology.nodes.iter().map(|n| n.cpus.len()).sum();
        parts.push(format::plural(cpus, "CPU", "CPUs"));
    }
    for (kind, one, many) in [
        (DeviceKind::Gpu, "GPU", "GPUs"),
        (DeviceKind::Accelerator, "accelerator", "accelerators"),
        (DeviceKind::Nic, "RDMA NIC", "RDMA NICs"),
    ] {
        let n = topology.devices.iter().filter(|d| d.kind == kind).count();
        if n > 0 {
            parts.push(format::plural(n, one, many));
        }
    }
    parts.join(", ")
}
