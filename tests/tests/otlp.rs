//! What `numawatch agent` exports arrives in a real Prometheus, and is what the snapshots say.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a helper that cannot go on fails its test"
)]

use model::catalogue::{AttributeValue, Instrument, METRICS, Metric, Value};
use model::snapshot::Snapshot;
use std::collections::BTreeMap;
use std::process::Command;
use std::time::Instant;
use tests::built::tools;
use tests::process::{LIMIT, Running};
use tests::prometheus::{Prometheus, Series};
use tests::truth::Ready;

/// CPU time on the first node: it differs from snapshot to snapshot, so it tells which one a sample is of.
const ANCHOR: &str = "numawatch_process_cpu_time_seconds_total";

/// A workload that keeps touching memory and computing.
fn workload() -> (Running, u32) {
    let tools = tools(env!("CARGO_BIN_EXE_workload"));
    let mut command = Command::new(tools.workload);
    command.args(["spin", "--seconds", "600", "--no-wait"]);
    let mut running = Running::start(&mut command).expect("workload");
    let ready: Ready = running.json_line().expect("workload");
    (running, ready.pid)
}

fn agent(pid: u32, endpoint: &str) -> Running {
    let mut command = Command::new(tests::built::numawatch());
    command
        .args(["agent", "--json", "--interval", "500ms"])
        .args(["--pid", &pid.to_string()])
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        .env("OTEL_METRIC_EXPORT_INTERVAL", "2000");
    Running::start(&mut command).expect("numawatch agent")
}

/// A point as Prometheus names it.
type Named = BTreeMap<String, String>;

fn expected(snapshot: &Snapshot) -> Vec<(Named, f64)> {
    let points = METRICS.iter().flat_map(|metric| {
        let points = metric.points(snapshot, &snapshot.processes);
        points.into_iter().map(move |point| (metric, point))
    });
    let named = points.map(|(metric, point)| {
        let mut labels = Named::from([("__name__".to_owned(), prometheus_name(metric))]);
        for (name, value) in point.attributes {
            let value = match value {
                AttributeValue::Integer(id) => id.to_string(),
                AttributeValue::Text(text) => text.into_owned(),
            };
            labels.insert(name.replace('.', "_"), value);
        }
        let value = match point.value {
            Value::Integer(value) => value as f64,
            Value::Float(value) => value,
        };
        (labels, value)
    });
    named.collect()
}

/// OpenTelemetry's rules for Prometheus: units are appended, and `total` to counters.
fn prometheus_name(metric: &Metric) -> String {
    let mut name = metric.name.replace('.', "_");
    name.push_str(match metric.unit {
        "s" => "_seconds",
        "By" => "_bytes",
        "1" => "_ratio",
        _ => "",
    });
    if metric.instrument == Instrument::Counter {
        name.push_str("_total");
    }
    name
}

/// The series that has all these labels.
fn find<'a>(series: &'a [Series], labels: &Named) -> Option<&'a Series> {
    series
        .iter()
        .find(|s| labels.iter().all(|(k, v)| s.labels.get(k) == Some(v)))
}

/// The value nearest to a time: a metric's samples of one export are milliseconds apart, exports are seconds.
fn at(series: &Series, time: f64) -> f64 {
    let distance = |sample: &&(f64, String)| (sample.0 - time).abs();
    let nearest = series
        .samples
        .iter()
        .min_by(|a, b| distance(a).total_cmp(&distance(b)));
    nearest.expect("a series has samples").1.parse().unwrap()
}

/// Equal, but for the last digit that JSON's way through text can cost.
fn same(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 * a.abs().max(b.abs())
}

#[test]
fn prometheus_has_what_the_snapshots_say() {
    let prometheus = Prometheus::start().expect("Prometheus");
    let (_workload, pid) = workload();
    let mut agent = agent(pid, &prometheus.otlp_endpoint());

    let everything = r#"{__name__=~"numawatch_.*"}"#;
    let mut snapshots: Vec<Snapshot> = Vec::new();
    let series = loop {
        snapshots.push(agent.json_line().expect("a snapshot"));
        let series = prometheus.samples(everything).expect("an answer");
        let exports = series.iter().filter(|s| s.labels["__name__"] == ANCHOR);
        if exports.map(|s| s.samples.len()).max() >= Some(4) {
            break series;
        }
    };
    // The snapshot of the newest samples can still be on its way.
    for _ in 0..5 {
        snapshots.push(agent.json_line().expect("a snapshot"));
    }

    let mut compared = 0;
    for snapshot in &snapshots {
        let points = expected(snapshot);
        let Some((labels, value)) = points
            .iter()
            .find(|(l, v)| l["__name__"] == ANCHOR && *v > 0.0)
        else {
            continue;
        };
        let anchor = find(&series, labels).expect("CPU time arrived");
        let sample = |s: &&(f64, String)| same(s.1.parse().unwrap(), *value);
        let Some((time, _)) = anchor.samples.iter().find(sample) else {
            continue;
        };
        for (labels, value) in &points {
            let got = find(&series, labels).map(|series| at(series, *time));
            assert!(
                got.is_some_and(|got| same(got, *value)),
                "{labels:?}: {got:?} in Prometheus, {value} in the snapshot of {}",
                snapshot.taken_at
            );
        }
        compared += 1;
    }
    assert!(compared >= 4, "{compared} of 4 exports have a snapshot");

    let of = |name: &str| {
        let name = name.to_owned();
        series
            .iter()
            .filter(move |s| s.labels["__name__"] == name)
            .inspect(|s| {
                assert_eq!(s.labels.get("process_pid"), Some(&pid.to_string()));
                assert_eq!(
                    s.labels.get("process_executable_name").map(String::as_str),
                    Some("workload")
                );
            })
            .count()
    };
    for name in [ANCHOR, "numawatch_process_memory_usage_bytes"] {
        assert!(of(name) > 0, "no {name}");
    }
    agent.interrupt();
    let (status, _) = agent.wait().expect("the agent ends");
    assert!(status.success(), "{status}");
}

#[test]
fn a_collector_that_is_absent_stops_nothing() {
    let (_workload, pid) = workload();
    // Nobody listens on the port of a listener that is gone.
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let mut agent = agent(pid, &format!("http://127.0.0.1:{port}"));
    let complaint = agent
        .stderr_line(|line| line.contains("OTLP export to"))
        .expect("it says so");
    assert!(complaint.contains("Connection refused"), "{complaint}");

    let first: Snapshot = agent.json_line().expect("a snapshot");
    let end = Instant::now() + LIMIT;
    let mut last: Snapshot = agent.json_line().expect("another");
    // Through several intervals of exports that fail.
    while last.monotonic_ns - first.monotonic_ns < 7_000_000_000 {
        assert!(Instant::now() < end);
        let next: Snapshot = agent.json_line().expect("another");
        assert!(next.monotonic_ns > last.monotonic_ns);
        last = next;
    }
    agent.interrupt();
    let (status, _) = agent.wait().expect("the agent ends");
    assert!(status.success(), "{status}");
    let said = agent.stderr_so_far();
    assert_eq!(said.matches("OTLP export to").count(), 1, "{said}");
}
