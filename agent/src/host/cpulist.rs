//! The kernel's list format of CPUs and nodes, `0-3,8,10-11`.

pub(crate) use model::list::parse;
