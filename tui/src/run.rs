//! The event loop: sleeps until a snapshot, a key, a resize or a signal, and draws after each.

use crate::app::{Action, App, Event};
use crate::draw::{self, Theme};
use crate::input;
use crate::options::Options;
use crate::terminal::Screen;
use anyhow::Context as _;
use crossterm::event::EventStream;
use futures_core::Stream;
use model::snapshot::Snapshot;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// Why the dashboard ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The user quit.
    ByUser,
    /// This signal came (SIGTERM, SIGINT or SIGHUP); shells expect exit status 128 + its number.
    BySignal(i32),
}

/// Shows snapshots until the user quits or a signal ends it; the terminal is restored in any case.
///
/// When the sender goes away the last picture stays, and the header says so. Drawing writes to the
/// terminal from the calling task: run it in `block_on`, with the sampler on other threads.
///
/// # Errors
/// When stdin or stdout is no terminal, or when the terminal can't be read or written.
pub async fn run(
    mut snapshots: watch::Receiver<Option<Arc<Snapshot>>>,
    options: Options,
) -> anyhow::Result<Ended> {
    // Before the terminal is taken: from here on a signal is an ordinary event.
    let mut signals = Signals::new()?;
    let mut screen = Screen::take()?;
    let theme = Theme::new(options.colour);
    let size = screen
        .terminal
        .size()
        .context("asking the terminal's size")?;
    let mut app = App::new(options, (size.width, size.height));
    let mut keys = EventStream::new();
    if let Some(snapshot) = snapshots.borrow_and_update().clone() {
        app.apply(Event::Snapshot(snapshot));
    }
    let mut action = Action::Redraw;
    let mut sampling = true;
    loop {
        match action {
            Action::Quit => return Ok(Ended::ByUser),
            Action::Redraw => {
                let mut extent = draw::Extent::default();
                screen
                    .terminal
                    .draw(|frame| extent = draw::draw(frame, &app, &theme))
                    .context("writing to the terminal")?;
                app.apply(Event::Drawn(extent));
            }
            Action::Nothing => {}
        }
        let event = tokio::select! {
            number = signals.next() => return Ok(Ended::BySignal(number)),
            key = next(&mut keys) => match key {
                Some(key) => input::translate(&key.context("reading the terminal")?),
                None => return Ok(Ended::ByUser),
            },
            changed = snapshots.changed(), if sampling => {
                if changed.is_ok() {
                    snapshots.borrow_and_update().clone().map(Event::Snapshot)
                } else {
                    sampling = false;
                    Some(Event::SamplingEnded)
                }
            }
        };
        if matches!(event, Some(Event::Resize(..))) {
            // A window that shrinks and grows back between two frames has the old size and not the old content.
            screen.blank().context("writing to the terminal")?;
        }
        action = event.map_or(Action::Nothing, |event| app.apply(event));
    }
}

async fn next(keys: &mut EventStream) -> Option<std::io::Result<crossterm::event::Event>> {
    poll_fn(|context| Pin::new(&mut *keys).poll_next(context)).await
}

/// The signals that ask a program to end.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    fn new() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("listening for signals");
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    /// The number of the next one.
    async fn next(&mut self) -> i32 {
        tokio::select! {
            _ = self.terminate.recv() => SignalKind::terminate().as_raw_value(),
            _ = self.interrupt.recv() => SignalKind::interrupt().as_raw_value(),
            _ = self.hangup.recv() => SignalKind::hangup().as_raw_value(),
        }
    }
}
