//! A noisy neighbour that fills a node: hugetlb's pool takes nearly all of it, and a process that prefers it takes the rest, and
//! more.

use super::NodeCounts;
use super::start::{Given, Tenant};
use crate::session::{Nodes, Setting, set};
use crate::settings::Settings;
use anyhow::{Context as _, Result};

/// What is left free when hugetlb's pool has taken its share.
const LEFT: u64 = 10 << 20;
const HUGE: u64 = 2 << 20;

/// So little is kept back that the node can be filled to 99 %. The last half per cent is for whoever is bound to it: who only prefers it
/// goes elsewhere from there on, or the kernel would kill a bound process for want of a page.
const KEPT_BACK: [Setting; 2] = [
    set("/proc/sys/vm/min_free_kbytes", "2048"),
    set("/proc/sys/vm/watermark_scale_factor", "50"),
];

/// A full node; given back on drop.
#[derive(Debug)]
pub(super) struct Full {
    node: u32,
    _kept_back: Settings,
}

impl Full {
    /// Fills it, but for some MiB.
    pub(super) fn fill(node: u32) -> Result<Self> {
        let kept_back = Settings::apply(&KEPT_BACK, &Nodes::TWO)?;
        let full = Self {
            node,
            _kept_back: kept_back,
        };
        let free = full.counts()?.free_bytes;
        full.set_pool(free.saturating_sub(LEFT) / HUGE)?;
        Ok(full)
    }

    /// A process that prefers the node and takes 32 MiB of it, again and again.
    pub(super) fn press(&self, workload: &str) -> Result<Tenant> {
        let given = Given {
            policy: Some((libc::MPOL_PREFERRED, self.node)),
            ..Given::default()
        };
        Tenant::start(
            given,
            &format!("exec {workload} tenant --pages 8192 --work churn"),
        )
    }

    /// The node's counters.
    pub(super) fn counts(&self) -> Result<NodeCounts> {
        let node = format!("/sys/devices/system/node/node{}", self.node);
        let number = |file: &str, name: &str| -> Result<u64> {
            let path = format!("{node}/{file}");
            let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
            let line = text
                .lines()
                .find_map(|line| Some(line.split_once(name)?.1))
                .with_context(|| format!("{path}: no {name}"))?;
            let number = line.trim_start_matches(':').split_whitespace().next();
            Ok(number.context(path)?.parse()?)
        };
        Ok(NodeCounts {
            free_bytes: number("meminfo", "MemFree")? << 10,
            foreign: number("numastat", "numa_foreign")?,
        })
    }

    fn set_pool(&self, pages: u64) -> Result<()> {
        let pool = format!(
            "/sys/devices/system/node/node{}/hugepages/hugepages-2048kB/nr_hugepages",
            self.node
        );
        std::fs::write(&pool, pages.to_string()).with_context(|| format!("{pool} = {pages}"))
    }
}

impl Drop for Full {
    fn drop(&mut self) {
        let _ = self.set_pool(0);
    }
}
