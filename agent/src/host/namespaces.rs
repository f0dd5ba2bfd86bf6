//! Whether this process's namespaces let it see and do what the host's own can: pids, and capabilities.

use crate::host::root::Root;
use std::fs;

/// What the link `ns/pid` of a process in the kernel's first pid namespace says; the inode is
/// fixed by the kernel (`PROC_PID_INIT_INO`).
const INITIAL_PIDS: &str = "pid:[4026531836]";

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
            .is_ok_and(|link| link.as_os_str() == INITIAL_PIDS)
    };
    if is_initial("self") || is_initial("1") {
        Ok(())
    } else {
        Err(ForeignPids)
    }
}

/// The same of `ns/user` (`PROC_USER_INIT_INO`).
const INITIAL_USERS: &str = "user:[4026531837]";

/// The kernel takes only the host's capabilities for eBPF.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "numawatch is in its own user namespace (rootless containers are), whose root may not load eBPF: \
     run it as the host's root"
)]
pub(crate) struct ForeignUsers;

/// Checks that this process's capabilities are the host's; where the link can't be read, that is for others to say.
///
/// # Errors
/// [`ForeignUsers`], in one line that says what to do.
pub(crate) fn require_host_users(root: &Root) -> Result<(), ForeignUsers> {
    match fs::read_link(root.proc("self/ns/user")) {
        Ok(link) if link.as_os_str() != INITIAL_USERS => Err(ForeignUsers),
        _ => Ok(()),
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
            (INITIAL_PIDS, INITIAL_PIDS, Ok(())),
            (NESTED, INITIAL_PIDS, Ok(())),
            (NESTED, NESTED, Err(ForeignPids)),
        ] {
            let fixture = Fixture::new();
            fixture.link("proc/self/ns/pid", own);
            fixture.link("proc/1/ns/pid", first);
            assert_eq!(require_host_pids(&fixture.root()), want, "{own} {first}");
        }
    }

    #[test]
    fn whose_capabilities_count() {
        let users = |link: Option<&str>| {
            let fixture = Fixture::new();
            if let Some(link) = link {
                fixture.link("proc/self/ns/user", link);
            }
            require_host_users(&fixture.root())
        };
        assert_eq!(users(Some(INITIAL_USERS)), Ok(()));
        assert_eq!(users(None), Ok(()));
        assert_eq!(users(Some("user:[4026532700]")), Err(ForeignUsers));
    }

    #[test]
    fn the_refusal_is_one_line_that_says_what_to_do() {
        for (text, what) in [
            (ForeignPids.to_string(), "--pid=host"),
            (ForeignUsers.to_string(), "run it as the host's root"),
        ] {
            assert!(text.contains(what) && !text.contains('\n'), "{text}");
        }
    }
}
