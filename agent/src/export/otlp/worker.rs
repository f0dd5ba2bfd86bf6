//! The exporter's own thread: takes each snapshot, exports at each interval, and flushes at the end.

use super::client::{Client, LastError};
use super::complaints::Complaints;
use super::instruments::{self, POINTS_MAX};
use super::settings::{Protocol, Settings};
use super::view::View;
use anyhow::{Context as _, Result};
use model::snapshot::Snapshot;
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::tonic_types::transport::ClientTlsConfig;
use opentelemetry_otlp::{
    MetricExporter, WithExportConfig as _, WithHttpConfig as _, WithTonicConfig as _,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter as _;
use opentelemetry_sdk::metrics::reader::MetricReader;
use opentelemetry_sdk::metrics::{
    Instrument, InstrumentKind, ManualReader, Pipeline, SdkMeterProvider, Stream, Temporality,
};
use opentelemetry_sdk::resource::{EnvResourceDetector, TelemetryResourceDetector};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{oneshot, watch};
use tokio::time::MissedTickBehavior;

/// For the last export: a collector that hangs must not keep the agent from ending.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// What the thread works with.
pub(super) struct Worker {
    snapshots: watch::Receiver<Option<Arc<Snapshot>>>,
    settings: Settings,
    exporter: MetricExporter,
    last_error: LastError,
    view: Arc<Mutex<View>>,
    complaints: Complaints,
}

impl Worker {
    /// Builds the connection, which is made at the first export. Needs a tokio runtime around it.
    pub(super) fn new(
        snapshots: watch::Receiver<Option<Arc<Snapshot>>>,
        settings: Settings,
    ) -> Result<Self> {
        let last_error = LastError::default();
        let exporter = exporter(&settings, &last_error).with_context(|| {
            format!(
                "can't export to {} (set by {})",
                settings.endpoint, settings.endpoint_from
            )
        })?;
        Ok(Self {
            snapshots,
            settings,
            exporter,
            last_error,
            view: Arc::default(),
            complaints: Complaints::default(),
        })
    }

    /// Exports until `stop` resolves or no more snapshots come, then once more.
    pub(super) async fn run(mut self, mut stop: oneshot::Receiver<()>) {
        // The first snapshot names the host; before it there is nothing to export.
        tokio::select! {
            _ = &mut stop => {}
            first = self.snapshots.wait_for(Option::is_some) => drop(first),
        }
        let Some(first) = self.snapshots.borrow_and_update().clone() else {
            return;
        };
        let meter = Meter::new(&first.host.name, &self.view);
        lock(&self.view).update(&first);

        let mut metrics = ResourceMetrics::default();
        let mut ticks = tokio::time::interval(self.settings.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                _ = &mut stop => break,
                changed = self.snapshots.changed() => {
                    if changed.is_err() {
                        break;
                    }
                    self.take_snapshot();
                }
                _ = ticks.tick() => {
                    meter.collect(&mut metrics);
                    if self.export(&metrics, &mut stop).await.is_none() {
                        break;
                    }
                }
            }
        }
        self.take_snapshot();
        meter.collect(&mut metrics);
        self.flush(&metrics).await;
    }

    /// Sends what was collected while it goes on to take snapshots; `None` when told to stop meanwhile.
    async fn export(
        &mut self,
        metrics: &ResourceMetrics,
        stop: &mut oneshot::Receiver<()>,
    ) -> Option<()> {
        lock(&self.view).export_begins();
        let result = {
            let export = self.exporter.export(metrics);
            let mut export = pin!(tokio::time::timeout(self.settings.timeout, export));
            loop {
                tokio::select! {
                    biased;
                    _ = &mut *stop => return None,
                    Ok(()) = self.snapshots.changed() => {
                        if let Some(snapshot) = self.snapshots.borrow_and_update().clone() {
                            lock(&self.view).update(&snapshot);
                        }
                    }
                    result = &mut export => break result,
                }
            }
        };
        self.report(result);
        Some(())
    }

    async fn flush(&mut self, metrics: &ResourceMetrics) {
        lock(&self.view).export_begins();
        let timeout = FLUSH_TIMEOUT.min(self.settings.timeout);
        let result = tokio::time::timeout(timeout, self.exporter.export(metrics)).await;
        self.report(result);
    }

    fn report(&mut self, result: Result<OTelSdkResult, tokio::time::error::Elapsed>) {
        let error = match result {
            Ok(Ok(())) => None,
            Ok(Err(OTelSdkError::InternalFailure(why))) => Some(why),
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("no answer in time".to_owned()),
        };
        let endpoint = &self.settings.endpoint;
        let Some(error) = error else {
            let mut view = lock(&self.view);
            view.export_arrived();
            if let Some(line) = self.complaints.arrived(view.take_given_up()) {
                tracing::info!("OTLP export to {endpoint} {line}");
            }
            return;
        };
        // What the HTTP client saw says more than what the exporter made of it.
        let cause = self
            .last_error
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let why = cause.unwrap_or(error);
        if let Some(line) = self.complaints.failed(Instant::now(), &why) {
            tracing::warn!("OTLP export to {endpoint} failed: {line}");
        }
    }

    fn take_snapshot(&mut self) {
        if let Some(snapshot) = self.snapshots.borrow_and_update().clone() {
            lock(&self.view).update(&snapshot);
        }
    }
}

