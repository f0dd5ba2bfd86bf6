//! What a mapping of a process holds, named as people think of it, and which kind of memory its pages are.

use crate::mounts::MemoryFilesystems;
use crate::process::MemoryKind;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// What a mapping holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryClass {
    /// A model's weights in the page cache: a file that is named like one, or a large one that is only read. One in a file system
    /// in memory is [`Self::Shared`]: nothing drops its pages.
    Weights,
    /// Another file: programs, libraries, data.
    File,
    /// The heap that `brk` grows.
    Heap,
    /// The first thread's stack.
    Stack,
    /// Private anonymous memory: allocators' arenas, other threads' stacks.
    Anonymous,
    /// A block of it of [`LARGE_ANONYMOUS`] or more: KV caches, weights that were read instead of mapped.
    LargeAnonymous,
    /// Shared memory: memfd, `/dev/shm`, System V, shared anonymous; NCCL's and torch's buffers.
    Shared,
    /// hugetlb pages.
    Huge,
}

impl MemoryClass {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 8] = [
        Self::Weights,
        Self::LargeAnonymous,
        Self::Anonymous,
        Self::Heap,
        Self::Shared,
        Self::Huge,
        Self::File,
        Self::Stack,
    ];

    /// The name as in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Weights => "weights",
            Self::File => "file",
            Self::Heap => "heap",
            Self::Stack => "stack",
            Self::Anonymous => "anonymous",
            Self::LargeAnonymous => "large_anonymous",
            Self::Shared => "shared",
            Self::Huge => "huge",
        }
    }
}

/// From this size on a block of anonymous memory is a class of its own, bytes: above glibc's largest arena (64 MiB less
/// its guard), below any KV cache worth a question.
pub const LARGE_ANONYMOUS: u64 = 64 << 20;

/// From this size on a file that is mapped for reading only, and is no library, is weights, bytes.
pub const LARGE_FILE: u64 = 256 << 20;

/// From this size on a file that is named like weights is taken for them, bytes.
pub const NAMED_FILE: u64 = 1 << 20;

/// How files of weights end.
pub const WEIGHTS_ENDINGS: [&str; 8] = [
    ".gguf",
    ".ggml",
    ".safetensors",
    ".bin",
    ".pt",
    ".pth",
    ".ckpt",
    ".onnx",
];

/// A file system's device number, (major, minor).
pub type Device = (u32, u32);

pub(crate) fn device(text: &str, radix: u32) -> Option<Device> {
    let (major, minor) = text.split_once(':')?;
    let number = |text| u32::from_str_radix(text, radix).ok();
    Some((number(major)?, number(minor)?))
}

/// One line of `/proc/PID/maps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping<'a> {
    /// Its addresses.
    pub range: Range<u64>,
    /// Whether it may be written.
    pub writable: bool,
    /// Whether it may be executed.
    pub executable: bool,
    /// Whether it is shared: writes reach the file.
    pub shared: bool,
    /// Its file system; (0, 0) without a file.
    pub device: Device,
    /// Its file with the kernel's escapes, or a name in brackets; empty of unnamed anonymous memory.
    pub path: &'a str,
}

