//! Who touched whose memory: a matrix of nodes for each kind of pair.

use super::page::rule;
use super::text;
use super::theme::Theme;
use crate::app::{Pair, Tone, format};
use model::locality::Locality;
use model::process::{Process, TouchPair};
use model::topology::{NodeId, Topology};
use ratatui::text::{Line, Span};
use std::collections::{BTreeMap, BTreeSet};

/// A matrix's column.
const COLUMN: usize = 9;
/// Its rows' titles.
const HEAD: usize = 12;
/// Pairs listed where a matrix has no room.
const LISTED: usize = 12;

/// Pairs of nodes and how much passed between them.
type Cells = BTreeMap<(NodeId, NodeId), u64>;

/// One kind of pair.
struct Matrix {
    title: &'static str,
    /// What a row's node is, and what a column's.
    rows: &'static str,
    columns: &'static str,
    /// `None` without a signal.
    cells: Option<Cells>,
}

/// The matrices of all kinds.
pub(crate) fn lines(
    process: &Process,
    pair: &Pair,
    theme: &Theme,
    width: usize,
) -> Vec<Line<'static>> {
    let touches = &process.touches;
    let of_touches = |title, pairs: Option<&Vec<TouchPair>>| Matrix {
        title,
        rows: "CPU",
        columns: "memory",
        cells: pairs.map(|pairs| {
            pairs
                .iter()
                .map(|p| ((p.cpu_node, p.memory_node), p.pages))
                .collect()
        }),
    };
    let matrices = [
        of_touches("first-touch pages", touches.first_touch.by_pair.as_ref()),
        of_touches("map pages", touches.map.by_pair.as_ref()),
        of_touches("hint pages", touches.hint.counter.by_pair.as_ref()),
        Matrix {
            title: "migrated pages",
            rows: "from",
            columns: "to",
            cells: process
                .migrations
                .by_pair
                .as_ref()
                .map(|pairs| pairs.iter().map(|p| ((p.from, p.to), p.pages)).collect()),
        },
        Matrix {
            title: "thread moves",
            rows: "from",
            columns: "to",
            cells: process
                .moves
                .by_pair
                .as_ref()
                .map(|pairs| pairs.iter().map(|p| ((p.from, p.to), p.count)).collect()),
        },
    ];
    let topology = &pair.now.topology;
    let mut lines = vec![rule("pairs of nodes, since tracked", width, theme)];
    for matrix in &matrices {
        lines.extend(one(matrix, topology, theme, width));
    }
    lines
}

fn one(matrix: &Matrix, topology: &Topology, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let titled = |said: &str| {
        Line::from(vec![
            theme.span(format!("  {}", text::left(matrix.title, 20)), Tone::Strong),
            theme.span(said.to_owned(), Tone::Faint),
        ])
    };
    let Some(cells) = &matrix.cells else {
        return vec![titled(format::NO_SIGNAL)];
    };
    if cells.values().all(|v| *v == 0) {
        return vec![titled("none")];
    }
    let mut ids: BTreeSet<NodeId> = topology.nodes.iter().map(|n| n.id).collect();
    ids.extend(cells.keys().flat_map(|(a, b)| [a, b]));
    let way = format!("{} node ↓, {} node →", matrix.rows, matrix.columns);
    if 2 + HEAD + ids.len() * COLUMN > width {
        let mut lines = vec![titled("the most")];
        lines.extend(most(matrix, cells, topology, theme));
        return lines;
    }
    let mut lines = vec![titled(&way)];
    let heads: String = ids
        .iter()
        .map(|id| text::right(&format!("node {id}"), COLUMN))
        .collect();
    lines.push(Line::from(
        theme.span(format!("{:1$}{heads}", "", 2 + HEAD), Tone::Faint),
    ));
    for row in &ids {
        let mut spans = vec![theme.span(
            format!("  {}", text::left(&format!("    node {row}"), HEAD)),
            Tone::Faint,
        )];
        for column in &ids {
            let value = cells.get(&(*row, *column)).copied().unwrap_or(0);
            let tone = tone(value, topology.locality(*row, *column));
            spans.push(theme.span(text::right(&format::count(value), COLUMN), tone));
        }
        lines.push(Line::from(spans));
    }
    lines
}

/// The pairs with the most, where the matrix is too wide.
fn most(matrix: &Matrix, cells: &Cells, topology: &Topology, theme: &Theme) -> Vec<Line<'static>> {
    let mut sorted: Vec<(&(NodeId, NodeId), &u64)> = cells.iter().filter(|c| *c.1 > 0).collect();
    sorted.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    let all = sorted.len();
    let mut lines: Vec<Line<'static>> = sorted
        .into_iter()
        .take(LISTED)
        .map(|((row, column), value)| {
            let locality = topology.locality(*row, *column);
            Line::from(vec![
                Span::raw(format!(
                    "      {}",
                    text::left(
                        &format!("{} {row} → {} {column}", matrix.rows, matrix.columns),
                        22
                    )
                )),
                theme.span(
                    text::right(&format::count(*value), 8),
                    tone(*value, locality),
                ),
                theme.span(format!("  {}", locality.as_str()), Tone::Faint),
            ])
        })
        .collect();
    if all > LISTED {
        let rest = format!("      + {} more pairs", all - LISTED);
        lines.push(Line::from(theme.span(rest, Tone::Faint)));
    }
    lines
}

fn tone(value: u64, locality: Locality) -> Tone {
    match (value, locality) {
        (0, _) => Tone::Faint,
        (_, Locality::Local) => Tone::Good,
        (_, Locality::SameSocket) => Tone::Warn,
        (_, Locality::CrossSocket) => Tone::Bad,
    }
}