fn lock(view: &Mutex<View>) -> MutexGuard<'_, View> {
    view.lock().unwrap_or_else(PoisonError::into_inner)
}

fn exporter(settings: &Settings, last_error: &LastError) -> Result<MetricExporter> {
    // Both clients take the process's provider; that another part has installed one already is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = MetricExporter::builder().with_temporality(Temporality::Cumulative);
    Ok(match settings.protocol {
        Protocol::Http => builder
            .with_http()
            .with_http_client(Client::new(
                &settings.endpoint,
                settings.timeout,
                Arc::clone(last_error),
            )?)
            .with_endpoint(&settings.endpoint)
            .with_timeout(settings.timeout)
            .build()?,
        Protocol::Grpc => {
            let mut builder = builder
                .with_tonic()
                .with_endpoint(&settings.endpoint)
                .with_timeout(settings.timeout);
            if settings.endpoint.starts_with("https://") {
                builder = builder.with_tls_config(ClientTlsConfig::new().with_native_roots());
            }
            builder.build()?
        }
    })
}

/// The SDK's side: instruments over the view, collected when we say so.
struct Meter {
    reader: Arc<ManualReader>,
    /// Owns the instruments; the reader only points to them.
    _provider: SdkMeterProvider,
}

impl Meter {
    fn new(host_name: &str, view: &Arc<Mutex<View>>) -> Self {
        let reader = Arc::new(
            ManualReader::builder()
                .with_temporality(Temporality::Cumulative)
                .build(),
        );
        let provider = SdkMeterProvider::builder()
            .with_resource(resource(host_name))
            .with_reader(SharedReader(Arc::clone(&reader)))
            .with_view(|_: &Instrument| {
                let stream = Stream::builder().with_cardinality_limit(POINTS_MAX);
                stream.build().ok()
            })
            .build();
        let scope = InstrumentationScope::builder("numawatch")
            .with_version(env!("CARGO_PKG_VERSION"))
            .build();
        instruments::register(&provider.meter_with_scope(scope), view);
        Self {
            reader,
            _provider: provider,
        }
    }

    fn collect(&self, metrics: &mut ResourceMetrics) {
        if let Err(error) = self.reader.collect(metrics) {
            // Only a reader that was shut down or has no provider gives one.
            tracing::error!("metrics can't be collected: {error}");
        }
    }
}

fn resource(host_name: &str) -> Resource {
    let resource = Resource::builder_empty()
        .with_detector(Box::new(TelemetryResourceDetector))
        .with_attributes([
            KeyValue::new("service.name", "numawatch"),
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            // Tells agents apart where a receiver drops host.name: Prometheus makes it `instance`.
            KeyValue::new("service.instance.id", host_name.to_owned()),
            KeyValue::new("host.name", host_name.to_owned()),
        ])
        .with_detector(Box::new(EnvResourceDetector::new()));
    match std::env::var("OTEL_SERVICE_NAME") {
        Ok(name) if !name.is_empty() => resource.with_service_name(name).build(),
        _ => resource.build(),
    }
}

/// The SDK wants to own its reader, and we want to read.
#[derive(Debug)]
struct SharedReader(Arc<ManualReader>);

impl MetricReader for SharedReader {
    fn register_pipeline(&self, pipeline: Weak<Pipeline>) {
        self.0.register_pipeline(pipeline);
    }

    fn collect(&self, metrics: &mut ResourceMetrics) -> OTelSdkResult {
        self.0.collect(metrics)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn temporality(&self, kind: InstrumentKind) -> Temporality {
        self.0.temporality(kind)
    }
}
