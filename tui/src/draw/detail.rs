//! All that is known of one process, as one long page.

use super::classes;
use super::findings;
use super::matrix;
use super::page::rule;
use super::placing;
use super::signals;
use super::text;
use super::theme::Theme;
use super::threads;
use crate::app::{App, Nodes, Pair, Row, Tone, format, gpus, sentence, word};
use model::list;
use model::process::{ByNode, MemoryKind, Process, TouchCounter};
use model::signal::SignalName;
use model::topology::NodeId;
use ratatui::text::{Line, Span};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The page's lines.
pub(crate) fn lines(app: &App, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let Some(detail) = &app.detail else {
        return Vec::new();
    };
    let Some(row) = detail.pair.find(detail.id) else {
        return Vec::new();
    };
    let gone = app
        .feed
        .shown()
        .is_some_and(|shown| shown.find(detail.id).is_none());
    let page = Page {
        pair: &detail.pair,
        row,
        nodes: Nodes::of(&detail.pair.now),
        theme,
        width,
    };
    let mut lines = page.identity(gone);
    lines.extend(findings::of_process(row.now, theme, width));
    lines.extend(page.by_node());
    lines.extend(page.touches());
    lines.extend(matrix::lines(row.now, page.pair, theme, width));
    lines.extend(threads::lines(&row, page.pair, &page.nodes, theme, width));
    lines
}

struct Page<'a> {
    pair: &'a Pair,
    row: Row<'a>,
    nodes: Nodes,
    theme: &'a Theme,
    width: usize,
}

