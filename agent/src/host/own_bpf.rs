//! The eBPF objects that the agent has open, as their fdinfo tells: the maps' memory, and events that the kernel did not
//! run a program for.
//!
//! A program does not run while it runs already on the same CPU; of these events the kernel keeps a count for each program
//! (`recursion_misses`, Linux 5.12 and later) and for each kprobe (`missed` of its link, Linux 6.7 and later).

use crate::host::root::{Root, read};
use std::collections::BTreeMap;
use std::fs;

/// See the module's doc.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnBpf {
    /// Kernel memory of all maps, bytes; `None` when the list of files can't be read.
    pub(crate) map_bytes: Option<u64>,
    /// By id: whether it is attached by kprobes, and its misses.
    programs: BTreeMap<u64, Program>,
    /// By id: the misses of each link of a kprobe, where the kernel tells.
    kprobes: BTreeMap<u64, Option<u64>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Program {
    kprobe: bool,
    misses: Option<u64>,
}

/// `BPF_PROG_TYPE_KPROBE`.
const PROG_TYPE_KPROBE: u64 = 2;

const PROGRAMS_ARE_SILENT: &str =
    "this kernel doesn't tell which events its programs missed (Linux 5.12 and later do)";
const KPROBES_ARE_SILENT: &str =
    "this kernel doesn't tell which events its kprobes missed (Linux 6.7 and later do)";

impl OwnBpf {
    /// Looks at all open files.
    pub(crate) fn read(root: &Root) -> Self {
        Self::read_with(root, kprobe_misses)
    }

    fn read_with(root: &Root, kprobe_misses: impl Fn(i32) -> Option<u64>) -> Self {
        let mut own = Self::default();
        let Ok(open) = fs::read_dir(root.proc("self/fdinfo")) else {
            return own;
        };
        own.map_bytes = Some(0);
        for entry in open.flatten() {
            // A file that is closed meanwhile is none of these: they are open as long as the agent runs.
            let Ok(info) = read(&entry.path()) else {
                continue;
            };
            let fd = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok());
            own.add(&info, || fd.and_then(&kprobe_misses));
        }
        own
    }

    fn add(&mut self, info: &str, kprobe_misses: impl Fn() -> Option<u64>) {
        let number = |name: &str| field(info, name)?.parse::<u64>().ok();
        if number("map_id").is_some() {
            let bytes = number("memlock").unwrap_or(0);
            self.map_bytes = self.map_bytes.map(|sum| sum + bytes);
        } else if let (Some("perf"), Some(id)) = (field(info, "link_type"), number("link_id")) {
            self.kprobes.insert(id, kprobe_misses());
        } else if let (Some(kind), Some(id)) = (number("prog_type"), number("prog_id")) {
            let program = Program {
                kprobe: kind == PROG_TYPE_KPROBE,
                misses: number("recursion_misses"),
            };
            self.programs.insert(id, program);
        }
    }

    /// Events since the start that programs and kprobes missed.
    ///
    /// # Errors
    /// Why the kernel doesn't tell.
    pub(crate) fn missed(&self) -> Result<u64, &'static str> {
        let programs = self.programs.values().map(|program| program.misses);
        let programs: u64 = programs.sum::<Option<u64>>().ok_or(PROGRAMS_ARE_SILENT)?;
        let attached = self.programs.values().filter(|program| program.kprobe);
        // Without links (before Linux 5.15) nobody can be asked.
        if self.kprobes.len() < attached.count() {
            return Err(KPROBES_ARE_SILENT);
        }
        let kprobes = self.kprobes.values().copied();
        let kprobes: u64 = kprobes.sum::<Option<u64>>().ok_or(KPROBES_ARE_SILENT)?;
        Ok(programs + kprobes)
    }
}

fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    let of = |line: &'a str| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim());
    info.lines().find_map(of)
}

/// `struct bpf_link_info` of the kernel's uapi, as far as a kprobe's goes.
#[repr(C)]
#[derive(Default)]
struct LinkInfo {
    kind: u32,
    id: u32,
    program: u32,
    _pad: u32,
    perf_kind: u32,
    _perf_pad: u32,
    function: u64,
    function_length: u32,
    offset: u32,
    address: u64,
    missed: u64,
}

/// `union bpf_attr` of `BPF_OBJ_GET_INFO_BY_FD`.
#[repr(C)]
struct GetInfo {
    fd: u32,
    length: u32,
    info: u64,
}

