//! The machines that the guest can be: nodes, sockets and distances, one table entry each.

use anyhow::{Result, bail};

/// One NUMA node of a layout.
pub(crate) struct Node {
    /// Its CPUs as QEMU writes them, `0-1`; none is a memory-only node.
    cpus: Option<&'static str>,
    /// Whether it has memory; none is a CPU-only node.
    memory: bool,
    /// Whether the machine starts with it; if not, its CPUs could be plugged in later, and its id
    /// is a gap.
    present: bool,
}

/// One machine.
pub(crate) struct Layout {
    /// What `--layout` calls it.
    pub(crate) name: &'static str,
    /// For `--help`.
    pub(crate) about: &'static str,
    /// QEMU's `-smp`. Sockets are spelt out: left to itself, QEMU puts all nodes into one package,
    /// and then everything remote is same-socket.
    smp: &'static str,
    /// CPUs that are there besides the first ones that `smp` says: socket and core.
    plugged: &'static [(u8, u8)],
    nodes: &'static [Node],
    /// Row by row, as `numactl --hardware` prints them.
    distances: &'static [&'static [u8]],
}

const fn node(cpus: &'static str) -> Node {
    Node {
        cpus: Some(cpus),
        memory: true,
        present: true,
    }
}

const MEMORY_ONLY: Node = Node {
    cpus: None,
    memory: true,
    present: true,
};

const fn cpu_only(cpus: &'static str) -> Node {
    Node {
        cpus: Some(cpus),
        memory: false,
        present: true,
    }
}

const fn absent(cpus: &'static str) -> Node {
    Node {
        cpus: Some(cpus),
        memory: false,
        present: false,
    }
}

/// All of them; the first is the default.
pub(crate) const LAYOUTS: &[Layout] = &[
    Layout {
        name: "2n",
        about: "two nodes on two sockets",
        smp: "4,sockets=2,cores=2,threads=1",
        plugged: &[],
        nodes: &[node("0-1"), node("2-3")],
        distances: &[&[10, 21], &[21, 10]],
    },
    Layout {
        name: "1n",
        about: "one node: a machine that has nothing to say",
        smp: "4,sockets=1,cores=4,threads=1",
        plugged: &[],
        nodes: &[node("0-3")],
        distances: &[&[10]],
    },
    Layout {
        name: "4n2s",
        about: "four nodes on two sockets (SNC, NPS)",
        smp: "8,sockets=2,cores=4,threads=1",
        plugged: &[],
        nodes: &[node("0-1"), node("2-3"), node("4-5"), node("6-7")],
        distances: &[
            &[10, 12, 21, 21],
            &[12, 10, 21, 21],
            &[21, 21, 10, 12],
            &[21, 21, 12, 10],
        ],
    },
    Layout {
        name: "memory-only",
        about: "two nodes with CPUs and a third without (CXL)",
        smp: "4,sockets=2,cores=2,threads=1",
        plugged: &[],
        nodes: &[node("0-1"), node("2-3"), MEMORY_ONLY],
        distances: &[&[10, 21, 28], &[21, 10, 17], &[28, 17, 10]],
    },
    Layout {
        name: "cpu-only",
        about: "two nodes with memory and a third without",
        smp: "6,sockets=3,cores=2,threads=1",
        plugged: &[],
        nodes: &[node("0-1"), node("2-3"), cpu_only("4-5")],
        distances: &[&[10, 21, 21], &[21, 10, 21], &[21, 21, 10]],
    },
    Layout {
        name: "asymmetric",
        about: "three nodes whose distances depend on the direction",
        smp: "6,sockets=3,cores=2,threads=1",
        plugged: &[],
        nodes: &[node("0-1"), node("2-3"), node("4-5")],
        distances: &[&[10, 21, 31], &[25, 10, 17], &[28, 19, 10]],
    },
    // QEMU wants every id up to the highest, and Linux numbers nodes in the order in which the
    // firmware's table names them first. So the gap is a node in that table, which Linux gives its
    // number, whose CPUs are not plugged in: it never comes online.
    Layout {
        name: "sparse",
        about: "two nodes with the ids 0 and 2",
        smp: "2,sockets=3,cores=2,threads=1,maxcpus=6",
        plugged: &[(2, 0), (2, 1)],
        nodes: &[node("0-1"), absent("2-3"), node("4-5")],
        distances: &[&[10, 21, 21], &[21, 10, 21], &[21, 21, 10]],
    },
];

