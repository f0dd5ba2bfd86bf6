//! A process: what it runs on, touches, moves and scans, what it uses and may use, and what is concluded.

use super::{DEVICE_NODE, HW_ID_ATTRIBUTE, HW_NAME_ATTRIBUTE, HW_TYPE_ATTRIBUTE};
use super::{FINDING, TOUCH_LOCALITY, node};
use crate::catalogue::points::{
    by_node, cpus_allowed, devices_used, findings, memory_allowed, moves, one, policy,
    remote_share, seconds, touches, verdict,
};
use crate::catalogue::{
    Attribute, DEVICE_SOURCE, Getter, Instrument, LOCALITY, LOCALITY_UNKNOWN, MEMORY_POLICY,
    Metric, Number, REMOTE_SHARE_SIGNAL, Stability, VERDICT, Value,
};

/// In the order in which documents list them.
pub(super) const METRICS: [Metric; 14] = [
    Metric {
        name: "numawatch.process.cpu.time",
        unit: "s",
        instrument: Instrument::Counter,
        number: Number::Float,
        description: "Time that the process's threads ran on CPUs of a node.",
        attributes: &[node("the node of the CPU")],
        stability: Stability::Development,
        getter: Getter::Process(|_, process| {
            by_node(process.cpu_time_ns_by_node.as_ref(), |ns| {
                Value::Float(seconds(ns))
            })
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
        name: "numawatch.process.verdict",
        unit: "{verdict}",
        instrument: Instrument::UpDownCounter,
        number: Number::Integer,
        description: "The verdict on the process: 1, and 0 for the others.",
        attributes: &[Attribute {
            name: VERDICT,
            values: &["local", "mixed", "remote", "unknown"],
            description: "from its remote share; `unknown` where there is too little evidence",
        }],
        stability: Stability::Development,
        getter: Getter::Process(|_, process| verdict(process)),
    },
    Metric {
        name: "numawatch.process.device.count",
        unit: "{device}",
        instrument: Instrument::UpDownCounter,
        number: Number::Integer,
        description: "GPUs, accelerators and RDMA NICs that the process uses: 1 each. What it doesn't use has no point.",
        attributes: &[
            HW_ID_ATTRIBUTE,
            HW_NAME_ATTRIBUTE,
            HW_TYPE_ATTRIBUTE,
            Attribute {
                name: DEVICE_SOURCE,
                values: &["nvml", "open_files", "environment"],
                description: "what told; `environment` (`CUDA_VISIBLE_DEVICES` and its relatives) is a hint only",
            },
            DEVICE_NODE,
        ],
        stability: Stability::Development,
        getter: Getter::Process(|_, process| devices_used(process)),
    },
    Metric {
        name: "numawatch.process.policy",
        unit: "{policy}",
        instrument: Instrument::UpDownCounter,
        number: Number::Integer,
        description: "The memory policy of the process: always 1.",
        attributes: &[Attribute {
            name: MEMORY_POLICY,
            values: &[],
            description: "in numactl's words: `default`, `bind:1`, `interleave:0-1`",
        }],
        stability: Stability::Development,
        getter: Getter::Process(|_, process| policy(process)),
    },
    Metric {
        name: "numawatch.process.cpu.allowed",
        unit: "{cpu}",
        instrument: Instrument::UpDownCounter,
        number: Number::Integer,
        description: "CPUs of a node on which the process may run, by its affinity within its cpuset.",
        attributes: &[node("the node of the CPUs")],
        stability: Stability::Development,
        getter: Getter::Process(cpus_allowed),
    },
    Metric {
        name: "numawatch.process.memory.allowed",
        unit: "{node}",
        instrument: Instrument::UpDownCounter,
        number: Number::Integer,
        description: "Nodes on which the process may allocate, by its cpuset: 1, and 0 for the others.",
        attributes: &[node("the node")],
        stability: Stability::Development,
        getter: Getter::Process(memory_allowed),
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
];
