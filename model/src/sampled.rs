//! A process's placement from the answers of its strata: scaled to what the kernel accounts for, by node, kind and class.

use crate::mapping::MemoryClass;
use crate::process::{ByNode, MemoryKind, Placement};
use crate::sampling::{Estimate, Stratum, estimate, scale};
use crate::size::whole;
use crate::topology::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// Pages that are alike, and what was answered of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampled {
    /// What their mappings hold.
    pub class: MemoryClass,
    /// What they are.
    pub kind: MemoryKind,
    /// The file, of weights.
    pub file: Option<String>,
    /// How many there are, and the answers.
    pub stratum: Stratum,
    /// How many were asked for; those without an answer have moved meanwhile, or the kernel doesn't tell.
    pub asked: u64,
}

/// Bytes of the pages that everything here is counted in.
const PAGE: u64 = 4096;

/// So many pages more than were found, and an eighth, the kernel may account for before it is a newer process than the one that
/// was looked at: its account lags by some pages a CPU.
const LAG_PAGES: f64 = 4096.0;

/// From this share of a process's pages on a stratum is worth a word when it doesn't answer.
const WORTH_A_WORD: f64 = 0.05;

/// The placement: everything but its source, its time and its coverage.
///
/// `accounted` are the bytes that the kernel accounts for, by kind; `nodes` are the host's. What has all answered is taken as
/// it was found, since the kernel's own account may lag by some pages; the rest is scaled to that account, files and shared
/// memory together: whether a file lies in memory only, the kernel knows better than mount tables do. What is accounted for
/// and of which nothing is known is uncertain whole: what came since the addresses were looked at, and what doesn't answer. A
/// kind without an entry is unknown; one of which there is nothing has an empty one.
#[must_use]
pub fn placement(
    sampled: &[Sampled],
    accounted: &BTreeMap<MemoryKind, u64>,
    nodes: &[NodeId],
) -> Placement {
    let mut all_nodes: BTreeSet<NodeId> = nodes.iter().copied().collect();
    all_nodes.extend(sampled.iter().flat_map(|s| s.stratum.answers.keys()));
    let all_nodes: Vec<NodeId> = all_nodes.into_iter().collect();
    let mut by_node: ByNode = all_nodes.iter().map(|node| (*node, 0)).collect();
    let mut variances: BTreeMap<NodeId, f64> = BTreeMap::new();
    let mut by_kind: BTreeMap<MemoryKind, ByNode> = BTreeMap::new();
    let mut by_class: BTreeMap<MemoryClass, ByNode> = BTreeMap::new();
    let mut weights_by_file: BTreeMap<String, ByNode> = BTreeMap::new();
    for kinds in ACCOUNTS {
        let of_account: Vec<&Sampled> =
            sampled.iter().filter(|s| kinds.contains(&s.kind)).collect();
        let accounts: Vec<u64> = kinds
            .iter()
            .filter_map(|k| accounted.get(k).copied())
            .collect();
        let account = (!accounts.is_empty()).then(|| accounts.iter().sum::<u64>());
        let strata: Vec<Stratum> = of_account.iter().map(|s| s.stratum.clone()).collect();
        let answered = strata.iter().any(|s| s.asked() > 0);
        let Some(found) = estimate(&strata, &all_nodes).filter(|_| answered) else {
            if account == Some(0) {
                name_none(kinds, accounted, &mut by_kind);
            }
            let untold = account.unwrap_or(0) as f64;
            for node in &all_nodes {
                *variances.entry(*node).or_default() += untold.powi(2);
            }
            continue;
        };
        let seen: u64 = strata.iter().map(|s| s.pages).sum();
        let newer = account.map_or(0.0, |bytes| pages(bytes) - seen as f64);
        let newer = if newer > seen as f64 / 8.0 + LAG_PAGES {
            newer
        } else {
            0.0
        };
        let silent = of_account.iter().map(|s| &s.stratum);
        let silent: u64 = silent.filter(|s| s.asked() == 0).map(|s| s.pages).sum();
        for node in &all_nodes {
            let untold = (newer + silent as f64) * PAGE as f64;
            *variances.entry(*node).or_default() += untold.powi(2);
        }
        let exact = newer == 0.0 && strata.iter().all(answered_whole);
        let target = account.filter(|_| !exact).map(pages);
        let scaled = target.map_or_else(|| found.clone(), |total| scale(&found, total));
        for (node, estimate) in &scaled {
            *variances.entry(*node).or_default() += (estimate.margin * PAGE as f64).powi(2);
        }
        let factor = factor(&found, &scaled);
        for one in &of_account {
            let Some(shares) = estimate(std::slice::from_ref(&one.stratum), &all_nodes) else {
                continue;
            };
            for (node, estimate) in shares {
                let bytes = whole(estimate.pages * factor * PAGE as f64);
                if bytes > 0 {
                    *by_node.entry(node).or_default() += bytes;
                    let kind = by_kind.entry(one.kind).or_default();
                    *kind.entry(node).or_default() += bytes;
                    let class = by_class.entry(one.class).or_default();
                    *class.entry(node).or_default() += bytes;
                    if let Some(file) = &one.file {
                        let file = weights_by_file.entry(file.clone()).or_default();
                        *file.entry(node).or_default() += bytes;
                    }
                }
            }
        }
        name_none(kinds, accounted, &mut by_kind);
    }
    let margin = |node: &NodeId| {
        let variance = variances.get(node).copied().unwrap_or(0.0);
        (*node, whole(variance.sqrt()))
    };
    Placement {
        margin_by_node_bytes: Some(all_nodes.iter().map(margin).collect()),
        by_node_bytes: Some(by_node),
        by_kind: Some(by_kind),
        by_class: Some(by_class),
        weights_by_file: Some(weights_by_file),
        reason: silent(sampled),
        ..Placement::default()
    }
}

