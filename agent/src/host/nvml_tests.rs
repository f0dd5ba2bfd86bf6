//! NVML's answers added to sysfs's, and libraries that fail: each is a few lines of C, built here.

use super::*;
use crate::host::machines;
use crate::host::pci::read_devices;
use crate::host::topology::read_topology;
use model::link::link;
use std::path::PathBuf;
use std::process::Command;

struct Fake(Vec<Gpu>);

impl Gpus for Fake {
    fn ask(&self) -> Answer {
        Answer {
            gpus: self.0.clone(),
            reason: None,
        }
    }
}

fn told(address: &str, peers: &[&str]) -> Gpu {
    Gpu {
        address: address.to_owned(),
        peers: peers.iter().map(|p| (*p).to_owned()).collect(),
        ..Gpu::default()
    }
}

#[test]
fn peers_are_gpus_or_switches() {
    let fixture = machines::two_sockets_eight_gpus();
    let root = fixture.root();
    let topology = read_topology(&root);
    let mut devices = read_devices(&root, &topology).devices;
    let switch = "0000:d7:00.0";
    let fake = Fake(vec![
        told("0000:07:00.0", &["0000:0f:00.0", switch, switch]),
        told("0000:0f:00.0", &["0000:07:00.0"]),
        told("0000:87:00.0", &[switch, switch]),
    ]);
    add_to(&mut devices, &fake.ask().gpus, &topology);
    assert_eq!(devices[0].nvlinks, ["0000:0f:00.0"]);
    assert_eq!(devices[0].nvswitches, [switch, switch]);
    let words = |a: usize, b: usize| link(&devices[a], &devices[b]).to_string();
    assert_eq!(
        (words(0, 1), words(0, 4), words(1, 4)),
        ("NV1".into(), "NV2".into(), "SYS".into())
    );
    assert_eq!(words(0, 2), "NODE");
}

#[test]
fn a_node_of_memory_is_mapped_and_a_node_of_cpus_fills_an_unknown_one() {
    let fixture = machines::gb200();
    let topology = read_topology(&fixture.root());
    let mut devices = read_devices(&fixture.root(), &topology).devices;
    for device in &mut devices {
        device.memory_nodes.clear();
    }
    devices[2].node = None;
    devices[3].node = None;
    let node = |address: &str, node| Gpu {
        address: address.to_owned(),
        node: Some(node),
        ..Gpu::default()
    };
    let gpus = [
        node("0008:01:00.0", 2),
        node("0018:01:00.0", 18),
        node("0019:01:00.0", 1),
    ];
    add_to(&mut devices, &gpus, &topology);
    let places: Vec<_> = devices
        .iter()
        .take(4)
        .map(|d| (d.node, d.memory_nodes.clone()))
        .collect();
    assert_eq!(
        places,
        [
            (Some(0), vec![2]),
            (Some(0), vec![]),
            (Some(1), vec![18]),
            (Some(1), vec![]),
        ]
    );
}

