//! A process's memory by what it holds and node, and how far the numbers can be trusted.

use super::text;
use super::theme::Theme;
use crate::app::{Nodes, Tone, format};
use model::mapping::MemoryClass;
use model::process::Placement;
use model::topology::NodeId;
use ratatui::text::{Line, Span};
use std::collections::BTreeSet;
use std::fmt::Write as _;

const NAME: usize = 16;
const COLUMN: usize = 11;

/// What people call a class.
fn name(class: MemoryClass) -> &'static str {
    match class {
        MemoryClass::Weights => "weights",
        MemoryClass::File => "other files",
        MemoryClass::Heap => "heap",
        MemoryClass::Stack => "main stack",
        MemoryClass::Anonymous => "anonymous",
        MemoryClass::LargeAnonymous => "large anonymous",
        MemoryClass::Shared => "shared",
        MemoryClass::Huge => "huge pages",
    }
}

/// A line a class, and a column a node for as many as fit; nothing where classes aren't known.
pub(super) fn lines(
    placement: &Placement,
    ids: &BTreeSet<NodeId>,
    nodes: &Nodes,
    theme: &Theme,
    width: usize,
) -> Vec<Line<'static>> {
    let Some(classes) = placement.by_class.as_ref().filter(|c| !c.is_empty()) else {
        return Vec::new();
    };
    let fit = width.saturating_sub(2 + NAME) / COLUMN;
    let shown: Vec<NodeId> = ids.iter().copied().take(fit).collect();
    let mut title = vec![theme.span(format!("  {}", text::left("HOLDS", NAME)), Tone::Strong)];
    for id in &shown {
        let heading = text::right(&format!("{} node {id}", nodes.glyph(*id)), COLUMN);
        title.push(Span::styled(heading, theme.node(nodes, *id)));
    }
    let mut lines = vec![Line::from(title)];
    let mark = mark(placement);
    for class in MemoryClass::ALL {
        let Some(by_node) = classes.get(&class) else {
            continue;
        };
        let mut line = format!("  {}", text::left(name(class), NAME));
        for id in &shown {
            let bytes = by_node.get(id).copied().unwrap_or(0);
            let number = format!("{mark}{}", format::bytes(bytes));
            line.push_str(&text::right(&number, COLUMN));
        }
        lines.push(Line::from(line));
    }
    if shown.len() < ids.len() {
        let rest = ids.len() - shown.len();
        lines.push(Line::from(
            theme.span(format!("  and {rest} nodes more"), Tone::Faint),
        ));
    }
    lines
}

/// What stands before a number that is an estimate.
pub(super) fn mark(placement: &Placement) -> &'static str {
    if placement.is_estimate() { "~" } else { "" }
}

/// How sure the numbers are, in words; empty where they are exact.
pub(super) fn trust(placement: &Placement) -> String {
    let mut words = String::new();
    if let Some(margins) = &placement.margin_by_node_bytes {
        let unsure = margins.iter().filter(|(_, bytes)| **bytes > 0);
        let unsure: Vec<String> = unsure
            .map(|(node, bytes)| format!("node {node} ±{}", format::bytes(*bytes)))
            .collect();
        if !unsure.is_empty() {
            let _ = write!(words, "; ~ a sample, 95 %: {}", unsure.join(", "));
        }
    }
    if let Some(percent) = placement.seen_percent() {
        let _ = write!(words, "; {percent} % of its addresses looked at so far");
    }
    words
}
