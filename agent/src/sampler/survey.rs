//! The survey of one process's memory: where its resident pages are, and on which nodes a sample of them lies. Its cost
//! doesn't grow with the process.
//!
//! A pass over the address space goes in slices and is picked up where it was left; it counts the resident pages of each
//! stratum and keeps a bounded sample of their addresses. Each refresh asks the kernel where some of them lie.

use super::strata::Strata;
use crate::host::cpulist;
use crate::host::error::Error;
use crate::host::maps::{Mapped, Maps};
use crate::host::memory_filesystems;
use crate::host::move_pages::nodes_of;
use crate::host::page_flags::PageFlags;
use crate::host::pagemap::{Pagemap, Resident};
use crate::host::process::ProcessDir;
use crate::host::root::{Root, read};
use crate::host::self_cost::cpu_time_ns;
use model::locked::{LockedSample, locked_by_node};
use model::mapping::Device;
use model::process::{ByNode, Placement};
use model::random::Random;
use model::sampled;
use model::time::Timestamp;
use model::topology::NodeId;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant, SystemTime};

/// CPU time after which a refresh asks for no more pages: it may take 5 ms, and what it has begun takes a while.
const MOST_CPU: Duration = Duration::from_micros(4_500);

/// The part of it that a slice of a pass may take.
const SLICE_CPU: Duration = Duration::from_micros(2_500);

/// About how many pages' flags a refresh reads, where memory is locked at all.
const MOST_FLAGS: usize = 1_024;

/// How long after one pass the next begins: the shortest, the longest, and in times of the CPU time that the pass took.
const SHORTEST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
const PAUSE_TIMES: u32 = 1_000;

/// Addresses that one look goes over at first, bytes; it adapts to [`LOOK_CPU`], because how fast the kernel passes over what
/// is not resident depends on whether it has page tables there.
const FIRST_REACH: u64 = 1 << 30;
const LEAST_REACH: u64 = 32 << 20;
const MOST_REACH: u64 = 1 << 40;
const LOOK_CPU: Duration = Duration::from_micros(250);

/// From how much on a resident set must be found, bytes: the kernel's own account is a little off.
const EVIDENT: u64 = 1 << 20;

/// What all surveys of a host share.
pub(super) struct Ground {
    root: Root,
    hugetlb: BTreeMap<Device, u64>,
    nodes: Vec<NodeId>,
}

impl Ground {
    /// Reads it.
    pub(super) fn new(root: Root) -> Self {
        let nodes = read(&root.sys("devices/system/node/has_memory"));
        Self {
            hugetlb: memory_filesystems::kernels_own_hugetlb(&root),
            nodes: nodes
                .ok()
                .and_then(|l| cpulist::parse(&l))
                .unwrap_or_default(),
            root,
        }
    }

    /// Where procfs and sysfs are.
    pub(super) fn root(&self) -> &Root {
        &self.root
    }
}

/// How far a refresh may go.
#[derive(Clone, Copy, Debug)]
pub(super) enum Effort {
    /// One slice.
    Slice,
    /// Until the pass is complete, or until then.
    Complete(Instant),
}

/// See the module's doc.
pub(super) struct Survey {
    pid: u32,
    start_time: u64,
    random: Random,
    pass: Option<Pass>,
    /// What the last pass that came to its end found.
    done: Option<Strata>,
    /// When the next begins.
    next_pass: Instant,
    /// What was accounted as resident when the last one ended, bytes.
    resident_then: u64,
    /// Why what it found is not to be believed.
    blind: Option<String>,
    /// Where locked memory was the last time.
    locked: Option<ByNode>,
}

/// A pass under way.
struct Pass {
    maps: Maps,
    pagemap: Pagemap,
    /// Mappings that were read and not gone over to their ends; the first may be under way.
    pending: VecDeque<Mapped>,
    /// Up to where the first was gone over.
    cursor: u64,
    /// Mapped addresses gone over, bytes.
    gone_over: u64,
    reach: u64,
    /// CPU time so far.
    took: Duration,
    strata: Strata,
    found: Vec<Resident>,
    /// The resident set when it began, bytes.
    resident: u64,
}

impl Survey {
    /// Of a process, by pid and start time.
    pub(super) fn new((pid, start_time): (u32, u64)) -> Self {
        Self {
            pid,
            start_time,
            random: Random::new(u64::from(pid) ^ start_time.rotate_left(32)),
            pass: None,
            done: None,
            next_pass: Instant::now(),
            resident_then: 0,
            blind: None,
            locked: None,
        }
    }

