//! Who has a GPU device open, and who of them is no inference process.

use crate::engines::command::{Command, Program, base_name};
use crate::host::error::Error;
use crate::host::process::ProcessDir;
use crate::host::root::{Root, read};
use std::path::{Path, PathBuf};

/// Programs that have a GPU open for other ends: to show pictures, or to look after it.
///
/// Names as the kernel or the command line gives them; the kernel cuts its own to 15 bytes.
const EXCLUDED: &[(&str, &[&str])] = &[
    (
        "display server",
        &[
            "Xorg",
            "X",
            "Xwayland",
            "Xvnc",
            "gnome-shell",
            "kwin_wayland",
            "kwin_x11",
            "plasmashell",
            "sway",
            "weston",
            "Hyprland",
            "gamescope",
            "mutter",
            "muffin",
            "cinnamon",
            "cosmic-comp",
            "labwc",
            "wayfire",
            "niri",
            "xfwm4",
            "compiz",
            "sddm-greeter",
        ],
    ),
    (
        "browser",
        &[
            "chrome",
            "chromium",
            "chromium-browser",
            "google-chrome",
            "firefox",
            "firefox-bin",
            "firefox-esr",
            "brave",
            "msedge",
            "opera",
            "vivaldi-bin",
            "epiphany",
            "electron",
            "code",
            "slack",
            "Discord",
            "WebKitWebProcess",
            "QtWebEngineProcess",
        ],
    ),
    (
        "vendor daemon",
        &[
            "nvidia-persistenced",
            "nvidia-smi",
            "nvidia-settings",
            "nvidia-powerd",
            "nvidia-fabricmanager",
            "nv-fabricmanager",
            "nvsm_core",
            "nv-hostengine",
            "dcgm",
            "dcgmi",
            "dcgm-exporter",
            "nvidia-device-plugin",
            "gpu-feature-discovery",
            "nvidia-cuda-mps-control",
            "nvidia-imex",
            "rocm-smi",
            "amd-smi",
            "rdc",
            "rdcd",
            "xpu-smi",
            "xpumd",
            "hl-smi",
            "intel_gpu_top",
        ],
    ),
    (
        "monitor",
        &[
            "nvtop",
            "nvitop",
            "gpustat",
            "btop",
            "all-smi",
            "radeontop",
            "amdgpu_top",
            "telegraf",
            "node_exporter",
            "otelcol",
            "numawatch",
        ],
    ),
];

/// Whether a path is a GPU's or an accelerator's device, and not only its control device, which
/// monitors open too.
pub(crate) fn is_gpu_device(path: &Path) -> bool {
    let Some(name) = path.to_str().and_then(|p| p.strip_prefix("/dev/")) else {
        return false;
    };
    let numbered = |stem: &str| {
        name.strip_prefix(stem)
            .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    matches!(name, "nvidia-uvm" | "kfd")
        || ["nvidia", "dri/renderD", "accel", "accel/accel"]
            .into_iter()
            .any(numbered)
}

/// Why a program that has a GPU open is no inference process: `display server`, `browser`,
/// `vendor daemon` or `monitor`. Takes its short name and its arguments.
pub(crate) fn excluded(comm: &str, argv: &[String]) -> Option<&'static str> {
    let program = Command::parse(argv).map(|command| match command.program {
        Program::Executable(path) | Program::Script(path) => base_name(path),
        Program::Module(module) => module.split('.').next().unwrap_or(module),
        Program::Code(_) => "",
    });
    let cut = |name: &'static str| name.get(..15).unwrap_or(name);
    EXCLUDED
        .iter()
        .find(|(_, names)| {
            names
                .iter()
                .any(|name| comm == cut(name) || program == Some(*name))
        })
        .map(|(category, _)| *category)
}

/// Whether the kernel has a driver of a GPU or an accelerator; if it has none, nobody has one open
/// and no process's open files need a look. If that can't be told, it has.
pub(crate) fn has_driver(root: &Root) -> bool {
    let Ok(devices) = read(&root.proc("devices")) else {
        return true;
    };
    devices.lines().any(|line| {
        let name = line.split_ascii_whitespace().nth(1).unwrap_or_default();
        name.starts_with("nvidia") || ["drm", "kfd", "accel", "habanalabs"].contains(&name)
    })
}

