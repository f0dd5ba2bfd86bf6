//! The pages behind keys: a process, findings, signals, the machine, help.

use super::*;
use model::finding::Cleared;
use model::process::MemoryKind;
use unicode_width::UnicodeWidthStr;

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
fn a_kind_of_which_nothing_is_known_is_a_dash_in_the_detail() {
    let size = (160, 50);
    let node_0 = |known: bool| {
        let mut snapshot = made_up::two_nodes(1);
        for process in &mut snapshot.processes {
            let kinds = process.placement.by_kind.as_mut().unwrap();
            if !known {
                kinds.remove(&MemoryKind::Shared);
            }
        }
        let mut app = app(vec![snapshot], size);
        press(&mut app, Key::Enter);
        let lines = whole(&mut app, size);
        let titles = lines
            .iter()
            .position(|l| l.contains("anon") && l.contains("huge"));
        lines[titles.unwrap() + 1].clone()
    };
    assert!(
        node_0(true).ends_with(" ~0 B      ~0 B"),
        "{}",
        node_0(true)
    );
    assert!(node_0(false).ends_with(" -      ~0 B"), "{}", node_0(false));
}

#[test]
fn the_detail_has_its_cgroup_s_memory_beside_what_the_processes_have_alone() {
    let size = (160, 60);
    let mut app = two_nodes(size);
    press(&mut app, Key::Enter);
    let lines = plain(&mut app, size);
    for text in [
        "  cgroup    /system.slice/inference.service: anon 0: 151 GiB 1: 48.9 GiB, file 0: 21.5 GiB 1: 14.0 GiB; private",
        "anon of 5 processes in it 0: ~151 GiB 1: ~48.8",
    ] {
        assert!(has(&lines, text), "{text}: {lines:#?}");
    }
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
            "        type    numawatch launch --gpu 4 --dry-run",
            "        type    migratepages 48122 0 1",
            "── 51007 llama.cpp server, remote ─",
            "  WARN  threads-wander",
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
    snapshot.topology.nodes_reason = Some("node1/meminfo is empty".to_owned());
    let mut app = app(vec![snapshot], size);
    press(&mut app, Key::Char('t'));
    let lines = plain(&mut app, size);
    for text in [
        "  ? unknown node",
        "GPU7  0000:b2:00.0 NVIDIA H100 80GB HBM3, switch 0000:af:00.0 (numa_node reads -1)",
        "devices may be missing: no permission for /proc/bus",
        "nodes, or something of them, may be missing: node1/meminfo is empty",
        "?     a node or a place in PCIe is unknown",
    ] {
        assert!(has(&lines, text), "{text}: {lines:#?}");
    }
}

#[test]
fn help_says_what_the_dots_in_a_bar_of_memory_are() {
    for size in SIZES {
        let mut app = two_nodes(size);
        press(&mut app, Key::Char('?'));
        let seen = whole(&mut app, size);
        let words: Vec<&str> = seen.iter().flat_map(|l| l.split_whitespace()).collect();
        assert!(
            words
                .join(" ")
                .contains("dots in the bar: so much of its addresses"),
            "{size:?}"
        );
    }
}