    /// Goes on, and says where the memory lies as far as is known. `broken` takes no answer.
    ///
    /// # Errors
    /// [`Error::Gone`] or [`Error::Denied`], or what can't be read.
    pub(super) fn refresh(
        &mut self,
        ground: &Ground,
        effort: Effort,
        broken: bool,
    ) -> Result<Option<Placement>, Error> {
        let began = cpu_time_ns();
        let spent = || Duration::from_nanos(cpu_time_ns().saturating_sub(began));
        let dir = ProcessDir::open(&ground.root, self.pid)?;
        let stat = dir.stat()?;
        if stat.start_time != self.start_time {
            return Err(Error::Gone { pid: self.pid });
        }
        if !stat.has_address_space {
            return Ok(None);
        }
        let status = dir.status()?;
        if status.resident_by_kind.is_empty() {
            let what = "lacks RssAnon and its like, so nothing tells how much is resident";
            return Err(Error::format(&dir.path("status"), what));
        }
        let resident: u64 = status.resident_by_kind.values().sum();
        let is_another = resident.abs_diff(self.resident_then) > self.resident_then / 8;
        if is_another || matches!(effort, Effort::Complete(_)) {
            // It has loaded its model since, or let go of it; or what is wanted is how it is now.
            self.next_pass = Instant::now();
        }
        match effort {
            Effort::Slice => self.go_on(ground, &dir, &|| spent() < SLICE_CPU)?,
            Effort::Complete(until) => self.go_on(ground, &dir, &|| Instant::now() < until)?,
        }
        if self.pass.is_none() {
            self.resident_then = resident;
        }
        if let Some(why) = &self.blind {
            return Err(Error::format(&dir.path("pagemap"), why));
        }
        let coverage = match (&self.done, &self.pass) {
            (None, Some(pass)) => pass.coverage(status.address_space_bytes),
            _ => 1.0,
        };
        let strata = match (&mut self.done, &mut self.pass) {
            (Some(strata), _) => strata,
            (None, Some(pass)) => {
                // It has grown since the last refresh.
                pass.strata.draw(&mut self.random);
                &mut pass.strata
            }
            (None, None) => return Ok(None),
        };
        let ask_on = || matches!(effort, Effort::Complete(_)) || spent() < MOST_CPU;
        strata
            .ask(self.pid, &ask_on)
            .map_err(|source| Error::process_io(self.pid, &dir.path("pagemap"), source))?;
        let sampled = strata.sampled();
        let mut placement = if broken {
            Placement {
                by_node_bytes: Some(BTreeMap::new()),
                by_kind: Some(BTreeMap::new()),
                ..Placement::default()
            }
        } else {
            sampled::placement(&sampled, &status.resident_by_kind, &ground.nodes)
        };
        placement.locked_by_node_bytes = match status.locked_bytes {
            Some(0) => Some(BTreeMap::new()),
            // Without time for it, 2 ms, the last answer stands.
            Some(_) if matches!(effort, Effort::Slice) && spent() > SLICE_CPU => {
                self.locked.clone()
            }
            Some(bytes) => locked(ground.root(), &dir, strata, bytes),
            None => None,
        };
        self.locked.clone_from(&placement.locked_by_node_bytes);
        placement.coverage = Some(coverage);
        placement.source = Some("move_pages".to_owned());
        placement.taken_at = Some(Timestamp(SystemTime::now()));
        Ok(Some(placement))
    }

    /// Goes on with the pass, or begins one that is due, while `may_go_on`.
    fn go_on(
        &mut self,
        ground: &Ground,
        dir: &ProcessDir,
        may_go_on: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        if self.pass.is_none() {
            if Instant::now() < self.next_pass {
                return Ok(());
            }
            self.pass = Some(Pass::begin(ground, dir)?);
        }
        let Some(pass) = &mut self.pass else {
            return Ok(());
        };
        let began = cpu_time_ns();
        let at_end = pass
            .go_on(&mut self.random, may_go_on)
            .map_err(|source| Error::process_io(self.pid, &dir.path("pagemap"), source))?;
        pass.took += Duration::from_nanos(cpu_time_ns().saturating_sub(began));
        if at_end && let Some(mut pass) = self.pass.take() {
            pass.strata.draw(&mut self.random);
            let resident = dir.resident_bytes()?.unwrap_or(0).min(pass.resident);
            self.blind = blind(pass.strata.resident_bytes(), resident);
            self.done = Some(pass.strata);
            let pause = pass.took * PAUSE_TIMES;
            self.next_pass = Instant::now() + pause.clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
        }
        Ok(())
    }
}

