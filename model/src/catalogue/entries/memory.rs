//! Memory of a process and of its cgroup: where it lies, and what of it can't move.

use super::node;
use crate::catalogue::points::{by_class, by_kind, by_node, cgroups, one};
use crate::catalogue::{
    Attribute, CGROUP_PATH, Getter, Instrument, MEMORY_CLASS, MEMORY_KIND, Metric, Number,
    Stability, Value,
};

/// In the order in which documents list them.
pub(super) const METRICS: [Metric; 11] = [
    Metric {
        name: "numawatch.process.memory.usage",
        unit: "By",
        instrument: Instrument::UpDownCounter,
        number: Number::Integer,
        description: "Resident memory of the process on a node, from a sample of its pages. Shared pages count in each \
                      process that maps them.",
        attributes: &[node("the node that holds the memory")],
        stability: Stability::Development,
        getter: Getter::Process(|_, process| {
            by_node(process.placement.by_node_bytes.as_ref(), Value::Integer)
        }),
    },
    Metric {
        name: "numawatch.process.memory.kind.usage",
        unit: "By",
        instrument: Instrument::UpDownCounter,
        number: Number::Integer,
        description: "Resident memory of the process on a node by kind, from a sample of its pages.",
        attributes: &[
            Attribute {
                name: MEMORY_KIND,
                values: &["anonymous", "file", "shared", "huge"],
                description: "as the kernel accounts for it; `huge` is hugetlb",
            },
            node("the node that holds the memory"),
        ],
        stability: Stability::Development,
        getter: Getter::Process(|_, process| by_kind(&process.placement)),
    },
    Metric {
        name: "numawatch.process.memory.class.usage",
        unit: "By",
        instrument: Instrument::UpDownCounter,
        number: Number::Integer,
        description: "Resident memory of the process on a node by what it holds, from a sample of its pages.",
        attributes: &[
            Attribute {
                name: MEMORY_CLASS,
                values: &[
                    "weights",
                    "large_anonymous",
                    "anonymous",
                    "heap",
                    "shared",
                    "huge",
                    "file",
                    "stack",
                ],
                description: "what the mapping holds",
            },
            node("the node that holds the memory"),
        ],
        stability: Stability::Development,
        getter: Getter::Process(|_, process| by_class(&process.placement)),
    },
    Metric {
        name: "numawatch.process.memory.margin",
        unit: "By",
        instrument: Instrument::Gauge,
        number: Number::Integer,
        description: "Half the width of the 95 % confidence interval of `numawatch.process.memory.usage`.",
        attributes: &[node("the node that holds the memory")],
        stability: Stability::Development,
        getter: Getter::Process(|_, process| {
            by_node(
                process.placement.margin_by_node_bytes.as_ref(),
                Value::Integer,
            )
        }),
    },
    Metric {
        name: "numawatch.process.memory.coverage",
        unit: "1",
        instrument: Instrument::Gauge,
        number: Number::Float,
        description: "Share of the process's mapped addresses in which resident pages have been looked for, 0 to 1.",
        attributes: &[],
        stability: Stability::Development,
        getter: Getter::Process(|_, process| one(process.placement.coverage.map(Value::Float))),
    },
    Metric {
        name: "numawatch.process.pinned.usage",
        unit: "By",
        instrument: Instrument::UpDownCounter,
        number: Number::Integer,
        description: "Memory of the process that is pinned for devices, as their drivers account for it; some don't.",
        attributes: &[],
        stability: Stability::Development,
        getter: Getter::Process(|_, process| one(process.pinned.bytes.map(Value::Integer))),
    },
    Metric {
        name: "numawatch.process.locked.usage",
        unit: "By",
        instrument: Instrument::UpDownCounter,
        number: Number::Integer,
        description: "Memory of the process that it has locked.",
        attributes: &[],
        stability: Stability::Development,
        getter: Getter::Process(|_, process| one(process.pinned.locked_bytes.map(Value::Integer))),
    },
    Metric {
        name: "numawatch.process.locked.node.usage",
        unit: "By",
        instrument: Instrument::UpDownCounter,
        number: Number::Integer,
        description: "Memory of the process on a node that it has locked, from a sample of its pages' flags.",
        attributes: &[node("the node that holds the memory")],
        stability: Stability::Development,
        getter: Getter::Process(|_, process| {
            let locked = process.placement.locked_by_node_bytes.as_ref();
            by_node(locked, Value::Integer)
        }),
    },
    Metric {
        name: "numawatch.process.pins",
        unit: "{page}",
        instrument: Instrument::Counter,
        number: Number::Integer,
        description: "Pages of 4 KiB that the process pinned for long. What was unpinned is not taken off, and a page \
                      whose node nothing tells is left out.",
        attributes: &[node("the node that holds the page")],
        stability: Stability::Development,
        getter: Getter::Process(|_, process| {
            by_node(process.pinned.made.by_node.as_ref(), Value::Integer)
        }),
    },
    Metric {
        name: "numawatch.process.driver_allocations",
        unit: "{page}",
        instrument: Instrument::Counter,
        number: Number::Integer,
        description: "Pages of 4 KiB that a GPU or RDMA driver allocated for the process. What was freed is not taken \
                      off, and a page whose node nothing tells is left out.",
        attributes: &[node("the node that holds the page")],
        stability: Stability::Development,
        getter: Getter::Process(|_, process| {
            let pages = process.driver_allocated_pages.by_node.as_ref();
            by_node(pages, Value::Integer)
        }),
    },
    Metric {
        name: "numawatch.cgroup.memory.usage",
        unit: "By",
        instrument: Instrument::UpDownCounter,
        number: Number::Integer,
        description: "Memory on a node that a cgroup of tracked processes and the cgroups below it are charged for \
                      (`memory.numa_stat`), each page once. Cgroups within one another are not to be summed.",
        attributes: &[
            Attribute {
                name: CGROUP_PATH,
                values: &[],
                description: "the cgroup's path; of v1 in the hierarchy with the memory controller",
            },
            Attribute {
                name: MEMORY_KIND,
                values: &[
                    "anonymous",
                    "file",
                    "shared",
                    "kernel",
                    "anonymous_and_shared",
                    "unevictable",
                ],
                description: "`kernel` is slabs, stacks and page tables; v1 tells the last two and `file` only",
            },
            node("the node that holds the memory"),
        ],
        stability: Stability::Development,
        getter: Getter::Host(|snapshot| cgroups(&snapshot.cgroups)),
    },
];
