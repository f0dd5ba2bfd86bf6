//! What is on the screen, at several sizes and over several hosts.

use super::{Theme, draw};
use crate::app::{Align, App, ColumnId, Event, Key, Picture, fitted};
use crate::made_up;
use crate::options::Options;
use model::finding::Cleared;
use model::process::ByNode;
use model::snapshot::Snapshot;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::sync::Arc;
use unicode_width::UnicodeWidthStr;

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
fn one_glance_tells_who_pays_and_how_much() {
    for size in SIZES {
        let lines = plain(&mut two_nodes(size), size);
        let row = lines.iter().find(|l| l.contains("▸   48122")).unwrap();
        for text in ["vllm worker 1", "800 %", "60.9 GiB", "remote"] {
            assert!(row.contains(text), "{size:?}: {text} in {row}");
        }
        assert_eq!(row.contains(" 4@1 "), size.0 >= 80, "{size:?}: {row}");
        let estimate = lines.iter().find(|l| l.contains("51007")).unwrap();
        assert!(estimate.contains('~'), "{size:?}: {estimate}");
        let unknown = lines.iter().find(|l| l.contains(" 912 ")).unwrap();
        assert!(unknown.ends_with("unknown") || unknown.contains("unknown "));
        assert!(unknown.contains(" - "), "no share is a dash: {unknown}");
        assert!(has(&lines, "runs on"), "{size:?}: the sentence");
        assert!(has(&lines, "balancing on") && has(&lines, "self 0.3 % CPU"));
        assert!(has(&lines, "every 1 s") && has(&lines, "413/512 GiB"));
        assert!(lines.last().unwrap().ends_with("q quit"));
    }
}

#[test]
fn titles_stand_over_their_values_and_nothing_is_cut() {
    for (width, height) in [
        (60, 15),
        (80, 24),
        (100, 30),
        (120, 40),
        (160, 50),
        (240, 50),
    ] {
        for snapshots in [
            vec![made_up::two_nodes(1), made_up::two_nodes(2)],
            vec![made_up::one_node(1), made_up::one_node(2)],
            vec![made_up::sixteen_nodes(1), made_up::sixteen_nodes(2)],
            vec![made_up::nothing_known()],
        ] {
            let mut app = app(snapshots, (width, height));
            let lines = plain(&mut app, (width, height));
            let pair = app.feed.shown().unwrap();
            let picture = Picture {
                pair,
                history: &app.history,
            };
            let at = lines.iter().position(|l| l.contains("ENGINE")).unwrap();
            for line in &lines[at..=at + app.rows.len()] {
                let cells: Vec<char> = line.chars().chain(" ".repeat(300).chars()).collect();
                let mut x = 2;
                for (column, width) in fitted(&picture, width) {
                    let cell: String = cells[x..x + usize::from(width)].iter().collect();
                    let context = format!("{:?} at {width}: {cell:?} in\n{line}", column.id);
                    assert_eq!(cells[x + usize::from(width)], ' ', "{context}");
                    assert!(
                        !cell.contains('…') || column.id == ColumnId::Model,
                        "{context}"
                    );
                    if column.id != ColumnId::Trend {
                        match column.align_at(width) {
                            Align::Right => assert!(!cell.ends_with(' '), "{context}"),
                            Align::Left => assert!(!cell.starts_with(' '), "{context}"),
                        }
                    }
                    x += usize::from(width) + 1;
                }
            }
        }
    }
}

