//! One watched process: what procfs says of it, and how it is reported.

use crate::engines::rules::{self, Detected};
use crate::engines::scan::Found;
use crate::host::cgroup::MemoryCgroup;
use crate::host::process::ProcessDir;
use crate::host::root::Root;
use crate::probes::assemble::Meaning;
use crate::probes::ledger::{Ledger, ThreadId};
use crate::sampler::{placing, since};
use crate::shell;
use agent_ebpf::Tracked;
use model::balancing::Balancing;
use model::process::{Pinned, Placement, Process, Thread};
use model::signal::{SignalName, SignalState};
use model::thresholds::Thresholds;
use model::time::Timestamp;
use model::verdict::{self, Evidence, Verdict};
use model::window::{Sample, Window};
use std::collections::BTreeMap;

/// How many ticks a thread's name is believed; threads name themselves shortly after they start.
const NAME_TICKS: u32 = 10;

/// See the module's doc.
pub(super) struct Watched {
    pid: u32,
    start_time: u64,
    cookie: u64,
    tracked_since: Timestamp,
    name: String,
    executable: Option<String>,
    command: String,
    detected: Option<Detected>,
    parent_pid: Option<u32>,
    resident_bytes: Option<u64>,
    other_uid: Option<u32>,
    cpus_allowed: Option<String>,
    /// What procfs tells of it; what was made is the probes'.
    pinned: Pinned,
    known: placing::Known,
    threads: BTreeMap<u32, Name>,
    window: Window,
    /// The program changed since it was last looked at.
    changed: bool,
    ended: bool,
}

/// A thread's name and how old it is.
struct Name {
    text: String,
    age: u32,
}

impl Watched {
    /// A process that the scanner found.
    pub(super) fn found(found: &Found, entry: &Tracked) -> Self {
        Self {
            name: found.name.clone(),
            command: found.command.clone(),
            detected: found.detected.clone(),
            ..Self::new(found.pid, found.start_time, entry)
        }
    }

    /// A child that the kernel side added to the tracked set. It may be gone already.
    pub(super) fn child(root: &Root, pid: u32, entry: &Tracked, parent: Option<&Self>) -> Self {
        let mut child = Self::new(pid, 0, entry);
        child.parent_pid = (entry.parent != 0).then_some(entry.parent);
        child.changed = true;
        match ProcessDir::open(root, pid).and_then(|dir| dir.stat()) {
            Ok(stat) => {
                child.start_time = stat.start_time;
                child.name = stat.name;
            }
            Err(_) => child.ended = true,
        }
        child.detected = parent.and_then(|p| p.detected.as_ref()).map(|d| Detected {
            engine: d.engine.clone(),
            role: "child".to_owned(),
            rank: None,
            model: None,
        });
        if child.name.is_empty() {
            child.name = parent.map(|p| p.name.clone()).unwrap_or_default();
        }
        child
    }

    fn new(pid: u32, start_time: u64, entry: &Tracked) -> Self {
        Self {
            pid,
            start_time,
            cookie: entry.cookie,
            tracked_since: since(entry),
            name: String::new(),
            executable: None,
            command: String::new(),
            detected: None,
            parent_pid: None,
            resident_bytes: None,
            other_uid: None,
            cpus_allowed: None,
            pinned: Pinned::default(),
            known: placing::Known::unread(),
            threads: BTreeMap::new(),
            window: Window::default(),
            changed: false,
            ended: false,
        }
    }

    /// (pid, start time).
    pub(super) fn id(&self) -> (u32, u64) {
        (self.pid, self.start_time)
    }

    /// [`Tracked::cookie`].
    pub(super) fn cookie(&self) -> u64 {
        self.cookie
    }

    /// Its live threads, as of the last look.
    pub(super) fn tids(&self) -> impl Iterator<Item = u32> {
        self.threads.keys().copied()
    }

    /// Resident set, bytes, while it lives.
    pub(super) fn resident_bytes(&self) -> Option<u64> {
        self.resident_bytes.filter(|_| !self.ended)
    }

