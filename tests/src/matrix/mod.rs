//! The matrix: every signal with every kind of memory, on every kernel and layout and on lower rungs, with its measured error.
//!
//! One boot a place plays [`sessions`]; [`cells`] are computed from their reports, with their `errors`; [`exceptions`]
//! lists those that can't be, with the reason; [`document`] is `docs/kernels.md`.

pub mod cells;
pub mod document;
mod errors;
pub mod exceptions;
pub mod places;
pub mod sessions;
