//! The state machine: state and event in, state and action out.

use super::columns::{Column, Picture};
use super::feed::{Feed, Id, Pair};
use super::fit::fitted;
use super::history::History;
use super::key::Key;
use super::keymap::{self, Command, Place};
use super::layout::regions;
use super::order::{Sort, ordered};
use crate::options::Options;
use model::snapshot::Snapshot;
use std::sync::Arc;

/// Longer filters find nothing more.
const FILTER_MAX: usize = 200;

/// What happens to the dashboard.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Key(Key),
    /// Columns, lines.
    Resize(u16, u16),
    Snapshot(Arc<Snapshot>),
    /// No snapshot will come any more.
    SamplingEnded,
    /// A view was drawn, and this long it is.
    Drawn(Extent),
}

/// How long a scrollable view's text is, and how much of it is seen; lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) lines: usize,
    pub(crate) page: usize,
}

/// What the loop has to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Nothing,
    Redraw,
    Quit,
}

/// What covers the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    Table,
    Detail,
    Findings,
    Topology,
    Signals,
    Help,
}

/// The process of the detail view, with its last picture: it may have ended meanwhile.
#[derive(Clone, Debug)]
pub(crate) struct Detail {
    pub(crate) id: Id,
    pub(crate) pair: Pair,
}

/// Everything that the screen depends on.
pub(crate) struct App {
    pub(crate) options: Options,
    pub(crate) feed: Feed,
    pub(crate) history: History,
    pub(crate) view: View,
    /// What Esc leads back to from findings, topology, signals and help.
    below: View,
    pub(crate) detail: Option<Detail>,
    pub(crate) sort: Sort,
    pub(crate) filter: String,
    /// Whether keys go into the filter.
    pub(crate) filtering: bool,
    /// The table's rows, as indices into the shown snapshot.
    pub(crate) rows: Vec<usize>,
    /// Where the selection is in `rows`.
    pub(crate) selected: usize,
    /// Whom it follows.
    follows: Option<Id>,
    /// The first row on the screen.
    pub(crate) offset: usize,
    /// The first line on the screen of the view over the table.
    pub(crate) scroll: usize,
    extent: Extent,
    size: (u16, u16),
}

impl App {
    /// At the table, with nothing to show yet.
    pub(crate) fn new(options: Options, size: (u16, u16)) -> Self {
        Self {
            options,
            feed: Feed::default(),
            history: History::default(),
            view: View::Table,
            below: View::Table,
            detail: None,
            sort: Sort::default(),
            filter: String::new(),
            filtering: false,
            rows: Vec::new(),
            selected: 0,
            follows: None,
            offset: 0,
            scroll: 0,
            extent: Extent::default(),
            size,
        }
    }

    /// One step.
    pub(crate) fn apply(&mut self, event: Event) -> Action {
        match event {
            Event::Key(key) => self.key(key),
            Event::Resize(width, height) => {
                self.size = (width, height);
                self.keep_in_sight();
                Action::Redraw
            }
            Event::Snapshot(snapshot) => {
                self.history.record(&snapshot);
                self.feed.push(snapshot);
                if self.feed.paused() {
                    return Action::Nothing;
                }
                self.refresh();
                Action::Redraw
            }
            Event::SamplingEnded => {
                self.feed.ended = true;
                Action::Redraw
            }
            Event::Drawn(extent) => {
                self.extent = extent;
                self.scroll = self.scroll.min(self.last_scroll());
                Action::Nothing
            }
        }
    }

    /// Where the keys are taken to.
    pub(crate) fn place(&self) -> Place {
        Place {
            table: self.view == View::Table,
            detail: self.view == View::Detail,
        }
    }

    fn key(&mut self, key: Key) -> Action {
        if self.filtering {
            return self.key_in_filter(key);
        }
        let Some(command) = keymap::command(key, self.place()) else {
            return Action::Nothing;
        };
        if command == Command::Quit {
            return Action::Quit;
        }
        self.obey(command);
        Action::Redraw
    }

    fn key_in_filter(&mut self, key: Key) -> Action {
        match key {
            Key::Ctrl('c') => return Action::Quit,
            Key::Char(c) if self.filter.len() < FILTER_MAX => self.filter.push(c),
            Key::Ctrl('u') => self.filter.clear(),
            // As in less: taking back more than there is leaves the filter.
            Key::Backspace => self.filtering = self.filter.pop().is_some(),
            Key::Enter => self.filtering = false,
            Key::Esc => {
                self.filtering = false;
                self.filter.clear();
            }
            Key::Up => self.move_by(-1),
            Key::Down => self.move_by(1),
            _ => return Action::Nothing,
        }
        self.refresh();
        Action::Redraw
    }

