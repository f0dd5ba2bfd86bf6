//! A snapshot as one table for people who read it in a terminal or a mail.

use super::columns::{Column, aligned};
use model::gpus;
use model::process::{ByNode, Process};
use model::signal::{Signal, SignalName, SignalState};
use model::snapshot::{Lost, Snapshot};
use model::verdict::ShareSignal;
use std::cmp::Reverse;
use std::collections::HashSet;
use std::fmt::Write;

const NO_SIGNAL: &str = "-";

/// Of processes that ended so many have a row, those with the most CPU time: a shell script has hundreds.
const ENDED_SHOWN: usize = 10;

/// The processes, aligned, and below them which signals are not whole. `looked_for` is for when there are none; `room` is the
/// terminal's width, `None` where the text goes elsewhere.
pub(super) fn processes(snapshot: &Snapshot, looked_for: &str, room: Option<usize>) -> String {
    let mut text = header(snapshot);
    if snapshot.processes.is_empty() {
        let _ = writeln!(
            text,
            "no process found: looked for {looked_for} (--pid, --match or --all widen it)"
        );
    } else {
        let (shown, folded) = shown(&snapshot.processes);
        text.push_str(&aligned(&columns(snapshot, &shown), room));
        text.push_str(&told_together(&folded));
    }
    if let Some(why) = &snapshot.topology.nodes_reason {
        let _ = writeln!(text, "nodes: {why}");
    }
    text.push_str(&not_whole(&snapshot.signals));
    text.push_str(&lost(&snapshot.host.lost));
    text
}

/// The processes that have a row, in the snapshot's order, and those that ended and have none.
fn shown(processes: &[Process]) -> (Vec<&Process>, Vec<&Process>) {
    let mut ended: Vec<usize> = (0..processes.len())
        .filter(|at| !processes[*at].alive)
        .collect();
    ended.sort_by_key(|at| Reverse(cpu_time_ns(&processes[*at])));
    let folded: HashSet<usize> = ended
        .split_off(ended.len().min(ENDED_SHOWN))
        .into_iter()
        .collect();
    let (folded, shown): (Vec<_>, Vec<_>) = processes
        .iter()
        .enumerate()
        .partition(|(at, _)| folded.contains(at));
    let process = |(_, process)| process;
    (
        shown.into_iter().map(process).collect(),
        folded.into_iter().map(process).collect(),
    )
}

fn told_together(ended: &[&Process]) -> String {
    if ended.is_empty() {
        return String::new();
    }
    let ns: Option<u64> = ended.iter().map(|p| cpu_time_ns(p)).sum();
    let time = ns.map(|ns| format!(", {:.2} s of CPU time", ns as f64 / 1e9));
    format!(
        "and {} more that ended{}: --json has each\n",
        ended.len(),
        time.unwrap_or_default()
    )
}

fn cpu_time_ns(process: &Process) -> Option<u64> {
    let by_node = process.cpu_time_ns_by_node.as_ref()?;
    Some(by_node.values().sum())
}

/// What was not counted, or not told, in a line each; nothing where all was.
pub(super) fn lost(lost: &Lost) -> String {
    let mut text = String::new();
    let mut line = |count: Option<u64>, what: &str| {
        if let Some(count) = count.filter(|count| *count > 0) {
            let _ = writeln!(text, "lost: {count} {what}");
        }
    };
    line(
        lost.rows,
        "counts found no room in the kernel side's maps: the numbers above are too low",
    );
    line(
        lost.news,
        "forks, execs and exits were not told: short-lived processes may be missing above",
    );
    line(
        lost.events,
        "events came while a probe was running on the same CPU, and are not counted",
    );
    text
}

/// A line for signals of one state and one reason, of which only what comes first is told.
fn not_whole(signals: &[Signal]) -> String {
    let mut lines: Vec<(SignalState, &str, Vec<&str>)> = Vec::new();
    let mut cut = false;
    for signal in signals {
        let Some(reason) = signal.reason.as_deref() else {
            continue;
        };
        let (first, rest) = reason.split_once("; ").unwrap_or((reason, ""));
        cut |= !rest.is_empty();
        let same =
            |line: &&mut (SignalState, &str, Vec<&str>)| line.0 == signal.state && line.1 == first;
        match lines.iter_mut().find(same) {
            Some((_, _, names)) => names.push(signal.name.as_str()),
            None => lines.push((signal.state, first, vec![signal.name.as_str()])),
        }
    }
    let mut text = String::new();
    for (state, reason, names) in lines {
        let _ = writeln!(text, "{} {}: {reason}", names.join(", "), state.as_str());
    }
    if cut {
        text.push_str("`numawatch doctor` says more of these\n");
    }
    text
}

