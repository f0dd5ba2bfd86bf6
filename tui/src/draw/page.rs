//! A text longer than the screen, with its scroll position.

use super::theme::Theme;
use crate::app::{Extent, Tone};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

/// Paints the lines from `scroll` on. Where they don't all fit, the last line says which are seen.
pub(crate) fn paint(
    frame: &mut Frame<'_>,
    area: Rect,
    lines: Vec<Line<'static>>,
    scroll: usize,
    theme: &Theme,
) -> Extent {
    let height = usize::from(area.height);
    let total = lines.len();
    if total <= height {
        super::paint(frame, area, &lines);
        return Extent {
            lines: total,
            page: height,
        };
    }
    let page = height.saturating_sub(1);
    // The text may have become shorter since the last key.
    let first = scroll.min(total - page);
    let mut seen: Vec<Line<'static>> = lines.into_iter().skip(first).take(page).collect();
    let up = if first > 0 { '↑' } else { ' ' };
    let down = if first + page < total { '↓' } else { ' ' };
    let position = format!("{up}{down} lines {}-{} of {total}", first + 1, first + page);
    seen.push(Line::from(theme.span(position, Tone::Faint)));
    super::paint(frame, area, &seen);
    Extent { lines: total, page }
}

/// A section's title: words, and a rule to the right edge.
pub(crate) fn rule(title: &str, width: usize, theme: &Theme) -> Line<'static> {
    let title = super::text::fit(title, width.saturating_sub(4));
    let rest = width.saturating_sub(super::text::width(&title) + 4);
    Line::from(vec![
        theme.span("── ", Tone::Faint),
        theme.span(title, Tone::Strong),
        theme.span(format!(" {}", "─".repeat(rest)), Tone::Faint),
    ])
}
