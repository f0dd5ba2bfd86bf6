//! The export against receivers that keep what they get, and against collectors that don't answer.

use super::*;
use model::catalogue::{AttributeValue, METRICS, Value};
use model::devices::{DeviceKind, DeviceUse, DeviceUseSource};
use model::finding::{Cleared, Confidence, Finding, Severity};
use model::policy::Placing;
use model::process::{
    ByNode, Migrations, Moves, NodePages, Pinned, Placement, Process, TouchCounter, Touches,
};
use model::snapshot::{Coverage, Host, SCHEMA_VERSION};
use model::time::Timestamp;
use model::topology::Topology;
use model::verdict::{RemoteShare, ShareSignal, Verdict};
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest as Export, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, NumberDataPoint, metric::Data, number_data_point,
};
use prost::Message as _;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, UNIX_EPOCH};

/// Long enough for any machine; nothing waits this long when all is well.
const GENEROUS: Duration = Duration::from_mins(1);

fn used(label: &str, node: Option<u32>) -> DeviceUse {
    DeviceUse {
        address: format!("address of {label}"),
        kind: DeviceKind::Gpu,
        label: label.to_owned(),
        node,
        source: DeviceUseSource::Nvml,
    }
}

pub(super) fn process(pid: u32, start_time: u64) -> Process {
    let touched = TouchCounter {
        pages: Some(100),
        local_pages: Some(70),
        same_socket_pages: Some(0),
        cross_socket_pages: Some(30),
        unknown_node_pages: Some(0),
        by_pair: None,
    };
    Process {
        pid,
        start_time,
        tracked_since: Timestamp(UNIX_EPOCH),
        parent_pid: None,
        name: "llama-server".into(),
        executable: None,
        command: "llama-server".into(),
        other_uid: None,
        engine: None,
        role: None,
        rank: None,
        model: None,
        alive: true,
        cpu_time_ns_by_node: Some(ByNode::from([(0, 1_234_567_891), (8, 3)])),
        moves: Moves {
            total: Some(10),
            cross_socket: Some(10),
            by_pair: None,
        },
        touches: Touches {
            first_touch: touched,
            ..Touches::default()
        },
        migrations: Migrations {
            pages: Some(512),
            ..Migrations::default()
        },
        scan_time_ns: None,
        scan_cpu_time_ns: None,
        pinned: Pinned::default(),
        driver_allocated_pages: NodePages::default(),
        placement: Placement {
            by_node_bytes: Some(ByNode::from([(0, 1 << 40)])),
            ..Placement::default()
        },
        resident_bytes: None,
        policy: Some("bind:0-1".into()),
        cpus_allowed: None,
        placing: Placing::default(),
        remote_share: RemoteShare {
            value: Some(0.3),
            signal: Some(ShareSignal::Estimate),
            ..RemoteShare::default()
        },
        verdict: Verdict::Unknown,
        verdict_reason: None,
        findings: vec![Finding {
            id: "memory-away-from-gpu".to_owned(),
            pid: Some(pid),
            severity: Severity::Fail,
            confidence: Confidence::High,
            summary: String::new(),
            evidence: Vec::new(),
            advice: Vec::new(),
            hints: Vec::new(),
            unless: String::new(),
        }],
        findings_cleared: vec![Cleared {
            id: "threads-wander".to_owned(),
            severity: Severity::Warn,
        }],
        devices: vec![used("GPU0", Some(1)), used("GPU1", None)],
        devices_reason: None,
        threads: Vec::new(),
    }
}

pub(super) fn snapshot(processes: Vec<Process>) -> Snapshot {
    Snapshot {
        schema_version: SCHEMA_VERSION,
        taken_at: Timestamp(UNIX_EPOCH),
        monotonic_ns: 0,
        host: Host {
            name: "testhost".into(),
            ..Host::default()
        },
        topology: Topology::default(),
        signals: Vec::new(),
        coverage: Coverage::default(),
        processes,
        cgroups: Vec::new(),
        findings: Vec::new(),
        findings_cleared: Vec::new(),
    }
}

/// Metric and attributes as text, and the value.
type Series = BTreeMap<String, f64>;

fn expected(snapshot: &Snapshot) -> Series {
    let points = METRICS.iter().flat_map(|metric| {
        let points = metric.points(snapshot, &snapshot.processes);
        points.into_iter().map(|point| {
            let attributes = point
                .attributes
                .into_iter()
                .map(|(name, value)| match value {
                    AttributeValue::Integer(id) => format!("{name}={id}"),
                    AttributeValue::Text(text) => format!("{name}={text}"),
                });
            let value = match point.value {
                Value::Integer(value) => value as f64,
                Value::Float(value) => value,
            };
            (named(metric.name, attributes.collect()), value)
        })
    });
    points.collect()
}

