//! The strip of nodes: memory and CPU of each, and the glyph that stands for it everywhere.

use super::page;
use super::text;
use super::theme::Theme;
use crate::app::{NodeForm, Nodes, Pair, Regions, Tone, filled, format, gpus};
use model::topology::{Node, Topology};
use ratatui::text::{Line, Span};

/// What stands in a line beside its bars, the amount and what the node is about.
const BESIDE_BARS: usize = 11 + 4 + 2 + 1 + 6 + 2 + 6 + 2;
/// Most amounts' width: `412/512 GiB`.
const AMOUNT: usize = 11;
/// Both bars' least width, together.
const BARS: usize = 10;

/// Used memory of a node, bytes, and its share of the total.
struct Memory {
    used: u64,
    total: u64,
}

impl Memory {
    fn of(node: &Node) -> Option<Self> {
        let total = node.memory_total_bytes?;
        let used = total.saturating_sub(node.memory_free_bytes?);
        Some(Self { used, total })
    }

    fn share(&self) -> f64 {
        if self.total == 0 {
            0.0
        } else {
            self.used as f64 / self.total as f64
        }
    }
}

/// Every node that has room; the last place says how many have not.
pub(crate) fn lines(
    pair: &Pair,
    regions: &Regions,
    theme: &Theme,
    width: u16,
) -> Vec<Line<'static>> {
    let nodes = Nodes::of(&pair.now);
    let all = &pair.now.topology.nodes;
    let mut lines = Vec::new();
    if regions.strip_title {
        lines.push(page::rule(
            &title(all.len(), regions.form),
            width.into(),
            theme,
        ));
    }
    let per_line = usize::from(regions.nodes_per_line);
    let places = per_line * usize::from(regions.strip);
    let shown = if all.len() > places {
        places.saturating_sub(1)
    } else {
        all.len()
    };
    // At most as wide as one node has use for; two side by side share the line evenly.
    let cell = usize::from(width) / per_line.max(1);
    let widest = |words: &dyn Fn(&Node) -> String| {
        let widths = all.iter().map(|n| text::width(&words(n)));
        widths.max().unwrap_or(0)
    };
    let about = |n: &Node| about(&pair.now.topology, n, regions.form, cell);
    let widths = (widest(&amount), widest(&about));
    for chunk in all[..shown].chunks(per_line.max(1)) {
        let mut spans = Vec::new();
        for node in chunk {
            spans.extend(one(
                node,
                (regions.form, cell),
                widths,
                &about(node),
                &nodes,
                theme,
            ));
        }
        lines.push(Line::from(spans));
    }
    if shown < all.len() {
        let more = theme.span(format!("+ {} more", all.len() - shown), Tone::Faint);
        match lines.last_mut() {
            Some(last) if !shown.is_multiple_of(per_line) => last.push_span(more),
            _ => lines.push(Line::from(more)),
        }
    }
    lines
}

fn title(nodes: usize, form: NodeForm) -> String {
    let count = format::plural(nodes, "node", "nodes");
    if form == NodeForm::Numbers {
        format!("{count}: memory used, CPU busy, %")
    } else {
        count
    }
}