/// What the kprobe of a link has missed; `None` where the link is another's, or the kernel doesn't tell.
fn kprobe_misses(fd: i32) -> Option<u64> {
    const OBJ_GET_INFO_BY_FD: i64 = 15;
    const LINK_TYPE_PERF_EVENT: u32 = 7;
    const PERF_EVENT_KPROBE: u32 = 3;
    const PERF_EVENT_KRETPROBE: u32 = 4;
    let mut info = LinkInfo::default();
    let mut ask = GetInfo {
        fd: u32::try_from(fd).ok()?,
        length: u32::try_from(size_of::<LinkInfo>()).ok()?,
        info: (&raw mut info).addr() as u64,
    };
    // SAFETY: the kernel reads and writes one attribute, and writes at most `length` bytes of the info, which live
    // through the call.
    let done = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            OBJ_GET_INFO_BY_FD,
            &raw mut ask,
            size_of::<GetInfo>(),
        )
    };
    // The kernel says how much of the info it knows.
    let known = ask.length as usize == size_of::<LinkInfo>();
    let of_kprobe = info.kind == LINK_TYPE_PERF_EVENT
        && [PERF_EVENT_KPROBE, PERF_EVENT_KRETPROBE].contains(&info.perf_kind);
    (done == 0 && known && of_kprobe).then_some(info.missed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fixture::Fixture;

    const MAP: &str = "pos:\t0\nflags:\t02000002\nmap_type:\t1\nmemlock:\t8192\nmap_id:\t5\n";
    const FILE: &str = "pos:\t0\nflags:\t02\nmemlock:\t4096\n";
    const OLD: &str = "prog_type:\t26\nprog_jited:\t1\nmemlock:\t4096\nprog_id:\t7\nrun_time_ns:\t0\nrun_cnt:\t0\n";
    const FENTRY: &str = "prog_type:\t26\nmemlock:\t4096\nprog_id:\t8\nrecursion_misses:\t3\n";
    const KPROBE: &str = "prog_type:\t2\nmemlock:\t4096\nprog_id:\t9\nrecursion_misses:\t1\n";
    const TRACING_LINK: &str = "link_type:\ttracing\nlink_id:\t3\nprog_tag:\tab\nprog_id:\t8\n";
    const PERF_LINK: &str = "link_type:\tperf\nlink_id:\t4\nprog_tag:\tab\nprog_id:\t9\n";

    fn own(files: &[&str], kprobe_misses: Option<u64>) -> OwnBpf {
        let paths: Vec<String> = (0..files.len())
            .map(|fd| format!("proc/self/fdinfo/{fd}"))
            .collect();
        let files: Vec<(&str, &str)> = paths
            .iter()
            .map(String::as_str)
            .zip(files.iter().copied())
            .collect();
        OwnBpf::read_with(&Fixture::with(&files).root(), |_| kprobe_misses)
    }

    #[test]
    fn maps_are_summed_and_other_files_are_not() {
        assert_eq!(own(&[MAP, FILE, MAP, FENTRY], None).map_bytes, Some(16384));
    }

    #[test]
    fn an_unreadable_list_of_files_makes_the_sum_unknown() {
        let own = OwnBpf::read_with(&Fixture::new().root(), |_| None);
        assert_eq!(own.map_bytes, None);
    }

    #[test]
    fn misses_are_those_of_programs_and_kprobes_or_unknown() {
        for (files, kprobe_misses, want) in [
            (&[MAP, FENTRY, TRACING_LINK][..], None, Ok(3)),
            // A file that is open twice.
            (&[FENTRY, FENTRY], None, Ok(3)),
            (&[FENTRY, KPROBE, PERF_LINK], Some(5), Ok(9)),
            (&[FENTRY, KPROBE, PERF_LINK], None, Err(KPROBES_ARE_SILENT)),
            (&[FENTRY, KPROBE], None, Err(KPROBES_ARE_SILENT)),
            (&[FENTRY, OLD], None, Err(PROGRAMS_ARE_SILENT)),
        ] {
            assert_eq!(own(files, kprobe_misses).missed(), want, "{files:?}");
        }
    }

    #[test]
    fn the_infos_are_as_long_as_the_kernels() {
        assert_eq!(size_of::<LinkInfo>(), 56);
        assert_eq!(size_of::<GetInfo>(), 16);
    }

    #[test]
    fn what_is_no_link_has_no_misses() {
        assert_eq!(kprobe_misses(-1), None);
        assert_eq!(kprobe_misses(0), None);
    }
}
