//! The state machine, driven without a terminal.

use super::columns::ColumnId;
use super::keymap::Command;
use super::{Action, App, Event, Extent, Key, View};
use crate::made_up;
use crate::options::Options;
use model::snapshot::Snapshot;
use std::sync::Arc;

fn app() -> App {
    App::new(Options::default(), (80, 24))
}

fn with(snapshot: Snapshot) -> App {
    let mut app = app();
    app.apply(Event::Snapshot(Arc::new(snapshot)));
    app
}

fn press(app: &mut App, keys: &[Key]) -> Action {
    let mut action = Action::Nothing;
    for key in keys {
        action = app.apply(Event::Key(*key));
    }
    action
}

fn typed(app: &mut App, text: &str) {
    for c in text.chars() {
        press(app, &[Key::Char(c)]);
    }
}

fn selected_pid(app: &App) -> Option<u32> {
    let at = *app.rows.get(app.selected)?;
    Some(app.feed.shown()?.now.processes.get(at)?.pid)
}

#[test]
fn every_key_is_safe_before_the_first_snapshot() {
    let mut app = app();
    for key in [
        Key::Up,
        Key::Down,
        Key::PageDown,
        Key::End,
        Key::Enter,
        Key::Char('s'),
        Key::Char('<'),
        Key::Char('S'),
        Key::Char(' '),
        Key::Esc,
    ] {
        assert_eq!(press(&mut app, &[key]), Action::Redraw, "{key:?}");
        assert_eq!(app.view, View::Table, "{key:?}");
    }
    assert!(!app.feed.paused(), "there is nothing to hold yet");
}

#[test]
fn q_and_control_c_quit_from_every_view_and_q_is_text_in_the_filter() {
    for opening in [
        None,
        Some(Key::Enter),
        Some(Key::Char('f')),
        Some(Key::Char('t')),
        Some(Key::Char('i')),
        Some(Key::Char('?')),
    ] {
        for quit in [Key::Char('q'), Key::Ctrl('c')] {
            let mut app = with(made_up::two_nodes(1));
            press(&mut app, opening.as_slice());
            assert_eq!(press(&mut app, &[quit]), Action::Quit, "{opening:?}");
        }
    }
    let mut app = with(made_up::two_nodes(1));
    assert_eq!(
        press(&mut app, &[Key::Char('/'), Key::Char('q')]),
        Action::Redraw
    );
    assert_eq!(app.filter, "q");
    assert_eq!(press(&mut app, &[Key::Ctrl('c')]), Action::Quit);
}

#[test]
fn who_pays_most_is_first_and_sorting_walks_the_columns_on_the_screen() {
    let mut app = with(made_up::two_nodes(1));
    assert_eq!(selected_pid(&app), Some(48122));
    assert_eq!(app.sort.column, ColumnId::Remote);
    press(&mut app, &[Key::Char('s')]);
    assert_eq!(
        app.sort.column,
        ColumnId::Verdict,
        "at 80 columns it is next"
    );
    press(&mut app, &[Key::Char('s')]);
    assert_eq!(app.sort.column, ColumnId::Pid, "and then the first again");
    assert!(!app.sort.descending);
    press(&mut app, &[Key::Char('<')]);
    assert_eq!(app.sort.column, ColumnId::Verdict);
    press(&mut app, &[Key::Char('S')]);
    assert!(!app.sort.descending, "it was descending by itself");
}

#[test]
fn the_selection_follows_the_process_and_not_the_row() {
    let mut app = with(made_up::two_nodes(1));
    press(&mut app, &[Key::Down]);
    let pid = selected_pid(&app);
    press(&mut app, &[Key::Char('S')]);
    assert_eq!(selected_pid(&app), pid, "after the order turned round");
    let mut snapshot = made_up::two_nodes(2);
    snapshot.processes.retain(|p| p.pid != 912);
    app.apply(Event::Snapshot(Arc::new(snapshot)));
    assert_eq!(selected_pid(&app), pid, "after another one went");

    let mut snapshot = made_up::two_nodes(3);
    for process in &mut snapshot.processes {
        // The pid came back as another process.
        process.start_time += u64::from(Some(process.pid) == pid);
    }
    let row = app.selected;
    app.apply(Event::Snapshot(Arc::new(snapshot)));
    assert_eq!(app.selected, row, "who is gone leaves the row selected");
}

#[test]
fn the_selection_stays_in_sight_and_in_range() {
    let mut app = with(made_up::many_processes(300));
    let page = app.table_rows();
    let in_sight = |app: &App| app.offset <= app.selected && app.selected < app.offset + page;
    press(&mut app, &[Key::End]);
    assert_eq!(app.selected, 299);
    assert!(in_sight(&app));
    press(&mut app, &[Key::PageUp]);
    assert_eq!(app.selected, 299 - page);
    assert!(in_sight(&app));
    press(&mut app, &[Key::Home, Key::Up]);
    assert_eq!((app.selected, app.offset), (0, 0));
    press(&mut app, &[Key::End]);
    app.apply(Event::Resize(60, 12));
    assert!(app.selected < app.offset + app.table_rows());
    app.apply(Event::Snapshot(Arc::new(made_up::many_processes(2))));
    assert!(app.selected < 2);
    let mut none = made_up::two_nodes(1);
    none.processes.clear();
    app.apply(Event::Snapshot(Arc::new(none)));
    assert_eq!(press(&mut app, &[Key::Down, Key::Enter]), Action::Redraw);
    assert_eq!(app.view, View::Table, "there is nobody to look at");
}

