//! What the kernel says of loaded programs: who holds them, how often they ran, and for how long.

use anyhow::{Context as _, Result};
use std::collections::BTreeSet;
use std::io::Error;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

/// A program's statistics, since it was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// Its name, of which the kernel keeps 15 bytes.
    pub(crate) name: String,
    pub(crate) run_time_ns: u64,
    pub(crate) runs: u64,
}

// enum bpf_cmd of the kernel's uapi.
const PROG_GET_FD_BY_ID: i32 = 13;
const OBJ_GET_INFO_BY_FD: i32 = 15;
const ENABLE_STATS: i32 = 32;

/// Statistics are on while this lives: the kernel switches them off with the last such file, however its owner ends.
pub(crate) struct Statistics(#[expect(dead_code, reason = "held, not read")] OwnedFd);

impl Statistics {
    pub(crate) fn enable() -> Result<Self> {
        // BPF_STATS_RUN_TIME
        let mut kind = 0u32;
        let fd = bpf(ENABLE_STATS, &mut kind).context("BPF_ENABLE_STATS")?;
        Ok(Self(fd_of(fd)))
    }
}

/// Ids of the programs that a process holds, directly or by a link.
pub(crate) fn held_by(pid: u32) -> Result<BTreeSet<u32>> {
    let directory = format!("/proc/{pid}/fdinfo");
    let mut ids = BTreeSet::new();
    for entry in std::fs::read_dir(&directory).context(directory)? {
        // Files may be closed meanwhile.
        let text = std::fs::read_to_string(entry?.path()).unwrap_or_default();
        let id = text.lines().find_map(|line| line.strip_prefix("prog_id:"));
        ids.extend(id.and_then(|id| id.trim().parse::<u32>().ok()));
    }
    Ok(ids)
}

/// The statistics of one.
pub(crate) fn read(id: u32) -> Result<Program> {
    let mut by_id = [id, 0, 0];
    let fd = fd_of(bpf(PROG_GET_FD_BY_ID, &mut by_id).context("BPF_PROG_GET_FD_BY_ID")?);
    let mut info = Info::default();
    let mut of_fd = OfFd {
        fd: fd.as_raw_fd().cast_unsigned(),
        length: u32::try_from(size_of::<Info>())?,
        info: (&raw mut info).addr() as u64,
    };
    bpf(OBJ_GET_INFO_BY_FD, &mut of_fd).context("BPF_OBJ_GET_INFO_BY_FD")?;
    let name: Vec<u8> = info
        .name
        .into_iter()
        .take_while(|&byte| byte != 0)
        .collect();
    Ok(Program {
        name: String::from_utf8_lossy(&name).into_owned(),
        run_time_ns: info.run_time_ns,
        runs: info.runs,
    })
}

/// The beginning of `struct bpf_prog_info`.
#[repr(C)]
#[derive(Default)]
struct Info {
    before_name: [u64; 8],
    name: [u8; 16],
    before_run_time: [u64; 14],
    run_time_ns: u64,
    runs: u64,
}

#[repr(C)]
struct OfFd {
    fd: u32,
    length: u32,
    info: u64,
}

fn bpf<T>(command: i32, attributes: &mut T) -> Result<i64, Error> {
    // SAFETY: the kernel reads and writes `size_of::<T>()` bytes, and what they point to is alive and as large as told.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_mut(attributes),
            size_of::<T>(),
        )
    };
    if result < 0 {
        Err(Error::last_os_error())
    } else {
        Ok(result)
    }
}

fn fd_of(result: i64) -> OwnedFd {
    // SAFETY: these commands give a new file descriptor, which is nobody else's.
    unsafe { OwnedFd::from_raw_fd(i32::try_from(result).unwrap_or(-1)) }
}
