//! Sends snapshots out of the process.

pub(crate) mod otlp;
