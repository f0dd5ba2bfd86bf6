//! Reads the kernel side's maps once a tick, and keeps the set of tracked processes.

mod room;

use super::attach::Attached;
use super::ledger::{Ledger, Reading, Running, ThreadId};
use super::running::{Threads, running};
use super::settle::{Live, settle};
use agent_ebpf::{
    BalanceRow, Cpu, DeviceRow, NEWS_EXEC, NO_NODE, NODE_IDS, News, RowKey, SchedRow, Thread,
    TouchRow, Tracked,
};
use anyhow::{Context, Result};
use aya::maps::{HashMap as BpfHashMap, MapData, PerCpuArray, RingBuf};
use aya::{Ebpf, Pod};
use aya_log::EbpfLogger;
use model::topology::Topology;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

/// The maps of the loaded kernel side. Dropping it detaches everything.
pub(crate) struct Reader {
    tracked: BpfHashMap<MapData, u32, Tracked>,
    threads: BpfHashMap<MapData, u32, Thread>,
    sched: BpfHashMap<MapData, RowKey, SchedRow>,
    touch: BpfHashMap<MapData, RowKey, TouchRow>,
    balance: BpfHashMap<MapData, RowKey, BalanceRow>,
    device: BpfHashMap<MapData, RowKey, DeviceRow>,
    cpus: PerCpuArray<MapData, Cpu>,
    lost: PerCpuArray<MapData, u64>,
    news: RingBuf<MapData>,
    node_of_cpu: Vec<Option<u32>>,
    slot_table: Vec<u8>,
    entries: Vec<(&'static str, u32)>,
    used: room::Used,
    /// Counts that found no room because there was to be none.
    forgiven: u64,
    logger: Option<EbpfLogger<&'static dyn log::Log>>,
    _ebpf: Ebpf,
}

/// What the ring buffer told since the last tick.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Happened {
    /// Processes that executed a new program.
    pub(crate) executed: HashSet<u32>,
}

impl Reader {
    /// Takes over the maps of what was attached.
    pub(crate) fn new(
        attached: Attached,
        topology: &Topology,
        slot_table: Vec<u8>,
    ) -> Result<Self> {
        let mut ebpf = attached.ebpf;
        let logger = match EbpfLogger::init(&mut ebpf) {
            Ok(logger) => Some(logger),
            Err(error) => {
                tracing::warn!("messages of the kernel side are not read: {error}");
                None
            }
        };
        let highest = topology
            .nodes
            .iter()
            .flat_map(|n| n.cpus.iter())
            .max()
            .copied()
            .unwrap_or(0);
        Ok(Self {
            tracked: hash(&mut ebpf, "TRACKED")?,
            threads: hash(&mut ebpf, "THREADS")?,
            sched: hash(&mut ebpf, "SCHED")?,
            touch: hash(&mut ebpf, "TOUCH")?,
            balance: hash(&mut ebpf, "BALANCE")?,
            device: hash(&mut ebpf, "DEVICE")?,
            cpus: per_cpu(&mut ebpf, "CPUS")?,
            lost: per_cpu(&mut ebpf, "LOST")?,
            news: RingBuf::try_from(
                ebpf.take_map("NEWS")
                    .context("the object has no map NEWS")?,
            )?,
            node_of_cpu: (0..=highest).map(|cpu| topology.node_of_cpu(cpu)).collect(),
            slot_table,
            entries: attached.entries,
            used: room::used(&Reading::default()),
            forgiven: 0,
            logger,
            _ebpf: ebpf,
        })
    }

    /// Begins to count a process from now on. `threads` are those that it has, with their run time so far.
    pub(crate) fn track(&mut self, tgid: u32, threads: &[(u32, u64)]) -> Result<Tracked> {
        let tracked = Tracked {
            cookie: now_ns(),
            parent: 0,
            exited: 0,
        };
        let result = self.register(tgid, tracked, threads);
        if result.is_err() {
            // A thread's row says by itself that its process is watched.
            for (tid, _) in threads {
                let _ = self.threads.remove(tid);
            }
        }
        result.map(|()| tracked)
    }

    /// Threads before the process itself: whoever is not registered by then counts from its birth.
    fn register(&mut self, tgid: u32, tracked: Tracked, threads: &[(u32, u64)]) -> Result<()> {
        for (tid, run_time_ns) in threads {
            let thread = registered(tracked.cookie, tgid, *run_time_ns);
            self.threads.insert(tid, thread, BPF_ANY).with_context(|| {
                format!("process {tgid} is not watched: the table of threads is full")
            })?;
        }
        self.tracked
            .insert(tgid, tracked, BPF_ANY)
            .with_context(|| {
                format!("process {tgid} is not watched: the table of processes is full")
            })
    }

