//! Every metric: the table, and how each one is read from a snapshot.

use super::{
    Attribute, AttributeValue, Getter, Instrument, LOCALITY, LOCALITY_UNKNOWN, MEMORY_CLASS,
    Metric, NODE_ID, Number, Point, REMOTE_SHARE_SIGNAL, Stability, Value,
};
use crate::locality::Locality;
use crate::mapping::MemoryClass;
use crate::process::{ByNode, Placement, Process, TouchCounter};
use crate::verdict::ShareSignal;

const LOCALITIES: &[&str] = &["local", "same-socket", "cross-socket", LOCALITY_UNKNOWN];

const TOUCH_LOCALITY: Attribute = Attribute {
    name: LOCALITY,
    values: LOCALITIES,
    description: "from the CPU that touched to the page; `unknown` where the kernel told no node. \
                  The sum is all pages",
};

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
        description: "Share of the process's memory accesses that left the node, 0 to 1, over the last 30 s.",
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

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn one(value: Option<Value>) -> Vec<Point> {
    value
        .map(|value| Point {
            attributes: Vec::new(),
            value,
        })
        .into_iter()
        .collect()
}

fn by_node(numbers: Option<&ByNode>, value: impl Fn(u64) -> Value) -> Vec<Point> {
    numbers
        .into_iter()
        .flatten()
        .map(|(node, number)| Point {
            attributes: vec![(NODE_ID, AttributeValue::Integer(*node))],
            value: value(*number),
        })
        .collect()
}

fn by_class(placement: &Placement) -> Vec<Point> {
    let classes = placement.by_class.iter().flatten();
    let of_class = |(class, numbers): (&MemoryClass, &ByNode)| {
        let mut points = by_node(Some(numbers), Value::Integer);
        for point in &mut points {
            let word = AttributeValue::Text(class.as_str().into());
            point.attributes.insert(0, (MEMORY_CLASS, word));
        }
        points
    };
    classes.flat_map(of_class).collect()
}

fn at(locality: &'static str, count: u64) -> Point {
    Point {
        attributes: vec![(LOCALITY, AttributeValue::Text(locality.into()))],
        value: Value::Integer(count),
    }
}

/// A point a known locality. Where a mechanism tells only the sum, all of it is of unknown locality.
fn touches(counter: &TouchCounter) -> Vec<Point> {
    let known = [
        (Locality::Local, counter.local_pages),
        (Locality::SameSocket, counter.same_socket_pages),
        (Locality::CrossSocket, counter.cross_socket_pages),
    ];
    let sum: u64 = known.iter().filter_map(|(_, pages)| *pages).sum();
    let unknown = counter
        .unknown_node_pages
        .or_else(|| counter.pages.and_then(|pages| pages.checked_sub(sum)));
    known
        .into_iter()
        .filter_map(|(locality, pages)| Some(at(locality.as_str(), pages?)))
        .chain(unknown.map(|pages| at(LOCALITY_UNKNOWN, pages)))
        .collect()
}

fn moves(process: &Process) -> Vec<Point> {
    let moves = &process.moves;
    match (moves.total, moves.cross_socket) {
        (Some(total), Some(cross)) => vec![
            at(Locality::SameSocket.as_str(), total.saturating_sub(cross)),
            at(Locality::CrossSocket.as_str(), cross),
        ],
        (Some(total), None) => vec![at(LOCALITY_UNKNOWN, total)],
        (None, Some(cross)) => vec![at(Locality::CrossSocket.as_str(), cross)],
        (None, None) => Vec::new(),
    }
}

fn remote_share(process: &Process) -> Vec<Point> {
    let share = &process.remote_share;
    let (Some(value), Some(signal)) = (share.value, share.signal) else {
        return Vec::new();
    };
    let signal = match signal {
        ShareSignal::Hint => "hint",
        ShareSignal::Estimate => "estimate",
    };
    vec![Point {
        attributes: vec![(REMOTE_SHARE_SIGNAL, AttributeValue::Text(signal.into()))],
        value: Value::Float(value),
    }]
}
