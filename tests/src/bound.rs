//! A process that is bound to a node, on any machine with NUMA in its kernel: with [`RAISES`] it surely has a finding.
#![allow(
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a helper that cannot go on fails its test"
)]

use crate::built::numawatch;
use crate::process::LIMIT;
use model::topology::NodeId;
use std::fs;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// With it every node is full, and who is bound to one is told so.
pub const RAISES: [&str; 2] = ["--threshold", "free_share=1"];

/// The finding that is raised then.
pub const RAISED: &str = "node-is-full";

/// A node with CPUs and memory; every machine with NUMA in its kernel has one.
#[must_use]
pub fn node() -> NodeId {
    let list = |name: &str| {
        let path = format!("/sys/devices/system/node/{name}");
        let text = fs::read_to_string(&path).expect("this kernel has NUMA");
        model::list::parse(&text).expect("a list of nodes")
    };
    let memory = list("has_memory");
    let cpus = list("has_cpu");
    let node = memory.into_iter().find(|node| cpus.contains(node));
    node.expect("a node with CPUs and memory")
}

/// A process that sleeps, bound to [`node`]; it is killed on drop.
pub struct Sleeper(Child);

impl Sleeper {
    /// Starts it, and returns once it sleeps.
    #[must_use]
    pub fn start() -> Self {
        let mut command = Command::new(numawatch());
        command.args(["launch", "--node", &node().to_string()]);
        let child = command.args(["--", "sleep", "600"]).spawn();
        let sleeper = Self(child.expect("numawatch starts"));
        let end = Instant::now() + LIMIT;
        let name = || fs::read_to_string(format!("/proc/{}/comm", sleeper.pid()));
        while name().is_ok_and(|name| name != "sleep\n") {
            assert!(Instant::now() < end, "it is not launched");
            std::thread::sleep(Duration::from_millis(20));
        }
        sleeper
    }

    /// The same before and after the launch.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
