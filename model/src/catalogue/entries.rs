//! Every metric: what it is called, what it means, and which points it has.

use super::points::{by_class, by_node, findings, moves, one, remote_share, seconds, touches};
use super::{
    Attribute, FINDING_ID, FINDING_SEVERITY, Getter, Instrument, LOCALITY, LOCALITY_UNKNOWN,
    MEMORY_CLASS, Metric, NODE_ID, Number, REMOTE_SHARE_SIGNAL, Stability, Value,
};
use crate::findings::IDS;

const LOCALITIES: &[&str] = &["local", "same-socket", "cross-socket", LOCALITY_UNKNOWN];

const TOUCH_LOCALITY: Attribute = Attribute {
    name: LOCALITY,
    values: LOCALITIES,
    description: "from the CPU that touched to the page; `unknown` where the kernel told no node. \
                  The sum is all pages",
};

const FINDING: [Attribute; 2] = [
    Attribute {
        name: FINDING_ID,
        values: IDS,
        description: "which finding: [findings.md](findings.md)",
    },
    Attribute {
        name: FINDING_SEVERITY,
        values: &["info", "warn", "fail"],
        description: "how bad it is",
    },
];

/// Every metric, in the order in which documents list them.
pub static METRICS: &[Metric] = &[
    Metric {
        name: "numawatch.process.cpu.time",
        unit: "s",
        instrument: Instrument::Counter,
        number: Number::Float,
        description: "Time that the process's threads ran on CPUs of a node.",
        attributes: &[Attribute {
            name: NODE_ID,
            values: &[],
            description: "the node of the CPU",
        }],
        stability: Stability::Development,
        getter: Getter::Process(|_, process| {
            by_node(process.cpu_time_ns_by_node.as_ref(), |ns| {
                Value::Float(seconds(ns))
            })
        }),
    },
    Metric {
        name: "numawatch.process.memory.usage",
        unit: "By",
        instrument: Instrument::UpDownCounter,
        number: Number::Integer,
        description: "Resident memory of the process on a node, from a sample of its pages. Shared pages count in each \
                      process that maps them.",
        attributes: &[Attribute {
            name: NODE_ID,
            values: &[],
            description: "the node that holds the memory",
        }],
        stability: Stability::Development,
        getter: Getter::Process(|_, process| {
            by_node(process.placement.by_node_bytes.as_ref(), Value::Integer)
        }),
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
            Attribute {
                name: NODE_ID,
                values: &[],
                description: "the node that holds the memory",
            },
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
        attributes: &[Attribute {
            name: NODE_ID,
            values: &[],
            description: "the node that holds the memory",
        }],
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
        name: "numawatch.process.pins",
        unit: "{page}",
        instrument: Instrument::Counter,
        number: Number::Integer,
        description: "Pages of 4 KiB that the process pinned for long. What was unpinned is not taken off, and a page \
                      whose node nothing tells is left out.",
        attributes: &[Attribute {
            name: NODE_ID,
            values: &[],
            description: "the node that holds the page",
        }],
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
        attributes: &[Attribute {
            name: NODE_ID,
            values: &[],
            description: "the node that holds the page",
        }],
        stability: Stability::Development,
        getter: Getter::Process(|_, process| {
            let pages = process.driver_allocated_pages.by_node.as_ref();
            by_node(pages, Value::Integer)
        }),
    },
    Metric {
        name: "numawatch.process.first_touches",
        unit: "{page}",
        instrument: Instrument::Counter,
        number: Number::Integer,
        description: "Pages of 4 KiB that a fault of the process allocated: private memory and private copies.",
        attributes: &[TOUCH_LOCALITY],
        stability: Stability::Development,
        getter: Getter::Process(|_, process| touches(&process.touches.first_touch)),
    },
    Metric {
        name: "numawatch.process.maps",
        unit: "{page}",
        instrument: Instrument::Counter,
        number: Number::Integer,
        description: "Pages of 4 KiB of the page cache or of shared memory that a fault of the process mapped.",
        attributes: &[TOUCH_LOCALITY],
        stability: Stability::Development,
        getter: Getter::Process(|_, process| touches(&process.touches.map)),
    },
    Metric {
        name: "numawatch.process.hint_touches",
        unit: "{page}",
        instrument: Instrument::Counter,
        number: Number::Integer,
        description: "Pages of 4 KiB that the process touched after NUMA balancing had unmapped them to learn who uses them.",
        attributes: &[TOUCH_LOCALITY],
        stability: Stability::Development,
        getter: Getter::Process(|_, process| touches(&process.touches.hint.counter)),
    },
    Metric {
        name: "numawatch.process.page_migrations",
        unit: "{page}",
        instrument: Instrument::Counter,
        number: Number::Integer,
        description: "Pages of 4 KiB of the process that NUMA balancing moved to another node.",
        attributes: &[],
        stability: Stability::Development,
        getter: Getter::Process(|_, process| one(process.migrations.pages.map(Value::Integer))),
    },
    Metric {
        name: "numawatch.process.thread_moves",
        unit: "{move}",
        instrument: Instrument::Counter,
        number: Number::Integer,
        description: "Times that a thread of the process ran on another node than before.",
        attributes: &[Attribute {
            name: LOCALITY,
            values: &["same-socket", "cross-socket", LOCALITY_UNKNOWN],
            description: "from the old node to the new one; `unknown` where no socket is told. \
                          The sum is all moves",
        }],
        stability: Stability::Development,
        getter: Getter::Process(|_, process| moves(process)),
    },
    Metric {
        name: "numawatch.process.scan.time",
        unit: "s",
        instrument: Instrument::Counter,
        number: Number::Float,
        description: "Elapsed time that NUMA balancing's scan took from the process's own threads.",
        attributes: &[],
        stability: Stability::Development,
        getter: Getter::Process(|_, process| {
            one(process.scan_time_ns.map(|ns| Value::Float(seconds(ns))))
        }),
    },
    Metric {
        name: "numawatch.process.remote_share",
        unit: "1",
        instrument: Instrument::Gauge,
        number: Number::Float,
        description: "Share of the process's memory accesses that left the node, 0 to 1, over the last 30 s: what its verdict \
                      stands on.",
        attributes: &[Attribute {
            name: REMOTE_SHARE_SIGNAL,
            values: &["hint", "estimate"],
            description: "`hint`: measured by hint touches; \
                          `estimate`: from where memory lies and CPU time was spent",
        }],
        stability: Stability::Development,
        getter: Getter::Process(|_, process| remote_share(process)),
    },
    Metric {
        name: "numawatch.process.finding.count",
        unit: "{finding}",
        instrument: Instrument::UpDownCounter,
        number: Number::Integer,
        description: "Findings on the process: 1 while it is there, and 0 once it has cleared. What was never found, or \
                      could not be told, has no point.",
        attributes: &FINDING,
        stability: Stability::Development,
        getter: Getter::Process(|_, process| {
            findings(&process.findings, &process.findings_cleared)
        }),
    },
    Metric {
        name: "numawatch.host.finding.count",
        unit: "{finding}",
        instrument: Instrument::UpDownCounter,
        number: Number::Integer,
        description: "Findings on the machine itself: 1 while it is there, and 0 once it has cleared.",
        attributes: &FINDING,
        stability: Stability::Development,
        getter: Getter::Host(|snapshot| findings(&snapshot.findings, &snapshot.findings_cleared)),
    },
    Metric {
        name: "numawatch.agent.cpu.time",
        unit: "s",
        instrument: Instrument::Counter,
        number: Number::Float,
        description: "User and system time of the agent itself.",
        attributes: &[],
        stability: Stability::Development,
        getter: Getter::Host(|snapshot| {
            let ns = snapshot.host.agent.cpu_time_ns;
            one(ns.map(|ns| Value::Float(seconds(ns))))
        }),
    },
    Metric {
        name: "numawatch.agent.memory.usage",
        unit: "By",
        instrument: Instrument::UpDownCounter,
        number: Number::Integer,
        description: "Resident memory of the agent itself.",
        attributes: &[],
        stability: Stability::Development,
        getter: Getter::Host(|snapshot| {
            one(snapshot.host.agent.resident_bytes.map(Value::Integer))
        }),
    },
    Metric {
        name: "numawatch.agent.lost_counts",
        unit: "{count}",
        instrument: Instrument::Counter,
        number: Number::Integer,
        description: "Counts that found no room in the kernel's tables: while this grows, others are too low.",
        attributes: &[],
        stability: Stability::Development,
        getter: Getter::Host(|snapshot| one(snapshot.host.lost.rows.map(Value::Integer))),
    },
    Metric {
        name: "numawatch.agent.missed_events",
        unit: "{event}",
        instrument: Instrument::Counter,
        number: Number::Integer,
        description: "Events at which the kernel did not run a probe, because one was running on that CPU already.",
        attributes: &[],
        stability: Stability::Development,
        getter: Getter::Host(|snapshot| one(snapshot.host.lost.events.map(Value::Integer))),
    },
];
