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
    if one_node(snapshot) {
        return vec!["the host has one node".to_owned(), "one node".to_owned()];
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
        return format!("{ended}{}", why_unknown(row, snapshot));
    };
    if one_node(snapshot) {
        return format!("{ended}the host has one node, so all its memory is local");
    }
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

fn one_node(snapshot: &Snapshot) -> bool {
    snapshot.topology.nodes.len() == 1
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::Pair;
    use crate::made_up;
    use std::sync::Arc;

    fn said(pid: u32, change: impl Fn(&mut Snapshot)) -> String {
        let (mut before, mut now) = (made_up::two_nodes(8), made_up::two_nodes(9));
        change(&mut before);
        change(&mut now);
        let pair = Pair::new(Some(Arc::new(before)), Arc::new(now));
        let process = pair.now.processes.iter().find(|p| p.pid == pid).unwrap();
        sentence(&pair.row(process), &pair.now)
    }

    #[test]
    fn a_sentence_names_its_source_and_its_place() {
        let hint = said(48122, |_| {});
        assert!(hint.contains("273 k pages hint-touched in 30 s"), "{hint}");
        assert!(hint.ends_with("runs on node 1, memory on node 0"), "{hint}");
        let estimate = said(51007, |_| {});
        assert!(estimate.contains("an estimate from CPU time"), "{estimate}");
        assert!(estimate.contains("too few hint touches"), "{estimate}");
    }

    #[test]
    fn why_there_are_no_hint_touches_is_said() {
        for (mode, want) in [
            (None, "no NUMA balancing"),
            (Some(0), "NUMA balancing is off"),
            (Some(2), "is tiering"),
            (Some(1), "too few hint touches"),
        ] {
            let text = said(51007, |s| s.host.numa_balancing = mode);
            assert!(text.contains(want), "{mode:?}: {text}");
        }
    }

    #[test]
    fn unknown_says_what_is_missing() {
        let idle = said(912, |_| {});
        assert!(idle.contains("no estimate: it used no CPU"), "{idle}");
        let blind = said(912, |s| {
            for process in &mut s.processes {
                process.placement.by_node_bytes = None;
                process.placement.reason = Some("above 8 GiB".to_owned());
            }
        });
        assert!(blind.contains("placement unknown (above 8 GiB)"), "{blind}");
    }

    #[test]
    fn one_node_and_the_end_are_said() {
        let one = said(48121, |s| s.topology.nodes.truncate(1));
        assert!(one.contains("one node"), "{one}");
        let ended = said(48122, |s| {
            for process in &mut s.processes {
                process.alive = false;
            }
        });
        assert!(ended.starts_with("it has ended; "), "{ended}");
    }
}
