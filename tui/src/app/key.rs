//! The keys that the dashboard knows.

/// A pressed key, whatever terminal it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// A character, shift applied.
    Char(char),
    /// A lower-case letter with control.
    Ctrl(char),
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    Enter,
    Esc,
    Backspace,
}
