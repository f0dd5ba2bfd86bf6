//! What the kernel says when it refuses to load or attach, in one line.

use crate::probes::ladder::Kind;
use aya::EbpfError;
use aya::programs::ProgramError;
use std::error::Error;

/// Whether it is a matter of privilege.
pub(super) fn is_permission(error: &EbpfError) -> bool {
    let mut source: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(e) = source {
        if let Some(io) = e.downcast_ref::<std::io::Error>() {
            return io.kind() == std::io::ErrorKind::PermissionDenied;
        }
        source = e.source();
    }
    false
}

/// An error and what caused it, in one line, without saying anything twice.
pub(super) fn one_line(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(e) = source {
        let more = e.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = e.source();
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// How the verifier's lines of statistics begin.
const STATISTICS: [&str; 3] = ["processed", "stack depth", "verification time"];

/// The kernel's own word on why a program did not load or attach.
pub(super) fn reason(kind: Kind, target: &str, error: &ProgramError) -> String {
    let kind = kind.as_str();
    let why = match error {
        ProgramError::LoadError {
            io_error,
            verifier_log,
        } => {
            // Its last lines are statistics, the one before them is the refusal; the rest is for the log.
            let log = verifier_log.to_string();
            tracing::debug!("{kind}/{target}: {log}");
            let word = log
                .lines()
                .rev()
                .find(|l| !l.is_empty() && !STATISTICS.iter().any(|word| l.starts_with(word)));
            match word {
                Some(word) => format!("load: {io_error}: {}", word.trim()),
                None => format!("load: {io_error}"),
            }
        }
        ProgramError::SyscallError(error) => format!("{}: {}", error.call, error.io_error),
        other => one_line(other),
    };
    let why = if why.contains("event_source/devices/kprobe") {
        "this kernel has no kprobes (CONFIG_KPROBES)".to_owned()
    } else {
        why
    };
    format!("{kind}/{target}: {why}")
}
