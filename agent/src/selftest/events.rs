//! The events themselves, each with the truth of it: what a thread of the self-test touches, pins and burns.

use super::driver::Device;
use super::plan::{DRIVER_PAGES, PAGES, PINNED_PAGES, Place, SHARED_PAGES, SWAP_PAGES};
use super::sys::{Memfd, PAGE, Pins, Region, allocate_on, cpu_time_ns, current_node, run_on};
use anyhow::{Context, Result};
use model::process::ByNode;
use model::selftest::{Truth, count};
use model::signal::SignalName;
use model::topology::NodeId;
use std::path::Path;

/// Where the thread is, and what it has done so far.
pub(super) struct Thread {
    pub(super) node: NodeId,
    pub(super) counted_ns: u64,
    pub(super) truth: Truth,
}

impl Thread {
    /// Where it is already, with what it has run from `counted_ns` on.
    pub(super) fn here(counted_ns: u64) -> Result<Self> {
        Ok(Self {
            node: current_node()?,
            counted_ns,
            truth: Truth::default(),
        })
    }

    /// CPU time so far belongs to the node that it is on.
    pub(super) fn count(&mut self) {
        let now = cpu_time_ns();
        let spent = now.saturating_sub(self.counted_ns);
        *self.truth.cpu_time_ns_by_node.entry(self.node).or_default() += spent;
        self.counted_ns = now;
    }

    pub(super) fn go_to(&mut self, place: &Place) -> Result<()> {
        let before = cpu_time_ns();
        run_on(&place.cpus)?;
        self.count();
        // Some of it was on the node that it came to; nobody tells how much.
        self.truth.under_way_ns += self.counted_ns.saturating_sub(before);
        let node = current_node()?;
        if node != self.node {
            count(&mut self.truth.moves, self.node, node, 1);
        }
        self.node = node;
        Ok(())
    }
}

pub(super) fn burn(ns: u64) {
    let end = cpu_time_ns() + ns;
    while cpu_time_ns() < end {
        std::hint::spin_loop();
    }
}

pub(super) fn bound(pages: usize, node: NodeId) -> Result<Region> {
    let region = Region::private(pages)?;
    region
        .bind(node)
        .with_context(|| format!("mbind to node {node}"))?;
    Ok(region)
}

/// Private memory, allocated by the touch.
pub(super) fn private(thread: &mut Thread, node: NodeId) -> Result<()> {
    let region = bound(PAGES, node)?;
    region.touch();
    touched(&mut thread.truth.first_touch, thread.node, &region)
}

/// Shared memory: brought into being by a touch, and mapped once more.
pub(super) fn shared(thread: &mut Thread, node: NodeId) -> Result<()> {
    let file = Memfd::new(SHARED_PAGES)?;
    let new = Region::shared(SHARED_PAGES, &file)?;
    new.bind(node)
        .with_context(|| format!("mbind of shared memory to node {node}"))?;
    new.touch();
    touched(&mut thread.truth.map_new, thread.node, &new)?;
    let old = Region::shared(SHARED_PAGES, &file)?;
    old.touch();
    touched(&mut thread.truth.map_old, thread.node, &old)
}

/// Counts a region's pages where `move_pages` says that they are.
pub(super) fn touched(
    pairs: &mut model::selftest::Pairs,
    from: NodeId,
    region: &Region,
) -> Result<()> {
    let nodes = region.nodes().context("move_pages")?;
    let mut by_node = ByNode::new();
    for node in nodes {
        *by_node
            .entry(node.context("a page that was touched is not resident")?)
            .or_default() += 1;
    }
    for (node, pages) in by_node {
        count(pairs, from, node, pages);
    }
    Ok(())
}

/// Pins pages on each node; they stay pinned as long as the result lives.
pub(super) fn pin(thread: &mut Thread, memory: &[NodeId]) -> Option<(Pins, Vec<Region>)> {
    let mut made = || -> Result<(Pins, Vec<Region>)> {
        let mut regions = Vec::new();
        for node in memory {
            let region = bound(PINNED_PAGES, *node)?;
            region.touch();
            touched(&mut thread.truth.first_touch, thread.node, &region)?;
            regions.push(region);
        }
        let pins = Pins::of(&regions).context("io_uring's registered buffers")?;
        for region in &regions {
            for node in region.nodes()?.into_iter().flatten() {
                *thread.truth.pinned_pages.entry(node).or_default() += 1;
                // They stay, too.
                *thread.truth.resident_bytes.entry(node).or_default() += PAGE as u64;
            }
        }
        Ok((pins, regions))
    };
    match made() {
        Ok(pins) => Some(pins),
        Err(error) => {
            thread.truth.pinned_pages.clear();
            let why = format!("no page can be pinned: {error:#}");
            thread.truth.not_made.insert(SignalName::Pin, why);
            None
        }
    }
}

/// Has a device's driver allocate pages on each node; they stay as long as the result lives.
pub(super) fn driver(thread: &mut Thread, device: &Path, memory: &[NodeId]) -> Option<Device> {
    let mut made = || -> Result<Device> {
        let device = Device::open(device).with_context(|| device.display().to_string())?;
        for node in memory {
            allocate_on(Some(*node)).context("set_mempolicy")?;
            device.allocate(DRIVER_PAGES).context("its ioctl")?;
            let pages = thread.truth.driver_allocated.entry(*node).or_default();
            *pages += DRIVER_PAGES as u64;
        }
        Ok(device)
    };
    let made = made();
    let back = allocate_on(None).context("set_mempolicy");
    match made.and_then(|device| back.map(|()| device)) {
        Ok(device) => Some(device),
        Err(error) => {
            thread.truth.driver_allocated.clear();
            let why = format!("no buffer can be made: {error:#}");
            thread.truth.not_made.insert(SignalName::DriverAlloc, why);
            None
        }
    }
}

/// Pages that go to swap and are touched again, as many as go.
pub(super) fn swap(thread: &mut Thread, node: NodeId) -> Result<()> {
    let region = bound(SWAP_PAGES, node)?;
    region.touch();
    touched(&mut thread.truth.first_touch, thread.node, &region)?;
    let mut out = 0;
    // Pages that wait in a CPU's list for the LRU don't go at once; and a kernel before 5.4 lets none.
    for _ in 0..20 {
        if region.page_out().is_err() {
            break;
        }
        out = region.nodes()?.iter().filter(|n| n.is_none()).count();
        if out == SWAP_PAGES {
            break;
        }
    }
    region.touch();
    thread.truth.swapped_in += out as u64;
    Ok(())
}
