//! Where the matrix is played: kernels on the machine of two nodes, and the other layouts on one kernel.

use crate::session::Nodes;
use model::signal::Mechanism;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// A kernel and a layout, as `cargo xtask vm` calls them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// `--kernel`.
    pub kernel: &'static str,
    /// `--layout`.
    pub layout: &'static str,
    /// Whether it has a GPU; its kernel is the plain one then.
    pub gpu: bool,
    /// The nodes of the work.
    pub nodes: Nodes,
    /// The rung that numawatch is held to; `None` for the best of each signal.
    pub forced: Option<Mechanism>,
}

/// A kernel on the machine of two nodes.
const fn kernel(kernel: &'static str) -> Place {
    Place {
        kernel,
        layout: "2n",
        gpu: true,
        nodes: Nodes::TWO,
        forced: None,
    }
}

/// A kernel on the machine of two nodes, and a rung that is not the best.
const fn forced(name: &'static str, rung: Mechanism) -> Place {
    Place {
        forced: Some(rung),
        ..kernel(name)
    }
}

/// A layout, on the default kernel.
const fn layout(layout: &'static str, cpu: u32, memory: u32, other: Option<u32>) -> Place {
    Place {
        kernel: "6.12",
        layout,
        gpu: false,
        nodes: Nodes { cpu, memory, other },
        forced: None,
    }
}

/// All of them, in the order of the table.
pub const PLACES: [Place; 16] = [
    kernel("5.10"),
    kernel("6.1"),
    kernel("6.12"),
    kernel("6.18"),
    kernel("7"),
    layout("1n", 0, 0, None),
    layout("4n2s", 3, 0, Some(1)),
    layout("memory-only", 1, 2, Some(0)),
    layout("cpu-only", 2, 0, Some(1)),
    layout("asymmetric", 2, 0, Some(1)),
    layout("sparse", 2, 0, Some(0)),
    forced("5.10", Mechanism::Kprobe),
    forced("6.12", Mechanism::Kprobe),
    forced("6.12", Mechanism::TpBtf),
    forced("6.12", Mechanism::RawTp),
    forced("6.12", Mechanism::Procfs),
];

impl Place {
    /// No other place has it.
    #[must_use]
    pub fn name(&self) -> String {
        match self.forced {
            None => format!("{} {}", self.kernel, self.layout),
            Some(rung) => format!("{} {} {}", self.kernel, self.layout, rung.as_str()),
        }
    }

    /// Its column's head.
    #[must_use]
    pub fn head(&self) -> String {
        match self.forced {
            Some(rung) => format!("{} by {}", self.kernel, rung.as_str()),
            None if self.layout == "2n" => self.kernel.to_owned(),
            None => self.layout.to_owned(),
        }
    }
}

/// What sysfs says of the machine's nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// `online`.
    pub online: String,
    /// `has_memory`.
    pub has_memory: String,
    /// Each node's `cpulist`.
    pub cpus: BTreeMap<u32, String>,
    /// Each node's `distance`: to the online nodes, in their order.
    pub distances: BTreeMap<u32, String>,
    /// Each node's sockets, as its CPUs' `physical_package_id`s.
    pub sockets: BTreeMap<u32, Vec<u32>>,
}

impl Machine {
    /// This one.
    #[must_use]
    pub fn here() -> Self {
        let root = Path::new("/sys/devices/system/node");
        let read = |path: &Path| {
            std::fs::read_to_string(path)
                .map_or_else(|_| String::new(), |text| text.trim().to_owned())
        };
        let mut machine = Self {
            online: read(&root.join("online")),
            has_memory: read(&root.join("has_memory")),
            ..Self::default()
        };
        for id in 0..64u32 {
            let node = root.join(format!("node{id}"));
            if !node.is_dir() {
                continue;
            }
            machine.cpus.insert(id, read(&node.join("cpulist")));
            machine.distances.insert(id, read(&node.join("distance")));
            let mut sockets: Vec<u32> = (0..64)
                .map(|cpu| node.join(format!("cpu{cpu}/topology/physical_package_id")))
                .filter_map(|path| read(&path).parse().ok())
                .collect();
            sockets.dedup();
            machine.sockets.insert(id, sockets);
        }
        machine
    }

    /// What a layout promises, written down a second time: xtask's table is what is tested.
    ///
    /// # Panics
    /// For a layout that isn't listed.
    #[must_use]
    pub fn of(layout: &str) -> Self {
        type Rows = &'static [(u32, &'static str, &'static str, &'static [u32])];
        let (online, has_memory, rows): (&str, &str, Rows) = match layout {
            "1n" => ("0", "0", &[(0, "0-3", "10", &[0])]),
            "2n" => (
                "0-1",
                "0-1",
                &[(0, "0-1", "10 21", &[0]), (1, "2-3", "21 10", &[1])],
            ),
            "4n2s" => (
                "0-3",
                "0-3",
                &[
                    (0, "0-1", "10 12 21 21", &[0]),
                    (1, "2-3", "12 10 21 21", &[0]),
                    (2, "4-5", "21 21 10 12", &[1]),
                    (3, "6-7", "21 21 12 10", &[1]),
                ],
            ),
            "memory-only" => (
                "0-2",
                "0-2",
                &[
                    (0, "0-1", "10 21 28", &[0]),
                    (1, "2-3", "21 10 17", &[1]),
                    (2, "", "28 17 10", &[]),
                ],
            ),
            "cpu-only" => (
                "0-2",
                "0-1",
                &[
                    (0, "0-1", "10 21 21", &[0]),
                    (1, "2-3", "21 10 21", &[1]),
                    (2, "4-5", "21 21 10", &[2]),
                ],
            ),
            "asymmetric" => (
                "0-2",
                "0-2",
                &[
                    (0, "0-1", "10 21 31", &[0]),
                    (1, "2-3", "25 10 17", &[1]),
                    (2, "4-5", "28 19 10", &[2]),
                ],
            ),
            "sparse" => (
                "0,2",
                "0,2",
                &[(0, "0-1", "10 21", &[0]), (2, "2-3", "21 10", &[2])],
            ),
            _ => panic!("no layout {layout}"),
        };
        Self {
            online: online.to_owned(),
            has_memory: has_memory.to_owned(),
            cpus: rows.iter().map(|row| (row.0, row.1.to_owned())).collect(),
            distances: rows.iter().map(|row| (row.0, row.2.to_owned())).collect(),
            sockets: rows.iter().map(|row| (row.0, row.3.to_vec())).collect(),
        }
    }
}