impl<'a> Mapping<'a> {
    /// Reads a line; `None` of what is none.
    #[must_use]
    pub fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.trim_end().splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let start = u64::from_str_radix(start, 16).ok()?;
        let end = u64::from_str_radix(end, 16).ok()?;
        let mut letters = words.next()?.bytes();
        let mut may = |letter| letters.next() == Some(letter);
        let (_, writable, executable, shared) = (may(b'r'), may(b'w'), may(b'x'), may(b's'));
        words.next()?;
        let device = device(words.next()?, 16)?;
        words.next()?;
        Some(Self {
            range: start..end,
            writable,
            executable,
            shared,
            device,
            path: words.next().unwrap_or_default().trim_start(),
        })
    }

    /// What it holds. `None` where there is no resident memory to place: a device's registers and buffers, which the
    /// kernel counts to no process, and pages of the kernel's own.
    #[must_use]
    pub fn content(&self, filesystems: &MemoryFilesystems) -> Option<Content> {
        let bytes = self.range.end.saturating_sub(self.range.start);
        let huge = filesystems.hugetlb.get(&self.device);
        if let Some(page_bytes) = huge.copied().filter(|_| self.device != (0, 0)) {
            let class = MemoryClass::Huge;
            return Some(Content {
                class,
                memory: Memory::Hugetlb { page_bytes },
            });
        }
        let anonymous = |class| {
            let memory = Memory::Anonymous;
            Some(Content { class, memory })
        };
        match self.path {
            "[heap]" => return anonymous(MemoryClass::Heap),
            "[stack]" => return anonymous(MemoryClass::Stack),
            // What the process named by prctl.
            path if path.starts_with("[anon_shmem:") => {}
            path if path.is_empty() || path.starts_with("[anon:") => {
                return anonymous(if bytes >= LARGE_ANONYMOUS {
                    MemoryClass::LargeAnonymous
                } else {
                    MemoryClass::Anonymous
                });
            }
            // Another thread's, on kernels before 4.5.
            path if path.starts_with("[stack:") => return anonymous(MemoryClass::Stack),
            path if path.starts_with('[') => return None,
            _ => {}
        }
        let in_memory =
            filesystems.tmpfs.contains(&self.device) || is_shared_memory_path(self.path);
        if !in_memory && is_device(self.path) {
            return None;
        }
        let memory = if in_memory {
            Memory::Shared
        } else {
            Memory::File
        };
        let class = if in_memory {
            MemoryClass::Shared
        } else if self.holds_weights(bytes) {
            MemoryClass::Weights
        } else {
            MemoryClass::File
        };
        Some(Content { class, memory })
    }

    fn holds_weights(&self, bytes: u64) -> bool {
        let path = self.path.trim_end_matches(" (deleted)");
        let name = path.rsplit('/').next().unwrap_or_default();
        let named = WEIGHTS_ENDINGS.iter().any(|ending| name.ends_with(ending));
        let library = name.split('.').skip(1).any(|part| part == "so");
        let read_only = !self.writable && !self.executable;
        (named && bytes >= NAMED_FILE) || (read_only && !library && bytes >= LARGE_FILE)
    }
}

/// What a mapping holds, and what its pages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    /// What it holds.
    pub class: MemoryClass,
    /// What its pages are.
    pub memory: Memory,
}

/// What a mapping's pages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Anonymous.
    Anonymous,
    /// The page cache, and private copies of it.
    File,
    /// Shared memory.
    Shared,
    /// Huge pages of this size.
    Hugetlb {
        /// Bytes of one.
        page_bytes: u64,
    },
}

impl Memory {
    /// The kind of a page, given whether a file (or shared memory) holds it: the private copy of a file's page is anonymous.
    #[must_use]
    pub const fn kind(self, file_page: bool) -> MemoryKind {
        match self {
            Self::Hugetlb { .. } => MemoryKind::Huge,
            _ if !file_page => MemoryKind::Anonymous,
            Self::Shared => MemoryKind::Shared,
            Self::File | Self::Anonymous => MemoryKind::File,
        }
    }
}

/// Whether a mapped path is shared memory whatever is mounted where.
pub(crate) fn is_shared_memory_path(path: &str) -> bool {
    [
        "/memfd:",
        "/SYSV",
        "/dev/zero",
        "/dev/shm/",
        "/anon_hugepage",
        "[anon_shmem:",
    ]
    .iter()
    .any(|prefix| path.starts_with(prefix))
}

