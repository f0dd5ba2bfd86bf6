//! What a table's cell holds, before anyone knows how wide it will be.

use super::row::Shares;
use model::verdict::Verdict;

/// What a text means; the theme gives it a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Faint,
    Strong,
    Good,
    Warn,
    Bad,
}

impl Tone {
    pub(crate) fn of(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Local => Self::Good,
            Verdict::Mixed => Self::Warn,
            Verdict::Remote => Self::Bad,
            Verdict::Unknown => Self::Faint,
        }
    }
}

/// A cell's content.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    /// The first form that fits is shown: a short word is better than half a long one.
    Text { forms: Vec<String>, tone: Tone },
    /// A bar by node where there is room, and a number to its right.
    Nodes {
        shares: Option<Shares>,
        /// How much of it has been looked at, per cent, while that isn't all.
        seen: Option<u64>,
        number: String,
        /// Columns kept for the number, so that the bars line up.
        number_width: u16,
    },
    /// Shares over time, oldest first.
    Trend(Vec<Option<f64>>),
    /// A word, and the longest sentence that fits beside it.
    Verdict {
        word: &'static str,
        tone: Tone,
        sentences: Vec<String>,
    },
}

impl Cell {
    /// A text with one form; `-` is faint.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        let tone = if text == super::format::NO_SIGNAL {
            Tone::Faint
        } else {
            Tone::Plain
        };
        Self::Text {
            forms: vec![text],
            tone,
        }
    }
}
