//! A snapshot as one table for people who read it in a terminal or a mail.

use model::process::{ByNode, Process};
use model::signal::{Signal, SignalName, SignalState};
use model::snapshot::{Lost, Snapshot};
use model::verdict::ShareSignal;
use std::fmt::Write;

const NO_SIGNAL: &str = "-";

/// The processes, aligned, and below them which signals are not whole. `looked_for` is for when there are none.
pub(super) fn processes(snapshot: &Snapshot, looked_for: &str) -> String {
    let mut text = header(snapshot);
    if snapshot.processes.is_empty() {
        let _ = writeln!(
            text,
            "no process found: looked for {looked_for} (--pid, --match or --all widen it)"
        );
    } else {
        let mut rows = vec![TITLES.map(str::to_owned)];
        rows.extend(
            snapshot
                .processes
                .iter()
                .map(|process| row(process, snapshot)),
        );
        text.push_str(&aligned(&rows));
    }
    text.push_str(&not_whole(&snapshot.signals));
    text.push_str(&lost(&snapshot.host.lost));
    text
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

const TITLES: [&str; 11] = [
    "PID",
    "NAME",
    "ENGINE",
    "CPU S BY NODE",
    "MEMORY BY NODE",
    "REMOTE",
    "FIRST TOUCH",
    "HINT",
    "MIGRATED",
    "MOVES",
    "VERDICT",
];

fn header(snapshot: &Snapshot) -> String {
    let host = &snapshot.host;
    let balancing = match host.numa_balancing {
        None => "not in this kernel",
        Some(0) => "off",
        Some(1) => "on",
        Some(_) => "memory tiering",
    };
    let nodes = snapshot.topology.nodes.len();
    let plural = if nodes == 1 { "node" } else { "nodes" };
    format!(
        "{}  Linux {}  {nodes} {plural}  {} CPUs  NUMA balancing {balancing}\n",
        host.name, host.kernel, host.cpus
    )
}

fn row(process: &Process, snapshot: &Snapshot) -> [String; 11] {
    // A signal that failed its self-test is not to be read as a number.
    let number = |signal, value| {
        let state = snapshot.signal(signal).map(|signal| signal.state);
        let doubt = if state == Some(SignalState::Unreliable) {
            "?"
        } else {
            ""
        };
        format!("{}{doubt}", number(value))
    };
    let engine = match (&process.engine, &process.role) {
        (Some(engine), Some(role)) => format!("{engine} {role}"),
        (Some(engine), None) => engine.clone(),
        _ => NO_SIGNAL.to_owned(),
    };
    let name = if process.alive {
        process.name.clone()
    } else {
        format!("{} (ended)", process.name)
    };
    [
        process.pid.to_string(),
        name,
        engine,
        by_node(process.cpu_time_ns_by_node.as_ref(), |ns| {
            format!("{:.2}", ns as f64 / 1e9)
        }),
        by_node(process.placement.by_node_bytes.as_ref(), |bytes| {
            mebibytes(bytes)
        }),
        remote(process),
        number(SignalName::FirstTouch, process.touches.first_touch.pages),
        number(SignalName::Hint, process.touches.hint.counter.pages),
        number(SignalName::Migration, process.migrations.pages),
        number(SignalName::Sched, process.moves.total),
        process.verdict.as_str().to_owned(),
    ]
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

/// Columns as wide as their widest cell, two spaces apart.
fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell:<width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

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
