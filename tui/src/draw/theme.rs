//! What colours mean here; without colour every screen says the same by words and glyphs.

use crate::app::{Nodes, Tone};
use model::finding::Severity;
use model::link::Link;
use model::signal::SignalState;
use model::topology::NodeId;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;

/// Distinct on dark and light grounds, and none of them a verdict's green, yellow or red.
const NODES: [Color; 8] = [
    Color::Indexed(39),
    Color::Indexed(208),
    Color::Indexed(141),
    Color::Indexed(37),
    Color::Indexed(205),
    Color::Indexed(137),
    Color::Indexed(69),
    Color::Indexed(107),
];

/// The styles.
pub(crate) struct Theme {
    colour: bool,
}

impl Theme {
    pub(crate) fn new(colour: bool) -> Self {
        Self { colour }
    }

    fn coloured(&self, style: Style, colour: Color) -> Style {
        if self.colour { style.fg(colour) } else { style }
    }

    /// A meaning's style.
    pub(crate) fn tone(&self, tone: Tone) -> Style {
        let style = Style::new();
        match tone {
            Tone::Plain => style,
            Tone::Faint => style.add_modifier(Modifier::DIM),
            Tone::Strong => style.add_modifier(Modifier::BOLD),
            Tone::Good => self.coloured(style, Color::Green),
            Tone::Warn => self.coloured(style, Color::Yellow),
            Tone::Bad => self.coloured(style.add_modifier(Modifier::BOLD), Color::Red),
        }
    }

    /// A text with a meaning.
    pub(crate) fn span(&self, text: impl Into<String>, tone: Tone) -> Span<'static> {
        Span::styled(text.into(), self.tone(tone))
    }

    /// A node's colour; among many they repeat, the digits don't.
    pub(crate) fn node(&self, nodes: &Nodes, id: NodeId) -> Style {
        match nodes.index(id) {
            Some(index) => self.coloured(Style::new(), NODES[index % NODES.len()]),
            None => self.tone(Tone::Faint),
        }
    }

    /// Column titles.
    pub(crate) fn title(&self) -> Style {
        self.tone(Tone::Strong).add_modifier(Modifier::UNDERLINED)
    }

    /// What the cursor is on; works on any ground.
    pub(crate) fn selected(style: Style) -> Style {
        style.add_modifier(Modifier::REVERSED)
    }

    /// A key's name in the footer and the help screen.
    pub(crate) fn key(&self) -> Style {
        self.coloured(self.tone(Tone::Strong), Color::Cyan)
    }
}

/// A signal's state as one character.
pub(crate) fn state_glyph(state: SignalState) -> &'static str {
    match state {
        SignalState::Attached => "●",
        SignalState::Degraded => "◐",
        SignalState::Unreliable => "!",
        SignalState::Unavailable => "○",
    }
}

/// What a state means for the reader.
pub(crate) fn state_tone(state: SignalState) -> Tone {
    match state {
        SignalState::Attached => Tone::Good,
        SignalState::Degraded => Tone::Warn,
        SignalState::Unreliable => Tone::Bad,
        SignalState::Unavailable => Tone::Faint,
    }
}

/// What a finding's severity means for the reader.
pub(crate) fn severity_tone(severity: Severity) -> Tone {
    match severity {
        Severity::Info => Tone::Plain,
        Severity::Warn => Tone::Warn,
        Severity::Fail => Tone::Bad,
    }
}

/// How near two devices are.
pub(crate) fn link_tone(link: Link) -> Tone {
    match link {
        Link::Itself | Link::Unknown => Tone::Faint,
        Link::NvLink(_) | Link::Pix | Link::Pxb => Tone::Good,
        Link::Phb | Link::Node => Tone::Warn,
        Link::Sys => Tone::Bad,
    }
}
