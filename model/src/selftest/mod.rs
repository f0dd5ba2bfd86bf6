//! The self-test's judgement: events that were made on purpose beside what the live probes saw of them.
//!
//! Whoever makes the events tells the [`Truth`]: where each page lies is `move_pages`' own answer, where a thread ran is
//! `getcpu`'s, CPU time is the thread's own clock's. [`judge`] compares.

mod events;
mod judge;
mod report;

pub use events::{Pair, Pairs, Seen, Truth, count};
pub use judge::{full_map, judge};
pub use report::{FullMap, Report, Row, Test, Verdict};
