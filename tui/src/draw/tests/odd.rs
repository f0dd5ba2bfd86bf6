//! Odd data, odd sizes, and nothing known.

use super::*;
use model::process::ByNode;

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
            assert!(has(&lines, "balancing"));
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
fn too_small_is_one_sentence() {
    for size in [(1, 1), (10, 3), (59, 24), (80, 11)] {
        let lines = plain(&mut two_nodes(size), size);
        let all = lines.join(" ");
        assert!(size.0 < 20 || all.contains("terminal too small (need 60x12)"));
    }
}
