//! Takes the terminal and gives it back, however the dashboard ends.

use anyhow::{Context, bail};
use crossterm::cursor::Show;
use crossterm::execute;
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{IsTerminal, Stdout, Write as _, stderr, stdin, stdout};
use std::mem::ManuallyDrop;
use std::panic;
use std::sync::{Mutex, PoisonError};

/// Panics seen while the dashboard has the terminal: told after it is given back, because a
/// message on the alternate screen is lost with it.
static HELD: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// More than these are echoes of the first.
const HELD_MAX: usize = 16;

type Hook = Box<dyn Fn(&panic::PanicHookInfo<'_>) + Sync + Send>;

/// The terminal in raw mode on its alternate screen; dropping it restores both.
pub(crate) struct Screen {
    /// Never dropped: its own drop shows the cursor once more, and panics where the terminal is gone.
    pub(crate) terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
    /// Only for its drop.
    _guard: Guard,
}

impl Screen {
    /// Empties the screen, and what is remembered of it, so that the next picture is drawn whole. The terminal's own
    /// `clear` asks for the cursor's position, and the answer would be read as keys.
    pub(crate) fn blank(&mut self) -> std::io::Result<()> {
        execute!(self.terminal.backend_mut(), Clear(ClearType::All))?;
        self.terminal.swap_buffers();
        Ok(())
    }

    /// Takes the terminal. Fails in one line where there is none.
    pub(crate) fn take() -> anyhow::Result<Self> {
        if !stdin().is_terminal() || !stdout().is_terminal() {
            bail!(
                "the dashboard needs a terminal on stdin and stdout: for pipes there is `numawatch snapshot`"
            );
        }
        // The guard comes first: what fails half-way is undone too.
        let guard = Guard::new();
        enable_raw_mode().context("the terminal refuses raw mode")?;
        execute!(stdout(), EnterAlternateScreen).context("writing to the terminal")?;
        let terminal =
            Terminal::new(CrosstermBackend::new(stdout())).context("asking the terminal's size")?;
        Ok(Self {
            terminal: ManuallyDrop::new(terminal),
            _guard: guard,
        })
    }
}

struct Guard {
    previous: Option<Hook>,
}

impl Guard {
    fn new() -> Self {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(|info| {
            let backtrace = Backtrace::capture();
            let text = if backtrace.status() == BacktraceStatus::Captured {
                format!("{info}\n{backtrace}")
            } else {
                info.to_string()
            };
            let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
            if held.len() < HELD_MAX {
                held.push(text);
            }
        }));
        Self {
            previous: Some(previous),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Each step on its own: after SIGHUP the terminal may be gone, and that is no error.
        let _ = disable_raw_mode();
        let _ = execute!(stdout(), LeaveAlternateScreen, Show);
        // A hook can't be changed while this thread panics; the held messages are told all the same.
        if !std::thread::panicking()
            && let Some(previous) = self.previous.take()
        {
            panic::set_hook(previous);
        }
        // Taken out first, and written without eprintln, which panics where stderr is gone: that
        // panic would come back here for the lock.
        let held = std::mem::take(&mut *HELD.lock().unwrap_or_else(PoisonError::into_inner));
        for text in held {
            let _ = writeln!(stderr(), "{text}");
        }
    }
}