fn header(snapshot: &Snapshot) -> String {
    let host = &snapshot.host;
    let nodes = match (
        snapshot.topology.hides_nodes(),
        snapshot.topology.nodes.len(),
    ) {
        (Some(_), _) => "? nodes".to_owned(),
        (None, 1) => "1 node".to_owned(),
        (None, nodes) => format!("{nodes} nodes"),
    };
    let cpus = host
        .cpus
        .map_or_else(|| "?".to_owned(), |cpus| cpus.to_string());
    format!(
        "{}  Linux {}  {nodes}  {cpus} CPUs  NUMA balancing {}\n",
        host.name,
        host.kernel,
        host.balancing()
    )
}

/// What stands in a column for each process.
type Cell<'a> = &'a dyn Fn(&Process) -> String;

fn columns(snapshot: &Snapshot, shown: &[&Process]) -> Vec<Column> {
    let first_touch = |p: &Process| {
        count(
            snapshot,
            SignalName::FirstTouch,
            p.touches.first_touch.pages,
        )
    };
    let hint = |p: &Process| count(snapshot, SignalName::Hint, p.touches.hint.counter.pages);
    let migrated = |p: &Process| count(snapshot, SignalName::Migration, p.migrations.pages);
    let moves = |p: &Process| count(snapshot, SignalName::Sched, p.moves.total);
    let map = |p: &Process| count(snapshot, SignalName::Map, p.touches.map.pages);
    let columns: [(&'static str, u8, Cell<'_>); 14] = [
        ("PID", 0, &|p| p.pid.to_string()),
        ("NAME", 0, &name),
        ("ENGINE", 2, &engine),
        ("GPU", 1, &gpu),
        ("CPU S BY NODE", 3, &cpu),
        ("MEMORY BY NODE", 0, &memory),
        ("REMOTE", 0, &remote),
        ("FIRST TOUCH", 6, &first_touch),
        ("MAP", 6, &map),
        ("HINT", 5, &hint),
        ("MIGRATED", 8, &migrated),
        ("MOVES", 7, &moves),
        ("POLICY", 4, &|p| {
            p.policy.clone().unwrap_or_else(|| NO_SIGNAL.to_owned())
        }),
        ("VERDICT", 0, &|p| p.verdict.as_str().to_owned()),
    ];
    // A machine without GPUs needs no column of them.
    let has_gpus = gpus::any(&snapshot.topology);
    let columns = columns
        .into_iter()
        .filter(|(title, ..)| has_gpus || *title != "GPU");
    let column = |(title, priority, cell): (&'static str, u8, Cell<'_>)| Column {
        title,
        priority,
        // Names are other people's: they are not to talk to the terminal.
        cells: shown
            .iter()
            .map(|p| cell(p).replace(char::is_control, "?"))
            .collect(),
    };
    columns.map(column).collect()
}

/// A signal that failed its self-test is not to be read as a number.
fn count(snapshot: &Snapshot, signal: SignalName, value: Option<u64>) -> String {
    let state = snapshot.signal(signal).map(|signal| signal.state);
    let doubt = if state == Some(SignalState::Unreliable) {
        "?"
    } else {
        ""
    };
    format!("{}{doubt}", number(value))
}

fn name(process: &Process) -> String {
    if process.alive {
        process.name.clone()
    } else {
        format!("{} (ended)", process.name)
    }
}

fn engine(process: &Process) -> String {
    match (&process.engine, &process.role) {
        (Some(engine), Some(role)) => format!("{engine} {role}"),
        (Some(engine), None) => engine.clone(),
        _ => NO_SIGNAL.to_owned(),
    }
}

/// As the dashboard has it: `4@1`.
fn gpu(process: &Process) -> String {
    gpus::forms(process).swap_remove(0)
}