    /// Its pid and the cgroup that its memory is charged to, while it lives.
    pub(super) fn memory_cgroup(&self) -> Option<(u32, &MemoryCgroup)> {
        let cgroup = self.known.memory_cgroup().filter(|_| !self.ended)?;
        Some((self.pid, cgroup))
    }

    /// Whether it has ended, and all of its threads.
    pub(super) fn has_ended(&self) -> bool {
        self.ended && self.threads.is_empty()
    }

    /// It has ended.
    pub(super) fn end(&mut self) {
        self.ended = true;
        self.threads.clear();
    }

    /// It executed another program.
    pub(super) fn executed(&mut self) {
        self.changed = true;
    }

    /// The kernel side's word: no entry, another's, or its last thread has exited.
    pub(super) fn note(&mut self, entry: Option<&Tracked>) {
        match entry {
            Some(entry) if entry.cookie == self.cookie => {
                // Its threads may still tear down its memory: they stay until procfs has let go of them.
                self.ended |= entry.exited != 0;
            }
            _ => self.end(),
        }
    }

    /// The scanner's word.
    pub(super) fn update(&mut self, found: &Found) {
        self.name.clone_from(&found.name);
        self.command.clone_from(&found.command);
        if found.detected.is_some() {
            self.detected.clone_from(&found.detected);
        }
    }

    /// Reads what changes from tick to tick. A process that is gone has ended; that is no error.
    pub(super) fn look(&mut self, root: &Root, haste: placing::Haste) {
        match self.read(root, haste) {
            Ok(()) => {}
            Err(error) if error.is_gone() => self.end(),
            // What was read the last time stands; the probes count on.
            Err(error) => tracing::debug!("process {}: {error}", self.pid),
        }
    }

    fn read(
        &mut self,
        root: &Root,
        haste: placing::Haste,
    ) -> Result<(), crate::host::error::Error> {
        let dir = ProcessDir::open(root, self.pid)?;
        let stat = dir.stat()?;
        // A leader that has exited is a zombie too, as long as other threads go on.
        let only_a_zombie = stat.state == 'Z' && stat.threads <= 1;
        if stat.start_time != self.start_time || only_a_zombie {
            self.end();
            return Ok(());
        }
        self.parent_pid = Some(stat.parent_pid).filter(|pid| *pid != 0);
        self.resident_bytes = dir.resident_bytes()?;
        let status = dir.status()?;
        self.cpus_allowed.clone_from(&status.cpus_allowed);
        // SAFETY: it takes nothing and can't fail.
        let own = unsafe { libc::getuid() };
        self.other_uid = status.uid.filter(|uid| *uid != own);
        self.pinned.bytes = status.pinned_bytes;
        self.pinned.locked_bytes = status.locked_bytes;
        let unread = status.pinned_bytes.and(status.locked_bytes).is_none();
        self.pinned.reason = (unread && stat.has_address_space).then(|| {
            let path = dir.path("status");
            format!("{} lacks VmPin or VmLck", path.display())
        });
        if self.changed || self.executable.is_none() {
            self.executable = dir.executable_name();
        }
        if self.changed {
            self.changed = false;
            self.known.changed();
            let argv = dir.command_line()?;
            self.name.clone_from(&stat.name);
            self.command = shell::joined(&argv);
            if let Some(detected) = rules::detect(&argv, &stat.name) {
                self.detected = Some(detected);
            }
        }
        let tids = dir.thread_ids()?;
        self.known.look(root, &dir, &status, &tids, haste);
        self.threads
            .retain(|tid, _| tids.binary_search(tid).is_ok());
        for tid in tids {
            let known = self
                .threads
                .get_mut(&tid)
                .filter(|name| name.age < NAME_TICKS);
            if let Some(name) = known {
                name.age += 1;
            } else if let Ok(text) = dir.thread_name(tid) {
                // Young threads are asked again soon, since they name themselves late.
                self.threads.insert(tid, Name { text, age: 0 });
            }
        }
        Ok(())
    }

