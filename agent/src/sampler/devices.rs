//! The machine's devices and who uses them, kept from tick to tick: each thing is read as often as it changes.

use crate::host::device_files::{open_names, visible};
use crate::host::error::Error;
use crate::host::nvidia;
use crate::host::nvml::{self, Answer, Gpus as _, Library};
use crate::host::pci::{self, read_devices};
use crate::host::process::ProcessDir;
use crate::host::root::Root;
use model::device_use::{Told, uses};
use model::devices::{Device, DeviceUse};
use model::process::Process;
use model::topology::Topology;
use std::collections::{HashMap, HashSet};
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

/// Variables that name devices, and their values.
type Environment = Vec<(&'static str, String)>;

/// What a process's files told.
struct Known {
    age: u32,
    looked: bool,
    files: Vec<String>,
    environment: Environment,
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
        let answer = self.nvml.answer();
        self.add_to(topology, &answer);
        let there: HashSet<_> = processes.iter().map(|p| (p.pid, p.start_time)).collect();
        self.known.retain(|id, _| there.contains(id));
        if topology.devices.is_empty() {
            return;
        }
        for process in processes {
            let id = (process.pid, process.start_time);
            (process.devices, process.devices_reason) =
                self.of_process(id, process.alive, topology, &answer);
        }
    }

    fn add_to(&mut self, topology: &mut Topology, answer: &Answer) {
        self.age += 1;
        if self.age >= DEVICES_TICKS {
            self.age = 0;
            self.read = read_devices(&self.root, topology);
        }
        topology.devices.clone_from(&self.read.devices);
        nvml::add(topology, &answer.gpus);
        let mut reasons = self.read.reasons.clone();
        let by_nvidia = |d: &Device| d.driver.as_deref() == Some("nvidia");
        // Without such a GPU nothing is missing.
        if topology.devices.iter().any(by_nvidia) {
            reasons.extend(answer.reason.as_ref().map(|why| format!("NVML: {why}")));
        }
        topology.devices_reason = (!reasons.is_empty()).then(|| reasons.join("; "));
    }

    /// What a process uses, and why there may be more.
    fn of_process(
        &mut self,
        id: (u32, u64),
        alive: bool,
        topology: &Topology,
        answer: &Answer,
    ) -> (Vec<DeviceUse>, Option<String>) {
        let known = self.known.entry(id).or_insert_with(Known::unread);
        if alive {
            known.look(&self.root, id.0);
        }
        let told = Told {
            nvml: answer.of_process(id.0),
            files: known.files.clone(),
            environment: known.environment.clone(),
        };
        (uses(&topology.devices, &told), known.reason.clone())
    }
}

impl Known {
    fn unread() -> Self {
        Self {
            age: FILES_TICKS,
            looked: false,
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
        // The next look is sooner for some: not all of a host's processes in one tick.
        self.age = if self.looked { 0 } else { pid % FILES_TICKS };
        self.looked = true;
        match ProcessDir::open(root, pid).and_then(|dir| read(&dir)) {
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

/// Its open device files, and its environment where that could tell more: the kernel takes it from the process's memory.
fn read(dir: &ProcessDir) -> Result<(Vec<String>, Environment), Error> {
    let files = open_names(dir)?;
    // Those that name no GPU.
    let none = |name: &String| name.starts_with("uverbs") || name == "nvidia-uvm" || name == "kfd";
    let environment = if files.iter().all(none) {
        visible(dir)
    } else {
        Vec::new()
    };
    Ok((files, environment))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fixture::Fixture;
    use crate::host::machines;
    use crate::host::topology::read_topology;
    use model::devices::DeviceUseSource;

    /// What a process uses on a machine without NVML.
    fn look(fixture: &Fixture) -> (Vec<DeviceUse>, Option<String>) {
        let root = fixture.root();
        let mut topology = read_topology(&root);
        let none = Answer::none("static build");
        let mut devices = Devices::start(root, Some(PathBuf::from("/nonexistent")));
        devices.add_to(&mut topology, &none);
        assert_eq!(
            topology.devices_reason.as_deref(),
            Some("NVML: static build")
        );
        devices.of_process((7, 1), true, &topology, &none)
    }

    /// The same of one with this open and this environment, on a machine with eight GPUs.
    fn used(open: &[&str], environment: &str) -> Vec<(String, Option<u32>, DeviceUseSource)> {
        let fixture = machines::two_sockets_eight_gpus();
        fixture.process(7, 1, "python3", &["python3"]);
        fixture.file("proc/7/environ", environment);
        for (fd, target) in (3..).zip(open) {
            fixture.link(&format!("proc/7/fd/{fd}"), target);
        }
        let (devices, reason) = look(&fixture);
        assert_eq!(reason, None);
        let known = |u: DeviceUse| (u.label, u.node, u.source);
        devices.into_iter().map(known).collect()
    }

    #[test]
    fn open_files_name_devices_by_their_minors() {
        let found = used(
            &["/dev/nvidia5", "/dev/nvidiactl", "/dev/infiniband/uverbs2"],
            "",
        );
        let by_files = DeviceUseSource::OpenFiles;
        assert_eq!(
            found,
            [
                ("GPU5".to_owned(), Some(1), by_files),
                ("NIC2".to_owned(), Some(1), by_files)
            ]
        );
    }

    #[test]
    fn the_environment_is_a_hint_where_no_file_tells() {
        let environment = "HOME=/\0CUDA_VISIBLE_DEVICES=6\0";
        let hint = [("GPU6".to_owned(), Some(1), DeviceUseSource::Environment)];
        assert_eq!(used(&["/dev/nvidiactl"], environment), hint);
        let open = [("GPU0".to_owned(), Some(0), DeviceUseSource::OpenFiles)];
        assert_eq!(used(&["/dev/nvidia0"], environment), open);
    }

    #[test]
    fn a_process_that_ended_meanwhile_has_none_and_that_is_no_failure() {
        let nothing = (Vec::new(), None);
        assert_eq!(look(&machines::two_sockets_eight_gpus()), nothing);
    }

    #[test]
    fn open_files_that_cannot_be_read_are_a_reason() {
        let fixture = machines::two_sockets_eight_gpus();
        fixture.process(7, 1, "python3", &["python3"]);
        std::fs::remove_dir(fixture.root().process(7).join("fd")).unwrap();
        fixture.file("proc/7/fd", "no folder\n");
        let (devices, reason) = look(&fixture);
        assert!(devices.is_empty());
        assert!(reason.unwrap().contains("proc/7/fd"));
    }
}
