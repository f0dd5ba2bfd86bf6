//! The host's name, its kernel and the setting of NUMA balancing.

use crate::host::error::Error;
use crate::host::root::{Root, read, read_if_present};
use crate::host::surroundings::read_surroundings;
use crate::host::topology::count_online_cpus;
use model::snapshot::{AgentCost, Host, Lost};

/// Reads what a snapshot's `host` says of the machine; `may_hide_nodes`, `agent` and `lost` are left empty.
///
/// # Errors
/// If procfs isn't there.
pub(crate) fn read_host(root: &Root) -> Result<Host, Error> {
    let sysctls = root.proc("sys");
    if !sysctls.exists() {
        let what = "it is not there, so procfs is not mounted on /proc: mount it";
        return Err(Error::format(&sysctls, what));
    }
    let [name, kernel] = uname();
    let balancing = read_numa_balancing(root);
    Ok(Host {
        name: line(root, "sys/kernel/hostname").unwrap_or(name),
        kernel: line(root, "sys/kernel/osrelease").unwrap_or(kernel),
        cpus: count_online_cpus(root).and_then(|count| count.try_into().ok()),
        numa_balancing: balancing.clone().ok().flatten(),
        numa_balancing_reason: balancing.err(),
        hypervisor: read_surroundings(root).hypervisor,
        may_hide_nodes: false,
        agent: AgentCost::default(),
        lost: Lost::default(),
        maps: Vec::new(),
    })
}

/// `kernel.numa_balancing`: 0 off, 1 on, 2 memory tiering; `None` where the kernel has none.
///
/// # Errors
/// In one line, if nothing can be said of it: containers run with `/proc/sys` or a part of it masked.
pub(crate) fn read_numa_balancing(root: &Root) -> Result<Option<u32>, String> {
    let folder = root.proc("sys/kernel");
    let path = folder.join("numa_balancing");
    match read_if_present(&path).map_err(|error| error.to_string())? {
        Some(text) => text.trim().parse().map(Some).map_err(|_| {
            let start: String = text.trim().chars().take(20).collect();
            format!(
                "{}: {start:?} is no number: is something mounted over it?",
                path.display()
            )
        }),
        // Which every kernel has.
        None if folder.join("pid_max").exists() => Ok(None),
        None => Err(format!(
            "{} is masked, so kernel.numa_balancing is not known (docker: --security-opt systempaths=unconfined)",
            folder.display()
        )),
    }
}

/// `kernel.pid_max`; the default of old where it can't be read.
pub(crate) fn read_pid_max(root: &Root) -> u64 {
    let told = line(root, "sys/kernel/pid_max").ok();
    told.and_then(|text| text.parse().ok()).unwrap_or(32_768)
}

/// The host's name and its kernel's release as the system call tells, which nothing can be mounted over.
fn uname() -> [String; 2] {
    // SAFETY: all of it is bytes, for which zero is a value; the call fills it in, and fails for bad addresses only.
    let names = unsafe {
        let mut names: libc::utsname = std::mem::zeroed();
        libc::uname(&raw mut names);
        names
    };
    [&names.nodename, &names.release].map(|field| {
        let bytes = field.iter().map(|c| c.cast_unsigned());
        let bytes: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn line(root: &Root, below_proc: &str) -> Result<String, Error> {
    Ok(read(&root.proc(below_proc))?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fixture::Fixture;

    fn machine() -> Fixture {
        Fixture::with(&[
            ("sys/devices/system/cpu/online", "0-3,8\n"),
            ("proc/sys/kernel/hostname", "gpu-07\n"),
            ("proc/sys/kernel/osrelease", "6.12.1-amd64\n"),
        ])
    }

    #[test]
    fn a_kernel_without_balancing_has_none() {
        let machine = machine();
        machine.file("proc/sys/kernel/pid_max", "32768\n");
        let host = read_host(&machine.root()).unwrap();
        assert_eq!(host.numa_balancing_reason, None);
        assert_eq!((host.name.as_str(), host.cpus), ("gpu-07", Some(5)));
        assert_eq!(host.kernel, "6.12.1-amd64");
        assert_eq!(host.numa_balancing, None);
    }

    #[test]
    fn masked_settings_and_cpus_leave_the_host_its_name() {
        let masked = Fixture::with(&[
            ("proc/sys/kernel/empty", ""),
            ("proc/stat", "cpu0 1\ncpu5 1\n"),
        ]);
        let host = read_host(&masked.root()).unwrap();
        let told = |file: &str| std::fs::read_to_string(format!("/proc/sys/kernel/{file}"));
        assert_eq!(host.name, told("hostname").unwrap().trim());
        assert_eq!(host.kernel, told("osrelease").unwrap().trim());
        assert_eq!(host.cpus, Some(2));
        let reason = host.numa_balancing_reason.unwrap();
        assert!(reason.contains("/proc/sys/kernel is masked"), "{reason}");
    }

    #[test]
    fn where_the_cpus_are_masked_their_number_is_the_nodes_or_unknown() {
        let masked = Fixture::with(&[
            ("proc/sys/empty", ""),
            ("proc/stat", ""),
            ("sys/devices/system/cpu/online", ""),
            ("sys/devices/system/node/online", "0-1\n"),
            ("sys/devices/system/node/node0/cpulist", "0-3\n"),
            ("sys/devices/system/node/node1/cpulist", "\n"),
        ]);
        let cpus = || read_host(&masked.root()).unwrap().cpus;
        assert_eq!(cpus(), Some(4), "a node may have none");
        masked.file("sys/devices/system/node/node1/cpulist", "");
        assert_eq!(cpus(), None, "node 1 may have some");
        masked.file("sys/devices/system/node/node0/cpulist", "");
        assert_eq!(cpus(), None);
    }

    #[test]
    fn balancing_has_three_modes() {
        for mode in [0, 1, 2] {
            let machine = machine();
            machine.file("proc/sys/kernel/numa_balancing", &format!("{mode}\n"));
            assert_eq!(read_numa_balancing(&machine.root()), Ok(Some(mode)));
        }
    }

    #[test]
    fn a_masked_setting_is_no_setting_and_says_so() {
        let machine = machine();
        machine.file("proc/sys/kernel/numa_balancing", "");
        let host = read_host(&machine.root()).unwrap();
        assert_eq!(host.numa_balancing, None);
        let reason = host.numa_balancing_reason.unwrap();
        assert!(
            reason.contains("numa_balancing: \"\" is no number"),
            "{reason}"
        );
    }
}
