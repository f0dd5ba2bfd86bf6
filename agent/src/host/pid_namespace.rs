//! Whether the pids in `/proc` are the ones that the kernel's probes count by.

use crate::host::error::Error;
use crate::host::process::{ProcessDir, list_pids};
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

/// The host's pid of a process that the agent's own pid namespace calls `inner`, where `/proc` is
/// a mount of the host's; `None` if there is no such process.
///
/// In the kernel's first pid namespace it is `inner` itself.
///
/// # Errors
/// If `/proc` can't be listed.
pub(crate) fn host_pid(root: &Root, inner: u32) -> Result<Option<u32>, Error> {
    let namespace = |process: String| fs::read_link(root.proc(process).join("ns/pid")).ok();
    let own = namespace("self".to_owned());
    let is_it = |pid: u32| {
        let status = ProcessDir::open(root, pid)?.status()?;
        let same = own.is_some() && namespace(pid.to_string()) == own;
        Ok::<_, Error>(same && status.pids_by_namespace.last() == Some(&inner))
    };
    Ok(list_pids(root)?
        .iter()
        .map(|entry| entry.pid)
        .find(|pid| is_it(*pid).unwrap_or(false)))
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

    #[test]
    fn a_containers_pid_is_found_among_the_hosts() {
        let fixture = Fixture::with(&[
            ("proc/900/status", "NSpid:\t900\t17\n"),
            ("proc/901/status", "NSpid:\t901\t17\n"),
            ("proc/902/status", "NSpid:\t902\t18\n"),
        ]);
        fixture.link("proc/self/ns/pid", NESTED);
        fixture.link("proc/900/ns/pid", "pid:[4026539999]");
        fixture.link("proc/901/ns/pid", NESTED);
        fixture.link("proc/902/ns/pid", NESTED);
        assert_eq!(host_pid(&fixture.root(), 17).unwrap(), Some(901));
        assert_eq!(host_pid(&fixture.root(), 19).unwrap(), None);
    }
}
