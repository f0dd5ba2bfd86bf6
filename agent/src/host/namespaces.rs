//! Whether the pids in `/proc` are the ones that the kernel's probes count by.

use crate::host::root::Root;
use std::fs;

/// What the link `ns/pid` of a process in the kernel's first pid namespace says; the inode is
/// fixed by the kernel (`PROC_PID_INIT_INO`).
const INITIAL: &str = "pid:[4026531836]";

/// Probes would count by other pids than those that the agent sees.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "numawatch is in its own pid namespace, but the kernel counts by the host's pids: \
     run it on the host, or in a container with the host's (docker --pid=host, Kubernetes hostPID: true)"
)]
pub(crate) struct ForeignPids;

/// Checks that `/proc` has the host's pids: the agent is in the kernel's first pid namespace, or
/// this `/proc` is a mount of the host's.
///
/// # Errors
/// [`ForeignPids`], in one line that says what to do.
pub(crate) fn require_host_pids(root: &Root) -> Result<(), ForeignPids> {
    let is_initial = |process: &str| {
        fs::read_link(root.proc(process).join("ns/pid"))
            .is_ok_and(|link| link.as_os_str() == INITIAL)
    };
    if is_initial("self") || is_initial("1") {
        Ok(())
    } else {
        Err(ForeignPids)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fixture::Fixture;

    const NESTED: &str = "pid:[4026532201]";

    #[test]
    fn whose_pids_are_in_proc() {
        for (own, first, want) in [
            (INITIAL, INITIAL, Ok(())),
            (NESTED, INITIAL, Ok(())),
            (NESTED, NESTED, Err(ForeignPids)),
        ] {
            let fixture = Fixture::new();
            fixture.link("proc/self/ns/pid", own);
            fixture.link("proc/1/ns/pid", first);
            assert_eq!(require_host_pids(&fixture.root()), want, "{own} {first}");
        }
    }

    #[test]
    fn the_refusal_is_one_line_that_says_what_to_do() {
        let text = ForeignPids.to_string();
        assert!(text.contains("--pid=host") && !text.contains('\n'));
    }
}