    /// What a snapshot says of it.
    pub(super) fn report(
        &mut self,
        ledger: &mut Ledger,
        meaning: &Meaning<'_>,
        placement: Placement,
        now_ns: u64,
        (balancing, thresholds): (Balancing<'_>, &Thresholds),
    ) -> Process {
        let threads = self.thread_reports(ledger, meaning);
        let account = ledger.process(self.cookie);
        let touches = meaning.touches(&account.by_node);
        let cpu_time = meaning.cpu_time(&account.by_node);
        let (scan_time_ns, scan_cpu_time_ns) = meaning.scan(account);
        let moves = meaning.moves(&account.by_node);
        let migrations = meaning.migrations(&account.by_node);
        let sample = Sample {
            monotonic_ns: now_ns,
            hint: Some(touches.hint.counter.clone()).filter(|c| c.pages.is_some()),
            cpu_time_ns_by_node: cpu_time.clone(),
        };
        self.window.push(sample, verdict::WINDOW_S);
        let growth = self.window.growth(self.cookie);
        let hint_state = meaning
            .signals
            .iter()
            .find(|s| s.name == SignalName::Hint)
            .map_or(SignalState::Unavailable, |s| s.state);
        let evidence = Evidence {
            hint: growth.hint.as_ref(),
            hint_is_share: verdict::hint_is_share(balancing, hint_state),
            // No conclusion rests on a signal that failed its self-test.
            cpu_time_ns_by_node: growth
                .cpu_time_ns_by_node
                .as_ref()
                .filter(|_| meaning.trusts(SignalName::Sched)),
            placement_bytes_by_node: placement
                .by_node_bytes
                .as_ref()
                .filter(|_| meaning.trusts(SignalName::Placement))
                .filter(|_| placement.is_conclusive(thresholds.mixed_from)),
            window_s: growth.window_s,
            least_pages: thresholds.evidence_pages,
        };
        let remote_share = verdict::remote_share(&evidence, meaning.topology);
        let detected = self.detected.as_ref();
        Process {
            pid: self.pid,
            start_time: self.start_time,
            tracked_since: self.tracked_since,
            parent_pid: self.parent_pid,
            name: self.name.clone(),
            executable: self.executable.clone(),
            command: self.command.clone(),
            other_uid: self.other_uid,
            engine: detected.map(|d| d.engine.clone()),
            role: detected.map(|d| d.role.clone()),
            rank: detected.and_then(|d| d.rank),
            model: detected.and_then(|d| d.model.clone()),
            alive: !self.ended,
            cpu_time_ns_by_node: cpu_time,
            moves,
            touches,
            migrations,
            scan_time_ns,
            scan_cpu_time_ns,
            pinned: Pinned {
                made: meaning.pins_made(&account.by_node),
                ..self.pinned.clone()
            },
            driver_allocated_pages: meaning.driver_allocated(&account.by_node),
            // Drawn once all of the snapshot is known.
            verdict: Verdict::Unknown,
            verdict_reason: None,
            findings: Vec::new(),
            findings_cleared: Vec::new(),
            remote_share,
            placement,
            resident_bytes: self.resident_bytes(),
            policy: self
                .known
                .placing()
                .policy
                .as_ref()
                .map(ToString::to_string),
            cpus_allowed: self.cpus_allowed.clone(),
            devices: Vec::new(),
            devices_reason: None,
            placing: self.known.placing().clone(),
            threads,
        }
    }

    fn thread_reports(&self, ledger: &mut Ledger, meaning: &Meaning<'_>) -> Vec<Thread> {
        let report = |(tid, name): (&u32, &Name)| {
            let id = ThreadId {
                tid: *tid,
                cookie: self.cookie,
            };
            let account = ledger.live_thread(&id).unwrap_or_default();
            Thread {
                tid: *tid,
                name: name.text.clone(),
                cpu_time_ns_by_node: meaning.cpu_time(&account.by_node),
                moves: meaning.move_count(&account.by_node),
                scan_time_ns: meaning.thread_scan(account.scan_ns),
                cpus_allowed: self.known.thread_cpus(*tid),
                policy: self.known.thread_policy(*tid),
            }
        };
        self.threads.iter().map(report).collect()
    }
}