impl Page<'_> {
    fn identity(&self, gone: bool) -> Vec<Line<'static>> {
        let process = self.row.now;
        let mut title = format!("{} {}", process.pid, text::clean(&process.name));
        if gone || !process.alive {
            title.push_str(" has ended: its last picture");
        }
        let mut lines = vec![rule(&title, self.width, self.theme)];
        let known = |value: &Option<String>| format::or_dash(value.as_deref(), text::clean);
        let tone = if process.alive {
            Tone::of(process.verdict)
        } else {
            Tone::Faint
        };
        lines.extend(self.field("verdict", word(process), tone));
        let why = text::clean(&sentence(&self.row, &self.pair.now));
        lines.extend(self.field("because", &why, Tone::Plain));
        lines.extend(self.field("engine", &engine(process), Tone::Plain));
        lines.extend(self.field("model", &known(&process.model), Tone::Plain));
        lines.extend(self.field("command", &text::clean(&process.command), Tone::Plain));
        let placed = format!(
            "policy {}, may run on {}, resident {}",
            known(&process.policy),
            list::counted("CPU", &known(&process.cpus_allowed)),
            format::or_dash(process.resident_bytes, format::bytes),
        );
        lines.extend(self.field("placed", &placed, Tone::Plain));
        if model::gpus::any(&self.pair.now.topology) {
            let devices = text::clean(&gpus::words(process));
            lines.extend(self.field("devices", &devices, Tone::Plain));
        }
        let allowed = placing::allowed(&process.placing, &process.threads);
        lines.extend(self.field("allowed", &allowed, Tone::Plain));
        let container = placing::container(&process.placing);
        lines.extend(self.field("container", &container, Tone::Plain));
        let charged = model::cgroup::of(&self.pair.now.cgroups, process.pid);
        if let Some(cgroup) = charged.filter(|_| process.alive) {
            let cgroup = placing::cgroup(cgroup);
            lines.extend(self.field("cgroup", &cgroup, Tone::Plain));
        }
        if let Some(hidden) = placing::hidden(&self.pair.now.host) {
            lines.extend(self.field("machine", &hidden, Tone::Warn));
        }
        let since = process.tracked_since.0;
        let tracked = self.pair.now.taken_at.0.duration_since(since).ok();
        let tracked = tracked.and_then(|d| u64::try_from(d.as_nanos()).ok());
        let since = format!(
            "for {}, since {}; parent process {}",
            format::or_dash(tracked, format::duration),
            format::clock(since),
            format::or_dash(process.parent_pid, |p| p.to_string()),
        );
        lines.extend(self.field("tracked", &since, Tone::Plain));
        lines
    }

    /// A named value, wrapped beside its name.
    fn field(&self, name: &str, value: &str, tone: Tone) -> Vec<Line<'static>> {
        const NAME: usize = 10;
        let value = if value.is_empty() {
            format::NO_SIGNAL
        } else {
            value
        };
        let wrapped = text::wrap(value, self.width.saturating_sub(NAME + 2));
        let named = |at: usize| if at == 0 { name } else { "" };
        wrapped
            .into_iter()
            .enumerate()
            .map(|(at, line)| {
                Line::from(vec![
                    self.theme
                        .span(format!("  {}", text::left(named(at), NAME)), Tone::Faint),
                    self.theme.span(line, tone),
                ])
            })
            .collect()
    }

    /// Where it runs and where its memory lies: a row for each node, so that any number fits.
    fn by_node(&self) -> Vec<Line<'static>> {
        /// The two of CPU time, then the bytes, which may be marked as an estimate.
        const WIDTHS: [usize; 7] = [9, 9, 10, 10, 10, 10, 10];
        let process = self.row.now;
        let mut lines = vec![rule("by node", self.width, self.theme)];
        let titles = [
            "CPU now", "CPU time", "MEMORY", "anon", "file", "shared", "huge",
        ];
        let in_columns = |cells: &[String]| -> String {
            let cells = cells.iter().zip(WIDTHS);
            cells
                .map(|(cell, width)| text::right(cell, width))
                .collect()
        };
        let titles = in_columns(&titles.map(str::to_owned));
        lines.push(Line::from(self.theme.span(
            format!("  {}{titles}", text::left("NODE", 10)),
            Tone::Strong,
        )));
        let rates = self.row.cpu_by_node();
        let rate = |id: NodeId| {
            let rates = rates.as_ref()?;
            Some(
                rates
                    .iter()
                    .find(|(n, _)| *n == id)
                    .map_or(0.0, |(_, v)| *v),
            )
        };
        let kinds = process.placement.by_kind.as_ref();
        let kind = |kind: MemoryKind| kinds.and_then(|k| k.get(&kind).cloned());
        let kinds = [
            kind(MemoryKind::Anonymous),
            kind(MemoryKind::File),
            kind(MemoryKind::Shared),
            kind(MemoryKind::Huge),
        ];
        let mark = classes::mark(&process.placement);
        let memory = |bytes| format!("{mark}{}", format::bytes(bytes));
        for id in self.node_ids() {
            let mut numbers = vec![
                format::or_dash(rate(id), format::cpu),
                format::or_dash(
                    at(process.cpu_time_ns_by_node.as_ref(), id),
                    format::duration,
                ),
                format::or_dash(at(process.placement.by_node_bytes.as_ref(), id), memory),
            ];
            for kind in &kinds {
                numbers.push(format::or_dash(at(kind.as_ref(), id), memory));
            }
            let numbers = in_columns(&numbers);
            let glyph = self.nodes.glyph(id);
            lines.push(Line::from(vec![
                Span::raw("  "),
                Span::styled(
                    text::left(&format!("{glyph} node {id}"), 10),
                    self.theme.node(&self.nodes, id),
                ),
                Span::raw(numbers),
            ]));
        }
        let placement = &process.placement;
        let ids = self.node_ids();
        lines.extend(classes::lines(
            placement,
            &ids,
            &self.nodes,
            self.theme,
            self.width,
        ));
        let mut source = format!(
            "placement: {}",
            format::or_dash(placement.source.as_deref(), text::clean)
        );
        if let Some(taken) = placement.taken_at {
            let _ = write!(source, ", read at {}", format::clock(taken.0));
        }
        source.push_str(&classes::trust(placement));
        if let Some(reason) = &placement.reason {
            let _ = write!(source, " ({})", text::clean(reason));
        }
        lines.extend(self.note(&source));
        lines.extend(self.marks(&[SignalName::Sched, SignalName::Placement]));
        lines
    }

    /// The host's nodes and those that only the process's numbers know.
    fn node_ids(&self) -> BTreeSet<NodeId> {
        let process = self.row.now;
        let mut ids: BTreeSet<NodeId> = self.pair.now.topology.nodes.iter().map(|n| n.id).collect();
        for by_node in [
            process.cpu_time_ns_by_node.as_ref(),
            process.placement.by_node_bytes.as_ref(),
        ]
        .into_iter()
        .flatten()
        {
            ids.extend(by_node.keys());
        }
        ids
    }

    fn touches(&self) -> Vec<Line<'static>> {
        let title = "touches, migrations, moves, scan";
        let mut lines = vec![rule(title, self.width, self.theme)];
        lines.push(Line::from(self.theme.span(
            format!(
                "  {}{}{}{}{}{}{}",
                text::left("PAGES OF 4 KiB", 16),
                text::right("PER S", 8),
                text::right("ALL", 8),
                text::right("LOCAL", 8),
                text::right("SAME-SOCKET", 13),
                text::right("CROSS-SOCKET", 14),
                text::right("UNKNOWN", 9),
            ),
            Tone::Strong,
        )));
        let touches = &self.row.now.touches;
        let first = self.row.rate(|p| p.touches.first_touch.pages);
        let map = self.row.rate(|p| p.touches.map.pages);
        let hint = self.row.rate(|p| p.touches.hint.counter.pages);
        lines.push(self.touch("first-touch", first, &touches.first_touch));
        lines.push(self.touch("map", map, &touches.map));
        lines.push(self.touch("hint", hint, &touches.hint.counter));
        let count = |value: Option<u64>| format::or_dash(value, format::count);
        let per_s = |value: Option<f64>| format::or_dash(value, format::rate);
        let process = self.row.now;
        let faults = self.row.rate(|p| p.touches.hint.faults);
        let migrated = self.row.rate(|p| p.migrations.pages);
        let moves = self.row.rate(|p| p.moves.total);
        let scan = self.row.rate(|p| p.scan_time_ns);
        for note in [
            format!(
                "hint faults: {} ({}/s), {} of them local; pages back from swap: {}",
                count(touches.hint.faults),
                per_s(faults),
                count(touches.hint.local_faults),
                count(touches.swap_in_pages),
            ),
            format!(
                "pages migrated: {} ({}/s), failed {}",
                count(process.migrations.pages),
                per_s(migrated),
                count(process.migrations.failed_pages),
            ),
            format!(
                "thread moves between nodes: {} ({}/s), {} of them between sockets",
                count(process.moves.total),
                per_s(moves),
                count(process.moves.cross_socket),
            ),
            format!(
                "scan time of its threads: {} ({} per s), {} of it on CPU",
                format::or_dash(process.scan_time_ns, format::duration),
                format::or_dash(scan, format::ns_per_second),
                format::or_dash(process.scan_cpu_time_ns, format::duration),
            ),
        ] {
            lines.extend(self.note(&note));
        }
        lines.extend(self.marks(&[
            SignalName::FirstTouch,
            SignalName::Map,
            SignalName::Hint,
            SignalName::Migration,
            SignalName::Scan,
            SignalName::Pin,
        ]));
        lines
    }

    fn touch(&self, name: &str, rate: Option<f64>, counter: &TouchCounter) -> Line<'static> {
        let count = |value: Option<u64>| format::or_dash(value, format::count);
        let remote = |value: Option<u64>, tone| match value {
            Some(1..) => tone,
            _ => Tone::Plain,
        };
        Line::from(vec![
            Span::raw(format!("  {}", text::left(name, 16))),
            Span::raw(text::right(&format::or_dash(rate, format::rate), 8)),
            Span::raw(text::right(&count(counter.pages), 8)),
            Span::raw(text::right(&count(counter.local_pages), 8)),
            self.theme.span(
                text::right(&count(counter.same_socket_pages), 13),
                remote(counter.same_socket_pages, Tone::Warn),
            ),
            self.theme.span(
                text::right(&count(counter.cross_socket_pages), 14),
                remote(counter.cross_socket_pages, Tone::Bad),
            ),
            Span::raw(text::right(&count(counter.unknown_node_pages), 9)),
        ])
    }

    fn note(&self, said: &str) -> Vec<Line<'static>> {
        text::wrap(said, self.width.saturating_sub(2))
            .into_iter()
            .map(|line| Line::from(format!("  {line}")))
            .collect()
    }

    /// Why some of the numbers above are weaker than they look, or missing.
    fn marks(&self, names: &[SignalName]) -> Vec<Line<'static>> {
        names
            .iter()
            .filter_map(|name| self.pair.now.signal(*name))
            .flat_map(|signal| signals::mark(signal, self.theme, self.width))
            .collect()
    }
}

/// The number of a node; a node that isn't in it has none, where there is any.
fn at(by_node: Option<&ByNode>, id: NodeId) -> Option<u64> {
    Some(by_node?.get(&id).copied().unwrap_or(0))
}

fn engine(process: &Process) -> String {
    let Some(engine) = &process.engine else {
        return "- (no rule knows it)".to_owned();
    };
    let mut text = text::clean(engine);
    if let Some(role) = &process.role {
        let _ = write!(text, ", {}", text::clean(role));
    }
    if let Some(rank) = process.rank {
        let _ = write!(text, ", rank {rank}");
    }
    text
}
