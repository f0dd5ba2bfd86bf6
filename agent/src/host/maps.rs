//! `/proc/PID/maps` in pieces: 20,000 mappings take 6 ms to write, so a reader must be able to stop and go on later.
//!
//! The kernel writes whole lines, a page of them a read, and finds its place again by address: mappings that come and go
//! between two reads do no harm.

use crate::host::error::Error;
use crate::host::process::ProcessDir;
use model::mapping::{Content, Mapping, MemoryClass};
use model::mounts::MemoryFilesystems;
use std::fs::File;
use std::io::Read;
use std::ops::Range;

/// The most that one read asks for, bytes.
const PIECE: usize = 64 << 10;

/// One mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapped {
    /// Its addresses.
    pub(crate) range: Range<u64>,
    /// What it holds; `None` where there is no resident memory to place.
    pub(crate) content: Option<Content>,
    /// The file with the kernel's escapes, of weights.
    pub(crate) file: Option<String>,
}

/// A reader that keeps its place.
#[derive(Debug)]
pub(crate) struct Maps {
    file: File,
    filesystems: MemoryFilesystems,
    /// The start of a line whose end was not read yet.
    rest: Vec<u8>,
}

impl Maps {
    /// Opens a process's.
    ///
    /// # Errors
    /// [`Error::Gone`], [`Error::Denied`] or [`Error::Io`].
    pub(crate) fn open(
        process: &ProcessDir,
        filesystems: MemoryFilesystems,
    ) -> Result<Self, Error> {
        Ok(Self {
            file: process.open_file("maps")?,
            filesystems,
            rest: Vec::new(),
        })
    }

    /// The next mappings, ascending; `None` at the end, which is also what a process that has ended shows.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn next(&mut self) -> std::io::Result<Option<Vec<Mapped>>> {
        loop {
            let kept = self.rest.len();
            self.rest.resize(kept + PIECE, 0);
            let read = self
                .file
                .read(self.rest.get_mut(kept..).unwrap_or_default());
            self.rest
                .truncate(kept + read.as_ref().copied().unwrap_or(0));
            let at_end = read? == 0;
            if at_end && self.rest.is_empty() {
                return Ok(None);
            }
            let newline = self.rest.iter().rposition(|byte| *byte == b'\n');
            let whole = match newline {
                Some(at) => at + 1,
                None if at_end => self.rest.len(),
                // A path may be longer than what was read.
                None => continue,
            };
            let text = String::from_utf8_lossy(self.rest.get(..whole).unwrap_or_default());
            let mapped = text.lines().filter_map(|line| {
                let mapping = Mapping::parse(line)?;
                let content = mapping.content(&self.filesystems);
                let weights = content.is_some_and(|c| c.class == MemoryClass::Weights);
                Some(Mapped {
                    content,
                    file: weights.then(|| mapping.path.to_owned()),
                    range: mapping.range,
                })
            });
            let mapped = mapped.collect();
            self.rest.drain(..whole);
            return Ok(Some(mapped));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fixture::Fixture;
    use std::fmt::Write;

    fn all(text: &str) -> Vec<Mapped> {
        let fixture = Fixture::with(&[("proc/7/maps", text)]);
        let process = ProcessDir::open(&fixture.root(), 7).unwrap();
        let mut maps = Maps::open(&process, MemoryFilesystems::default()).unwrap();
        let mut all = Vec::new();
        while let Some(some) = maps.next().unwrap() {
            all.extend(some);
        }
        all
    }

    #[test]
    fn lines_that_a_read_cuts_are_put_together() {
        let mut text = String::new();
        for at in 1_u64..=5_000 {
            let (start, end) = (at << 16, (at << 16) + 4096);
            let _ = writeln!(text, "{start:x}-{end:x} rw-p 00000000 00:00 0 ");
        }
        let all = all(&text);
        assert_eq!(all.len(), 5_000);
        assert!(
            all.iter()
                .zip(1_u64..)
                .all(|(m, at)| m.range.start == at << 16)
        );
    }

    #[test]
    fn files_are_named_where_they_hold_weights() {
        let all = all("1000-2000 r-xp 00000000 fe:00 1    /lib/c.so\n\
             7f0000000000-7f0000400000 r--s 00000000 fe:00 2    /m/a b.gguf\n");
        let files: Vec<Option<&str>> = all.iter().map(|m| m.file.as_deref()).collect();
        assert_eq!(files, [None, Some("/m/a b.gguf")]);
    }

    #[test]
    fn a_last_line_without_an_end_counts() {
        assert_eq!(all("1000-2000 rw-p 00000000 00:00 0").len(), 1);
        assert!(all("").is_empty());
    }
}
