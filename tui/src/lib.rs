//! The dashboard as a library: a pure state machine over snapshots, and a renderer over it.
