//! Which container a process is in, by its cgroup's path: how each runtime names the cgroups it makes.

use crate::policy::Container;

/// Names in front of the id (`docker-ID.scope`), and whose they are. `conmon` is the monitor of a container, outside it.
const PREFIXES: [(&str, Option<&str>); 10] = [
    ("docker", Some("docker")),
    ("cri-containerd", Some("containerd")),
    ("nerdctl", Some("containerd")),
    ("crio", Some("cri-o")),
    ("libpod", Some("podman")),
    ("libpod-payload", Some("podman")),
    ("crio-conmon", None),
    ("libpod-conmon", None),
    ("libpod-payload-conmon", None),
    ("buildkit", Some("buildkit")),
];

/// What a cgroup's name says.
enum Named<'a> {
    Container(&'a str, Option<&'static str>),
    Monitor,
}

/// The innermost container of a path; `None` for a process of the host, and for a path that begins at a namespace of its
/// own and so tells nothing.
#[must_use]
pub fn of(path: &str) -> Option<Container> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    for (at, part) in parts.iter().enumerate().rev() {
        let name = part.strip_suffix(".scope").unwrap_or(part);
        match named(name, &parts[..at]) {
            Some(Named::Container(id, runtime)) => {
                return Some(Container {
                    id: id.to_owned(),
                    runtime: runtime.map(str::to_owned),
                    pod_uid: parts[..=at].iter().rev().find_map(|part| pod_uid(part)),
                });
            }
            Some(Named::Monitor) => return None,
            None => {}
        }
    }
    None
}

/// Nearly every runtime ends the name with the container's id.
fn named<'a>(name: &'a str, above: &[&str]) -> Option<Named<'a>> {
    const ID: usize = 64;
    if let Some(name) = lxc_name(name, above) {
        return Some(Named::Container(name, Some("lxc")));
    }
    let start = name.len().checked_sub(ID)?;
    let id = name.get(start..).filter(|id| is_hex(id))?;
    let front = &name[..start];
    // `kubepods-…-podUID.slice:cri-containerd:ID`: a runtime that was told systemd's names and makes its own cgroups.
    let front = front
        .rsplit(':')
        .find(|part| !part.is_empty())
        .unwrap_or("");
    let front = front.trim_end_matches('-');
    if front.is_empty() {
        // The runtime's own directory, or Kubernetes's, which doesn't tell the runtime.
        let docker = above.last().is_some_and(|parent| *parent == "docker");
        return Some(Named::Container(id, docker.then_some("docker")));
    }
    let (_, runtime) = PREFIXES.iter().find(|(prefix, _)| *prefix == front)?;
    Some(match runtime {
        Some(runtime) => Named::Container(id, Some(runtime)),
        None => Named::Monitor,
    })
}

fn lxc_name<'a>(name: &'a str, above: &[&str]) -> Option<&'a str> {
    let named = name.strip_prefix("lxc.payload.");
    named.or_else(|| (above == ["lxc"]).then_some(name))
}

/// A pod's uid, in a name such as `kubepods-burstable-podUID.slice` or `podUID`. systemd's names have `_` for `-`; a
/// static pod's uid is a hash without either.
fn pod_uid(part: &str) -> Option<String> {
    let part = part.split(':').next()?;
    let part = part.strip_suffix(".slice").unwrap_or(part);
    let at = part.rfind("pod")?;
    let uid = part[at + 3..].replace('_', "-");
    let groups: Vec<usize> = uid.split('-').map(str::len).collect();
    let is_uid = groups == [8, 4, 4, 4, 12] || groups == [32];
    (is_uid && uid.split('-').all(is_hex)).then_some(uid)
}

