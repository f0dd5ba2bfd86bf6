//! Surveys of this process and of others, with the kernel's own answers.

use super::*;
use crate::host::fixture::Fixture;
use model::mapping::MemoryClass;
use model::process::MemoryKind;
use std::process::{Child, Command, Stdio};

/// Private memory of this process, given back when dropped.
struct Memory {
    start: *mut libc::c_void,
    bytes: usize,
}

impl Memory {
    fn new(bytes: usize) -> Self {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses the address.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0) };
        assert_ne!(start, libc::MAP_FAILED);
        // SAFETY: this mapping only.
        unsafe { libc::madvise(start, bytes, libc::MADV_NOHUGEPAGE) };
        Self { start, bytes }
    }

    fn touch(&self, pages: usize) {
        for page in 0..pages {
            // SAFETY: within the mapping.
            unsafe { self.start.cast::<u8>().add(page * 4096).write_volatile(1) };
        }
    }

    /// Takes every second page's write permission away, so that each is a mapping.
    fn split(&self) {
        for page in (0..self.bytes / 4096).step_by(2) {
            // SAFETY: within the mapping, whose pages nobody writes any more.
            let done = unsafe {
                let page = self.start.cast::<u8>().add(page * 4096);
                libc::mprotect(page.cast(), 4096, libc::PROT_READ)
            };
            assert_eq!(done, 0);
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping made by `new`.
        unsafe { libc::munmap(self.start, self.bytes) };
    }
}

fn survey_of(pid: u32) -> (Ground, Survey) {
    let root = Root::system();
    let stat = ProcessDir::open(&root, pid).unwrap().stat().unwrap();
    (Ground::new(root), Survey::new((pid, stat.start_time)))
}

fn whole(ground: &Ground, survey: &mut Survey) -> Placement {
    let effort = Effort::Complete(Instant::now() + Duration::from_mins(1));
    survey.refresh(ground, effort, false).unwrap().unwrap()
}

fn sleeper() -> Child {
    let mut sleep = Command::new("sleep");
    sleep.arg("600").stdout(Stdio::null()).spawn().unwrap()
}

#[test]
fn memory_is_found_in_its_class_and_on_a_node_of_the_host() {
    let reserved = Memory::new(40 << 30);
    reserved.touch(2_000);
    let (ground, mut survey) = survey_of(std::process::id());
    let placement = whole(&ground, &mut survey);
    assert_eq!(placement.coverage, Some(1.0));
    let by_node = placement.by_node_bytes.unwrap();
    assert!(by_node.keys().all(|node| ground.nodes.contains(node)));
    let classes = placement.by_class.unwrap();
    let large: u64 = classes[&MemoryClass::LargeAnonymous].values().sum();
    assert!(large >= 1_800 * 4096, "{classes:?}");
    assert!(classes.contains_key(&MemoryClass::File), "{classes:?}");
}

#[test]
fn kinds_add_up_to_the_nodes() {
    let (ground, mut survey) = survey_of(std::process::id());
    let placement = whole(&ground, &mut survey);
    let kinds = placement.by_kind.unwrap();
    assert!(!kinds[&MemoryKind::Anonymous].is_empty());
    for (node, bytes) in placement.by_node_bytes.unwrap() {
        let sum: u64 = kinds.values().filter_map(|k| k.get(&node)).sum();
        assert_eq!(sum, bytes);
    }
}

/// Each slice goes on where the last one stopped: none of the mappings keeps it from the end.
#[test]
fn twenty_thousand_mappings_are_gone_over_in_slices() {
    let memory = Memory::new(20_000 * 4096);
    memory.touch(20_000);
    memory.split();
    let (ground, mut survey) = survey_of(std::process::id());
    let mut slices = 0;
    let placement = loop {
        slices += 1;
        let found = survey
            .refresh(&ground, Effort::Slice, false)
            .unwrap()
            .unwrap();
        let coverage = found.coverage.unwrap();
        if coverage >= 1.0 {
            break found;
        }
        assert!(slices < 500, "{coverage} after {slices} slices");
    };
    assert!(slices > 1, "the test is to need several slices");
    let classes = placement.by_class.unwrap();
    let small: u64 = classes[&MemoryClass::Anonymous].values().sum();
    assert!(small >= 18_000 * 4096, "{classes:?}");
}

#[test]
fn a_process_that_ends_meanwhile_is_gone() {
    let mut child = sleeper();
    let (ground, mut survey) = survey_of(child.id());
    let before = survey.refresh(&ground, Effort::Slice, false);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(before.unwrap().is_some());
    let after = survey.refresh(&ground, Effort::Slice, false);
    assert!(after.unwrap_err().is_gone());
}

#[test]
fn a_broken_one_tells_of_no_memory() {
    let (ground, mut survey) = survey_of(std::process::id());
    let effort = Effort::Complete(Instant::now() + Duration::from_mins(1));
    let placement = survey.refresh(&ground, effort, true).unwrap().unwrap();
    assert_eq!(placement.by_node_bytes, Some(BTreeMap::new()));
}

#[test]
fn locked_pages_are_told_apart_by_whoever_may_see_frames() {
    let memory = Memory::new(4_000 * 4096);
    memory.touch(4_000);
    // SAFETY: within the mapping. Anybody may lock 8 MiB.
    let done = unsafe { libc::mlock(memory.start, 2_000 * 4096) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    let pid = std::process::id();
    let (ground, mut survey) = survey_of(pid);
    let locked = whole(&ground, &mut survey).locked_by_node_bytes;
    let status = ProcessDir::open(&Root::system(), pid).unwrap().status();
    let all = status.unwrap().locked_bytes.unwrap();
    assert!(all >= 2_000 * 4096);
    let may_see = std::fs::File::open("/proc/kpageflags").is_ok();
    let sum = locked.map(|by_node| by_node.values().sum::<u64>());
    assert_eq!(sum, may_see.then_some(all));
}

/// As where `/dev/null` is mounted over one of its files: nothing is found, and that is not believed.
#[test]
fn a_masked_file_is_a_reason_and_not_0_bytes() {
    let memory = Memory::new(1_000 * 4096);
    memory.touch(1_000);
    let pid = std::process::id();
    for masked in ["nothing", "maps", "pagemap", "status"] {
        let fixture = Fixture::new();
        for file in ["stat", "statm", "status", "maps", "mountinfo", "pagemap"] {
            let own = format!("/proc/{pid}/{file}");
            let target = if file == masked { "/dev/null" } else { &own };
            fixture.link(&format!("proc/{pid}/{file}"), target);
        }
        let root = fixture.root();
        let stat = ProcessDir::open(&root, pid).unwrap().stat().unwrap();
        let mut survey = Survey::new((pid, stat.start_time));
        let effort = Effort::Complete(Instant::now() + Duration::from_mins(1));
        let found = survey.refresh(&Ground::new(root), effort, false);
        let why = found.map(drop).map_err(|error| error.to_string());
        match masked {
            "nothing" => assert_eq!(why, Ok(())),
            "status" => assert!(why.unwrap_err().contains("status: lacks RssAnon")),
            _ => assert!(why.unwrap_err().contains("is something mounted over it?")),
        }
    }
}

#[test]
fn so_little_found_is_not_believed() {
    for (found, resident, believed) in [
        (0, 64 << 20, false),
        (3 << 20, 64 << 20, false),
        (4 << 20, 64 << 20, true),
        (200 << 20, 64 << 20, true),
        (0, (1 << 20) - 1, true),
    ] {
        assert_eq!(
            blind(found, resident).is_none(),
            believed,
            "{found} {resident}"
        );
    }
}
