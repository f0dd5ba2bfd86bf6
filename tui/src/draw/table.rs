//! The table of processes, and what stands there while there are none.

use super::cells;
use super::page;
use super::text;
use super::theme::{self, Theme};
use crate::app::{Align, App, Column, ColumnId, Nodes, Picture, Tone, fitted, format};
use model::finding::Severity;
use model::signal::SignalState;
use model::snapshot::Snapshot;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use std::fmt::Write as _;

/// The space between columns, as spaces.
const GAP: &str = " ";

/// Title, column titles and rows.
pub(crate) fn lines(
    app: &App,
    picture: &Picture<'_>,
    theme: &Theme,
    area: Rect,
) -> Vec<Line<'static>> {
    let width = usize::from(area.width);
    let mut lines = vec![page::rule(&title(app, picture), width, theme)];
    if app.rows.is_empty() {
        lines.extend(empty(app, theme, width));
        return lines;
    }
    let columns = fitted(picture, area.width);
    lines.push(titles(app, picture, theme, &columns));
    let nodes = Nodes::of(&picture.pair.now);
    let page = usize::from(area.height).saturating_sub(lines.len());
    for (at, process) in app.rows.iter().enumerate().skip(app.offset).take(page) {
        if let Some(process) = picture.pair.now.processes.get(*process) {
            let row = picture.pair.row(process);
            let selected = at == app.selected;
            let mut spans = vec![Span::raw(if selected { "▸ " } else { "  " })];
            for (index, (column, width)) in columns.iter().enumerate() {
                if index > 0 {
                    spans.push(Span::raw(GAP));
                }
                let cell = (column.cell)(&row, picture);
                let mut painted =
                    cells::spans(&cell, usize::from(*width), column.align, &nodes, theme);
                if selected && matches!(column.id, ColumnId::Pid | ColumnId::Engine) {
                    for span in &mut painted {
                        span.style = Theme::selected(span.style);
                    }
                }
                spans.extend(painted);
            }
            let mut line = Line::from(spans);
            if !process.alive {
                line = line.patch_style(Style::new().add_modifier(Modifier::DIM));
            }
            lines.push(line);
        }
    }
    lines
}

/// How many there are, which are seen, and in what order.
fn title(app: &App, picture: &Picture<'_>) -> String {
    let all = picture.pair.now.processes.len();
    let shown = app.rows.len();
    let mut title = if app.filter.is_empty() {
        format::plural(all, "process", "processes")
    } else {
        format!("{shown} of {}", format::plural(all, "process", "processes"))
    };
    if shown > 0 {
        let column = crate::app::COLUMNS.iter().find(|c| c.id == app.sort.column);
        if let Some(column) = column {
            let _ = write!(title, ", by {} {}", (column.title)(picture), arrow(app));
        }
        if shown > app.table_rows() {
            let _ = write!(title, ", row {} of {shown}", app.selected + 1);
        }
    }
    title.push_str(&findings(&picture.pair.now));
    if !app.filter.is_empty() || app.filtering {
        let cursor = if app.filtering { "▏" } else { "" };
        let _ = write!(title, ", filter: {}{cursor}", text::clean(&app.filter));
    }
    title
}

/// `, findings: 3 fail, 1 warn (f)`: findings are counted, not processes. Nothing where nothing is wrong.
fn findings(snapshot: &Snapshot) -> String {
    let all = snapshot.all_findings();
    let count = |severity| all.iter().filter(|f| f.severity == severity).count();
    let parts: Vec<String> = [Severity::Fail, Severity::Warn]
        .into_iter()
        .map(|severity| (count(severity), severity))
        .filter(|(n, _)| *n > 0)
        .map(|(n, severity)| format!("{n} {}", severity.as_str()))
        .collect();
    match parts.len() {
        0 => String::new(),
        _ => format!(", findings: {} (f)", parts.join(", ")),
    }
}

fn arrow(app: &App) -> &'static str {
    if app.sort.descending { "▾" } else { "▴" }
}

fn titles(
    app: &App,
    picture: &Picture<'_>,
    theme: &Theme,
    columns: &[(&'static Column, u16)],
) -> Line<'static> {
    let mut spans = vec![Span::raw("  ")];
    for (index, (column, width)) in columns.iter().enumerate() {
        if index > 0 {
            spans.push(Span::raw(GAP));
        }
        let number = column.align_at(*width) == Align::Right;
        let width = usize::from(*width);
        let (mark, tone) = mark(column, picture);
        let arrow = if app.sort.column == column.id {
            arrow(app)
        } else {
            ""
        };
        let full = (column.title)(picture);
        // CPU and MEMORY lose their bars first, and then the words that explain these.
        let short = full.split(' ').next().unwrap_or(full);
        let room = width.saturating_sub(text::width(mark) + text::width(arrow));
        let title = if text::width(full) <= room {
            full
        } else {
            short
        };
        let used = text::width(title) + text::width(mark) + text::width(arrow);
        let pad = " ".repeat(width.saturating_sub(used));
        if number {
            spans.push(Span::raw(pad.clone()));
        }
        let style = if app.sort.column == column.id {
            Theme::selected(theme.title())
        } else {
            theme.title()
        };
        spans.push(Span::styled(title, style));
        spans.push(theme.span(mark, tone));
        spans.push(theme.span(arrow, Tone::Strong));
        if !number {
            spans.push(Span::raw(pad));
        }
    }
    Line::from(spans)
}

/// The state of the signal that a column stands on, where it isn't simply attached.
fn mark(column: &Column, picture: &Picture<'_>) -> (&'static str, Tone) {
    let signal = (column.signal)(picture).and_then(|name| picture.pair.now.signal(name));
    match signal.map(|s| s.state) {
        None | Some(SignalState::Attached) => ("", Tone::Plain),
        Some(state) => (theme::state_glyph(state), theme::state_tone(state)),
    }
}

/// No rows: why, and what to do.
fn empty(app: &App, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let paragraphs = if app.filter.is_empty() {
        vec![
            "No process to show yet.".to_owned(),
            format!("Looking for {}.", app.options.selection),
            "To watch others, start with --pid PID, with --match REGEX (on the command line), or with --all.".to_owned(),
        ]
    } else {
        vec![
            format!("No process has “{}”.", text::clean(&app.filter)),
            "Esc drops the filter.".to_owned(),
        ]
    };
    said(&paragraphs, theme, width)
}

/// Before the first snapshot: what it waits for.
pub(crate) fn waiting(app: &App, theme: &Theme, width: u16) -> Vec<Line<'static>> {
    let paragraphs = if app.feed.ended {
        vec![
            "Sampling ended before its first snapshot: there is nothing to show.".to_owned(),
            "q quits; the reason is in the log, or `numawatch doctor` tells it.".to_owned(),
        ]
    } else {
        vec![
            "Waiting for the first snapshot.".to_owned(),
            "The probes are loading, and the host is being read; this takes a second or two."
                .to_owned(),
        ]
    };
    said(&paragraphs, theme, usize::from(width))
}

fn said(paragraphs: &[String], theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let mut lines = vec![Line::default()];
    for (at, paragraph) in paragraphs.iter().enumerate() {
        let tone = if at == 0 { Tone::Strong } else { Tone::Plain };
        for line in text::wrap(paragraph, width.saturating_sub(4)) {
            lines.push(Line::from(theme.span(format!("  {line}"), tone)));
        }
    }
    lines
}
