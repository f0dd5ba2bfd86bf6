//! The sentences beside a verdict: what it was drawn from, or why there is none.

use super::format;
use super::row::{Row, Shares};
use model::process::Process;
use model::signal::SignalName;
use model::snapshot::Snapshot;
use model::topology::NodeId;
use model::verdict::{RemoteShare, ShareSignal, Verdict};

/// From this share on a process counts as being on one node.
const MOSTLY: f64 = 0.6;

/// `71 %`; an estimate is `~44 %`; `-` without either.
pub(crate) fn share(share: &RemoteShare) -> String {
    format::or_dash(share.value, |value| {
        let text = format::share(value);
        if share.signal == Some(ShareSignal::Estimate) {
            format!("~{text}")
        } else {
            text
        }
    })
}

/// The verdict's word; a process that has ended has none any more.
pub(crate) fn word(process: &Process) -> &'static str {
    if process.alive {
        process.verdict.as_str()
    } else {
        "ended"
    }
}

/// What `kernel.numa_balancing` says, in words.
pub(crate) fn balancing_words(mode: Option<u32>) -> String {
    match mode {
        None => "no balancing".to_owned(),
        Some(0) => "balancing off".to_owned(),
        Some(1) => "balancing on".to_owned(),
        Some(2) => "balancing tiering".to_owned(),
        Some(3) => "balancing on + tiering".to_owned(),
        Some(other) => format!("balancing mode {other}"),
    }
}

/// Beside the verdict's word, longest first: the column takes what fits.
pub(crate) fn short(row: &Row<'_>, snapshot: &Snapshot) -> Vec<String> {
    if !row.now.alive {
        return Vec::new();
    }
    if row.now.verdict == Verdict::Unknown {
        return vec![
            why_unknown(row, snapshot),
            "too little evidence".to_owned(),
            "no evidence".to_owned(),
        ];
    }
    let source = source(&row.now.remote_share);
    let mut forms = Vec::new();
    if let Some(place) = place(row) {
        forms.push(format!("{place}, {source}"));
        forms.push(place);
    }
    forms.push(source);
    forms.extend(brief_place(row));
    if row.now.remote_share.signal == Some(ShareSignal::Estimate) {
        forms.push("estimate".to_owned());
    }
    forms
}

/// The whole sentence, for the line below the table and the detail view.
pub(crate) fn sentence(row: &Row<'_>, snapshot: &Snapshot) -> String {
    let share = &row.now.remote_share;
    let ended = if row.now.alive { "" } else { "it has ended; " };
    let Some(value) = share.value else {
        return format!("{ended}no verdict: {}", why_unknown(row, snapshot));
    };
    let mut text = match share.signal {
        Some(ShareSignal::Hint) => format!(
            "{} of {} pages hint-touched in {} were remote",
            format::share(value),
            format::or_dash(share.pages, format::count),
            format::or_dash(share.window_s, format::seconds),
        ),
        _ => format!(
            "about {} remote, an estimate from CPU time and placement ({})",
            format::share(value),
            why_no_hint(snapshot),
        ),
    };
    if let Some(place) = place(row) {
        text.push_str("; ");
        text.push_str(&place);
    }
    format!("{ended}{text}")
}

/// What the share was drawn from, in a few words.
fn source(share: &RemoteShare) -> String {
    match share.signal {
        Some(ShareSignal::Hint) => format!(
            "{} hint touches in {}",
            format::or_dash(share.pages, format::count),
            format::or_dash(share.window_s, format::seconds),
        ),
        _ => "estimate: no hint touches".to_owned(),
    }
}

/// How something divides among the nodes.
#[derive(Clone, Copy)]
enum Mostly {
    On(NodeId),
    Spread,
}

/// Where it runs and where its memory lies; `None` without both.
fn place(row: &Row<'_>) -> Option<String> {
    let (cpu, memory) = (mostly(row.cpu_by_node())?, mostly(row.memory_by_node())?);
    Some(match (cpu, memory) {
        (Mostly::On(c), Mostly::On(m)) if c == m => format!("runs on node {c}, memory too"),
        (Mostly::On(c), Mostly::On(m)) => format!("runs on node {c}, memory on node {m}"),
        (Mostly::On(c), Mostly::Spread) => format!("runs on node {c}, memory spread"),
        (Mostly::Spread, Mostly::On(m)) => format!("runs all over, memory on node {m}"),
        (Mostly::Spread, Mostly::Spread) => "runs all over, memory spread".to_owned(),
    })
}

/// The same in the fewest characters that still say it, where it runs and its memory differ.
fn brief_place(row: &Row<'_>) -> Option<String> {
    match (mostly(row.cpu_by_node())?, mostly(row.memory_by_node())?) {
        (Mostly::On(c), Mostly::On(m)) if c != m => Some(format!("CPU {c}, memory {m}")),
        _ => None,
    }
}

/// `None` where there is nothing to divide.
fn mostly(shares: Option<Shares>) -> Option<Mostly> {
    let shares = shares?;
    let total: f64 = shares.iter().map(|(_, v)| v).sum();
    if !total.is_finite() || total <= 0.0 {
        return None;
    }
    let most = shares.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(if most.1 / total >= MOSTLY {
        Mostly::On(most.0)
    } else {
        Mostly::Spread
    })
}

/// Why hint touches give no share here.
fn why_no_hint(snapshot: &Snapshot) -> String {
    match snapshot.host.numa_balancing {
        None => return "no hint touches: this kernel has no NUMA balancing".to_owned(),
        Some(0) => return "no hint touches: NUMA balancing is off".to_owned(),
        Some(mode) if mode & 2 != 0 => {
            return "NUMA balancing is tiering, its hint touches are no share".to_owned();
        }
        Some(_) => {}
    }
    match snapshot.signal(SignalName::Hint) {
        Some(hint) if hint.is_live() => "too few hint touches".to_owned(),
        Some(hint) => match &hint.reason {
            Some(reason) => format!("no hint touches: {reason}"),
            None => "no hint signal".to_owned(),
        },
        None => "no hint signal".to_owned(),
    }
}

/// Why neither hint touches nor an estimate gave a share.
fn why_unknown(row: &Row<'_>, snapshot: &Snapshot) -> String {
    let estimate = if row.now.placement.by_node_bytes.is_none() {
        match &row.now.placement.reason {
            Some(reason) => format!("placement unknown ({reason})"),
            None => "placement unknown".to_owned(),
        }
    } else if row.now.cpu_time_ns_by_node.is_none() {
        "CPU time by node unknown".to_owned()
    } else {
        "it used no CPU".to_owned()
    };
    format!("{}; no estimate: {estimate}", why_no_hint(snapshot))
}
