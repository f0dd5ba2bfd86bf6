//! The machine, and the agent itself.

use super::{DEVICE_NODE, FINDING, HW_ID_ATTRIBUTE, HW_NAME_ATTRIBUTE, HW_TYPE_ATTRIBUTE, node};
use crate::catalogue::points::{devices, each_node, findings, one, seconds};
use crate::catalogue::{
    Attribute, Getter, HW_VENDOR, Instrument, Metric, Number, Stability, Value,
};

/// In the order in which documents list them.
pub(super) const METRICS: [Metric; 9] = [
    Metric {
        name: "numawatch.host.device.count",
        unit: "{device}",
        instrument: Instrument::UpDownCounter,
        number: Number::Integer,
        description: "The machine's GPUs, accelerators and RDMA NICs: 1 each.",
        attributes: &[
            HW_ID_ATTRIBUTE,
            HW_NAME_ATTRIBUTE,
            HW_TYPE_ATTRIBUTE,
            Attribute {
                name: HW_VENDOR,
                values: &[],
                description: "`NVIDIA`, `AMD`, …; the vendor's PCI id where the name isn't known",
            },
            DEVICE_NODE,
        ],
        stability: Stability::Development,
        getter: Getter::Host(|snapshot| devices(&snapshot.topology)),
    },
    Metric {
        name: "numawatch.host.memory.limit",
        unit: "By",
        instrument: Instrument::UpDownCounter,
        number: Number::Integer,
        description: "Memory that a node has.",
        attributes: &[node("the node")],
        stability: Stability::Development,
        getter: Getter::Host(|snapshot| {
            each_node(&snapshot.topology, |node| {
                node.memory_total_bytes.map(Value::Integer)
            })
        }),
    },
    Metric {
        name: "numawatch.host.memory.free",
        unit: "By",
        instrument: Instrument::UpDownCounter,
        number: Number::Integer,
        description: "Memory of a node that nothing uses; page cache, which would give way, is not in it.",
        attributes: &[node("the node")],
        stability: Stability::Development,
        getter: Getter::Host(|snapshot| {
            each_node(&snapshot.topology, |node| {
                node.memory_free_bytes.map(Value::Integer)
            })
        }),
    },
    Metric {
        name: "numawatch.host.cpu.utilization",
        unit: "1",
        instrument: Instrument::Gauge,
        number: Number::Float,
        description: "Share of the time of a node's CPUs that was not idle since the snapshot before, 0 to 1.",
        attributes: &[node("the node of the CPUs")],
        stability: Stability::Development,
        getter: Getter::Host(|snapshot| {
            each_node(&snapshot.topology, |node| node.cpu_busy.map(Value::Float))
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