    fn obey(&mut self, command: Command) {
        let page = isize::try_from(self.page()).unwrap_or(isize::MAX);
        match command {
            Command::Up => self.move_by(-1),
            Command::Down => self.move_by(1),
            Command::PageUp => self.move_by(-page),
            Command::PageDown => self.move_by(page),
            Command::First => self.move_by(isize::MIN),
            Command::Last => self.move_by(isize::MAX),
            Command::Open => self.open(),
            Command::Back => self.back(),
            Command::NextProcess => self.step_detail(1),
            Command::PreviousProcess => self.step_detail(-1),
            Command::SortRight => self.sort_by_neighbour(1),
            Command::SortLeft => self.sort_by_neighbour(-1),
            Command::Reverse => {
                self.sort.descending = !self.sort.descending;
                self.refresh();
            }
            Command::Filter => self.filtering = true,
            Command::Pause => {
                self.feed.toggle_pause();
                self.refresh();
            }
            Command::Findings => self.cover(View::Findings),
            Command::Topology => self.cover(View::Topology),
            Command::Signals => self.cover(View::Signals),
            Command::Help => self.cover(View::Help),
            // Answered before.
            Command::Quit => {}
        }
    }

    /// Shows a view over the table or the detail; the same key takes it away.
    fn cover(&mut self, view: View) {
        if self.view == view {
            self.back();
            return;
        }
        if matches!(self.view, View::Table | View::Detail) {
            self.below = self.view;
        }
        self.view = view;
        self.scroll = 0;
    }

    fn back(&mut self) {
        self.scroll = 0;
        match self.view {
            View::Table => {
                self.filter.clear();
                self.refresh();
            }
            View::Detail => {
                self.view = View::Table;
                self.detail = None;
            }
            View::Findings | View::Topology | View::Signals | View::Help => self.view = self.below,
        }
    }

    fn open(&mut self) {
        let Some(pair) = self.feed.shown() else {
            return;
        };
        let Some(id) = self.follows else {
            return;
        };
        self.detail = Some(Detail {
            id,
            pair: pair.clone(),
        });
        self.view = View::Detail;
        self.scroll = 0;
    }

    fn step_detail(&mut self, by: isize) {
        self.select_by(by);
        self.open();
    }

    fn sort_by_neighbour(&mut self, by: isize) {
        let columns = self.sortable();
        let here = columns.iter().position(|c| c.id == self.sort.column);
        let next = match here {
            Some(at) => at
                .checked_add_signed(by)
                .map_or(columns.len().saturating_sub(1), |n| {
                    n % columns.len().max(1)
                }),
            // The window shrank, and the column went.
            None => 0,
        };
        if let Some(column) = columns.get(next) {
            self.sort = Sort::by(column);
            self.refresh();
        }
    }

    /// The columns on the screen that can be sorted by.
    fn sortable(&self) -> Vec<&'static Column> {
        let Some(pair) = self.feed.shown() else {
            return Vec::new();
        };
        let picture = Picture {
            pair,
            history: &self.history,
        };
        fitted(&picture, self.size.0)
            .into_iter()
            .map(|(column, _)| column)
            .filter(|column| column.sort.is_some())
            .collect()
    }

    fn move_by(&mut self, by: isize) {
        if self.view == View::Table {
            self.select_by(by);
        } else {
            self.scroll = self
                .scroll
                .saturating_add_signed(by)
                .min(self.last_scroll());
        }
    }

    fn select_by(&mut self, by: isize) {
        let last = self.rows.len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(by).min(last);
        self.follows = self.id_at(self.selected);
        self.keep_in_sight();
    }

    fn id_at(&self, row: usize) -> Option<Id> {
        let at = *self.rows.get(row)?;
        self.feed.shown()?.now.processes.get(at).map(Id::of)
    }

    /// Rows, selection and detail after the picture, the order or the filter changed.
    fn refresh(&mut self) {
        let Some(pair) = self.feed.shown() else {
            return;
        };
        self.rows = ordered(pair, self.sort, &self.filter);
        let followed = self.follows.and_then(|id| {
            self.rows.iter().position(|at| {
                let process = pair.now.processes.get(*at);
                process.is_some_and(|p| Id::of(p) == id)
            })
        });
        if let Some(detail) = &mut self.detail
            && pair.find(detail.id).is_some()
        {
            detail.pair = pair.clone();
        }
        // Who is gone leaves the selection where it was.
        let last = self.rows.len().saturating_sub(1);
        self.selected = followed.unwrap_or(self.selected).min(last);
        self.follows = self.id_at(self.selected);
        self.keep_in_sight();
    }

    fn keep_in_sight(&mut self) {
        let page = self.table_rows();
        let highest = self.rows.len().saturating_sub(page);
        let least = (self.selected + 1).saturating_sub(page);
        self.offset = self
            .offset
            .clamp(least, self.selected.max(least))
            .min(highest);
    }

    /// How many processes the table has room for.
    pub(crate) fn table_rows(&self) -> usize {
        let nodes = self.feed.shown().map_or(0, |p| p.now.topology.nodes.len());
        usize::from(regions(self.size.0, self.size.1, nodes).rows).max(1)
    }

    fn page(&self) -> usize {
        if self.view == View::Table {
            self.table_rows()
        } else {
            self.extent.page.saturating_sub(1).max(1)
        }
    }

    fn last_scroll(&self) -> usize {
        self.extent.lines.saturating_sub(self.extent.page)
    }
}