#[test]
fn no_library_is_a_reason() {
    let error = Library::load(Some(Path::new("/nonexistent/libnvidia-ml.so.1"))).err();
    let error = error.unwrap();
    assert!(error.contains("/nonexistent/libnvidia-ml.so.1"), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

/// A library made of this C code; removed when dropped.
struct Stub(PathBuf);

impl Stub {
    fn new(name: &str, code: &str) -> Self {
        let folder = std::env::temp_dir();
        let source = folder.join(format!("numawatch-stub-{}-{name}.c", std::process::id()));
        let library = source.with_extension("so");
        std::fs::write(&source, code).unwrap();
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .args([&library, &source])
            .status()
            .unwrap();
        std::fs::remove_file(source).unwrap();
        assert!(built.success());
        Self(library)
    }

    fn load(&self) -> Result<Library, String> {
        Library::load(Some(&self.0))
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_library_without_functions_is_a_reason() {
    let error = Stub::new("empty", "int nothing;").load().err().unwrap();
    assert!(error.contains("lacks a function"), "{error}");
    assert!(error.contains("nvmlInit_v2"), "{error}");
}

#[test]
fn a_library_that_refuses_to_start_is_a_reason() {
    // NVML_ERROR_DRIVER_NOT_LOADED.
    let stub = Stub::new("refuses", "int nvmlInit_v2(void) { return 9; }");
    let error = stub.load().err().unwrap();
    assert!(error.contains("driver is not loaded"), "{error}");
}

#[test]
fn a_library_that_starts_and_then_lacks_everything_is_a_reason() {
    let stub = Stub::new("starts", "int nvmlInit_v2(void) { return 0; }");
    let library = stub.load().unwrap();
    let error = library.ask().reason.unwrap();
    assert!(error.contains("nvmlDeviceGetCount_v2"), "{error}");
    // Nothing to shut it down by, either.
    drop(library);
}

/// One GPU at 3b:00.0 and one that is lost; nvmlPciInfo_t has 16 bytes of the old bus id, domain, bus, device, two ids,
/// and 32 bytes of the bus id.
const PLACE: &str = r#"
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) { *d = (void *)8; return i ? 15 : 0; }
struct pci { char old[16]; unsigned domain, bus, device, id, sub; char now[32]; };
int nvmlDeviceGetPciInfo_v3(void *d, struct pci *p) {
    *p = (struct pci){"0000:3B:00.0", 0, 0x3b, 0, 0, 0, "00000000:3B:00.0"};
    return 0;
}
"#;

#[test]
fn a_lost_gpu_is_a_reason_and_the_others_are_there() {
    let library = Stub::new("lost", PLACE);
    let answer = library.load().unwrap().ask();
    let reason = answer.reason.unwrap();
    assert!(
        reason.starts_with("GPU 1: ") && reason.contains("fell off the bus"),
        "{reason}"
    );
    let gpu = &answer.gpus[0];
    assert_eq!(
        (answer.gpus.len(), gpu.address.as_str()),
        (1, "0000:3b:00.0")
    );
    assert_eq!(
        (gpu.name.as_ref(), gpu.node, gpu.pids.as_ref()),
        (None, None, None)
    );
    let reason = gpu.reason.as_deref().unwrap();
    assert!(
        reason.starts_with("NVML: processes: it lacks a function"),
        "{reason}"
    );
}

#[test]
fn processes_are_listed_by_those_that_list_any() {
    let library = Stub::new(
        "processes",
        &format!(
            "{PLACE} struct info {{ unsigned pid; unsigned long long memory; unsigned gi, ci; }};
             int nvmlDeviceGetComputeRunningProcesses_v3(void *d, unsigned *n, struct info *p) {{
                 if (*n == 0) {{ *n = 1; return 7; }}
                 *n = 1; p[0] = (struct info){{4242, 1, 0, 0}}; return 0; }}"
        ),
    );
    let answer = library.load().unwrap().ask();
    assert_eq!(answer.of_process(4242), Some(vec!["0000:3b:00.0"]));
    assert_eq!(answer.of_process(1), Some(vec![]));
    assert_eq!(Answer::none("gone").of_process(4242), None);
}

#[test]
fn more_devices_than_there_can_be_are_not_asked_for() {
    let stub = Stub::new(
        "many",
        "int nvmlInit_v2(void) { return 0; }
         int nvmlDeviceGetCount_v2(unsigned *n) { *n = 4000000000u; return 0; }",
    );
    let answer = stub.load().unwrap().ask();
    let want = "NVML tells of 4000000000 devices: not believed";
    assert_eq!(answer, Answer::none(want));
}

#[test]
fn no_room_is_made_for_more_processes_than_there_can_be() {
    let list = |name: &str| {
        format!(
            "int nvmlDeviceGet{name}RunningProcesses_v3(void *d, unsigned *n, void *p) {{
                 *n = 4000000000u; return p ? 0 : 7; }}"
        )
    };
    let code = format!("{PLACE} {} {}", list("Compute"), list("Graphics"));
    let answer = Stub::new("crowd", &code).load().unwrap().ask();
    let gpu = &answer.gpus[0];
    let want = "NVML tells of 4000000000 processes: not believed";
    assert_eq!((&gpu.pids, gpu.reason.as_deref()), (&None, Some(want)));
}