fn is_hex(text: &str) -> bool {
    text.bytes()
        .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "4f1d3a2b5c6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708";
    const UID: &str = "2f6b1c0e-93f0-4e0b-8a3d-5a4f3c2b1a00";
    const UID_SYSTEMD: &str = "2f6b1c0e_93f0_4e0b_8a3d_5a4f3c2b1a00";

    /// Paths as the runtimes' own documents and bug reports show them; `ID`, `UID` and `UID_` stand for the above.
    #[test]
    fn each_runtimes_paths() {
        for (path, runtime, in_pod) in [
            ("/docker/ID", Some("docker"), false),
            ("/system.slice/docker-ID.scope", Some("docker"), false),
            ("/system.slice/docker-ID.scope/init", Some("docker"), false),
            (
                "/user.slice/user-1000.slice/user@1000.service/user.slice/docker-ID.scope",
                Some("docker"),
                false,
            ),
            ("/system.slice/nerdctl-ID.scope", Some("containerd"), false),
            ("/default/ID", None, false),
            (
                "/machine.slice/libpod-ID.scope/container",
                Some("podman"),
                false,
            ),
            (
                "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-ID.scope/container",
                Some("podman"),
                false,
            ),
            ("/libpod_parent/libpod-ID", Some("podman"), false),
            (
                "/system.slice/llm.service/libpod-payload-ID",
                Some("podman"),
                false,
            ),
            (
                "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUID_.slice/cri-containerd-ID.scope",
                Some("containerd"),
                true,
            ),
            (
                "/kubepods.slice/kubepods-podUID_.slice/cri-containerd-ID.scope",
                Some("containerd"),
                true,
            ),
            (
                "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podUID_.slice/crio-ID.scope/container",
                Some("cri-o"),
                true,
            ),
            (
                "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUID_.slice/docker-ID.scope",
                Some("docker"),
                true,
            ),
            ("/kubepods/burstable/podUID/ID", None, true),
            ("/kubepods/podUID/ID", None, true),
            ("/kubepods/besteffort/podUID/crio-ID", Some("cri-o"), true),
            (
                "/system.slice/containerd.service/kubepods-burstable-podUID_.slice:cri-containerd:ID",
                Some("containerd"),
                true,
            ),
            // A node of a cluster that is itself a container: the innermost counts.
            (
                "/docker/0f1d3a2b5c6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708/kubelet.slice/\
                 kubelet-kubepods.slice/kubelet-kubepods-podUID_.slice/cri-containerd-ID.scope",
                Some("containerd"),
                true,
            ),
            ("/ecs/0a1b2c3d4e5f60718293a4b5c6d7e8f9/ID", None, false),
        ] {
            let path = path.replace("UID_", UID_SYSTEMD).replace("UID", UID);
            let path = path.replace("ID", ID);
            let want = Container {
                id: ID.to_owned(),
                runtime: runtime.map(str::to_owned),
                pod_uid: in_pod.then(|| UID.to_owned()),
            };
            assert_eq!(of(&path), Some(want), "{path}");
        }
    }

    #[test]
    fn a_static_pods_uid_is_a_hash() {
        let path = format!("/kubepods/burstable/pod0a1b2c3d4e5f60718293a4b5c6d7e8f9/{ID}");
        let uid = of(&path).and_then(|container| container.pod_uid);
        assert_eq!(uid.as_deref(), Some("0a1b2c3d4e5f60718293a4b5c6d7e8f9"));
    }

    #[test]
    fn lxc_has_names() {
        for path in [
            "/lxc.payload.web",
            "/lxc/web",
            "/lxc.payload.web/system.slice/llm.service",
        ] {
            let container = of(path).unwrap();
            assert_eq!(
                (container.id.as_str(), container.runtime.as_deref()),
                ("web", Some("lxc")),
                "{path}"
            );
        }
    }

    #[test]
    fn who_is_in_no_container() {
        for path in [
            "/",
            "",
            "/init.scope",
            "/user.slice/user-1000.slice/session-3.scope",
            "/system.slice/docker.service",
            "/system.slice/containerd.service",
            "/kubepods.slice",
            "/machine.slice/libpod-conmon-ID.scope",
            "/kubepods.slice/kubepods-podUID_.slice/crio-conmon-ID.scope",
            "/../..",
        ] {
            let path = path.replace("UID_", UID_SYSTEMD).replace("ID", ID);
            assert_eq!(of(&path), None, "{path}");
        }
    }
}
