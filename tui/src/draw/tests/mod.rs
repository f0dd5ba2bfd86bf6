//! What is on the screen, at several sizes and over several hosts.

mod odd;
mod pages;
mod table;

use super::{Theme, draw};
use crate::app::{App, Event, Key};
use crate::made_up;
use crate::options::Options;
use model::snapshot::Snapshot;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::sync::Arc;

const SIZES: [(u16, u16); 3] = [(80, 24), (160, 50), (60, 15)];

fn app(snapshots: Vec<Snapshot>, size: (u16, u16)) -> App {
    let options = Options {
        selection: "inference engines".to_owned(),
        ..Options::default()
    };
    let mut app = App::new(options, size);
    for snapshot in snapshots {
        app.apply(Event::Snapshot(Arc::new(snapshot)));
    }
    app
}

fn two_nodes(size: (u16, u16)) -> App {
    app((0..10).map(made_up::two_nodes).collect(), size)
}

/// The screen's lines, without the spaces at their ends.
fn screen(app: &mut App, (width, height): (u16, u16), theme: &Theme) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let mut extent = super::Extent::default();
    terminal.draw(|f| extent = draw(f, app, theme)).unwrap();
    app.apply(Event::Drawn(extent));
    let buffer = terminal.backend().buffer();
    (0..height)
        .map(|y| {
            let line: String = (0..width).map(|x| buffer[(x, y)].symbol()).collect();
            line.trim_end().to_owned()
        })
        .collect()
}

fn plain(app: &mut App, size: (u16, u16)) -> Vec<String> {
    screen(app, size, &Theme::new(false))
}

fn has(lines: &[String], text: &str) -> bool {
    lines.iter().any(|l| l.contains(text))
}

fn press(app: &mut App, key: Key) {
    app.apply(Event::Key(key));
}

#[test]
fn a_weak_or_missing_signal_is_marked_where_its_numbers_stand() {
    let size = (160, 50);
    let mut one = app(vec![made_up::one_node(1), made_up::one_node(2)], size);
    let lines = plain(&mut one, size);
    assert!(has(&lines, "MIGR/s○") && has(&lines, "SCAN/s○"));
    assert!(has(&lines, "FIRST/s") && !has(&lines, "HINT/s"));
    assert!(has(&lines, "the host has one node"));
    press(&mut one, Key::Enter);
    let lines = plain(&mut one, size);
    assert!(has(
        &lines,
        "○ hint is unavailable: kernel.numa_balancing is 0"
    ));
    assert!(has(&lines, "◐ map is degraded: fentry is refused"));
}

#[test]
fn every_node_has_a_place_or_is_counted() {
    for size in SIZES {
        let snapshots = vec![made_up::sixteen_nodes(1)];
        let lines = plain(&mut app(snapshots, size), size);
        assert!(has(&lines, "16 nodes"), "{size:?}: {lines:#?}");
        let last = lines
            .iter()
            .take(12)
            .any(|l| l.contains("f ") || l.contains("more"));
        assert!(last, "{size:?}: {lines:#?}");
    }
}

#[test]
fn an_empty_screen_says_what_is_looked_for() {
    for size in SIZES {
        let mut snapshot = made_up::two_nodes(1);
        snapshot.processes.clear();
        let lines = plain(&mut app(vec![snapshot], size), size);
        for text in ["inference engines", "--pid", "--match", "--all"] {
            assert!(has(&lines, text), "{size:?}: {text}");
        }
        let lines = plain(&mut app(Vec::new(), size), size);
        assert!(has(&lines, "Waiting for the first snapshot"), "{size:?}");
        let mut ended = app(Vec::new(), size);
        ended.apply(Event::SamplingEnded);
        assert!(has(&plain(&mut ended, size), "SAMPLING ENDED"));
        let mut filtered = two_nodes(size);
        press(&mut filtered, Key::Char('/'));
        press(&mut filtered, Key::Char('%'));
        let lines = plain(&mut filtered, size);
        assert!(has(&lines, "No process has “%”"), "{size:?}");
    }
}

#[test]
fn paused_and_ended_are_said() {
    for size in SIZES {
        let mut app = two_nodes(size);
        press(&mut app, Key::Char(' '));
        app.apply(Event::SamplingEnded);
        let lines = plain(&mut app, size);
        assert!(lines[0].contains("PAUSED") && lines[0].contains("SAMPLING ENDED"));
        assert!(has(&lines, "48122"), "the last picture stays");
    }
}

#[test]
fn what_was_lost_is_in_the_header_and_named_among_the_signals() {
    for size in SIZES {
        let mut snapshot = made_up::two_nodes(2);
        snapshot.host.lost.rows = Some(40);
        snapshot.host.lost.events = Some(2);
        let mut app = app(vec![made_up::two_nodes(1), snapshot], size);
        let lines = plain(&mut app, size);
        assert!(lines[1].contains("42 LOST"), "{size:?}: {lines:?}");
    }
    let size = (160, 120);
    let mut snapshot = made_up::two_nodes(2);
    snapshot.host.lost.events = None;
    snapshot.host.lost.events_reason = Some("this kernel doesn't tell".to_owned());
    let mut app = app(vec![snapshot], size);
    press(&mut app, Key::Char('i'));
    let lines = plain(&mut app, size);
    for text in ["this kernel doesn't tell", "96 of 8"] {
        assert!(has(&lines, text), "{text}: {lines:?}");
    }
}

#[test]
fn no_colour_means_none() {
    let mut app = two_nodes((80, 24));
    for (colour, want) in [(false, false), (true, true)] {
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        let theme = Theme::new(colour);
        terminal.draw(|f| _ = draw(f, &app, &theme)).unwrap();
        let coloured =
            terminal.backend().buffer().content.iter().any(|c| {
                c.fg != ratatui::style::Color::Reset || c.bg != ratatui::style::Color::Reset
            });
        assert_eq!(coloured, want);
        press(&mut app, Key::Char('?'));
        press(&mut app, Key::Esc);
    }
}

#[test]
fn a_wide_header_says_what_the_probes_cost_by_estimate() {
    let size = (200, 50);
    let lines = plain(&mut two_nodes(size), size);
    assert!(has(&lines, "kernel ~0.1 % CPU 4.0 MiB"), "{}", lines[0]);
}

#[test]
fn a_node_shows_its_gpus_where_they_fit() {
    for (size, want) in [((160, 50), true), ((100, 30), true), ((60, 15), false)] {
        let lines = plain(&mut two_nodes(size), size);
        assert_eq!(has(&lines, "GPU 4 5 6 7"), want, "{size:?}: {lines:#?}");
    }
    let size = (160, 50);
    let mut app = two_nodes(size);
    assert!(has(&plain(&mut app, size), "2 nodes, 8 GPUs"));
    press(&mut app, Key::Enter);
    assert!(has(
        &plain(&mut app, size),
        "GPU4 0000:88:00.0 on node 1 (open files)"
    ));
}
