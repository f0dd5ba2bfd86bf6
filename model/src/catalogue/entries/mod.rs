//! Every metric: what it is called, what it means, and which points it has.

mod machine;
mod memory;
mod process;

use super::{
    Attribute, FINDING_ID, FINDING_SEVERITY, HW_ID, HW_NAME, HW_TYPE, LOCALITY, LOCALITY_UNKNOWN,
    Metric, NODE_ID,
};
use crate::findings::IDS;

/// Every metric, in the order in which documents list them.
pub static METRICS: &[Metric] = &{
    const COUNT: usize = process::METRICS.len() + memory::METRICS.len() + machine::METRICS.len();
    let groups: [&[Metric]; 3] = [&process::METRICS, &memory::METRICS, &machine::METRICS];
    let mut all: [Metric; COUNT] = [process::METRICS[0]; COUNT];
    let (mut group, mut at) = (0, 0);
    while group < groups.len() {
        let mut next = 0;
        while next < groups[group].len() {
            all[at] = groups[group][next];
            at += 1;
            next += 1;
        }
        group += 1;
    }
    all
};

/// The node that a metric is by.
const fn node(description: &'static str) -> Attribute {
    Attribute {
        name: NODE_ID,
        values: &[],
        description,
    }
}

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

const HW_ID_ATTRIBUTE: Attribute = Attribute {
    name: HW_ID,
    values: &[],
    description: "its PCI address: `0000:3b:00.0`",
};

const HW_NAME_ATTRIBUTE: Attribute = Attribute {
    name: HW_NAME,
    values: &[],
    description: "its label: `GPU0`, `ACC0`, `NIC0`",
};

const HW_TYPE_ATTRIBUTE: Attribute = Attribute {
    name: HW_TYPE,
    values: &["gpu", "accelerator", "network"],
    description: "what it is; a NIC is `network`, as OpenTelemetry has it",
};

const DEVICE_NODE: Attribute =
    node("the node that it is on, and `unknown` where nobody tells: [topology.md](topology.md)");