/// The layout of this name.
pub(crate) fn find(name: &str) -> Result<&'static Layout> {
    match LAYOUTS.iter().find(|layout| layout.name == name) {
        Some(layout) => Ok(layout),
        None => bail!("there is no layout {name}: see cargo xtask vm --help"),
    }
}

impl Layout {
    /// Whether the machine has this node.
    pub(crate) fn has(&self, node: usize) -> bool {
        self.nodes.get(node).is_some_and(|node| node.present)
    }

    /// QEMU's arguments for this machine with `memory_mib` shared out among its nodes.
    pub(crate) fn arguments(&self, memory_mib: u64) -> Result<Vec<String>> {
        let with_memory = self.nodes.iter().filter(|node| node.memory).count() as u64;
        let each = memory_mib / with_memory.max(1);
        if each < 256 {
            bail!(
                "--memory {memory_mib}M gives each node {each} MiB: a guest needs 256 MiB in each"
            );
        }
        // QEMU insists that the nodes add up to the machine's memory exactly.
        let total = each * with_memory;
        let mut args: Vec<String> = vec![
            "-smp".into(),
            self.smp.into(),
            "-m".into(),
            format!("{total}M"),
        ];
        for (id, node) in self.nodes.iter().enumerate() {
            let cpus = node
                .cpus
                .map(|cpus| format!(",cpus={cpus}"))
                .unwrap_or_default();
            let mut memdev = String::new();
            if node.memory {
                // A node's memory is an object of its own: the older `mem=` is refused by q35.
                args.push("-object".into());
                args.push(format!("memory-backend-ram,id=m{id},size={each}M"));
                memdev = format!(",memdev=m{id}");
            }
            args.extend(["-numa".into(), format!("node,nodeid={id}{cpus}{memdev}")]);
        }
        for (socket, core) in self.plugged {
            args.push("-device".into());
            args.push(format!(
                "max-x86_64-cpu,socket-id={socket},core-id={core},thread-id=0"
            ));
        }
        for (src, row) in self.distances.iter().enumerate() {
            for (dst, val) in row.iter().enumerate().filter(|(dst, _)| *dst != src) {
                args.extend([
                    "-numa".into(),
                    format!("dist,src={src},dst={dst},val={val}"),
                ]);
            }
        }
        Ok(args)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_the_two_node_machine() {
        let args = LAYOUTS[0].arguments(1024).unwrap().join(" ");
        assert_eq!(
            args,
            "-smp 4,sockets=2,cores=2,threads=1 -m 1024M \
             -object memory-backend-ram,id=m0,size=512M -numa node,nodeid=0,cpus=0-1,memdev=m0 \
             -object memory-backend-ram,id=m1,size=512M -numa node,nodeid=1,cpus=2-3,memdev=m1 \
             -numa dist,src=0,dst=1,val=21 -numa dist,src=1,dst=0,val=21"
        );
    }

    #[test]
    fn tables_are_square_and_local_is_ten() {
        for layout in LAYOUTS {
            let nodes = layout.nodes.len();
            assert_eq!(layout.distances.len(), nodes, "{}", layout.name);
            for (id, row) in layout.distances.iter().enumerate() {
                assert_eq!(row.len(), nodes, "{}", layout.name);
                assert_eq!(row[id], 10, "{}", layout.name);
            }
        }
    }

    #[test]
    fn a_gap_is_no_node() {
        let sparse = find("sparse").unwrap();
        let has = [0, 1, 2, 3].map(|node| sparse.has(node));
        assert_eq!(has, [true, false, true, false]);
    }

    #[test]
    fn too_little_memory_is_refused() {
        assert!(LAYOUTS[0].arguments(256).is_err());
    }
}