    /// Stops counting a process; not its successor of the same pid.
    pub(crate) fn untrack(&mut self, tgid: u32, cookie: u64) {
        if self
            .tracked
            .get(&tgid, 0)
            .is_ok_and(|entry| entry.cookie == cookie)
        {
            // It may be gone already: the kernel side removes a pid that came back.
            let _ = self.tracked.remove(&tgid);
        }
    }

    /// The tracked processes, children that the kernel side added included.
    pub(crate) fn tracked(&self) -> Result<HashMap<u32, Tracked>> {
        Ok(entries(&self.tracked)?.into_iter().collect())
    }

    /// Reads all rows, and who runs.
    pub(crate) fn read(&mut self, host: &impl Threads) -> Result<Reading> {
        let before = self.cpu_records()?;
        let mut reading = Reading {
            threads: entries(&self.threads)?,
            sched: entries(&self.sched)?,
            touch: entries(&self.touch)?,
            balance: entries(&self.balance)?,
            device: entries(&self.device)?,
            running: Vec::new(),
        };
        settle(&mut reading, before, &Now { reader: self, host })?;
        self.used = room::used(&reading);
        Ok(reading)
    }

    fn cpu_records(&self) -> Result<Vec<Cpu>> {
        Ok(self
            .cpus
            .get(&0, 0)
            .context("map CPUS cannot be read")?
            .to_vec())
    }

    fn slot_of(&self, cpu_node: u32, memory_node: u32) -> usize {
        let index = cpu_node as usize * NODE_IDS + memory_node as usize;
        self.slot_table
            .get(index)
            .map_or(agent_ebpf::SLOT_UNKNOWN, |slot| usize::from(*slot))
    }

    /// Reads a last time and deletes the rows of threads that have ended, and folds them, but what `leave_out` takes out.
    pub(crate) fn retire(
        &mut self,
        ledger: &mut Ledger,
        ended: &[ThreadId],
        leave_out: impl Fn(&mut Reading),
    ) {
        for id in ended {
            let nodes = ledger.nodes(id);
            let mut last = self.of_thread(id, &nodes);
            self.remove(id, &last);
            leave_out(&mut last);
            ledger.absorb_rows(&last);
            ledger.fold(id);
        }
    }

    /// Deletes the rows of a thread whose counts nobody wants.
    pub(crate) fn delete(&mut self, id: &ThreadId, nodes: &[u32]) {
        let last = self.of_thread(id, nodes);
        self.remove(id, &last);
    }

    fn remove(&mut self, id: &ThreadId, rows: &Reading) {
        // A removal fails only if the row is gone, which is what it is for.
        for (key, _) in &rows.sched {
            let _ = self.sched.remove(key);
        }
        for (key, _) in &rows.touch {
            let _ = self.touch.remove(key);
        }
        for (key, _) in &rows.balance {
            let _ = self.balance.remove(key);
        }
        for (key, _) in &rows.device {
            let _ = self.device.remove(key);
        }
        if !rows.threads.is_empty() {
            let _ = self.threads.remove(&id.tid);
        }
    }

    /// One thread's rows; not those of a successor with its tid.
    fn of_thread(&self, id: &ThreadId, nodes: &[u32]) -> Reading {
        fn rows<K: Pod, V: Pod>(map: &BpfHashMap<MapData, K, V>, keys: &[K]) -> Vec<(K, V)> {
            keys.iter()
                .filter_map(|key| map.get(key, 0).ok().map(|row| (*key, row)))
                .collect()
        }
        let keys: Vec<RowKey> = nodes
            .iter()
            .map(|node| RowKey {
                tid: id.tid,
                node: *node,
            })
            .collect();
        let mut reading = Reading {
            threads: rows(&self.threads, &[id.tid]),
            sched: rows(&self.sched, &keys),
            touch: rows(&self.touch, &keys),
            balance: rows(&self.balance, &keys),
            device: rows(&self.device, &keys),
            ..Reading::default()
        };
        reading.threads.retain(|(_, row)| row.cookie == id.cookie);
        reading.sched.retain(|(_, row)| row.cookie == id.cookie);
        reading.touch.retain(|(_, row)| row.cookie == id.cookie);
        reading.balance.retain(|(_, row)| row.cookie == id.cookie);
        reading.device.retain(|(_, row)| row.cookie == id.cookie);
        reading
    }

