//! The columns of the process table: title, widths, priority, sort key and content, one entry each.

use super::cell::{Cell, Tone};
use super::evidence;
use super::feed::{Id, Pair};
use super::format;
use super::history::History;
use super::order::SortKey;
use super::row::Row;
use model::gpus;
use model::process::Process;
use model::signal::SignalName;
use model::verdict::Verdict;

/// What a cell may look at.
pub(crate) struct Picture<'a> {
    pub(crate) pair: &'a Pair,
    pub(crate) history: &'a History,
}

/// Where a column's content stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Which column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnId {
    Pid,
    Engine,
    Model,
    Gpu,
    Cpu,
    Memory,
    Remote,
    Trend,
    Touch,
    Moves,
    Migrations,
    Scan,
    Policy,
    Verdict,
}

/// How wide a column may be.
pub(crate) enum Widths {
    /// These, ascending; in between nothing would be gained.
    Steps(&'static [u16]),
    /// From the first to the content's own width, at most the second.
    Content(u16, u16),
}

/// One column.
pub(crate) struct Column {
    pub(crate) id: ColumnId,
    pub(crate) title: fn(&Picture<'_>) -> &'static str,
    pub(crate) align: Align,
    pub(crate) widths: Widths,
    /// 0 stays at any width; else the lower number comes first.
    pub(crate) priority: u8,
    /// The signal whose state its title is marked with.
    pub(crate) signal: fn(&Picture<'_>) -> Option<SignalName>,
    /// `None`: the column has no order of its own.
    pub(crate) sort: Option<fn(&Row<'_>, &Pair) -> SortKey>,
    /// Whether its usual order is descending: what pays most comes first.
    pub(crate) descending: bool,
    pub(crate) cell: fn(&Row<'_>, &Picture<'_>) -> Cell,
}

/// The widest trend.
const TREND: u16 = 6;

impl Column {
    /// Where title and content stand at a width: without their bars, CPU and MEMORY are numbers.
    pub(crate) fn align_at(&self, width: u16) -> Align {
        match self.widths {
            Widths::Steps(steps) if steps.len() > 1 && steps.first() == Some(&width) => {
                Align::Right
            }
            _ => self.align,
        }
    }
}

/// Every column in the order in which they stand.
pub(crate) const COLUMNS: &[Column] = &[
    Column {
        id: ColumnId::Pid,
        title: |_| "PID",
        align: Align::Right,
        widths: Widths::Steps(&[7]),
        priority: 0,
        signal: |_| None,
        sort: Some(|row, _| SortKey::number(Some(f64::from(row.now.pid)))),
        descending: false,
        cell: |row, _| Cell::text(row.now.pid.to_string()),
    },
    Column {
        id: ColumnId::Engine,
        title: |_| "ENGINE",
        align: Align::Left,
        widths: Widths::Content(8, 20),
        priority: 0,
        signal: |_| None,
        sort: Some(|row, _| SortKey::text(Some(engine_forms(row.now).swap_remove(0)))),
        descending: false,
        cell: |row, _| Cell::Text {
            forms: engine_forms(row.now),
            tone: if row.now.engine.is_some() {
                Tone::Plain
            } else {
                Tone::Faint
            },
        },
    },
    Column {
        id: ColumnId::Model,
        title: |_| "MODEL",
        align: Align::Left,
        widths: Widths::Content(8, 24),
        priority: 5,
        signal: |_| None,
        sort: Some(|row, _| SortKey::text(row.now.model.clone())),
        descending: false,
        cell: |row, _| match &row.now.model {
            Some(model) => Cell::Text {
                forms: vec![base_name(model).to_owned()],
                tone: Tone::Plain,
            },
            None => Cell::text(format::NO_SIGNAL),
        },
    },
    Column {
        id: ColumnId::Gpu,
        title: |_| "GPU",
        align: Align::Left,
        widths: Widths::Content(4, 14),
        priority: 0,
        signal: |_| None,
        sort: Some(|row, _| {
            let has = !row.now.devices.is_empty();
            SortKey::text(has.then(|| gpus::forms(row.now).swap_remove(0)))
        }),
        descending: false,
        cell: |row, _| {
            let forms = gpus::forms(row.now);
            if forms == [format::NO_SIGNAL] {
                Cell::text(format::NO_SIGNAL)
            } else {
                Cell::Text {
                    forms,
                    tone: Tone::Plain,
                }
            }
        },
    },
    Column {
        id: ColumnId::Cpu,
        title: |_| "CPU by node",
        align: Align::Left,
        widths: Widths::Steps(&[8, 14, 18]),
        priority: 0,
        signal: |_| Some(SignalName::Sched),
        sort: Some(|row, _| SortKey::number(row.cpu_by_node().map(|s| sum(&s)))),
        descending: true,
        cell: |row, _| {
            let shares = row.cpu_by_node();
            Cell::Nodes {
                number: format::or_dash(shares.as_deref().map(sum), format::cpu),
                shares,
                seen: None,
                number_width: 7,
            }
        },
    },
    Column {
        id: ColumnId::Memory,
        title: |_| "MEMORY by node",
        align: Align::Left,
        widths: Widths::Steps(&[8, 17, 19]),
        priority: 0,
        signal: |_| Some(SignalName::Placement),
        sort: Some(|row, _| SortKey::number(row.memory_total().map(|b| b as f64))),
        descending: true,
        cell: |row, _| Cell::Nodes {
            shares: row.memory_by_node(),
            seen: row.now.placement.seen_percent(),
            number: format::or_dash(row.memory_total(), format::bytes),
            number_width: 8,
        },
    },
    Column {
        id: ColumnId::Remote,
        title: |_| "REMOTE",
        align: Align::Right,
        widths: Widths::Steps(&[7]),
        priority: 0,
        signal: |_| None,
        sort: Some(|row, _| SortKey::number(row.now.remote_share.value)),
        descending: true,
        cell: |row, _| Cell::Text {
            forms: vec![evidence::share(&row.now.remote_share)],
            tone: match row.now.remote_share.value {
                Some(_) => Tone::of(row.now.verdict),
                None => Tone::Faint,
            },
        },
    },
    Column {
        id: ColumnId::Trend,
        title: |_| "TREND",
        align: Align::Left,
        widths: Widths::Steps(&[TREND]),
        priority: 1,
        signal: |_| None,
        sort: None,
        descending: false,
        cell: |row, picture| {
            let until = picture.pair.now.monotonic_ns;
            let n = usize::from(TREND);
            Cell::Trend(picture.history.trend(Id::of(row.now), until, n))
        },
    },
    Column {
        id: ColumnId::Touch,
        title: |picture| {
            if hint_is_live(picture.pair) {
                "HINT/s"
            } else {
                "FIRST/s"
            }
        },
        align: Align::Right,
        widths: Widths::Steps(&[8]),
        priority: 2,
        signal: |picture| {
            Some(if hint_is_live(picture.pair) {
                SignalName::Hint
            } else {
                SignalName::FirstTouch
            })
        },
        sort: Some(|row, pair| SortKey::number(touches(row, pair))),
        descending: true,
        cell: |row, picture| rate(touches(row, picture.pair)),
    },
    Column {
        id: ColumnId::Moves,
        title: |_| "MOVE/s",
        align: Align::Right,
        widths: Widths::Steps(&[7]),
        priority: 3,
        signal: |_| Some(SignalName::Sched),
        sort: Some(|row, _| SortKey::number(row.rate(|p| p.moves.total))),
        descending: true,
        cell: |row, _| rate(row.rate(|p| p.moves.total)),
    },
    Column {
        id: ColumnId::Migrations,
        title: |_| "MIGR/s",
        align: Align::Right,
        widths: Widths::Steps(&[7]),
        priority: 4,
        signal: |_| Some(SignalName::Migration),
        sort: Some(|row, _| SortKey::number(row.rate(|p| p.migrations.pages))),
        descending: true,
        cell: |row, _| rate(row.rate(|p| p.migrations.pages)),
    },
    Column {
        id: ColumnId::Scan,
        title: |_| "SCAN/s",
        align: Align::Right,
        widths: Widths::Steps(&[7]),
        priority: 7,
        signal: |_| Some(SignalName::Scan),
        sort: Some(|row, _| SortKey::number(row.rate(|p| p.scan_time_ns))),
        descending: true,
        cell: |row, _| {
            let scan = row.rate(|p| p.scan_time_ns);
            Cell::text(format::or_dash(scan, format::ns_per_second))
        },
    },
    Column {
        id: ColumnId::Policy,
        title: |_| "POLICY",
        align: Align::Left,
        widths: Widths::Content(7, 14),
        priority: 6,
        signal: |_| None,
        sort: Some(|row, _| SortKey::text(row.now.policy.clone())),
        descending: false,
        cell: |row, _| match &row.now.policy {
            Some(policy) => Cell::Text {
                forms: policy_forms(policy),
                tone: Tone::Plain,
            },
            None => Cell::text(format::NO_SIGNAL),
        },
    },
    Column {
        id: ColumnId::Verdict,
        title: |_| "VERDICT",
        align: Align::Left,
        widths: Widths::Steps(&[7]),
        priority: 0,
        signal: |_| None,
        // Unknown is neither the best nor the worst.
        sort: Some(|row, _| {
            let known = Some(row.now.verdict).filter(|v| *v != Verdict::Unknown);
            SortKey::number(known.map(|v| f64::from(v as u8)))
        }),
        descending: true,
        cell: |row, picture| Cell::Verdict {
            word: evidence::word(row.now),
            tone: if row.now.alive {
                Tone::of(row.now.verdict)
            } else {
                Tone::Faint
            },
            sentences: evidence::short(row, &picture.pair.now),
        },
    },
];

/// Below this width the engine's name is worth more than the GPU.
const GPU_FROM: u16 = 70;

/// Whether a column has anything to show on this host, and isn't in the way of better.
pub(crate) fn is_of_use(column: &Column, picture: &Picture<'_>, width: u16) -> bool {
    column.id != ColumnId::Gpu || width >= GPU_FROM && gpus::any(&picture.pair.now.topology)
}

fn hint_is_live(pair: &Pair) -> bool {
    let hint = pair.now.signal(SignalName::Hint);
    hint.is_some_and(model::signal::Signal::is_live)
}

/// Pages touched per second: hinted ones where the host has that signal, else first touches.
fn touches(row: &Row<'_>, pair: &Pair) -> Option<f64> {
    if hint_is_live(pair) {
        row.rate(|p| p.touches.hint.counter.pages)
    } else {
        row.rate(|p| p.touches.first_touch.pages)
    }
}

fn rate(value: Option<f64>) -> Cell {
    Cell::text(format::or_dash(value, format::rate))
}

fn sum(shares: &[(u32, f64)]) -> f64 {
    shares.iter().map(|(_, v)| v).sum()
}

/// Who it is in a few words: `vllm worker 1`, `- python3`.
pub(crate) fn title(process: &Process) -> String {
    engine_forms(process).swap_remove(0)
}

/// `vllm worker 1`, shorter `vllm 1`; without an engine the process's own name after a `-`.
fn engine_forms(process: &Process) -> Vec<String> {
    let Some(engine) = &process.engine else {
        return vec![format!("{} {}", format::NO_SIGNAL, process.name)];
    };
    let rank = process.rank.map(|r| format!(" {r}")).unwrap_or_default();
    let mut forms = vec![format!("{engine}{rank}"), engine.clone()];
    if let Some(role) = &process.role {
        forms.insert(0, format!("{engine} {role}{rank}"));
    }
    forms.dedup();
    forms
}

/// The model's name without its owner or folder; the detail view has all of it.
fn base_name(model: &str) -> &str {
    let trimmed = model.trim_end_matches('/');
    trimmed.rsplit('/').next().unwrap_or(trimmed)
}

/// The policy in numactl's words, with its first word shortened, and without its nodes.
fn policy_forms(policy: &str) -> Vec<String> {
    let (mode, nodes) = policy.split_once(':').unwrap_or((policy, ""));
    let short = match mode {
        "interleave" => "interl.",
        "weighted-interleave" | "weighted interleave" => "weight.",
        "preferred" | "preferred-many" | "prefer (many)" => "prefer.",
        other => other,
    };
    vec![
        policy.to_owned(),
        format!("{short}:{nodes}"),
        short.to_owned(),
    ]
}
