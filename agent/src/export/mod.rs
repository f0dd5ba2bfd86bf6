//! Sends snapshots out of the process.