    /// What happened since the last call; never blocks.
    pub(crate) fn news(&mut self) -> Happened {
        let mut happened = Happened::default();
        while let Some(item) = self.news.next() {
            if let Some(news) = parse_news(&item)
                && news.kind == NEWS_EXEC
            {
                happened.executed.insert(news.tgid);
            }
        }
        if let Some(logger) = &mut self.logger {
            logger.flush();
        }
        happened
    }

    /// Context switches of all CPUs since the start.
    pub(crate) fn switches(&self) -> Option<u64> {
        let records = self.cpu_records().ok()?;
        Some(records.iter().map(|cpu| cpu.switches).sum())
    }
}

/// The kernel side at this moment, and the host.
struct Now<'a, H> {
    reader: &'a Reader,
    host: &'a H,
}

impl<H: Threads> Live for Now<'_, H> {
    fn cpus(&self) -> Result<Vec<Cpu>> {
        self.reader.cpu_records()
    }

    fn running(&self, cpus: &[Cpu], threads: &[(u32, Thread)]) -> Vec<(usize, Running)> {
        let slot_of = |cpu, memory| self.reader.slot_of(cpu, memory);
        let node_of_cpu = &self.reader.node_of_cpu;
        running(cpus, threads, node_of_cpu, slot_of, self.host)
    }

    fn rows(&self, tid: u32) -> Option<(Thread, Vec<(RowKey, SchedRow)>)> {
        let thread = self.reader.threads.get(&tid, 0).ok()?;
        let nodes: BTreeSet<u32> = self.reader.node_of_cpu.iter().flatten().copied().collect();
        let rows = nodes.into_iter().filter_map(|node| {
            let key = RowKey { tid, node };
            let row = self.reader.sched.get(&key, 0).ok()?;
            (row.cookie == thread.cookie).then_some((key, row))
        });
        Some((thread, rows.collect()))
    }

    fn pause(&self) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The state of a thread that exists before its process is watched.
pub(crate) fn registered(cookie: u64, tgid: u32, run_time_ns: u64) -> Thread {
    Thread {
        cookie,
        pending_at: 0,
        copying_at: 0,
        tgid,
        exited: 0,
        task: 0,
        on_cpu_ns: 0,
        // 0 would say that it was born since.
        run_time_ns: run_time_ns.max(1),
        scan_ns: 0,
        scan_cpu_ns: 0,
        scan_began_ns: 0,
        scan_began_run_time_ns: 0,
        scan_began_account_ns: 0,
        migrating_vma: 0,
        pinning_pages: 0,
        last_node: NO_NODE,
        hint_node: NO_NODE,
        hint_cpu_node: 0,
        in_swap: 0,
        pending_pages: 0,
        pending_node: NO_NODE,
        in_driver: 0,
        pending_swap: 0,
        home_node: NO_NODE,
        reserved: 0,
    }
}

fn parse_news(bytes: &[u8]) -> Option<News> {
    let word = |at: usize| {
        bytes
            .get(at..at + 4)?
            .try_into()
            .ok()
            .map(u32::from_ne_bytes)
    };
    Some(News {
        kind: word(0)?,
        tgid: word(4)?,
    })
}

/// All entries. An entry that goes while they are read is left out; the ledger keeps its last value.
fn entries<K: Pod, V: Pod>(map: &BpfHashMap<MapData, K, V>) -> Result<Vec<(K, V)>> {
    let mut entries = Vec::new();
    for key in map.keys() {
        let key = key.context("a map of the kernel side cannot be read")?;
        if let Ok(value) = map.get(&key, 0) {
            entries.push((key, value));
        }
    }
    Ok(entries)
}

fn hash<K: Pod, V: Pod>(ebpf: &mut Ebpf, name: &str) -> Result<BpfHashMap<MapData, K, V>> {
    let map = ebpf
        .take_map(name)
        .with_context(|| format!("the object has no map {name}"))?;
    BpfHashMap::try_from(map).with_context(|| format!("map {name} has another shape than expected"))
}

fn per_cpu<V: Pod>(ebpf: &mut Ebpf, name: &str) -> Result<PerCpuArray<MapData, V>> {
    let map = ebpf
        .take_map(name)
        .with_context(|| format!("the object has no map {name}"))?;
    PerCpuArray::try_from(map)
        .with_context(|| format!("map {name} has another shape than expected"))
}

/// Insert or replace.
const BPF_ANY: u64 = 0;

/// CLOCK_MONOTONIC, as the kernel side's clock reads it.
pub(crate) fn now_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a valid pointer; the clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}
