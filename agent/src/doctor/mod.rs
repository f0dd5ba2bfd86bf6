//! What `numawatch doctor` finds: [`facts`] are read from the host, [`checks`] judges them, [`text`] prints them.

pub(crate) mod check;
pub(crate) mod checks;
pub(crate) mod facts;
mod probe_checks;
pub(crate) mod text;
