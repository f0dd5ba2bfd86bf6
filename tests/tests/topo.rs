//! `numawatch topo`, black box: a folder of another machine's files, refused files, failing libraries, a terminal.
#![allow(
    clippy::expect_used,
    reason = "a helper that cannot go on fails its test"
)]

use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use tests::built::{NOBODY, PublicCopy, numawatch};
use tests::terminal::Terminal;

/// `proc` and `sys` of a machine with two nodes, a GPU on each, and NVIDIA's driver; gone on drop.
struct Machine(PathBuf);

impl Machine {
    fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("numawatch-machine-{}-{number}", std::process::id());
        let machine = Self(std::env::temp_dir().join(name));
        machine.file("sys/devices/system/cpu/online", "0-3");
        machine.file("sys/devices/system/node/online", "0-1");
        machine.file("proc/driver/nvidia/version", "NVRM version: made up");
        for (node, cpus) in [(0, "0-1"), (1, "2-3")] {
            let folder = format!("sys/devices/system/node/node{node}");
            machine.file(&format!("{folder}/cpulist"), cpus);
            machine.file(&format!("{folder}/distance"), ["10 21", "21 10"][node]);
        }
        for (complex, port, gpu, node) in [
            ("pci0000:3a", "0000:3a:01.0", "0000:3b:00.0", "0"),
            ("pci0000:85", "0000:85:01.0", "0000:86:00.0", "1"),
        ] {
            let folder = format!("devices/{complex}/{port}/{gpu}");
            machine.file(&format!("sys/{folder}/class"), "0x030200");
            machine.file(&format!("sys/{folder}/vendor"), "0x10de");
            machine.file(&format!("sys/{folder}/numa_node"), node);
            let bus = machine.0.join("sys/bus/pci/devices");
            fs::create_dir_all(&bus).expect("a folder");
            symlink(format!("../../../{folder}"), bus.join(gpu)).expect("a link");
        }
        machine
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, format!("{text}\n")).expect("a file");
    }

    /// Nobody but root may read it.
    fn refuse(&self, path: &str) {
        fs::set_permissions(self.0.join(path), Permissions::from_mode(0o600)).expect("a file");
    }

    fn topo(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.args(["topo", "--root"]).arg(&self.0);
        // No machine has its NVML there.
        command.env("NUMAWATCH_NVML", "/nonexistent/libnvidia-ml.so.1");
        command
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Its output, with exit status 0 and nothing on stderr.
fn fine(command: &mut Command) -> String {
    let output: Output = command.stdin(Stdio::null()).output().expect("it starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*stderr), (Some(0), ""));
    String::from_utf8(output.stdout).expect("text")
}

fn json(command: &mut Command) -> Value {
    serde_json::from_str(&fine(command.arg("--json"))).expect("JSON")
}

#[test]
fn the_words_and_the_nodes_are_in_the_document_and_nvmls_absence_has_a_reason() {
    let document = json(&mut Machine::new().topo(&numawatch()));
    let at = |pointer: &str| document.pointer(pointer).cloned().unwrap_or(Value::Null);
    assert_eq!(
        at("/matrix"),
        serde_json::json!({"labels": ["GPU0", "GPU1"], "links": [["X", "SYS"], ["SYS", "X"]]})
    );
    assert_eq!(at("/topology/devices/1/node"), 1);
    assert_eq!(at("/topology/devices/1/root_complex"), "pci0000:85");
    assert_eq!(at("/nvml/available"), false);
    let reason = at("/nvml/reason").to_string();
    assert!(
        reason.contains("/nonexistent/libnvidia-ml.so.1"),
        "{reason}"
    );
}

#[test]
fn a_user_who_may_not_read_half_of_it_sees_the_other_half_and_why() {
    let machine = Machine::new();
    machine.refuse("sys/devices/system/node/node1/cpulist");
    machine.refuse("sys/devices/pci0000:3a/0000:3a:01.0/0000:3b:00.0/numa_node");
    machine.refuse("sys/devices/pci0000:85/0000:85:01.0/0000:86:00.0/class");
    let copy = PublicCopy::of(&numawatch());
    let text = fine(machine.topo(copy.path()).uid(NOBODY).gid(NOBODY));
    assert!(text.contains("node 0  CPUs 0-1"), "{text}");
    for (line, refused) in [
        ("nodes: ", "node1/cpulist: permission denied"),
        ("GPU0: ", "numa_node: permission denied"),
        ("devices: ", "0000:86:00.0/class: permission denied"),
    ] {
        let found = text.lines().find(|l| l.starts_with(line));
        assert!(
            found.is_some_and(|l| l.contains(refused)),
            "{line}{refused} in\n{text}"
        );
    }
}

#[test]
fn this_machine_is_shown_without_privileges() {
    let copy = PublicCopy::of(&numawatch());
    let mut command = Command::new(copy.path());
    let text = fine(command.arg("topo").uid(NOBODY).gid(NOBODY));
    assert!(text.contains("node 0  CPUs "), "{text}");
}

#[test]
fn a_wide_terminal_has_colours_and_a_narrow_one_none() {
    let machine = Machine::new();
    for (columns, no_color, want) in [(200, "", true), (200, "1", false), (40, "", false)] {
        let mut command = machine.topo(&numawatch());
        command.env("NO_COLOR", no_color);
        let mut terminal = Terminal::start(command, columns, 60);
        let coloured = std::cell::Cell::new(false);
        terminal.wait_until("the last line", |screen| {
            coloured.set((0..60).any(|row| {
                let cell = |column| screen.cell(row, column);
                (0..columns).any(|c| cell(c).is_some_and(|c| c.fgcolor() != vt100::Color::Default))
            }));
            screen.contents().contains("NVML unavailable")
        });
        assert_eq!(
            coloured.get(),
            want,
            "{columns} columns, NO_COLOR={no_color:?}"
        );
    }
}
