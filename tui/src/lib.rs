//! The dashboard as a library: a pure state machine over snapshots, and a renderer over it.
//!
//! [`run`] takes the terminal, shows every [`model::snapshot::Snapshot`] that arrives, and gives the
//! terminal back. `app` decides and knows no terminal; `draw` paints and decides nothing.

mod app;
mod draw;
mod input;
mod options;
mod run;
mod terminal;

#[cfg(test)]
#[path = "../examples/demo/made_up/mod.rs"]
mod made_up;

pub use options::Options;
pub use run::{Ended, run};