/// The GPU devices that a process has open, sorted, each once.
///
/// # Errors
/// [`Error::Denied`] for another user's process without CAP_SYS_PTRACE; [`Error::Gone`].
pub(crate) fn open_devices(process: &ProcessDir) -> Result<Vec<PathBuf>, Error> {
    let mut devices = process.open_files()?;
    devices.retain(|path| is_gpu_device(path));
    devices.sort_unstable();
    devices.dedup();
    Ok(devices)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fixture::Fixture;

    #[test]
    fn devices_that_count() {
        for (path, want) in [
            ("/dev/nvidia0", true),
            ("/dev/nvidia12", true),
            ("/dev/nvidia-uvm", true),
            ("/dev/nvidiactl", false),
            ("/dev/nvidia-modeset", false),
            ("/dev/nvidia-caps/nvidia-cap1", false),
            ("/dev/dri/renderD128", true),
            ("/dev/dri/card0", false),
            ("/dev/kfd", true),
            ("/dev/accel0", true),
            ("/dev/accel/accel3", true),
            ("/dev/accel/accel_controlD3", false),
            ("/home/me/dev/nvidia0", false),
            ("socket:[42]", false),
        ] {
            assert_eq!(is_gpu_device(Path::new(path)), want, "{path}");
        }
    }

    #[test]
    fn who_is_no_inference_process() {
        for (comm, line, want) in [
            ("Xorg", "/usr/lib/xorg/Xorg :0", Some("display server")),
            (
                "gnome-shell",
                "/usr/bin/gnome-shell",
                Some("display server"),
            ),
            (
                "chrome",
                "/opt/google/chrome/chrome --type=gpu-process",
                Some("browser"),
            ),
            (
                "GPU Process",
                "/usr/lib/firefox/firefox-bin -contentproc",
                Some("browser"),
            ),
            (
                "nvidia-persiste",
                "/usr/bin/nvidia-persistenced --user x",
                Some("vendor daemon"),
            ),
            ("nv-hostengine", "nv-hostengine -n", Some("vendor daemon")),
            (
                "python3",
                "/usr/bin/python3 /usr/local/bin/nvitop",
                Some("monitor"),
            ),
            ("python3", "python3 -m gpustat --watch", Some("monitor")),
            ("python3", "python3 train.py", None),
            ("chrome-trainer", "/opt/chrome-trainer", None),
        ] {
            let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(excluded(comm, &argv), want, "{line}");
        }
    }

    #[test]
    fn a_kernel_without_a_driver_has_no_gpu_to_open() {
        for (devices, want) in [
            (
                "Character devices:\n  1 mem\n136 pts\n\nBlock devices:\n  7 loop\n",
                false,
            ),
            ("Character devices:\n195 nvidia\n", true),
            ("Character devices:\n195 nvidia-frontend\n", true),
            ("Character devices:\n226 drm\n", true),
            ("Character devices:\n240 kfd\n", true),
        ] {
            let fixture = Fixture::with(&[("proc/devices", devices)]);
            assert_eq!(has_driver(&fixture.root()), want, "{devices}");
        }
        assert!(has_driver(&Fixture::new().root()));
    }

    #[test]
    fn a_device_open_twice_is_listed_once() {
        let fixture = Fixture::new();
        for (fd, target) in [
            (0, "/dev/null"),
            (3, "/dev/nvidia1"),
            (4, "/dev/nvidia0"),
            (5, "/dev/nvidia1"),
            (6, "socket:[7]"),
        ] {
            fixture.link(&format!("proc/7/fd/{fd}"), target);
        }
        let process = ProcessDir::open(&fixture.root(), 7).unwrap();
        let devices = open_devices(&process).unwrap();
        assert_eq!(
            devices,
            [Path::new("/dev/nvidia0"), Path::new("/dev/nvidia1")]
        );
    }
}
