//! What the kernel holds of BPF, by id: programs, maps, links and BTF objects.

use anyhow::{Context as _, Result};
use std::collections::BTreeSet;
use std::io::Error;

/// Ids of all objects in the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Objects {
    /// Programs.
    pub programs: BTreeSet<u32>,
    /// Maps.
    pub maps: BTreeSet<u32>,
    /// Links.
    pub links: BTreeSet<u32>,
    /// BTF objects.
    pub btf: BTreeSet<u32>,
}

// enum bpf_cmd of the kernel's uapi.
const PROGRAM_GET_NEXT_ID: i32 = 11;
const MAP_GET_NEXT_ID: i32 = 12;
const BTF_GET_NEXT_ID: i32 = 23;
const LINK_GET_NEXT_ID: i32 = 31;

impl Objects {
    /// All that there are now.
    ///
    /// # Errors
    /// Without `CAP_SYS_ADMIN`.
    pub fn now() -> Result<Self> {
        Ok(Self {
            programs: ids(PROGRAM_GET_NEXT_ID).context("BPF_PROG_GET_NEXT_ID")?,
            maps: ids(MAP_GET_NEXT_ID).context("BPF_MAP_GET_NEXT_ID")?,
            links: ids(LINK_GET_NEXT_ID).context("BPF_LINK_GET_NEXT_ID")?,
            btf: ids(BTF_GET_NEXT_ID).context("BPF_BTF_GET_NEXT_ID")?,
        })
    }

    /// Those that weren't there before.
    #[must_use]
    pub fn new_since(&self, before: &Self) -> Vec<String> {
        let kinds = [
            ("program", &self.programs, &before.programs),
            ("map", &self.maps, &before.maps),
            ("link", &self.links, &before.links),
            ("BTF", &self.btf, &before.btf),
        ];
        kinds
            .iter()
            .flat_map(|(kind, now, before)| {
                now.difference(before).map(move |id| format!("{kind} {id}"))
            })
            .collect()
    }
}

/// The part of `union bpf_attr` that these commands use.
#[repr(C)]
#[derive(Default)]
struct NextId {
    start: u32,
    next: u32,
    open_flags: u32,
}

fn ids(command: i32) -> Result<BTreeSet<u32>> {
    let mut found = BTreeSet::new();
    let mut attributes = NextId::default();
    loop {
        // SAFETY: the kernel reads and writes `size_of::<NextId>()` bytes.
        let done = unsafe {
            libc::syscall(
                libc::SYS_bpf,
                command,
                &raw mut attributes,
                size_of::<NextId>(),
            )
        };
        if done != 0 {
            let error = Error::last_os_error();
            return if error.raw_os_error() == Some(libc::ENOENT) {
                Ok(found)
            } else {
                Err(error.into())
            };
        }
        found.insert(attributes.next);
        attributes.start = attributes.next;
    }
}
