//! Paints a table's cell into an exact width.

use super::text;
use super::theme::Theme;
use crate::app::{Align, Cell, Nodes, Tone, apportion, format};
use model::topology::NodeId;
use ratatui::text::Span;

/// Shorter bars say nothing.
const BAR_MIN: usize = 6;
/// A share in eighths.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The cell's spans, together exactly `width` columns.
pub(crate) fn spans(
    cell: &Cell,
    width: usize,
    align: Align,
    nodes: &Nodes,
    theme: &Theme,
) -> Vec<Span<'static>> {
    match cell {
        Cell::Text { forms, tone } => {
            let forms: Vec<String> = forms.iter().map(|f| text::clean(f)).collect();
            let shown = text::first_fitting(&forms, width);
            let padded = match align {
                Align::Left => text::left(&shown, width),
                Align::Right => text::right(&shown, width),
            };
            vec![theme.span(padded, *tone)]
        }
        Cell::Nodes {
            shares,
            seen,
            number,
            number_width,
        } => {
            let number_width = usize::from(*number_width);
            let tone = if number == format::NO_SIGNAL {
                Tone::Faint
            } else {
                Tone::Plain
            };
            let bar_width = width.saturating_sub(number_width + 1);
            if bar_width < BAR_MIN {
                return vec![theme.span(text::right(number, width), tone)];
            }
            let mut spans = match seen.filter(|_| shares.is_some()) {
                Some(percent) => {
                    let seen = seen_cells(percent, bar_width);
                    let mut spans = bar(shares.as_deref(), seen, nodes, theme);
                    spans.push(theme.span("·".repeat(bar_width - seen), Tone::Faint));
                    spans
                }
                None => bar(shares.as_deref(), bar_width, nodes, theme),
            };
            spans.push(theme.span(format!(" {}", text::right(number, number_width)), tone));
            spans
        }
        Cell::Trend(shares) => {
            let shown: String = shares.iter().map(|s| level(*s)).collect();
            // The newest is at the right edge, whatever the history's length.
            vec![theme.span(text::right(&shown, width), Tone::Plain)]
        }
        Cell::Verdict {
            word,
            tone,
            sentences,
        } => verdict(word, *tone, sentences, width, theme),
    }
}

/// A bar divided among nodes; `-` where their shares are unknown, dots where there is nothing to
/// divide.
pub(crate) fn bar(
    shares: Option<&[(NodeId, f64)]>,
    width: usize,
    nodes: &Nodes,
    theme: &Theme,
) -> Vec<Span<'static>> {
    let Some(shares) = shares else {
        return vec![theme.span(text::left(format::NO_SIGNAL, width), Tone::Faint)];
    };
    let cells = apportion(shares, width);
    if cells.is_empty() {
        return vec![theme.span("·".repeat(width), Tone::Faint)];
    }
    cells
        .into_iter()
        .filter(|(_, n)| *n > 0)
        .map(|(node, n)| {
            let glyphs = nodes.glyph(node).to_string().repeat(n);
            Span::styled(glyphs, theme.node(nodes, node))
        })
        .collect()
}

/// The part of a bar for what was looked at: something of it, and never all.
fn seen_cells(percent: u64, width: usize) -> usize {
    let percent = usize::try_from(percent).unwrap_or(100);
    (width * percent / 100).clamp(1, width - 1)
}

fn level(share: Option<f64>) -> char {
    let Some(share) = share.filter(|s| s.is_finite()) else {
        return '·';
    };
    let at = crate::app::filled(share, LEVELS.len() - 1);
    LEVELS.get(at).copied().unwrap_or('·')
}

fn verdict(
    word: &str,
    tone: Tone,
    sentences: &[String],
    width: usize,
    theme: &Theme,
) -> Vec<Span<'static>> {
    const WORD: usize = "unknown".len();
    let free = width.saturating_sub(WORD + 1);
    let said = sentences.iter().find(|s| text::width(s) <= free);
    match said {
        Some(said) => vec![
            theme.span(text::left(word, WORD), tone),
            theme.span(
                format!(" {}", text::left(&text::clean(said), free)),
                Tone::Plain,
            ),
        ],
        None => vec![theme.span(text::left(word, width), tone)],
    }
}