/// Names those of the kinds of which the kernel accounts for nothing, and nothing was found: a kind that isn't named is
/// unknown.
fn name_none(
    kinds: &[MemoryKind],
    accounted: &BTreeMap<MemoryKind, u64>,
    by_kind: &mut BTreeMap<MemoryKind, ByNode>,
) {
    for kind in kinds.iter().filter(|k| accounted.get(k) == Some(&0)) {
        by_kind.entry(*kind).or_default();
    }
}

/// Kinds that are scaled together, each to the sum of the kernel's accounts of them.
const ACCOUNTS: [&[MemoryKind]; 3] = [
    &[MemoryKind::Anonymous],
    &[MemoryKind::File, MemoryKind::Shared],
    &[MemoryKind::Huge],
];

fn answered_whole(stratum: &Stratum) -> bool {
    stratum.asked() * stratum.unit.max(1) >= stratum.pages
}

fn pages(bytes: u64) -> f64 {
    bytes as f64 / PAGE as f64
}

/// By how much the one was scaled to become the other.
fn factor(found: &BTreeMap<NodeId, Estimate>, scaled: &BTreeMap<NodeId, Estimate>) -> f64 {
    let sum = |of: &BTreeMap<NodeId, Estimate>| of.values().map(|e| e.pages).sum::<f64>();
    let before = sum(found);
    if before > 0.0 {
        sum(scaled) / before
    } else {
        0.0
    }
}

/// Which classes mostly don't answer, in words; `None` where that is of no weight.
fn silent(sampled: &[Sampled]) -> Option<String> {
    let all: u64 = sampled.iter().map(|s| s.stratum.pages).sum();
    // Of all files together: each of many shards alone is of no weight.
    let mut classes: BTreeMap<(MemoryClass, MemoryKind), (u64, u64, u64)> = BTreeMap::new();
    for one in sampled {
        let (pages, asked, answered) = classes.entry((one.class, one.kind)).or_default();
        *pages += one.stratum.pages;
        *asked += one.asked;
        *answered += one.stratum.asked();
    }
    let silent: Vec<&str> = classes
        .iter()
        .filter(|(_, (_, asked, answered))| *asked > 0 && answered * 2 < *asked)
        .filter(|(_, (pages, _, _))| *pages as f64 >= WORTH_A_WORD * all as f64)
        .map(|((class, _), _)| class.as_str())
        .collect();
    (!silent.is_empty()).then(|| {
        format!(
            "most pages of {} give no answer: NUMA balancing has unmapped them, or they are gone",
            silent.join(", ")
        )
    })
}

#[cfg(test)]
#[path = "sampled_tests.rs"]
mod tests;
