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
use tests::truth::{Ready, Truth};

/// CPU time of a spinning workload: it differs from snapshot to snapshot, so it tells which one a sample is of.
const ANCHOR: &str = "numawatch_process_cpu_time_seconds_total";

/// Exports to compare.
const EXPORTS: usize = 3;

/// Pages that the second workload touches while it is watched.
const PAGES: u64 = 4096;

fn workload(arguments: &str) -> (Running, u32) {
    let tools = tools(env!("CARGO_BIN_EXE_workload"));
    let mut command = Command::new(tools.workload);
    command.args(arguments.split_ascii_whitespace());
    let mut running = Running::start(&mut command).expect("workload");
    let ready: Ready = running.json_line().expect("workload");
    (running, ready.pid)
}

fn spinning() -> (Running, u32) {
    workload("spin --seconds 600 --no-wait")
}

fn agent(pids: &[u32], endpoint: &str) -> Running {
    let mut command = Command::new(tests::built::numawatch());
    command.args(["agent", "--json", "--interval", "500ms"]);
    for pid in pids {
        command.args(["--pid", &pid.to_string()]);
    }
    command
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
    let (_spinning, spinning) = spinning();
    let (mut touching, touching_pid) = workload(&format!(
        "touch --pages {PAGES} --cpu-node 0 --memory-node 0"
    ));
    let mut agent = agent(&[spinning, touching_pid], &prometheus.otlp_endpoint());

    let mut snapshots: Vec<Snapshot> = vec![agent.json_line().expect("a snapshot")];
    touching.say_go().expect("the workload waits");
    let truth: Truth = touching.json_line().expect("the workload's truth");
    let anchor = Named::from([
        ("__name__".to_owned(), ANCHOR.to_owned()),
        ("process_pid".to_owned(), spinning.to_string()),
    ]);
    let exports = |series: &[Series]| find(series, &anchor).map_or(0, |s| s.samples.len());
    let mut before = None;
    let series = loop {
        snapshots.push(agent.json_line().expect("a snapshot"));
        let series = prometheus
            .samples(r#"{__name__=~"numawatch_.*"}"#)
            .expect("an answer");
        // As many since the workload was done as can be compared.
        let begun = *before.get_or_insert_with(|| exports(&series));
        if exports(&series) >= begun + EXPORTS {
            break series;
        }
    };
    // The snapshot of the newest samples can still be on its way.
    for _ in 0..5 {
        snapshots.push(agent.json_line().expect("a snapshot"));
    }

    let compared = snapshots
        .iter()
        .filter(|snapshot| compare(snapshot, &series, &anchor))
        .count();
    assert!(compared >= EXPORTS, "{compared} exports have a snapshot");
    let touched: f64 = of(
        &series,
        "numawatch_process_first_touches_total",
        touching_pid,
    )
    .filter_map(|s| s.samples.last()?.1.parse::<f64>().ok())
    .sum();
    let asked = truth.processes[0].first_touch[0].pages as f64;
    assert!(
        (asked..asked + 200.0).contains(&touched),
        "{touched} pages in Prometheus, {asked} touched"
    );
    for pid in [spinning, touching_pid] {
        let memory = of(&series, "numawatch_process_memory_usage_bytes", pid);
        assert!(memory.count() > 0, "no memory of {pid}");
    }
    agent.interrupt();
    let (status, _) = agent.wait().expect("the agent ends");
    assert!(status.success(), "{status}");
}

fn of<'a>(series: &'a [Series], name: &'a str, pid: u32) -> impl Iterator<Item = &'a Series> {
    let pid = pid.to_string();
    series.iter().filter(move |s| {
        s.labels["__name__"] == name
            && s.labels.get("process_pid") == Some(&pid)
            && s.labels["process_executable_name"] == "workload"
    })
}

/// Holds a snapshot's every point against Prometheus, if the snapshot was exported.
fn compare(snapshot: &Snapshot, series: &[Series], anchor: &Named) -> bool {
    let points = expected(snapshot);
    let is_anchor = |labels: &Named| anchor.iter().all(|(k, v)| labels.get(k) == Some(v));
    let Some((_, value)) = points.iter().find(|(labels, _)| is_anchor(labels)) else {
        return false;
    };
    let mut samples = find(series, anchor)
        .expect("CPU time arrived")
        .samples
        .iter();
    let Some((time, _)) = samples.find(|s| same(s.1.parse().unwrap(), *value)) else {
        return false;
    };
    for (labels, value) in &points {
        let got = find(series, labels).map(|series| at(series, *time));
        assert!(
            got.is_some_and(|got| same(got, *value)),
            "{labels:?}: {got:?} in Prometheus, {value} in the snapshot of {}",
            snapshot.taken_at
        );
    }
    true
}

#[test]
fn a_collector_that_is_absent_stops_nothing() {
    let (_spinning, pid) = spinning();
    // Nobody listens on the port of a listener that is gone.
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let mut agent = agent(&[pid], &format!("http://127.0.0.1:{port}"));
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