fn received(export: &Export) -> Series {
    let metrics = export.resource_metrics.iter().flat_map(|resource| {
        let scopes = resource.scope_metrics.iter();
        scopes.flat_map(|scope| &scope.metrics)
    });
    let mut series = Series::new();
    for metric in metrics {
        let points: &[NumberDataPoint] = match metric.data.as_ref().unwrap() {
            Data::Sum(sum) => {
                assert_eq!(
                    sum.aggregation_temporality(),
                    AggregationTemporality::Cumulative
                );
                &sum.data_points
            }
            Data::Gauge(gauge) => &gauge.data_points,
            other => panic!("{}: {other:?}", metric.name),
        };
        for point in points {
            let value = match point.value.unwrap() {
                number_data_point::Value::AsDouble(value) => value,
                number_data_point::Value::AsInt(value) => value as f64,
            };
            let before = series.insert(named(&metric.name, words(&point.attributes)), value);
            assert_eq!(before, None, "a series came twice");
        }
    }
    series
}

fn named(name: &str, mut attributes: Vec<String>) -> String {
    attributes.sort_unstable();
    format!("{name} {}", attributes.join(" "))
}

fn words(attributes: &[KeyValue]) -> Vec<String> {
    let word = |attribute: &KeyValue| match attribute.value.as_ref()?.value.as_ref()? {
        any_value::Value::StringValue(text) => Some(format!("{}={text}", attribute.key)),
        any_value::Value::IntValue(id) => Some(format!("{}={id}", attribute.key)),
        _ => None,
    };
    attributes.iter().filter_map(word).collect()
}

/// A collector that speaks `protocol` on a port of its own, and what it gets.
fn collector(protocol: Protocol) -> (SocketAddr, mpsc::Receiver<Export>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, exports) = mpsc::channel();
    std::thread::spawn(move || match protocol {
        Protocol::Http => serve_http(&listener, &sender),
        Protocol::Grpc => serve_grpc(listener, sender),
    });
    (address, exports)
}

fn serve_http(listener: &TcpListener, exports: &mpsc::Sender<Export>) {
    while let Ok((stream, _)) = listener.accept() {
        let exports = exports.clone();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(stream);
            loop {
                let mut head = Vec::new();
                while !head.last().is_some_and(String::is_empty) {
                    let mut line = String::new();
                    if reader.read_line(&mut line).unwrap_or(0) == 0 {
                        return;
                    }
                    head.push(line.trim_end().to_lowercase());
                }
                assert_eq!(head[0], "post /v1/metrics http/1.1");
                assert!(head.contains(&"content-type: application/x-protobuf".to_owned()));
                let length = head
                    .iter()
                    .find_map(|line| line.strip_prefix("content-length: "))
                    .unwrap();
                let mut body = vec![0; length.parse().unwrap()];
                reader.read_exact(&mut body).unwrap();
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                if reader.get_mut().write_all(answer).is_err() {
                    return;
                }
                let _ = exports.send(Export::decode(&body[..]).unwrap());
            }
        });
    }
}

struct Collector(mpsc::Sender<Export>);

#[async_trait::async_trait]
impl MetricsService for Collector {
    async fn export(
        &self,
        request: tonic::Request<Export>,
    ) -> Result<tonic::Response<ExportMetricsServiceResponse>, tonic::Status> {
        let _ = self.0.send(request.into_inner());
        Ok(tonic::Response::new(ExportMetricsServiceResponse::default()))
    }
}

fn serve_grpc(listener: TcpListener, exports: mpsc::Sender<Export>) {
    runtime().unwrap().block_on(async {
        listener.set_nonblocking(true).unwrap();
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        let _ = tonic::transport::Server::builder()
            .add_service(MetricsServiceServer::new(Collector(exports)))
            .serve_with_incoming(tonic::transport::server::TcpIncoming::from(listener))
            .await;
    });
}

fn start(
    address: SocketAddr,
    protocol: Protocol,
) -> (watch::Sender<Option<Arc<Snapshot>>>, OtlpExporter) {
    let (sender, snapshots) = watch::channel(None);
    let options = OtlpOptions {
        endpoint: Some(format!("http://{address}")),
        protocol: Some(protocol),
        interval: Some(Duration::from_millis(10)),
    };
    (sender, OtlpExporter::start(snapshots, &options).unwrap())
}

