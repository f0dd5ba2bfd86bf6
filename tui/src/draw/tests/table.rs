//! The table of processes: what a glance tells, and that nothing is cut.

use super::*;
use crate::app::{Align, ColumnId, Picture, fitted};
use model::process::ByNode;

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
fn a_wide_table_says_the_first_finding_and_how_many_more_there_are() {
    for (size, want) in [((160, 50), true), ((132, 40), false), ((80, 24), false)] {
        let lines = plain(&mut two_nodes(size), size);
        let row = lines.iter().find(|l| l.contains("▸   48122")).unwrap();
        let said = row.ends_with("remote  memory-away-from-gpu +2");
        assert_eq!(said, want, "{size:?}: {row}");
        assert!(
            has(&lines, ", findings: 3 fail, 2 warn (f) ─"),
            "{size:?}: {lines:#?}"
        );
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

/// Two nodes, and so much of the addresses looked at.
fn surveyed(coverage: f64) -> Snapshot {
    let mut snapshot = made_up::two_nodes(1);
    for process in &mut snapshot.processes {
        process.placement.coverage = Some(coverage);
    }
    snapshot
}

#[test]
fn memory_that_has_not_been_looked_at_yet_is_dots_in_the_bar() {
    let size = (160, 50);
    for (coverage, want) in [
        (0.0, "█········· 60.9 GiB"),
        (0.129, "█········· 60.9 GiB"),
        (0.5, "█████····· 60.9 GiB"),
        (0.999, "████████▒· 60.9 GiB"),
        (1.0, "█████████▒ 60.9 GiB"),
    ] {
        let lines = plain(&mut app(vec![surveyed(coverage)], size), size);
        let row = lines.iter().find(|l| l.contains("▸   48122")).unwrap();
        assert!(row.contains(want), "{coverage}: {row}");
    }
}

#[test]
fn memory_is_all_that_the_kernel_counts_while_a_part_is_placed() {
    let size = (160, 50);
    let mut snapshot = surveyed(0.5);
    for process in &mut snapshot.processes {
        process.placement.by_node_bytes = Some(ByNode::from([(0, 0), (1, 1 << 30)]));
    }
    let lines = plain(&mut app(vec![snapshot], size), size);
    let row = lines.iter().find(|l| l.contains("▸   48122")).unwrap();
    assert!(row.contains("▒▒▒▒▒····· 60.9 GiB"), "{row}");
}
