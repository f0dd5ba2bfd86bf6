//! The help screen: keys, columns, marks and words.

use super::page::rule;
use super::text;
use super::theme::{Theme, state_glyph, state_tone};
use crate::app::keymap::BINDINGS;
use crate::app::{App, Nodes, Tone};
use model::signal::SignalState;
use ratatui::text::{Line, Span};

/// Columns and what they mean, in the table's order.
const COLUMNS: &[(&str, &str)] = &[
    (
        "GPU",
        "its GPUs and their nodes: 4@1 is GPU 4 on node 1, ? an unknown node, ~ by its environment only",
    ),
    (
        "ENGINE",
        "the inference engine, the process's role and its rank; `- name` is no known engine",
    ),
    (
        "CPU by node",
        "where its threads ran since the snapshot before; 100 % is one CPU",
    ),
    (
        "MEMORY by node",
        "where its resident pages lie, and how much there is; dots in the bar: so much of its addresses has not been looked \
         at yet",
    ),
    (
        "REMOTE",
        "the share of its touches that went to another node; `~` is an estimate from CPU time and placement",
    ),
    (
        "TREND",
        "REMOTE over the last snapshots, full height is 100 %",
    ),
    (
        "HINT/s",
        "pages per second that NUMA balancing had unmapped to learn who uses them",
    ),
    (
        "FIRST/s",
        "pages per second touched for the first time; stands where there is no hint signal",
    ),
    (
        "MOVE/s",
        "threads per second that ran on one node and then on another",
    ),
    (
        "MIGR/s",
        "pages per second that NUMA balancing moved to another node",
    ),
    (
        "SCAN/s",
        "time per second that its threads spend in the kernel's scan of their memory",
    ),
    ("POLICY", "its memory policy in numactl's words"),
    (
        "VERDICT",
        "local: under 10 % remote, mixed: under 50 %, remote: above; unknown: too little evidence. Beside it the first \
         finding, and how many more",
    ),
];

/// States of a signal.
const STATES: &[(SignalState, &str)] = &[
    (
        SignalState::Attached,
        "attached: measured by its best mechanism",
    ),
    (
        SignalState::Degraded,
        "degraded: by a weaker one, that sees less",
    ),
    (
        SignalState::Unreliable,
        "unreliable: it failed its self-test",
    ),
    (
        SignalState::Unavailable,
        "unavailable: not measured; its numbers are `-`",
    ),
];

/// The page's lines.
pub(crate) fn lines(app: &App, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let mut lines = vec![rule("keys", width, theme)];
    for binding in BINDINGS.iter().filter(|b| !b.label.is_empty()) {
        let name = Span::styled(text::left(binding.label, 11), theme.key());
        lines.extend(entry(name, 11, binding.does, width));
    }
    lines.push(rule("columns", width, theme));
    for (name, meaning) in COLUMNS {
        let name = theme.span(text::left(name, 15), Tone::Strong);
        lines.extend(entry(name, 15, meaning, width));
    }
    lines.push(rule("marks", width, theme));
    let dash = theme.span(text::left("-", 3), Tone::Strong);
    lines.extend(entry(
        dash,
        3,
        "no signal: not known, and never a zero",
        width,
    ));
    for (state, meaning) in STATES {
        let glyph = text::left(state_glyph(*state), 3);
        let glyph = theme.span(glyph, state_tone(*state));
        lines.extend(entry(glyph, 3, meaning, width));
    }
    if let Some(pair) = app.feed.shown() {
        let nodes = Nodes::of(&pair.now);
        for node in &pair.now.topology.nodes {
            let glyph = text::left(&nodes.glyph(node.id).to_string(), 3);
            let glyph = Span::styled(glyph, theme.node(&nodes, node.id));
            lines.extend(entry(
                glyph,
                3,
                &format!("node {}, in every bar", node.id),
                width,
            ));
        }
    }
    lines
}

/// A name, and its meaning wrapped beside it.
fn entry(name: Span<'static>, indent: usize, meaning: &str, width: usize) -> Vec<Line<'static>> {
    let wrapped = text::wrap(meaning, width.saturating_sub(indent + 2));
    let mut name = Some(name);
    wrapped
        .into_iter()
        .map(|line| {
            let before = name.take().unwrap_or_else(|| Span::raw(" ".repeat(indent)));
            Line::from(vec![Span::raw("  "), before, Span::raw(line)])
        })
        .collect()
}