/// Takes exports until one is as wanted.
fn wait_for(exports: &mpsc::Receiver<Export>, wanted: impl Fn(&Series) -> bool) -> Export {
    loop {
        let export = exports.recv_timeout(GENEROUS).expect("no such export came");
        if wanted(&received(&export)) {
            return export;
        }
    }
}

#[test]
fn both_protocols_carry_exactly_the_catalogues_points() {
    for protocol in [Protocol::Http, Protocol::Grpc] {
        let (address, exports) = collector(protocol);
        let (snapshots, exporter) = start(address, protocol);
        let taken = snapshot(vec![process(1, 1), process(2, 1)]);
        snapshots.send_replace(Some(Arc::new(taken.clone())));

        let export = wait_for(&exports, |series| !series.is_empty());
        assert_eq!(received(&export), expected(&taken), "{protocol:?}");
        let resource = export.resource_metrics[0].resource.as_ref().unwrap();
        let resource = words(&resource.attributes);
        for attribute in [
            "service.name=numawatch",
            "service.instance.id=testhost",
            "host.name=testhost",
            concat!("service.version=", env!("CARGO_PKG_VERSION")),
        ] {
            assert!(resource.contains(&attribute.to_owned()), "{resource:?}");
        }
        exporter.shutdown();
    }
}

#[test]
fn a_process_that_ended_comes_once_more_and_then_never_again() {
    let (address, exports) = collector(Protocol::Http);
    let (snapshots, exporter) = start(address, Protocol::Http);
    let both = snapshot(vec![process(1, 1), process(2, 1)]);
    snapshots.send_replace(Some(Arc::new(both.clone())));
    wait_for(&exports, |series| *series == expected(&both));

    let mut last = process(2, 1);
    last.alive = false;
    last.migrations.pages = Some(1024);
    let ended = snapshot(vec![process(1, 1), last]);
    let alone = snapshot(vec![process(1, 1)]);
    snapshots.send_replace(Some(Arc::new(ended.clone())));
    wait_for(&exports, |series| *series == expected(&ended));
    for _ in 0..3 {
        let export = exports.recv_timeout(GENEROUS).unwrap();
        assert_eq!(received(&export), expected(&alone));
    }
    exporter.shutdown();
}

#[test]
fn shutdown_exports_the_newest_snapshot() {
    let (address, exports) = collector(Protocol::Http);
    let (snapshots, receiver) = watch::channel(None);
    let options = OtlpOptions {
        endpoint: Some(format!("http://{address}")),
        protocol: Some(Protocol::Http),
        interval: Some(GENEROUS * 60),
    };
    let exporter = OtlpExporter::start(receiver, &options).unwrap();
    let first = snapshot(vec![process(1, 1)]);
    snapshots.send_replace(Some(Arc::new(first.clone())));
    wait_for(&exports, |series| *series == expected(&first));

    let newest = snapshot(vec![process(2, 1), process(3, 1)]);
    let and_ended = snapshot(vec![process(1, 1), process(2, 1), process(3, 1)]);
    snapshots.send_replace(Some(Arc::new(newest)));
    exporter.shutdown();
    wait_for(&exports, |series| *series == expected(&and_ended));
}

#[test]
fn a_collector_that_hangs_or_is_absent_keeps_nobody() {
    // It accepts connections, by its backlog, and never answers.
    let hanging = TcpListener::bind("127.0.0.1:0").unwrap();
    let absent = TcpListener::bind("127.0.0.1:0").unwrap();
    let addresses = [hanging.local_addr().unwrap(), absent.local_addr().unwrap()];
    drop(absent);
    for protocol in [Protocol::Http, Protocol::Grpc] {
        for address in addresses {
            let (snapshots, exporter) = start(address, protocol);
            for pid in 0..1000 {
                snapshots.send_replace(Some(Arc::new(snapshot(vec![process(pid, 1)]))));
            }
            // Returns: what hangs is given up.
            exporter.shutdown();
        }
    }
}

#[test]
fn without_a_snapshot_nothing_is_exported() {
    let (address, exports) = collector(Protocol::Http);
    let (_snapshots, exporter) = start(address, Protocol::Http);
    exporter.shutdown();
    assert!(exports.try_recv().is_err());
}

#[test]
fn a_wrong_endpoint_is_one_line() {
    let (_snapshots, receiver) = watch::channel(None);
    let options = OtlpOptions {
        endpoint: Some("http://a b:4318".into()),
        ..OtlpOptions::default()
    };
    let error = OtlpExporter::start(receiver, &options).unwrap_err();
    let line = format!("{error:#}");
    assert!(
        line.starts_with("can't export to http://a b:4318/v1/metrics (set by --otlp-endpoint): "),
        "{line}"
    );
    assert!(!line.contains('\n'), "{line}");
}