/// One node in exactly `width` columns, the last of them empty.
fn one(
    node: &Node,
    (form, width): (NodeForm, usize),
    (amount_width, about_width): (usize, usize),
    about: &str,
    nodes: &Nodes,
    theme: &Theme,
) -> Vec<Span<'static>> {
    let style = theme.node(nodes, node.id);
    let glyph = nodes.glyph(node.id);
    let memory = Memory::of(node);
    // A node without memory, or without CPUs, has no share of them: that is no missing signal.
    let memory_share = memory.as_ref().filter(|m| m.total > 0).map(Memory::share);
    let memory_percent = percent(memory_share, memory.as_ref().is_some_and(|m| m.total == 0));
    let cpu_percent = percent(node.cpu_busy, node.cpus.is_empty());
    let mut spans = Vec::new();
    match form {
        NodeForm::Numbers => {
            spans.push(Span::styled(glyph.to_string(), style));
            // The title says that the two are percentages.
            spans.push(theme.span(
                format!(
                    "{}{}",
                    text::right(memory_percent.trim_end_matches(" %"), 4),
                    text::right(cpu_percent.trim_end_matches(" %"), 4)
                ),
                Tone::Plain,
            ));
        }
        NodeForm::Words => spans.extend([
            Span::styled(format!("{glyph} {:<2}", node.id), style),
            theme.span(" mem ", Tone::Faint),
            theme.span(text::right(&memory_percent, 5), Tone::Plain),
            theme.span(" cpu ", Tone::Faint),
            theme.span(text::right(&cpu_percent, 5), Tone::Plain),
        ]),
        NodeForm::Bars | NodeForm::Wide => {
            let fixed = BESIDE_BARS + amount_width + about_width;
            let bars = width.saturating_sub(fixed).clamp(BARS, 60);
            let memory_bar = bars * 3 / 5;
            spans.push(Span::styled(format!("{glyph} node {:<3}", node.id), style));
            spans.push(theme.span("mem ", Tone::Faint));
            spans.extend(gauge(memory_share, memory_bar, glyph, style, theme));
            spans.push(theme.span(text::right(&amount(node), amount_width + 1), Tone::Plain));
            spans.push(theme.span("  cpu ", Tone::Faint));
            spans.extend(gauge(node.cpu_busy, bars - memory_bar, glyph, style, theme));
            spans.push(theme.span(text::right(&cpu_percent, 6), Tone::Plain));
            spans.push(theme.span(about, Tone::Faint));
        }
    }
    let used: usize = spans.iter().map(Span::width).sum();
    spans.push(Span::raw(" ".repeat(width.saturating_sub(used))));
    spans
}

/// `412/512 GiB`: used and total, in one unit where they share it.
fn amount(node: &Node) -> String {
    let Some(Memory { used, total }) = Memory::of(node) else {
        return format::NO_SIGNAL.to_owned();
    };
    if total == 0 {
        return "no memory".to_owned();
    }
    let (used, total) = (format::bytes(used), format::bytes(total));
    match (used.split_once(' '), total.split_once(' ')) {
        (Some((number, unit)), Some((_, same))) if unit == same => format!("{number}/{total}"),
        _ => format!("{used}/{total}"),
    }
}

fn percent(share: Option<f64>, none_there: bool) -> String {
    if none_there {
        "none".to_owned()
    } else {
        format::or_dash(share, format::share)
    }
}

/// Its socket, CPUs and GPUs; where there is less room its GPUs alone, and where there is little nothing.
fn about(topology: &Topology, node: &Node, form: NodeForm, width: usize) -> String {
    let gpus = gpus::of_node(topology, node.id).map(|gpus| format!("  {gpus}"));
    match form {
        NodeForm::Wide => {
            let cpus = format::plural(node.cpus.len(), "CPU", "CPUs");
            let gpus = gpus.unwrap_or_default();
            match node.socket {
                Some(socket) => format!("  socket {socket}, {cpus}{gpus}"),
                None => format!("  {cpus}{gpus}"),
            }
        }
        NodeForm::Bars => gpus
            .filter(|gpus| BESIDE_BARS + AMOUNT + text::width(gpus) + BARS <= width)
            .unwrap_or_default(),
        NodeForm::Words | NodeForm::Numbers => String::new(),
    }
}

/// `▕████    ▏`, in the node's own glyph; without a number the inside is a `-`.
fn gauge(
    share: Option<f64>,
    width: usize,
    glyph: char,
    style: ratatui::style::Style,
    theme: &Theme,
) -> Vec<Span<'static>> {
    let inside = match share {
        Some(share) => text::left(&glyph.to_string().repeat(filled(share, width)), width),
        None => text::left(format::NO_SIGNAL, width),
    };
    vec![
        theme.span("▕", Tone::Faint),
        Span::styled(inside, style),
        theme.span("▏", Tone::Faint),
    ]
}
