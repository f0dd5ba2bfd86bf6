//! What is around the agent: cgroups, a container, a virtual machine, tracefs.

use crate::host::root::{Root, read};

/// Which cgroup hierarchy the host has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cgroup {
    /// The unified hierarchy alone.
    V2,
    /// Hierarchies by controller, with or without the unified one beside.
    V1,
}

/// See the module's doc.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Surroundings {
    /// `None` for a kernel without cgroups.
    pub(crate) cgroup: Option<Cgroup>,
    /// What says that this is a container; `None` when nothing does.
    pub(crate) container: Option<&'static str>,
    /// The hypervisor's name, or "a hypervisor"; `None` on bare metal.
    pub(crate) hypervisor: Option<String>,
    /// Whether tracefs is mounted.
    pub(crate) tracefs: bool,
}

/// Reads them; what can't be read counts as not there.
pub(crate) fn read_surroundings(root: &Root) -> Surroundings {
    let text = |path: std::path::PathBuf| read(&path).unwrap_or_default();
    Surroundings {
        cgroup: cgroup(&text(root.proc("self/cgroup"))),
        container: container(root),
        hypervisor: hypervisor(
            &text(root.proc("cpuinfo")),
            &text(root.sys("class/dmi/id/sys_vendor")),
            &text(root.sys("class/dmi/id/product_name")),
        ),
        tracefs: root.sys("kernel/tracing/events").exists(),
    }
}

/// Hierarchy 0 is the unified one; all others are of version 1.
fn cgroup(text: &str) -> Option<Cgroup> {
    let mut lines = text.lines().peekable();
    lines.peek()?;
    let unified = lines.all(|line| line.starts_with("0::"));
    Some(if unified { Cgroup::V2 } else { Cgroup::V1 })
}

/// Files and cgroups that container engines make; `self/root` is what this process sees as `/`.
fn container(root: &Root) -> Option<&'static str> {
    const FILES: [(&str, &str); 3] = [
        ("self/root/.dockerenv", "/.dockerenv"),
        ("self/root/run/.containerenv", "/run/.containerenv"),
        ("self/root/run/systemd/container", "/run/systemd/container"),
    ];
    const CGROUPS: [&str; 5] = ["kubepods", "docker", "containerd", "libpod", "lxc"];
    if let Some((_, name)) = FILES.iter().find(|(path, _)| root.proc(path).exists()) {
        return Some(name);
    }
    let cgroup = read(&root.proc("self/cgroup")).unwrap_or_default();
    CGROUPS.into_iter().find(|name| cgroup.contains(name))
}

/// The CPU says whether there is one (x86's `hypervisor` flag), the firmware who; on other CPUs only the firmware tells.
fn hypervisor(cpuinfo: &str, vendor: &str, product: &str) -> Option<String> {
    const NAMES: [&str; 10] = [
        "KVM",
        "QEMU",
        "VMware",
        "VirtualBox",
        "Virtual Machine",
        "Xen",
        "Amazon EC2",
        "Google Compute Engine",
        "Firecracker",
        "OpenStack",
    ];
    let firmware = format!("{} {}", vendor.trim(), product.trim());
    let firmware = firmware.trim();
    let flagged = cpuinfo
        .lines()
        .find(|line| line.starts_with("flags"))
        .is_some_and(|line| line.split_ascii_whitespace().any(|f| f == "hypervisor"));
    // Some clouds' bare machines have the same firmware names: where the CPU can tell, it decides.
    let x86 = cpuinfo.lines().any(|line| line.starts_with("flags"));
    let named = NAMES.iter().any(|name| firmware.contains(name));
    match (flagged, x86) {
        (true, _) if firmware.is_empty() => Some("a hypervisor".to_owned()),
        (true, _) => Some(firmware.to_owned()),
        (false, false) if named => Some(firmware.to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fixture::Fixture;

    #[test]
    fn which_hierarchy() {
        for (text, want) in [
            ("0::/system.slice/ssh.service\n", Some(Cgroup::V2)),
            ("4:memory:/\n0::/\n", Some(Cgroup::V1)),
            ("9:name=systemd:/\n", Some(Cgroup::V1)),
            ("", None),
        ] {
            assert_eq!(cgroup(text), want, "{text:?}");
        }
    }

    #[test]
    fn what_says_that_it_is_a_container() {
        for (file, content, want) in [
            ("proc/self/root/.dockerenv", "", Some("/.dockerenv")),
            (
                "proc/self/cgroup",
                "0::/kubepods.slice/pod1/cri-containerd-2.scope\n",
                Some("kubepods"),
            ),
            ("proc/self/cgroup", "0::/user.slice\n", None),
        ] {
            let fixture = Fixture::with(&[(file, content)]);
            assert_eq!(container(&fixture.root()), want, "{file} {content}");
        }
    }

    #[test]
    fn who_runs_the_machine() {
        const GUEST: &str = "processor\t: 0\nflags\t\t: fpu sse2 hypervisor lahf_lm\n";
        const METAL: &str = "processor\t: 0\nflags\t\t: fpu sse2 lahf_lm\n";
        const ARM: &str = "processor\t: 0\nFeatures\t: fp asimd\n";
        for (cpuinfo, vendor, product, want) in [
            (GUEST, "QEMU\n", "Standard PC\n", Some("QEMU Standard PC")),
            (GUEST, "", "", Some("a hypervisor")),
            (METAL, "Amazon EC2\n", "m7i.metal-24xl\n", None),
            (
                ARM,
                "QEMU\n",
                "KVM Virtual Machine\n",
                Some("QEMU KVM Virtual Machine"),
            ),
            (ARM, "Ampere\n", "Mt. Jade\n", None),
        ] {
            let found = hypervisor(cpuinfo, vendor, product);
            assert_eq!(found.as_deref(), want, "{vendor} {product}");
        }
    }
}