/// Whether a path is a device: its mappings are registers or a driver's own buffers.
fn is_device(path: &str) -> bool {
    path.starts_with("/dev/") || path.starts_with("anon_inode:") || path.starts_with("/sys/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    const TMPFS: Device = (0, 21);
    const HUGE: Device = (0, 15);

    fn filesystems() -> MemoryFilesystems {
        MemoryFilesystems {
            tmpfs: BTreeSet::from([TMPFS]),
            hugetlb: BTreeMap::from([(HUGE, 2 << 20)]),
        }
    }

    fn content(permissions: &str, device: &str, mebibytes: u64, path: &str) -> Option<Content> {
        let end = 0x7f00_0000_0000_u64 + (mebibytes << 20);
        let line = format!("7f0000000000-{end:x} {permissions} 00000000 {device} 12   {path}");
        Mapping::parse(&line).unwrap().content(&filesystems())
    }

    #[test]
    fn a_line_is_read() {
        let line = "7f1c2a000000-7f1c2a021000 r-xs 00001000 fe:0a 123456                     /m/a b.gguf\n";
        let mapping = Mapping {
            range: 0x7f1c_2a00_0000..0x7f1c_2a02_1000,
            writable: false,
            executable: true,
            shared: true,
            device: (0xfe, 0x0a),
            path: "/m/a b.gguf",
        };
        assert_eq!(Mapping::parse(line), Some(mapping));
        let unnamed = Mapping::parse("1000-2000 rw-p 00000000 00:00 0 ").unwrap();
        assert_eq!((unnamed.path, unnamed.writable), ("", true));
        for wrong in [
            "",
            "x",
            "1000 rw-p 0 00:00 0",
            "1000-2000",
            "g-h rw-p 0 0:0 0",
        ] {
            assert_eq!(Mapping::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn mappings_are_called_what_people_call_them() {
        use MemoryClass as C;
        let file = "fe:00";
        for (permissions, device, mebibytes, path, class) in [
            ("r--s", file, 4_000, "/m/llama.gguf", C::Weights),
            ("rw-p", file, 4_000, "/m/a.safetensors", C::Weights),
            ("r--p", file, 4_000, "/m/blobs/sha256-abc", C::Weights),
            ("r--p", file, 4_000, "/m/a.gguf (deleted)", C::Weights),
            ("rw-s", "00:15", 4_000, "/mnt/ram/a.gguf", C::Shared),
            ("r--p", file, 0, "/m/tiny.bin", C::File),
            ("rw-s", file, 4_000, "/m/store", C::File),
            ("r--p", file, 4_000, "/l/libtorch_cuda.so", C::File),
            ("r--p", file, 4_000, "/l/libcublasLt.so.12", C::File),
            ("r-xp", file, 300, "/bin/server", C::File),
            ("rw-p", "00:00", 900, "[heap]", C::Heap),
            ("rw-p", "00:00", 8, "[stack]", C::Stack),
            ("rw-p", "00:00", 63, "", C::Anonymous),
            ("rw-p", "00:00", 64, "", C::LargeAnonymous),
            ("rw-p", "00:00", 64, "[anon:kv cache]", C::LargeAnonymous),
            ("rw-s", "00:01", 64, "/memfd:nccl (deleted)", C::Shared),
            ("rw-s", "00:01", 64, "/SYSV00000000 (deleted)", C::Shared),
            ("rw-s", "00:01", 64, "/dev/zero (deleted)", C::Shared),
            ("rw-s", "00:01", 64, "[anon_shmem:x]", C::Shared),
            ("rw-s", "00:30", 64, "/dev/shm/torch_1", C::Shared),
            ("rw-s", "00:15", 64, "/mnt/ram/x", C::Shared),
            ("rw-p", "00:0f", 64, "/anon_hugepage (deleted)", C::Huge),
            ("rw-s", "00:0f", 64, "/memfd:hugetlb (deleted)", C::Huge),
        ] {
            let told = content(permissions, device, mebibytes, path);
            assert_eq!(told.map(|c| c.class), Some(class), "{permissions} {path}");
        }
    }

    #[test]
    fn what_is_no_memory_of_the_process_has_no_class() {
        for path in [
            "[vvar]",
            "[vdso]",
            "[vsyscall]",
            "/dev/nvidia0",
            "anon_inode:i915.gem",
        ] {
            assert_eq!(content("rw-s", "00:06", 64, path), None, "{path}");
        }
    }

    #[test]
    fn a_pages_kind_follows_from_its_mapping_and_from_who_holds_it() {
        let huge = Memory::Hugetlb {
            page_bytes: 2 << 20,
        };
        for (memory, of_file, anonymous) in [
            (Memory::Anonymous, MemoryKind::File, MemoryKind::Anonymous),
            (Memory::File, MemoryKind::File, MemoryKind::Anonymous),
            (Memory::Shared, MemoryKind::Shared, MemoryKind::Anonymous),
            (huge, MemoryKind::Huge, MemoryKind::Huge),
        ] {
            assert_eq!(memory.kind(true), of_file, "{memory:?}");
            assert_eq!(memory.kind(false), anonymous, "{memory:?}");
        }
    }

    #[test]
    fn every_class_is_listed_by_its_name_in_json() {
        for class in MemoryClass::ALL {
            let json = serde_json::to_string(&class).unwrap();
            assert_eq!(json, format!("\"{}\"", class.as_str()));
        }
    }
}
