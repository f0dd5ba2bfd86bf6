//! The user side of the kernel probes: loads, attaches, reads, and folds what was read into counters.
//!
//! [`layout`] reads the running kernel's structures from BTF, [`ladder`] decides which of [`rungs`] each signal can stand on,
//! [`forced`] which a user may ask for, [`attach`] tries it, [`source`] takes a [`ledger::Reading`] a tick from [`reader`],
//! [`procfs`] or both, and [`ledger`] keeps the sums. Only `attach` and `reader` touch the kernel.

pub(crate) mod assemble;
pub(crate) mod attach;
pub(crate) mod beside;
pub(crate) mod bounds;
mod btf;
pub(crate) mod forced;
pub(crate) mod ladder;
pub(crate) mod layout;
pub(crate) mod ledger;
pub(crate) mod procfs;
pub(crate) mod procfs_signals;
pub(crate) mod procfs_threads;
pub(crate) mod reader;
pub(crate) mod rungs;
pub(crate) mod running;
mod settle;
pub(crate) mod slots;
pub(crate) mod source;
pub(crate) mod totals;
