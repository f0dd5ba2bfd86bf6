//! The state machine and everything that it decides with; no file here knows a terminal.

mod cell;
mod columns;
mod evidence;
mod feed;
mod fit;
pub(crate) mod format;
pub(crate) mod gpus;
mod history;
mod key;
pub(crate) mod keymap;
mod layout;
mod machine;
mod nodes;
mod order;
mod row;
#[cfg(test)]
mod tests;

pub(crate) use cell::{Cell, Tone};
pub(crate) use columns::title;
pub(crate) use columns::{Align, COLUMNS, Column, ColumnId, Picture};
pub(crate) use evidence::{balancing_words, sentence, word};
pub(crate) use feed::Pair;
pub(crate) use fit::fitted;
pub(crate) use key::Key;
pub(crate) use layout::{MIN_HEIGHT, MIN_WIDTH, NodeForm, Regions, regions};
pub(crate) use machine::{Action, App, Event, Extent, View};
pub(crate) use nodes::{Nodes, apportion, filled};
pub(crate) use row::Row;