#[test]
fn the_filter_narrows_as_it_is_typed_and_escape_drops_it() {
    let mut app = with(made_up::two_nodes(1));
    press(&mut app, &[Key::Char('/')]);
    typed(&mut app, "vllm");
    assert_eq!(app.rows.len(), 3);
    press(&mut app, &[Key::Enter]);
    assert!(!app.filtering);
    assert_eq!(app.filter, "vllm", "Enter keeps it");
    press(&mut app, &[Key::Esc]);
    assert_eq!(app.rows.len(), 5, "Esc at the table drops it");
    press(&mut app, &[Key::Char('/')]);
    typed(&mut app, "nobody");
    assert!(app.rows.is_empty());
    for _ in 0.."nobody".len() {
        press(&mut app, &[Key::Backspace]);
    }
    assert!(app.filtering);
    press(&mut app, &[Key::Backspace]);
    assert!(!app.filtering, "nothing left to take back");
    press(&mut app, &[Key::Char('/')]);
    typed(&mut app, &"x".repeat(1000));
    assert!(app.filter.len() <= 200);
}

#[test]
fn pause_holds_both_snapshots_and_asks_for_no_redraw() {
    let mut app = with(made_up::two_nodes(1));
    app.apply(Event::Snapshot(Arc::new(made_up::two_nodes(2))));
    press(&mut app, &[Key::Char(' ')]);
    let held = app.feed.shown().unwrap().now.taken_at;
    let elapsed = app.feed.shown().unwrap().elapsed_ns();
    assert!(elapsed.is_some(), "rates need the one before");
    for tick in 3..9 {
        let snapshot = Arc::new(made_up::two_nodes(tick));
        assert_eq!(app.apply(Event::Snapshot(snapshot)), Action::Nothing);
    }
    assert_eq!(app.feed.shown().unwrap().now.taken_at, held);
    assert_eq!(app.feed.shown().unwrap().elapsed_ns(), elapsed);
    press(&mut app, &[Key::Char(' ')]);
    let shown = app.feed.shown().unwrap();
    assert_eq!(shown.now.taken_at, made_up::two_nodes(8).taken_at);
    assert_eq!(shown.elapsed_ns(), Some(1_000_000_000));
}

#[test]
fn the_detail_keeps_the_last_picture_of_who_ended() {
    let mut app = with(made_up::two_nodes(1));
    press(&mut app, &[Key::Enter]);
    assert_eq!(app.view, View::Detail);
    let id = app.detail.as_ref().unwrap().id;
    let mut snapshot = made_up::two_nodes(2);
    snapshot.processes.retain(|p| p.pid != id.pid);
    app.apply(Event::Snapshot(Arc::new(snapshot)));
    let detail = app.detail.as_ref().unwrap();
    assert!(detail.pair.find(id).is_some());
    press(&mut app, &[Key::Right]);
    assert_ne!(app.detail.as_ref().unwrap().id, id, "the next process");
    press(&mut app, &[Key::Esc]);
    assert_eq!(app.view, View::Table);
}

#[test]
fn views_over_others_lead_back_to_where_they_came_from() {
    let mut app = with(made_up::two_nodes(1));
    press(&mut app, &[Key::Enter, Key::Char('i'), Key::Char('?')]);
    assert_eq!(app.view, View::Help);
    press(&mut app, &[Key::Esc]);
    assert_eq!(app.view, View::Detail);
    for key in ['i', 'f', 't'] {
        press(&mut app, &[Key::Char(key), Key::Char(key)]);
        assert_eq!(app.view, View::Detail, "the same key takes {key} away");
    }
    press(&mut app, &[Key::Char('f')]);
    assert_eq!(app.view, View::Findings);
    press(&mut app, &[Key::Char('t')]);
    assert_eq!(app.view, View::Topology);
    press(&mut app, &[Key::Esc]);
    assert_eq!(app.view, View::Detail, "and not the one in between");
}

#[test]
fn a_page_scrolls_within_its_text() {
    let mut app = with(made_up::two_nodes(1));
    press(&mut app, &[Key::Char('?')]);
    app.apply(Event::Drawn(Extent {
        lines: 50,
        page: 20,
    }));
    press(&mut app, &[Key::End]);
    assert_eq!(app.scroll, 30);
    press(&mut app, &[Key::Down]);
    assert_eq!(app.scroll, 30);
    press(&mut app, &[Key::PageUp]);
    assert_eq!(app.scroll, 11);
    app.apply(Event::Drawn(Extent {
        lines: 10,
        page: 20,
    }));
    assert_eq!(app.scroll, 0, "the text became short");
}

#[test]
fn the_end_of_sampling_keeps_the_picture() {
    let mut app = with(made_up::two_nodes(1));
    assert_eq!(app.apply(Event::SamplingEnded), Action::Redraw);
    assert!(app.feed.ended && app.feed.shown().is_some());
}

#[test]
fn every_command_is_bound() {
    for command in [
        Command::NextProcess,
        Command::PreviousProcess,
        Command::SortLeft,
        Command::Pause,
        Command::Findings,
        Command::Topology,
        Command::Signals,
    ] {
        assert!(super::keymap::BINDINGS.iter().any(|b| b.command == command));
    }
}
