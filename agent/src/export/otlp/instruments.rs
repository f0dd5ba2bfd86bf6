//! The catalogue as OpenTelemetry's observable instruments over a [`View`].

use super::view::View;
use model::catalogue::{AttributeValue, Instrument, METRICS, Metric, Number, Value};
use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;
use std::sync::{Arc, Mutex, PoisonError};

/// The most points that a metric has in one export: 64 nodes for each of 300 processes.
///
/// The SDK puts what is above its limit into one series of meaningless sums, so nothing above it is handed over.
pub(super) const POINTS_MAX: usize = 20_000;

/// Makes an instrument of every metric; each export reads them all from `view`.
pub(super) fn register(meter: &Meter, view: &Arc<Mutex<View>>) {
    for metric in METRICS {
        // The SDK has a type for each kind of instrument and number, with no trait over their builders.
        macro_rules! instrument {
            ($make:ident, $convert:expr) => {{
                let view = Arc::clone(view);
                meter
                    .$make(metric.name)
                    .with_unit(metric.unit)
                    .with_description(metric.description)
                    .with_callback(move |observer| {
                        for (value, attributes) in points(metric, &view) {
                            if let Some(value) = $convert(value) {
                                observer.observe(value, &attributes);
                            }
                        }
                    })
                    .build();
            }};
        }
        match (metric.instrument, metric.number) {
            (Instrument::Counter, Number::Integer) => instrument!(u64_observable_counter, integer),
            (Instrument::Counter, Number::Float) => instrument!(f64_observable_counter, float),
            (Instrument::UpDownCounter, Number::Integer) => {
                instrument!(i64_observable_up_down_counter, signed);
            }
            (Instrument::UpDownCounter, Number::Float) => {
                instrument!(f64_observable_up_down_counter, float);
            }
            (Instrument::Gauge, Number::Integer) => instrument!(u64_observable_gauge, integer),
            (Instrument::Gauge, Number::Float) => instrument!(f64_observable_gauge, float),
        }
    }
}

fn points(metric: &Metric, view: &Mutex<View>) -> Vec<(Value, Vec<KeyValue>)> {
    let view = view.lock().unwrap_or_else(PoisonError::into_inner);
    let Some((snapshot, processes)) = view.observe() else {
        return Vec::new();
    };
    let mut points = metric.points(snapshot, processes);
    if points.len() > POINTS_MAX {
        tracing::warn!(
            metric = metric.name,
            left_out = points.len() - POINTS_MAX,
            "too many points for one export; select fewer processes"
        );
        points.truncate(POINTS_MAX);
    }
    points
        .into_iter()
        .map(|point| {
            let attributes = point.attributes.into_iter().map(|(name, value)| {
                let value = match value {
                    AttributeValue::Integer(id) => opentelemetry::Value::I64(i64::from(id)),
                    AttributeValue::Text(text) => opentelemetry::Value::String(text.into()),
                };
                KeyValue::new(name, value)
            });
            (point.value, attributes.collect())
        })
        .collect()
}

fn integer(value: Value) -> Option<u64> {
    match value {
        Value::Integer(value) => Some(value),
        Value::Float(_) => None,
    }
}

fn signed(value: Value) -> Option<i64> {
    integer(value).and_then(|value| i64::try_from(value).ok())
}

fn float(value: Value) -> Option<f64> {
    match value {
        Value::Integer(_) => None,
        Value::Float(value) => Some(value),
    }
}
