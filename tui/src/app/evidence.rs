//! The sentences beside a verdict: what it was drawn from, or why there is none.

use super::format;
use super::row::{Row, Shares};
use model::balancing::Balancing;
use model::process::Process;
use model::snapshot::{Host, Snapshot};
use model::topology::NodeId;
use model::unknown::why_no_hint;
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
pub(crate) fn balancing_words(host: &Host) -> String {
    match host.balancing() {
        Balancing::NotInKernel => "no balancing".to_owned(),
        balancing => format!("balancing {balancing}"),
    }
}

/// Beside the verdict's word, longest first: the column takes what fits.
pub(crate) fn short(row: &Row<'_>, snapshot: &Snapshot) -> Vec<String> {
    if !row.now.alive {
        return Vec::new();
    }
    let mut forms = finding(row.now);
    if row.now.verdict == Verdict::Unknown {
        forms.extend([
            why_unknown(row.now),
            "too little evidence".to_owned(),
            "no evidence".to_owned(),
        ]);
        return forms;
    }
    if one_node(snapshot) {
        forms.extend([one_node_words(snapshot).to_owned(), "one node".to_owned()]);
        return forms;
    }
    let source = source(&row.now.remote_share);
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

/// A guest's host may have more.
fn one_node_words(snapshot: &Snapshot) -> &'static str {
    if snapshot.host.may_hide_nodes {
        "this guest shows one node"
    } else {
        "the host has one node"
    }
}

/// The first finding's words and its id, each with how many more there are.
fn finding(process: &Process) -> Vec<String> {
    let Some(first) = process.findings.first() else {
        return Vec::new();
    };
    let more = match process.findings.len() - 1 {
        0 => String::new(),
        more => format!(" +{more}"),
    };
    vec![
        format!("{}{more}", first.summary),
        format!("{}{more}", first.id),
        first.id.clone(),
    ]
}

/// The whole sentence, for the line below the table and the detail view.
pub(crate) fn sentence(row: &Row<'_>, snapshot: &Snapshot) -> String {
    let share = &row.now.remote_share;
    let ended = if row.now.alive { "" } else { "it has ended; " };
    let Some(value) = share.value else {
        return format!("{ended}{}", why_unknown(row.now));
    };
    if one_node(snapshot) {
        let one = one_node_words(snapshot);
        return format!("{ended}{one}, so all its memory is local to it");
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

/// Why there is no verdict; whoever drew the conclusions says it.
fn why_unknown(process: &Process) -> String {
    let reason = process.verdict_reason.clone();
    reason.unwrap_or_else(|| "too little evidence".to_owned())
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
    fn balancing_that_cannot_be_read_is_not_off() {
        let mut host = Host::default();
        assert_eq!(balancing_words(&host), "no balancing");
        host.numa_balancing_reason = Some("masked".to_owned());
        assert_eq!(balancing_words(&host), "balancing unknown");
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
    fn unknown_says_what_is_missing() {
        let idle = said(912, |_| {});
        assert!(idle.contains("no estimate: it used no CPU"), "{idle}");
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