/// Why a pass is not to be believed that found so many bytes, of a process that had so many resident all the while.
fn blind(found: u64, resident: u64) -> Option<String> {
    (resident >= EVIDENT && found < resident / 16).then(|| {
        let (found, resident) = (found >> 10, resident >> 10);
        format!("with maps it shows {found} KiB of {resident} KiB that are resident: is something mounted over it?")
    })
}

/// Where locked pages lie; `None` where nobody tells.
fn locked(root: &Root, dir: &ProcessDir, strata: &Strata, bytes: u64) -> Option<ByNode> {
    let flags = PageFlags::open(root, dir).ok()?;
    let mut samples = Vec::new();
    for (weight, addresses) in strata.some(MOST_FLAGS) {
        let is_locked = |address: &&u64| flags.is_locked(**address).is_ok_and(|l| l == Some(true));
        let addresses: Vec<u64> = addresses.iter().filter(is_locked).copied().collect();
        let mut locked = ByNode::new();
        for node in nodes_of(dir.pid(), &addresses).ok()? {
            if let Ok(node) = NodeId::try_from(node) {
                *locked.entry(node).or_default() += 1;
            }
        }
        samples.push(LockedSample { weight, locked });
    }
    locked_by_node(&samples, bytes)
}

impl Pass {
    fn begin(ground: &Ground, dir: &ProcessDir) -> Result<Self, Error> {
        let filesystems = memory_filesystems::of(dir, &ground.hugetlb);
        Ok(Self {
            maps: Maps::open(dir, filesystems)?,
            pagemap: Pagemap::open(dir)?,
            pending: VecDeque::new(),
            cursor: 0,
            gone_over: 0,
            reach: FIRST_REACH,
            took: Duration::ZERO,
            strata: Strata::default(),
            found: Vec::new(),
            resident: dir.resident_bytes()?.unwrap_or(0),
        })
    }

    /// The share of the mapped addresses gone over; less than 1 until the end.
    fn coverage(&self, address_space_bytes: Option<u64>) -> f64 {
        let all = address_space_bytes.unwrap_or(0).max(1);
        (self.gone_over as f64 / all as f64).min(0.99)
    }

    /// Whether the end is reached.
    fn go_on(
        &mut self,
        random: &mut Random,
        may_go_on: &dyn Fn() -> bool,
    ) -> std::io::Result<bool> {
        loop {
            if self.pending.is_empty() {
                match self.maps.next()? {
                    Some(more) => self.pending.extend(more),
                    None => return Ok(true),
                }
            }
            self.look(random)?;
            if !may_go_on() {
                return Ok(false);
            }
        }
    }

    /// One look at what is pending.
    fn look(&mut self, random: &mut Random) -> std::io::Result<()> {
        let Some(range) = self.next_range() else {
            return Ok(());
        };
        let began = cpu_time_ns();
        self.found.clear();
        let stop = self.pagemap.look(range.clone(), &mut self.found)?;
        let took = Duration::from_nanos(cpu_time_ns().saturating_sub(began));
        if took > LOOK_CPU {
            self.reach = (self.reach / 2).max(LEAST_REACH);
        } else if took < LOOK_CPU / 4 && stop == range.end {
            self.reach = (self.reach * 2).min(MOST_REACH);
        }
        // A look that gets nowhere would be repeated for ever.
        let stop = if stop > range.start { stop } else { range.end };
        self.strata.add(&self.pending, &self.found, random);
        while let Some(first) = self.pending.front() {
            let from = first.range.start.max(self.cursor);
            self.gone_over += stop.min(first.range.end).saturating_sub(from);
            if first.range.end > stop {
                break;
            }
            self.pending.pop_front();
        }
        self.cursor = stop;
        Ok(())
    }

    /// What to look at next: the start of what is pending, up to [`Self::reach`]; mappings without memory to place are left out.
    fn next_range(&mut self) -> Option<std::ops::Range<u64>> {
        while let Some(first) = self.pending.front() {
            if first.content.is_some() && first.range.end > self.cursor {
                break;
            }
            self.gone_over += first
                .range
                .end
                .saturating_sub(first.range.start.max(self.cursor));
            self.pending.pop_front();
        }
        let start = self.pending.front()?.range.start.max(self.cursor);
        let mut end = start;
        let mut left = self.reach;
        for mapped in &self.pending {
            let from = mapped.range.start.max(start);
            let apart = end > start && !self.pagemap.spans(from.saturating_sub(end));
            if mapped.content.is_none() || apart || left == 0 {
                break;
            }
            end = mapped.range.end.min(from.saturating_add(left));
            left = left.saturating_sub(end - from);
        }
        Some(start..end)
    }
}

#[cfg(test)]
#[path = "survey_tests.rs"]
mod tests;
