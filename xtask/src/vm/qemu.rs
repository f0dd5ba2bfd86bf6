//! QEMU's command line for a guest, each odd flag explained.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use super::kernel::Kernel;
use super::layout::Layout;
use crate::{apt, command, workspace};

/// The ports between guest and host, by name; each is a socket of that name in the run's folder.
pub(crate) const PORTS: [&str; 3] = ["control", "out", "err"];

/// A machine to start.
pub(crate) struct Machine<'a> {
    /// Nodes and sockets.
    pub(crate) layout: &'static Layout,
    /// Memory in all.
    pub(crate) memory_mib: u64,
    /// The kernel to boot.
    pub(crate) kernel: &'a Kernel,
    /// Where sockets, initramfs, disk and console log are.
    pub(crate) run: &'a Path,
    /// Whether `run` has a disk.
    pub(crate) disk: bool,
    /// The node that a GPU is on.
    pub(crate) gpu_node: Option<usize>,
}

/// Modules that a machine needs to reach the host and its disk, for kernels without them.
pub(crate) fn modules(disk: bool, gpu: bool) -> Vec<String> {
    let mut modules = vec!["virtio_pci", "virtio_console"];
    if disk {
        modules.extend(["virtio_blk", "ext4"]);
    }
    if gpu {
        modules.push("virtio_gpu");
    }
    modules.into_iter().map(str::to_owned).collect()
}

/// The command that starts the machine; QEMU is fetched where it is missing.
pub(crate) fn command(machine: &Machine<'_>) -> Result<Command> {
    let mut qemu = emulator()?;
    qemu.args(arguments(machine)?);
    qemu.stdin(Stdio::null());
    Ok(qemu)
}

fn emulator() -> Result<Command> {
    const NAME: &str = "qemu-system-x86_64";
    let private = workspace::cache()?.join("debian");
    let found = command::find(NAME)
        .map(|program| (program, PathBuf::from("/")))
        .or_else(|| {
            let program = private.join("usr/bin").join(NAME);
            program.is_file().then(|| (program, private.clone()))
        });
    let (program, root) = if let Some(found) = found {
        found
    } else {
        let root = apt::provide(&["qemu-system-x86"], "QEMU, for the two-node guest")?;
        (root.join("usr/bin").join(NAME), root)
    };
    // The guest must not outlive a task that is killed: a test's time limit does that.
    let mut command = match command::find("setpriv") {
        Some(setpriv) => {
            let mut command = Command::new(setpriv);
            command.args(["--pdeathsig", "KILL"]).arg(&program);
            command
        }
        None => Command::new(&program),
    };
    if root != Path::new("/") {
        // Unpacked, not installed: it looks for its firmware and libraries in the wrong place.
        command.env("LD_LIBRARY_PATH", root.join("usr/lib/x86_64-linux-gnu"));
        for dir in ["usr/share/qemu", "usr/share/seabios"] {
            command.arg("-L").arg(root.join(dir));
        }
    }
    Ok(command)
}

fn arguments(machine: &Machine<'_>) -> Result<Vec<String>> {
    let file = |name: &str| machine.run.join(name).display().to_string();
    let mut args: Vec<String> = Vec::new();
    let mut add = |words: &[&str]| args.extend(words.iter().map(|word| (*word).to_owned()));
    // Emulation in one thread: with several, a guest panics now and then (Oops: int3) when the
    // kernel patches its own code. KVM would be faster, but few CI machines have it, and a test
    // that counts on it would mean something else there.
    add(&["-machine", "q35", "-accel", "tcg,thread=single"]);
    // Everything that emulation can do: the kernels are built for newer CPUs than QEMU's default.
    add(&["-cpu", "max"]);
    // No devices but those below, no window, no monitor: nothing that prints or takes time.
    add(&["-nodefaults", "-display", "none", "-monitor", "none"]);
    // A guest that panics ends, together with panic=-1 below, instead of booting again.
    add(&["-no-reboot"]);
    add(&["-kernel", &machine.kernel.image.display().to_string()]);
    add(&["-initrd", &file("initramfs")]);
    // An emulated timer is late on a busy machine, and a kernel that checks it at boot gives up.
    add(&["-append", "console=ttyS0 quiet panic=-1 no_timer_check"]);
    // The kernel's console goes to a file: what it says can't be taken for a command's output.
    add(&["-serial", &format!("file:{}", file("console.log"))]);
    // Commands' output comes over virtio ports: byte-exact, where a serial line turns \n to \r\n,
    // and with stdout and stderr apart.
    add(&["-device", "virtio-serial-pci"]);
    for port in PORTS {
        add(&["-chardev", &format!("socket,id={port},path={}", file(port))]);
        add(&[
            "-device",
            &format!("virtserialport,chardev={port},name={port}"),
        ]);
    }
    if machine.disk {
        // What the guest writes is thrown away with the image: no need to wait for the disk.
        let drive = format!(
            "file={},format=raw,if=none,id=disk,cache=unsafe",
            file("disk")
        );
        add(&["-drive", &drive, "-device", "virtio-blk-pci,drive=disk"]);
    }
    if let Some(node) = machine.gpu_node {
        if !machine.layout.has(node) {
            bail!(
                "--gpu-node {node}: layout {} has no such node",
                machine.layout.name
            );
        }
        // A second PCI root that belongs to a node: devices below it report that node. bus_nr is
        // any number that the first root's buses don't reach.
        add(&[
            "-device",
            &format!("pxb-pcie,id=pxb1,bus_nr=128,numa_node={node},bus=pcie.0"),
        ]);
        add(&["-device", "pcie-root-port,id=rp1,bus=pxb1,chassis=1,slot=1"]);
        add(&["-device", "virtio-gpu-pci,bus=rp1"]);
    }
    args.extend(machine.layout.arguments(machine.memory_mib)?);
    Ok(args)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::layout;

    #[test]
    fn a_gpu_needs_a_node_that_exists() {
        let kernel = Kernel {
            image: "vmlinuz".into(),
            modules: "modules".into(),
        };
        let mut machine = Machine {
            layout: &layout::LAYOUTS[0],
            memory_mib: 1024,
            kernel: &kernel,
            run: Path::new("/run"),
            disk: false,
            gpu_node: Some(1),
        };
        let args = arguments(&machine).unwrap().join(" ");
        assert!(args.contains("numa_node=1"), "{args}");
        assert!(args.contains("thread=single"), "{args}");
        machine.gpu_node = Some(2);
        assert!(arguments(&machine).is_err());
    }
}
