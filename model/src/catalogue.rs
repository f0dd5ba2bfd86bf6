//! The metric catalogue: one entry a metric feeds OTLP, the dashboard's columns and docs/metrics.md.