fn cpu(process: &Process) -> String {
    by_node(process.cpu_time_ns_by_node.as_ref(), |ns| {
        format!("{:.2}", ns as f64 / 1e9)
    })
}

/// A sample's numbers are marked; where not all addresses could be looked at in time, how many were.
fn memory(process: &Process) -> String {
    let placement = &process.placement;
    let mark = if placement.is_estimate() { "~" } else { "" };
    let mut text = by_node(placement.by_node_bytes.as_ref(), |bytes| {
        format!("{mark}{}", mebibytes(bytes))
    });
    if let Some(seen) = placement.seen_percent().filter(|_| text != NO_SIGNAL) {
        let _ = write!(text, ", {seen} % seen");
    }
    text
}

fn remote(process: &Process) -> String {
    let share = &process.remote_share;
    share.value.map_or_else(
        || NO_SIGNAL.to_owned(),
        |value| {
            let mark = if share.signal == Some(ShareSignal::Estimate) {
                "~"
            } else {
                ""
            };
            format!("{mark}{:.0} %", value * 100.0)
        },
    )
}

fn number(value: Option<u64>) -> String {
    value.map_or_else(|| NO_SIGNAL.to_owned(), |v| v.to_string())
}

fn mebibytes(bytes: u64) -> String {
    if bytes == 0 {
        return "0 B".to_owned();
    }
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

/// `0: 1.20  1: 0.00`.
fn by_node(values: Option<&ByNode>, text: impl Fn(u64) -> String) -> String {
    values.filter(|v| !v.is_empty()).map_or_else(
        || NO_SIGNAL.to_owned(),
        |values| {
            values
                .iter()
                .map(|(node, v)| format!("{node}: {}", text(*v)))
                .collect::<Vec<_>>()
                .join("  ")
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::snapshot::{Coverage, Host};

    /// A process with GPUs on two nodes, whose memory is a third known.
    fn snapshot() -> Snapshot {
        let gpu = |n: u32| {
            serde_json::json!({
                "address": format!("0000:{n:02x}:00.0"), "kind": "gpu", "label": format!("GPU{n}"), "node": n,
                "source": "open_files", "vendor": "NVIDIA", "name": null, "driver": null, "memory_nodes": [],
                "bridges": [], "root_complex": null, "files": [], "nvlinks": [],
            })
        };
        let document = serde_json::json!({
            "schema_version": 1, "taken_at": "2026-01-01T00:00:00Z", "monotonic_ns": 0,
            "host": Host::default(), "coverage": Coverage::default(), "signals": [],
            "topology": { "nodes": [], "devices": [gpu(0), gpu(1)] },
            "processes": [{
                "pid": 42, "start_time": 7, "tracked_since": "2026-01-01T00:00:00Z", "parent_pid": 1,
                "name": "ser\u{1b}ver", "executable": "server", "command": "server", "engine": "llama.cpp", "role": "server",
                "rank": null, "model": null, "alive": true, "cpu_time_ns_by_node": {"1": 1_500_000_000_u64},
                "moves": {"total": 3}, "touches": {"first_touch": {"pages": 16}, "map": {}, "hint": {}},
                "migrations": {}, "scan_time_ns": null, "scan_cpu_time_ns": null,
                "pinned": {"made": {}}, "driver_allocated_pages": {},
                "placement": {"by_node_bytes": {"0": 1 << 20}, "coverage": 0.339},
                "resident_bytes": 4 << 20, "policy": "bind:0", "cpus_allowed": null,
                "remote_share": {"value": 0.5, "signal": "estimate"}, "verdict": "remote", "threads": [],
                "devices": [gpu(0), gpu(1)],
            }],
        });
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn the_table_has_gpus_and_policy_and_says_how_much_memory_was_seen() {
        let text = processes(&snapshot(), "", None);
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(
            lines,
            [
                "PID  NAME     ENGINE            GPU      CPU S BY NODE  MEMORY BY NODE          REMOTE  FIRST TOUCH  MAP  HINT  \
                 MIGRATED  MOVES  POLICY  VERDICT",
                "42   ser?ver  llama.cpp server  0@0 1@1  1: 1.50        0: ~1.0 MiB, 33 % seen  ~50 %   16           -    -     \
                 -         3      bind:0  remote",
            ]
        );
    }

    #[test]
    fn nodes_that_are_hidden_have_no_number_and_a_reason() {
        let mut snapshot = snapshot();
        assert!(processes(&snapshot, "", None).contains("  0 nodes  "));
        snapshot.topology.nodes_hidden = true;
        snapshot.topology.nodes_reason = Some("/sys is masked".to_owned());
        let text = processes(&snapshot, "", None);
        assert!(text.contains("  ? nodes  "), "{text}");
        assert!(text.contains("\nnodes: /sys is masked\n"), "{text}");
    }

    #[test]
    fn of_many_that_ended_the_busiest_have_a_row_and_the_rest_a_line() {
        let mut snapshot = snapshot();
        let one = snapshot.processes.remove(0);
        let process = |pid: u32, alive: bool| Process {
            pid,
            alive,
            cpu_time_ns_by_node: Some(ByNode::from([(0, u64::from(pid) * 10_000_000)])),
            ..one.clone()
        };
        snapshot.processes = (1..=13).map(|pid| process(pid, pid == 2)).collect();
        let text = processes(&snapshot, "", None);
        let pids: Vec<&str> = text
            .lines()
            .filter_map(|line| line.split(' ').next())
            .collect();
        // Of 1 and 3 to 13 those with the least CPU time go together.
        assert_eq!(
            pids[2..],
            [
                "2", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "and"
            ]
        );
        let line = "and 2 more that ended, 0.04 s of CPU time: --json has each\n";
        assert!(text.contains(line), "{text}");
        for process in &mut snapshot.processes {
            process.cpu_time_ns_by_node = None;
        }
        let text = processes(&snapshot, "", None);
        let line = "and 2 more that ended: --json has each\n";
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn a_sampled_number_is_marked_and_an_exact_one_is_not() {
        let mut process = snapshot().processes.remove(0);
        let placement = &mut process.placement;
        placement.coverage = Some(1.0);
        placement.by_node_bytes = Some(ByNode::from([(0, 3 << 20), (1, 0)]));
        for (margin, want) in [
            (None, "0: 3.0 MiB  1: 0 B"),
            (Some(0), "0: 3.0 MiB  1: 0 B"),
            (Some(4096), "0: ~3.0 MiB  1: ~0 B"),
        ] {
            let margins = margin.map(|bytes| ByNode::from([(0, bytes), (1, bytes)]));
            process.placement.margin_by_node_bytes = margins;
            assert_eq!(memory(&process), want, "{margin:?}");
        }
    }

    #[test]
    fn a_machine_without_gpus_has_no_column_of_them() {
        let mut snapshot = snapshot();
        snapshot.topology.devices.clear();
        let text = processes(&snapshot, "", None);
        assert!(!text.contains("GPU"), "{text}");
    }

    #[test]
    fn in_80_columns_what_answers_stays() {
        let text = processes(&snapshot(), "", Some(80));
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        for title in [
            "PID",
            "NAME",
            "ENGINE",
            "GPU",
            "MEMORY BY NODE",
            "REMOTE",
            "VERDICT",
        ] {
            assert!(
                text.lines().nth(1).unwrap().contains(title),
                "{title}: {text}"
            );
        }
        assert!(text.contains("no room for "), "{text}");
    }

    #[test]
    fn what_was_lost_is_told_and_nothing_else() {
        assert_eq!(lost(&Lost::default()), "");
        let some = Lost {
            rows: Some(4_700),
            news: Some(0),
            ..Lost::default()
        };
        assert_eq!(
            lost(&some),
            "lost: 4700 counts found no room in the kernel side's maps: the numbers above are too low\n"
        );
    }

    #[test]
    fn signals_with_one_reason_share_a_line_and_what_is_cut_is_said() {
        let off = |name, why: &str| Signal::unavailable(name, format!("balancing is off{why}"));
        let signals = [
            off(SignalName::Hint, "; fentry/x: refused"),
            Signal::unavailable(SignalName::Pin, "no kprobes"),
            off(SignalName::Scan, ""),
        ];
        assert_eq!(
            not_whole(&signals),
            "hint, scan unavailable: balancing is off\npin unavailable: no kprobes\n\
             `numawatch doctor` says more of these\n"
        );
        assert_eq!(not_whole(&signals[1..2]), "pin unavailable: no kprobes\n");
        assert_eq!(not_whole(&[]), "");
    }
}
