//! A real llama.cpp server in a two-node guest with a GPU on node 1, whose weights an earlier run left in the page cache of
//! node 0: what `numawatch check` says of it, and of the same server after the remedy.
#![allow(
    clippy::expect_used,
    reason = "a helper that cannot go on fails its test"
)]

#[path = "llama/disk.rs"]
mod disk;
#[path = "llama/engine.rs"]
mod engine;

use anyhow::{Context as _, Result};
use disk::Disk;
use model::check::Report;
use model::finding::{Finding, Severity};
use model::process::ByNode;
use serde::Deserialize as _;
use serde_json::Value;
use std::sync::OnceLock;
use tests::vm::in_guest;

/// Bytes of a page of the page cache.
const PAGE: u64 = 4096;

/// One server, checked.
#[derive(Debug)]
struct Checked {
    /// Where its weights lie, of the whole mapping, by the kernel's own count.
    weights: ByNode,
    report: Report,
    status: i32,
}

impl Checked {
    fn finding(&self) -> Option<&Finding> {
        let mut findings = self.report.findings.iter();
        findings.find(|f| f.id == "weights-in-remote-page-cache")
    }
}

/// The server that found its weights on node 0, and the one after the page cache was dropped; one boot for all tests.
fn servers() -> &'static [Checked; 2] {
    static SERVERS: OnceLock<Result<[Checked; 2], String>> = OnceLock::new();
    let servers = SERVERS.get_or_init(|| play().map_err(|error| format!("{error:#}")));
    servers.as_ref().expect("the guest")
}

fn play() -> Result<[Checked; 2]> {
    let disk = Disk::create();
    let directory = disk.path().to_str().context("no UTF-8 in the path")?;
    let machine = ["--memory", "2G", "--gpu-node", "1", "--disk", directory];
    let text = in_guest(&machine, include_str!("llama/guest.sh"))?;
    let mut documents = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    let mut next = || {
        documents
            .next()
            .context("three documents a server")?
            .context(text.clone())
    };
    let mut checked = || -> Result<Checked> {
        Ok(Checked {
            weights: by_node(next()?.as_str().context("a line")?),
            report: Report::deserialize(next()?)?,
            status: i32::deserialize(next()?)?,
        })
    };
    Ok([checked()?, checked()?])
}

/// Bytes by node of a line of `numa_maps`: `… N0=60203 kernelpagesize_kB=4`.
fn by_node(line: &str) -> ByNode {
    assert!(line.ends_with("kernelpagesize_kB=4"), "{line}");
    let words = line.split(' ').filter_map(|word| word.strip_prefix('N'));
    words
        .map(|word| {
            let (node, pages) = word.split_once('=').expect("N0=1");
            let pages: u64 = pages.parse().expect("pages");
            (node.parse().expect("a node"), pages * PAGE)
        })
        .collect()
}

#[test]
fn weights_that_an_earlier_run_read_on_the_other_node_are_named() {
    let [before, _] = servers();
    let found = before.finding();
    let found = found.unwrap_or_else(|| panic!("it isn't found: {before:?}"));
    assert_eq!((found.severity, before.status), (Severity::Fail, 1));
    assert_eq!(
        found.summary,
        format!(
            "100 % of its weights lie in the page cache away from GPU0 on node 1: {}",
            disk::MODEL
        )
    );
    assert_eq!(
        found.advice.first().map(String::as_str),
        Some(
            "sync; echo 1 > /proc/sys/vm/drop_caches   # once all that map them are stopped: mapped pages stay"
        )
    );
}

#[test]
fn its_bytes_by_node_are_those_of_numa_maps() {
    let [before, _] = servers();
    let evidence = &before.finding().expect("the finding").evidence;
    let of_file: Vec<(&str, f64)> = evidence
        .iter()
        .filter_map(|e| Some((e.name.strip_prefix(disk::MODEL)?, e.value)))
        .collect();
    assert_eq!(before.weights.len(), 1, "{:?}", before.weights);
    let [(" on node 0", bytes)] = of_file[..] else {
        panic!("on node 0 alone: {evidence:?}");
    };
    // A sample, scaled to what the kernel accounts for.
    let counted = before.weights[&0] as f64;
    assert!(
        (bytes / counted - 1.0).abs() < 0.02,
        "{bytes} of {counted} bytes"
    );
}

#[test]
fn after_dropping_the_page_cache_and_launch_they_are_at_home() {
    let [before, after] = servers();
    assert_eq!(after.finding(), None);
    let whole = before.weights[&0];
    assert_eq!(after.weights, ByNode::from([(1, whole)]));
    assert_eq!(after.status, 0, "{:?}", after.report);
}
