//! Turns the terminal's events into the state machine's.

use crate::app::{Event, Key};
use crossterm::event::{self, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// The event that the state machine knows, if it is one.
pub(crate) fn translate(event: &event::Event) -> Option<Event> {
    match event {
        event::Event::Key(key) => self::key(key).map(Event::Key),
        event::Event::Resize(width, height) => Some(Event::Resize(*width, *height)),
        _ => None,
    }
}

fn key(event: &KeyEvent) -> Option<Key> {
    // Terminals with the kitty protocol also report releases.
    if event.kind == KeyEventKind::Release {
        return None;
    }
    Some(match event.code {
        KeyCode::Char(c) if event.modifiers.contains(KeyModifiers::CONTROL) => {
            Key::Ctrl(c.to_ascii_lowercase())
        }
        KeyCode::Char(c) if !event.modifiers.contains(KeyModifiers::ALT) => Key::Char(c),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Esc,
        KeyCode::Backspace => Key::Backspace,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_alt_and_releases_are_no_plain_characters() {
        let with = |code, modifiers| key(&KeyEvent::new(code, modifiers));
        assert_eq!(
            with(KeyCode::Char('q'), KeyModifiers::NONE),
            Some(Key::Char('q'))
        );
        assert_eq!(
            with(KeyCode::Char('S'), KeyModifiers::SHIFT),
            Some(Key::Char('S'))
        );
        assert_eq!(
            with(KeyCode::Char('c'), KeyModifiers::CONTROL),
            Some(Key::Ctrl('c'))
        );
        assert_eq!(with(KeyCode::Char('q'), KeyModifiers::ALT), None);
        let mut released = KeyEvent::new(KeyCode::Char('q'), KeyModifiers::NONE);
        released.kind = KeyEventKind::Release;
        assert_eq!(key(&released), None);
    }
}
