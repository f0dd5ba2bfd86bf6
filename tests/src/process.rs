//! A child process whose lines are waited for, and that never outlives its test.

use anyhow::{Context as _, Result, bail};
use serde::de::DeserializeOwned;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// No test measures time: this is how long nothing may happen before it is a failure. An emulated guest is slow.
pub const LIMIT: Duration = Duration::from_mins(5);

/// A child; killed on drop.
#[derive(Debug)]
pub struct Running {
    child: Child,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
    heard: Vec<String>,
}

impl Running {
    /// Starts it with pipes at all ends.
    ///
    /// # Errors
    /// When it can't be started.
    pub fn start(command: &mut Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| command.get_program().display().to_string())?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        Ok(Self {
            child,
            stdout: lines_of(stdout.context("stdout")?),
            stderr: lines_of(stderr.context("stderr")?),
            heard: Vec::new(),
        })
    }

    /// Its pid.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line on stdout, as JSON.
    ///
    /// # Errors
    /// When it ends before, says something else, or nothing for [`LIMIT`].
    pub fn json_line<T: DeserializeOwned>(&mut self) -> Result<T> {
        match self.stdout.recv_timeout(LIMIT) {
            Ok(line) => serde_json::from_str(&line).with_context(|| format!("its line {line:?}")),
            Err(RecvTimeoutError::Timeout) => bail!("no line for {LIMIT:?}"),
            Err(RecvTimeoutError::Disconnected) => {
                self.child.wait().context("wait")?;
                bail!("it ended: {}", self.stderr_so_far().trim())
            }
        }
    }

    /// Waits for a line on stderr.
    ///
    /// # Errors
    /// When it ends before or says no such line for [`LIMIT`].
    pub fn stderr_line(&mut self, is_it: impl Fn(&str) -> bool) -> Result<String> {
        let end = Instant::now() + LIMIT;
        loop {
            match self
                .stderr
                .recv_timeout(end.saturating_duration_since(Instant::now()))
            {
                Ok(line) => {
                    self.heard.push(line.clone());
                    if is_it(&line) {
                        return Ok(line);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    bail!("stderr has no such line: {:?}", self.heard)
                }
                Err(RecvTimeoutError::Disconnected) => bail!("it ended: {:?}", self.heard),
            }
        }
    }

    /// All that it has written to stderr.
    pub fn stderr_so_far(&mut self) -> String {
        self.heard.extend(self.stderr.try_iter());
        self.heard.join("\n")
    }

    /// Writes an empty line to its stdin.
    ///
    /// # Errors
    /// When it has closed its end; with how it ended, if it did.
    pub fn say_go(&mut self) -> Result<()> {
        let stdin = self.child.stdin.as_mut().context("stdin is closed")?;
        let Err(error) = stdin.write_all(b"\n").and_then(|()| stdin.flush()) else {
            return Ok(());
        };
        let ended = self
            .ended_just_now()
            .map(|status| format!("stdin; it ended with {status}: {}", self.stderr_so_far()));
        Err(error).context(ended.unwrap_or_else(|| "stdin".to_owned()))
    }

    /// Its status, a moment after its pipes were closed; `None` if it closed them and goes on.
    fn ended_just_now(&mut self) -> Option<ExitStatus> {
        for _ in 0..10 {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        None
    }

    /// Ends its stdin.
    pub fn close_stdin(&mut self) {
        self.child.stdin = None;
    }

    /// Sends it SIGINT.
    pub fn interrupt(&self) {
        self.signal(libc::SIGINT);
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: i32) {
        // SAFETY: the child has not been waited for, so its pid is still its own.
        unsafe { libc::kill(self.child.id().cast_signed(), signal) };
    }

    /// Waits for its end; its status and the rest of its stdout.
    ///
    /// # Errors
    /// When it goes on for [`LIMIT`].
    pub fn wait(&mut self) -> Result<(ExitStatus, String)> {
        let mut stdout = String::new();
        let end = Instant::now() + LIMIT;
        loop {
            match self
                .stdout
                .recv_timeout(end.saturating_duration_since(Instant::now()))
            {
                Ok(line) => {
                    stdout.push_str(&line);
                    stdout.push('\n');
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => bail!("still running after {LIMIT:?}"),
            }
        }
        let status = self.child.wait().context("wait")?;
        // The reader of stderr is at the end of a closed pipe, but perhaps not there yet.
        self.heard.extend(self.stderr.iter());
        Ok((status, stdout))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads on a thread of its own, so that a full pipe never stops the child.
fn lines_of(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines() {
            let Ok(line) = line else { return };
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