#[test]
fn at_160_columns_everything_is_there() {
    let size = (160, 50);
    let lines = plain(&mut two_nodes(size), size);
    for title in [
        "PID",
        "ENGINE",
        "MODEL",
        "CPU by node",
        "MEMORY by node",
        "REMOTE▾",
        "TREND",
        "HINT/s",
        "MOVE/s",
        "MIGR/s",
        "SCAN/s",
        "POLICY",
        "VERDICT",
    ] {
        assert!(has(&lines, title), "{title}");
    }
    for text in [
        "Linux 6.8.0-45-generic",
        "2 sockets, 2 nodes",
        "◐ map",
        "9.1 k",
        "2.2 k",
    ] {
        assert!(has(&lines, text), "{text}");
    }
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
fn what_is_not_known_is_a_dash_and_never_a_zero() {
    for size in SIZES {
        let mut app = app(
            vec![made_up::nothing_known(), made_up::nothing_known()],
            size,
        );
        for key in [None, Some(Key::Enter), Some(Key::Char('i'))] {
            if let Some(key) = key {
                press(&mut app, key);
            }
            let lines = plain(&mut app, size);
            assert!(has(&lines, "no balancing") || has(&lines, "balancing"));
            for line in lines.iter().skip(2).filter(|l| !l.starts_with("──")) {
                let words: Vec<&str> = line.split_whitespace().collect();
                let zero = words.contains(&"0");
                let node = words.contains(&"node") || words.contains(&"CPUs");
                assert!(!zero || node, "{size:?} {key:?}: {line}");
            }
        }
    }
}

#[test]
fn many_nodes_condense_and_stay_told_apart() {
    for size in SIZES {
        let snapshots = vec![made_up::sixteen_nodes(1), made_up::sixteen_nodes(2)];
        let lines = plain(&mut app(snapshots, size), size);
        assert!(has(&lines, "▸ 4194303"), "{size:?}");
        if size.0 == 160 {
            assert!(has(&lines, "f node 15"), "{size:?}");
        }
    }
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
fn too_small_is_one_sentence() {
    for size in [(1, 1), (10, 3), (59, 24), (80, 11)] {
        let lines = plain(&mut two_nodes(size), size);
        let all = lines.join(" ");
        assert!(size.0 < 20 || all.contains("terminal too small (need 60x12)"));
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

/// A host whose numbers make no sense.
fn absurd() -> Snapshot {
    let mut snapshot = made_up::two_nodes(1);
    let by_node = ByNode::from([(0, u64::MAX), (u32::MAX, u64::MAX)]);
    for (at, process) in snapshot.processes.iter_mut().enumerate() {
        process.pid = u32::MAX;
        process.start_time = at as u64;
        process.cpu_time_ns_by_node = Some(by_node.clone());
        process.placement.by_node_bytes = Some(by_node.clone());
        process.remote_share.value = Some([f64::NAN, f64::INFINITY, -1.0, 7.0][at % 4]);
        process.remote_share.pages = Some(u64::MAX);
        process.migrations.pages = Some(u64::MAX);
        process.command = "\x1b[31m模型\n".repeat(500);
        process.engine = Some("模".repeat(60));
        process.model = Some("/".repeat(9));
        process.policy = Some(String::new());
        process.threads.reverse();
    }
    for node in &mut snapshot.topology.nodes {
        node.memory_total_bytes = Some(0);
        node.memory_free_bytes = Some(u64::MAX);
        node.cpu_busy = Some(f64::NAN);
    }
    snapshot.host.agent.cpu_time_ns = Some(u64::MAX);
    snapshot.host.lost.rows = Some(u64::MAX);
    snapshot.host.lost.news = Some(u64::MAX);
    snapshot.host.lost.events = Some(u64::MAX);
    snapshot
}

#[test]
fn odd_data_and_odd_sizes_never_panic() {
    let mut no_nodes = made_up::two_nodes(1);
    no_nodes.topology.nodes.clear();
    no_nodes.signals.clear();
    let hosts = [absurd(), no_nodes, made_up::many_processes(300)];
    for snapshot in hosts {
        let mut before = made_up::two_nodes(0);
        before.processes.clone_from(&snapshot.processes);
        for size in [
            (60, 12),
            (61, 13),
            (80, 24),
            (133, 17),
            (300, 90),
            (80, 300),
        ] {
            let mut app = app(vec![before.clone(), snapshot.clone()], size);
            for key in [
                Key::Down,
                Key::Enter,
                Key::PageDown,
                Key::Char('i'),
                Key::End,
                Key::Char('f'),
                Key::End,
                Key::Char('t'),
                Key::PageDown,
                Key::Char('?'),
                Key::PageDown,
                Key::Esc,
                Key::Esc,
                Key::End,
                Key::Char('s'),
            ] {
                // Colours change no text: each screen in one of the two is enough.
                let theme = Theme::new(key == Key::Esc);
                for line in &screen(&mut app, size, &theme) {
                    assert!(!line.contains('\x1b') && !line.contains("NaN"));
                }
                press(&mut app, key);
            }
        }
    }
}

#[test]
fn the_detail_and_the_signals_fit_their_width_and_line_up() {
    for size in SIZES {
        let mut app = two_nodes(size);
        for key in [Key::Enter, Key::Char('i'), Key::Char('?')] {
            press(&mut app, key);
            let seen = whole(&mut app, size);
            for line in &seen {
                assert!(line.width() <= usize::from(size.0));
            }
            let want: &[&str] = match key {
                Key::Enter => &[
                    "first-touch pages",
                    "CPU node ↓, memory node →",
                    "5 threads",
                    "tokenizer",
                ],
                Key::Char('i') => &["task_numa_fault", "hint faults", "lost, maps full"],
                _ => &["quit", "VERDICT", "never a zero"],
            };
            for text in want {
                assert!(has(&seen, text), "{size:?} {key:?}: {text}\n{seen:#?}");
            }
        }
    }
}

#[test]
fn the_detail_says_what_memory_holds_where_and_how_sure_that_is() {
    let size = (100, 60);
    let mut app = two_nodes(size);
    press(&mut app, Key::Enter);
    let lines = plain(&mut app, size);
    for text in [
        "HOLDS",
        "weights",
        "large anonymous",
        "~ a sample, 95 %: node 0 ±896 MiB, node 1 ±78.4 MiB",
    ] {
        assert!(has(&lines, text), "{text}: {lines:#?}");
    }
    let weights = lines.iter().find(|line| line.contains("weights  "));
    assert!(weights.is_some_and(|line| line.contains('~')), "{lines:#?}");
}

#[test]
fn a_wide_table_says_the_first_finding_and_how_many_more_there_are() {
    for (size, want) in [((160, 50), true), ((132, 40), false), ((80, 24), false)] {
        let lines = plain(&mut two_nodes(size), size);
        let row = lines.iter().find(|l| l.contains("▸   48122")).unwrap();
        let said = row.ends_with("remote  memory-away-from-gpu +2");
        assert_eq!(said, want, "{size:?}: {row}");
        assert!(has(&lines, ", 3 fail, 1 warn: f ─"), "{size:?}: {lines:#?}");
    }
    let size = (240, 50);
    let lines = plain(&mut two_nodes(size), size);
    let words = "remote  92 % of its memory is away from GPU4 on node 1 +2";
    assert!(has(&lines, words), "{lines:#?}");
}

#[test]
fn the_selected_process_s_first_finding_is_told_below_the_table() {
    let words = "  FAIL 92 % of its memory is away from GPU4 on node 1; 2 more: Enter";
    for (size, want) in [((160, 50), true), ((80, 24), true), ((60, 15), false)] {
        let lines = plain(&mut two_nodes(size), size);
        assert_eq!(has(&lines, words), want, "{size:?}: {lines:#?}");
        assert!(has(&lines, "f findings"), "{size:?}: {lines:#?}");
    }
}

/// Every line of a page, scrolled through.
fn whole(app: &mut App, size: (u16, u16)) -> Vec<String> {
    let mut seen = Vec::new();
    for _ in 0..20 {
        seen.extend(plain(app, size));
        press(app, Key::PageDown);
    }
    seen
}

#[test]
fn all_findings_are_on_one_page_with_what_to_type() {
    for size in SIZES {
        let mut app = two_nodes(size);
        press(&mut app, Key::Char('f'));
        let first = plain(&mut app, size);
        assert!(
            first[2].starts_with("── 48122 vllm worker 1, remote ─"),
            "{}",
            first[2]
        );
        assert_eq!(first[3], "  FAIL  memory-away-from-gpu");
        let seen = whole(&mut app, size);
        for text in [
            "        type    numawatch launch --gpu 4 --",
            "        type    migratepages 48122 0 1",
            "── 51007 llama.cpp server, remote ─",
            "  WARN  threads-wander",
            "  INFO  pinning-buys-little",
            "── no finding ─",
            "  912 - python3, unknown: too few hint touches",
        ] {
            assert!(has(&seen, text), "{size:?}: {text}\n{seen:#?}");
        }
        assert!(!has(&seen, "unless"), "the process's own page has it");
    }
}

#[test]
fn a_process_s_page_tells_a_finding_s_evidence_and_when_it_would_be_wrong() {
    let size = (100, 60);
    let mut app = two_nodes(size);
    press(&mut app, Key::Enter);
    let lines = plain(&mut app, size);
    for text in [
        "── 3 findings ─",
        "  FAIL  memory-away-from-gpu  high confidence",
        "        seen    resident on node 0 56.0 GiB (move_pages); resident on node 1 4.9 GiB (move_pages)",
        "        unless  what the GPU reads lies elsewhere than most of the memory",
    ] {
        assert!(has(&lines, text), "{text}: {lines:#?}");
    }
}

#[test]
fn what_has_cleared_is_said() {
    let size = (100, 60);
    let mut snapshot = made_up::two_nodes(2);
    for process in &mut snapshot.processes {
        let gone = std::mem::take(&mut process.findings);
        let gone = gone.into_iter().map(|f| Cleared {
            id: f.id,
            severity: f.severity,
        });
        process.findings_cleared = gone.collect();
    }
    let mut app = app(vec![snapshot], size);
    assert!(!has(&plain(&mut app, size), "FAIL"));
    press(&mut app, Key::Char('f'));
    let lines = plain(&mut app, size);
    assert!(
        has(&lines, "not any more: memory-away-from-gpu (FAIL)"),
        "{lines:#?}"
    );
    press(&mut app, Key::Esc);
    press(&mut app, Key::Enter);
    let lines = plain(&mut app, size);
    assert!(has(&lines, "── no finding ─"), "{lines:#?}");
    assert!(
        has(&lines, "not any more: memory-away-from-gpu (FAIL)"),
        "{lines:#?}"
    );
}

#[test]
fn the_machine_is_drawn_with_what_lies_between_its_devices() {
    for size in SIZES {
        let mut app = two_nodes(size);
        press(&mut app, Key::Char('t'));
        let seen = whole(&mut app, size);
        for text in [
            "── 2 sockets, 2 nodes, 96 CPUs, 8 GPUs, 2 RDMA NICs ─",
            "  ▒ node 1   socket 1  CPUs 48-95  512 GiB, 378 GiB free",
            "           GPU4  0000:88:00.0 NVIDIA H100 80GB HBM3,",
            "  1   21  10",
            "  GPU0  X     PIX   NODE  NODE  SYS   SYS   SYS   SYS",
            "  SYS   between NUMA nodes",
        ] {
            assert!(has(&seen, text), "{size:?}: {text}\n{seen:#?}");
        }
        assert!(
            !has(&seen, "PHB"),
            "only the words that occur are explained"
        );
        for line in &seen {
            assert!(line.width() <= usize::from(size.0));
        }
    }
}

#[test]
fn columns_that_have_no_room_come_below() {
    let size = (60, 90);
    let mut app = app(vec![made_up::sixteen_nodes(1)], size);
    press(&mut app, Key::Char('t'));
    let lines = plain(&mut app, size);
    let heads: Vec<&str> = lines
        .iter()
        .map(|line| line.trim_start())
        .filter(|line| line.starts_with("0   1   2 ") || line.starts_with("13  14  15"))
        .collect();
    assert_eq!(heads.len(), 2, "{lines:#?}");
}

#[test]
fn an_unknown_node_and_what_is_missing_are_said() {
    let size = (100, 60);
    let mut snapshot = made_up::two_nodes(1);
    snapshot.topology.devices[7].node = None;
    snapshot.topology.devices[7].reason = Some("numa_node reads -1".to_owned());
    snapshot.topology.devices_reason = Some("no permission for /proc/bus".to_owned());
    let mut app = app(vec![snapshot], size);
    press(&mut app, Key::Char('t'));
    let lines = plain(&mut app, size);
    for text in [
        "  ? unknown node",
        "GPU7  0000:b2:00.0 NVIDIA H100 80GB HBM3, switch 0000:af:00.0 (numa_node reads -1)",
        "devices may be missing: no permission for /proc/bus",
        "?     a node or a place in PCIe is unknown",
    ] {
        assert!(has(&lines, text), "{text}: {lines:#?}");
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
