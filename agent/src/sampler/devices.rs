//! The machine's devices and who uses them, kept from tick to tick: each thing is read as often as it changes.

use crate::host::device_files::{open_names, visible};
use crate::host::error::Error;
use crate::host::nvidia;
use crate::host::nvml::{self, Answer, Gpus as _, Library};
use crate::host::pci::{self, read_devices};
use crate::host::process::ProcessDir;
use crate::host::root::Root;
use model::device_use::{Told, uses};
use model::process::Process;
use model::topology::Topology;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How many ticks the list of devices is believed: hot plugging is rare.
const DEVICES_TICKS: u32 = 60;

/// How many ticks a process's open files are believed: a look is a read of each.
const FILES_TICKS: u32 = 10;

/// How often NVML is asked: its calls may take seconds when a GPU is ill.
const NVML_INTERVAL: Duration = Duration::from_secs(5);

/// See the module's doc.
pub(super) struct Devices {
    root: Root,
    nvml: Nvml,
    read: pci::Devices,
    age: u32,
    /// By pid and start time.
    known: HashMap<(u32, u64), Known>,
}

/// What a process's files told.
struct Known {
    age: u32,
    files: Vec<String>,
    environment: Vec<(&'static str, String)>,
    reason: Option<String>,
}

impl Devices {
    /// `nvml` is another library than the driver's.
    pub(super) fn start(root: Root, nvml: Option<PathBuf>) -> Self {
        Self {
            nvml: Nvml::start(&root, nvml),
            root,
            read: pci::Devices::default(),
            age: DEVICES_TICKS,
            known: HashMap::new(),
        }
    }

    /// Adds the devices to the topology, and to each process those that it uses.
    pub(super) fn add(&mut self, topology: &mut Topology, processes: &mut [Process]) {
        self.age += 1;
        if self.age >= DEVICES_TICKS {
            self.age = 0;
            self.read = read_devices(&self.root, topology);
        }
        let answer = self.nvml.answer();
        topology.devices.clone_from(&self.read.devices);
        nvml::add(topology, &answer.gpus);
        let mut reasons = self.read.reasons.clone();
        let by_nvidia = |d: &model::devices::Device| d.driver.as_deref() == Some("nvidia");
        // Without such a GPU nothing is missing.
        if topology.devices.iter().any(by_nvidia) {
            reasons.extend(answer.reason.as_ref().map(|why| format!("NVML: {why}")));
        }
        topology.devices_reason = (!reasons.is_empty()).then(|| reasons.join("; "));
        self.known.retain(|id, _| {
            let id = *id;
            processes.iter().any(|p| (p.pid, p.start_time) == id)
        });
        if topology.devices.is_empty() {
            return;
        }
        for process in processes.iter_mut() {
            let known = self.known.entry((process.pid, process.start_time));
            let known = known.or_insert_with(Known::unread);
            if process.alive {
                known.look(&self.root, process.pid);
            }
            let told = Told {
                nvml: answer.of_process(process.pid),
                files: known.files.clone(),
                environment: known.environment.clone(),
            };
            process.devices = uses(&topology.devices, &told);
            process.devices_reason.clone_from(&known.reason);
        }
    }
}

impl Known {
    fn unread() -> Self {
        Self {
            age: FILES_TICKS,
            files: Vec::new(),
            environment: Vec::new(),
            reason: None,
        }
    }

    fn look(&mut self, root: &Root, pid: u32) {
        self.age += 1;
        if self.age < FILES_TICKS {
            return;
        }
        self.age = 0;
        match ProcessDir::open(root, pid).and_then(|dir| Ok((open_names(&dir)?, visible(&dir)))) {
            Ok((files, environment)) => {
                self.files = files;
                self.environment = environment;
                self.reason = None;
            }
            // What it used to the end stands.
            Err(Error::Gone { .. }) => {}
            Err(error) => self.reason = Some(error.to_string()),
        }
    }
}

/// NVML, asked by a thread of its own: a snapshot never waits for it.
struct Nvml {
    answer: Arc<Mutex<Answer>>,
    /// Dropped, it ends the thread.
    _alive: Option<Sender<()>>,
}

impl Nvml {
    fn start(root: &Root, path: Option<PathBuf>) -> Self {
        let answer = Arc::new(Mutex::new(Answer::none("not asked yet")));
        let nobody = |reason: &str| Self {
            answer: Arc::new(Mutex::new(Answer::none(reason))),
            _alive: None,
        };
        if path.is_none() && !nvidia::has_driver(root) {
            return nobody(nvidia::NO_DRIVER);
        }
        let (alive, ended) = mpsc::channel::<()>();
        let shared = Arc::clone(&answer);
        let asking = move || {
            let library = Library::load(path.as_deref());
            loop {
                let told = match &library {
                    Ok(library) => library.ask(),
                    Err(why) => Answer::none(why),
                };
                *shared.lock().unwrap_or_else(PoisonError::into_inner) = told;
                let waited = ended.recv_timeout(NVML_INTERVAL);
                if library.is_err() || waited != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("nvml".to_owned());
        match thread.spawn(asking) {
            Ok(_) => Self {
                answer,
                _alive: Some(alive),
            },
            Err(error) => nobody(&format!("no thread to ask it: {error}")),
        }
    }

    fn answer(&self) -> Answer {
        let answer = self.answer.lock();
        answer.unwrap_or_else(PoisonError::into_inner).clone()
    }
}
