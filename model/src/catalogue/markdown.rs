//! docs/metrics.md, written from the catalogue.

use super::{Attribute, Getter, METRICS, Metric, PROCESS_EXECUTABLE_NAME, PROCESS_PID};
use std::fmt::Write;

const INTRODUCTION: &str = "\
# Metrics

<!-- Generated from model/src/catalogue. Rewrite: NUMAWATCH_WRITE_DOCS=1 cargo test -p model catalogue -->

What `numawatch agent` exports over OTLP. Counters begin when the agent begins to track a process, and only grow while it
does; temporality is cumulative. A process that ended is exported once more with its last values, and its series end.
**What is not known has no point; it is never a zero.** `numawatch doctor` says which signal is missing, and why.

A page is 4 KiB everywhere; a huge page counts as 512. Localities: `local` is the same node, `same-socket` another node of
the same package, `cross-socket` a node of another package. The sum over an attribute's values is the whole.

Prometheus writes the dots as underscores and appends units: `numawatch.process.cpu.time` is
`numawatch_process_cpu_time_seconds_total` there, `numawatch.process.remote_share` is `numawatch_process_remote_share_ratio`.

Every point belongs to a resource with `service.name` (`numawatch`), `service.version`, `service.instance.id` and
`host.name`; `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_SERVICE_NAME` add to these and replace them.

What there is no bound of stays in the [JSON document](json.md): threads, pairs of nodes, files of weights, and the evidence of
findings.
";

/// The whole document.
#[must_use]
pub fn to_markdown() -> String {
    let mut text = String::from(INTRODUCTION);
    text.push_str("\n| metric | unit | instrument |\n|---|---|---|\n");
    for metric in METRICS {
        // Writing into a String can't fail.
        let _ = writeln!(
            text,
            "| [`{}`](#{}) | `{}` | {} |",
            metric.name,
            anchor(metric.name),
            metric.unit,
            metric.instrument.as_str()
        );
    }
    for metric in METRICS {
        section(&mut text, metric);
    }
    text
}

/// GitHub's anchor of a heading: dots fall away.
fn anchor(name: &str) -> String {
    name.replace('.', "")
}

fn section(text: &mut String, metric: &Metric) {
    let _ = writeln!(
        text,
        "\n## `{}`\n\n{}\n\nUnit `{}`, {}, {}.",
        metric.name,
        metric.description,
        metric.unit,
        metric.instrument.as_str(),
        metric.stability.as_str()
    );
    let process = match metric.getter {
        Getter::Host(_) => &[][..],
        Getter::Process(_) => &PROCESS_ATTRIBUTES[..],
    };
    if metric.attributes.is_empty() && process.is_empty() {
        return;
    }
    text.push_str("\n| attribute | values | meaning |\n|---|---|---|\n");
    for attribute in metric.attributes.iter().chain(process) {
        let values = if attribute.values.is_empty() {
            "any".to_owned()
        } else {
            format!("`{}`", attribute.values.join("`, `"))
        };
        let _ = writeln!(
            text,
            "| `{}` | {values} | {} |",
            attribute.name, attribute.description
        );
    }
}

const PROCESS_ATTRIBUTES: [Attribute; 2] = [
    Attribute {
        name: PROCESS_PID,
        values: &[],
        description: "process id in the agent's pid namespace",
    },
    Attribute {
        name: PROCESS_EXECUTABLE_NAME,
        values: &[],
        description: "the program's file name (`/proc/PID/exe`), or the process's name (`/proc/PID/comm`) where that can't be read",
    },
];
