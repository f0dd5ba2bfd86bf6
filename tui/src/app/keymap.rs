//! Which key does what: one table for the state machine, the footer and the help screen.

use super::key::Key;

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
    Open,
    Back,
    NextProcess,
    PreviousProcess,
    SortRight,
    SortLeft,
    Reverse,
    Filter,
    Findings,
    Topology,
    Pause,
    Signals,
    Help,
    Quit,
}

/// Where a binding holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Everywhere,
    Table,
    /// Every view over the table.
    Page,
    Detail,
}

/// One line of the key table.
pub(crate) struct Binding {
    pub(crate) keys: &'static [Key],
    pub(crate) scope: Scope,
    pub(crate) command: Command,
    /// The keys as the help screen writes them, with their counterparts; empty: told elsewhere.
    pub(crate) label: &'static str,
    /// What it does, for the help screen.
    pub(crate) does: &'static str,
    /// Its entry in the footer.
    pub(crate) hint: Option<&'static str>,
}

const fn bind(
    keys: &'static [Key],
    scope: Scope,
    command: Command,
    label: &'static str,
    does: &'static str,
    hint: Option<&'static str>,
) -> Binding {
    Binding {
        keys,
        scope,
        command,
        label,
        does,
        hint,
    }
}

/// Every binding; the first that matches counts.
pub(crate) const BINDINGS: &[Binding] = &[
    bind(
        &[Key::Up, Key::Char('k')],
        Scope::Everywhere,
        Command::Up,
        "↑↓ k j",
        "one row up or down",
        None,
    ),
    bind(
        &[Key::Down, Key::Char('j')],
        Scope::Table,
        Command::Down,
        "",
        "",
        Some("↑↓ select"),
    ),
    bind(
        &[Key::Down, Key::Char('j')],
        Scope::Page,
        Command::Down,
        "",
        "",
        Some("↑↓ scroll"),
    ),
    bind(
        &[Key::PageUp, Key::Ctrl('b')],
        Scope::Everywhere,
        Command::PageUp,
        "PgUp PgDn",
        "one page up or down",
        None,
    ),
    bind(
        &[Key::PageDown, Key::Ctrl('f')],
        Scope::Everywhere,
        Command::PageDown,
        "",
        "",
        None,
    ),
    bind(
        &[Key::Home, Key::Char('g')],
        Scope::Everywhere,
        Command::First,
        "Home End",
        "to the first row or the last; so do g and G",
        None,
    ),
    bind(
        &[Key::End, Key::Char('G')],
        Scope::Everywhere,
        Command::Last,
        "",
        "",
        None,
    ),
    bind(
        &[Key::Enter],
        Scope::Table,
        Command::Open,
        "Enter",
        "all that is known of the selected process",
        Some("Enter detail"),
    ),
    bind(
        &[Key::Esc, Key::Backspace, Key::Enter],
        Scope::Page,
        Command::Back,
        "Esc Enter",
        "back to the table",
        Some("Esc back"),
    ),
    bind(
        &[Key::Right, Key::Char('n')],
        Scope::Detail,
        Command::NextProcess,
        "← → p n",
        "in the detail: the process before or after",
        Some("←→ process"),
    ),
    bind(
        &[Key::Left, Key::Char('p')],
        Scope::Detail,
        Command::PreviousProcess,
        "",
        "",
        None,
    ),
    bind(
        &[Key::Char('s'), Key::Char('>'), Key::Right],
        Scope::Table,
        Command::SortRight,
        "s > <",
        "sort by the next column to the right, or to the left; so do → and ←",
        Some("s sort"),
    ),
    bind(
        &[Key::Char('<'), Key::Left],
        Scope::Table,
        Command::SortLeft,
        "",
        "",
        None,
    ),
    bind(
        &[Key::Char('S'), Key::Char('r')],
        Scope::Table,
        Command::Reverse,
        "S r",
        "turn the order round",
        Some("S reverse"),
    ),
    bind(
        &[Key::Char('/')],
        Scope::Table,
        Command::Filter,
        "/",
        "show only rows that have these words: engine, role, model, command or PID",
        Some("/ filter"),
    ),
    // Only the filter has anything to undo at the table.
    bind(
        &[Key::Esc],
        Scope::Table,
        Command::Back,
        "Esc",
        "drop the filter",
        None,
    ),
    bind(
        &[Key::Char('f')],
        Scope::Everywhere,
        Command::Findings,
        "f",
        "the findings on every process, and what to type",
        Some("f findings"),
    ),
    bind(
        &[Key::Char('t')],
        Scope::Everywhere,
        Command::Topology,
        "t",
        "the machine: nodes, GPUs and NICs, and what lies between them",
        Some("t topology"),
    ),
    bind(
        &[Key::Char('i')],
        Scope::Everywhere,
        Command::Signals,
        "i",
        "the signals: what each is measured by, and why one is missing",
        Some("i signals"),
    ),
    bind(
        &[Key::Char(' ')],
        Scope::Everywhere,
        Command::Pause,
        "Space",
        "hold the picture, and let it go again",
        Some("Space pause"),
    ),
    bind(
        &[Key::Char('?'), Key::Char('h')],
        Scope::Everywhere,
        Command::Help,
        "? h",
        "this page",
        Some("? help"),
    ),
    bind(
        &[Key::Char('q'), Key::Ctrl('c')],
        Scope::Everywhere,
        Command::Quit,
        "q Ctrl-C",
        "quit",
        Some("q quit"),
    ),
];

/// Where the user is, as far as keys go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The table itself, or a view over it.
    pub(crate) table: bool,
    /// The detail view.
    pub(crate) detail: bool,
}

impl Binding {
    /// Whether it holds there.
    pub(crate) fn holds(&self, place: Place) -> bool {
        match self.scope {
            Scope::Everywhere => true,
            Scope::Table => place.table,
            Scope::Page => !place.table,
            Scope::Detail => place.detail,
        }
    }
}

/// What a key means there.
pub(crate) fn command(key: Key, place: Place) -> Option<Command> {
    BINDINGS
        .iter()
        .find(|b| b.holds(place) && b.keys.contains(&key))
        .map(|b| b.command)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACES: [Place; 3] = [
        Place {
            table: true,
            detail: false,
        },
        Place {
            table: false,
            detail: true,
        },
        Place {
            table: false,
            detail: false,
        },
    ];

    #[test]
    fn no_key_means_two_things_in_one_place() {
        for place in PLACES {
            let mut seen = Vec::new();
            for binding in BINDINGS.iter().filter(|b| b.holds(place)) {
                for key in binding.keys {
                    assert!(!seen.contains(key), "{key:?} twice in {place:?}");
                    seen.push(*key);
                }
            }
        }
    }

    #[test]
    fn quit_and_help_work_everywhere() {
        for place in PLACES {
            assert_eq!(command(Key::Char('q'), place), Some(Command::Quit));
            assert_eq!(command(Key::Ctrl('c'), place), Some(Command::Quit));
            assert_eq!(command(Key::Char('?'), place), Some(Command::Help));
        }
    }
}
