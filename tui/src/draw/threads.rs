//! The threads of a process, the busiest first.

use super::cells;
use super::page::rule;
use super::text;
use super::theme::Theme;
use crate::app::{Nodes, Pair, Row, Tone, format};
use model::process::{ByNode, Thread};
use ratatui::text::{Line, Span};

/// More aren't read by anyone; the line below says how many there are.
const LISTED: usize = 1000;
/// The bar of CPU time by node.
const BAR: usize = 10;

/// Title, column titles and a line a thread.
pub(crate) fn lines(
    row: &Row<'_>,
    pair: &Pair,
    nodes: &Nodes,
    theme: &Theme,
    width: usize,
) -> Vec<Line<'static>> {
    let threads = &row.now.threads;
    let title = format::plural(threads.len(), "thread", "threads");
    let mut lines = vec![rule(&title, width, theme)];
    if threads.is_empty() {
        return lines;
    }
    lines.push(Line::from(theme.span(
        format!(
            "  {} {} {} {} {} {} {} {}",
            text::right("TID", 8),
            text::left("NAME", 15),
            text::right("CPU now", 7),
            text::left("by node", BAR),
            text::right("CPU time", 9),
            text::right("MOVES", 7),
            text::right("MOVE/s", 7),
            text::right("SCAN/s", 7),
        ),
        Tone::Strong,
    )));
    let now = |thread: &Thread| {
        let shares = row.thread_cpu_by_node(thread);
        shares.map(|s| s.iter().map(|(_, v)| v).sum::<f64>())
    };
    let mut sorted: Vec<(Option<f64>, &Thread)> = threads.iter().map(|t| (now(t), t)).collect();
    sorted.sort_by(|a, b| {
        let (x, y) = (a.0.unwrap_or(-1.0), b.0.unwrap_or(-1.0));
        y.total_cmp(&x).then(a.1.tid.cmp(&b.1.tid))
    });
    for (cpu, thread) in sorted.into_iter().take(LISTED) {
        let time = thread.cpu_time_ns_by_node.as_ref();
        // Its whole life: most threads do nothing within one tick.
        let shares = time.map(|t| t.iter().map(|(n, v)| (*n, *v as f64)).collect::<Vec<_>>());
        let mut spans = vec![Span::raw(format!(
            "  {} {} {} ",
            text::right(&thread.tid.to_string(), 8),
            text::left(&text::clean(&thread.name), 15),
            text::right(&format::or_dash(cpu, format::cpu), 7),
        ))];
        spans.extend(cells::bar(shares.as_deref(), BAR, nodes, theme));
        let moves = row.thread_rate(thread, |t| t.moves);
        let scan = row.thread_rate(thread, |t| t.scan_time_ns);
        spans.push(Span::raw(format!(
            " {} {} {} {}",
            text::right(&format::or_dash(time.map(sum), format::duration), 9),
            text::right(&format::or_dash(thread.moves, format::count), 7),
            text::right(&format::or_dash(moves, format::rate), 7),
            text::right(&format::or_dash(scan, format::ns_per_second), 7),
        )));
        lines.push(Line::from(spans));
    }
    if threads.len() > LISTED {
        let rest = format!("  + {} more threads", threads.len() - LISTED);
        lines.push(Line::from(theme.span(rest, Tone::Faint)));
    }
    if pair.before.is_none() {
        let said = "  rates come with the second snapshot";
        lines.push(Line::from(theme.span(said, Tone::Faint)));
    }
    lines
}

fn sum(by_node: &ByNode) -> u64 {
    by_node.values().fold(0, |sum, v| sum.saturating_add(*v))
}
