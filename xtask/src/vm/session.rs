//! A running guest, seen from the host: commands go in, output and exit status come out.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::qemu::PORTS;
use super::stream::Splitter;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// With this status, as a shell gives it.
    Status(u8),
    /// Not within the time it had.
    TimedOut,
}

/// Where a command's output goes.
pub(crate) trait Sink {
    /// Some bytes of its stdout, or of its stderr.
    fn take(&mut self, stderr: bool, bytes: &[u8]) -> io::Result<()>;
}

enum Event {
    Ready,
    Output {
        stderr: bool,
        data: Vec<u8>,
        ended: bool,
    },
    Status(u8),
    Gone,
}

/// The guest. Dropping it ends it.
pub(crate) struct Session {
    qemu: Child,
    control: UnixStream,
    events: Receiver<Event>,
    run: PathBuf,
}

impl Drop for Session {
    fn drop(&mut self) {
        // Nothing in a guest is worth an orderly shutdown.
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

impl Session {
    /// Starts `qemu` with its sockets in `run`, and waits until the guest takes commands.
    pub(crate) fn boot(
        mut qemu: Command,
        run: &Path,
        token: &str,
        limit: Duration,
    ) -> Result<Self> {
        let deadline = Instant::now() + limit;
        let listeners = PORTS.map(|port| listen(&run.join(port)));
        let log = File::create(run.join("qemu.log")).context("cannot create QEMU's log")?;
        qemu.stdout(log.try_clone()?).stderr(log);
        let mut child = qemu.spawn().context("cannot start QEMU")?;
        let mut accept = |listener: Result<UnixListener>| -> Result<UnixStream> {
            let accepted = listener.and_then(|l| accept(&l, &mut child, deadline));
            if accepted.is_err() {
                let _ = child.kill();
                let _ = child.wait();
            }
            accepted.with_context(|| evidence(run))
        };
        let [control, out, err] = listeners;
        let (control, out, err) = (accept(control)?, accept(out)?, accept(err)?);
        let (sender, events) = mpsc::channel();
        for (stream, stderr) in [(out, false), (err, true)] {
            let (sender, splitter) = (sender.clone(), Splitter::new(token));
            thread::spawn(move || forward(stream, stderr, splitter, &sender));
        }
        let incoming = control.try_clone()?;
        thread::spawn(move || statuses(incoming, &sender));
        let session = Self {
            qemu: child,
            control,
            events,
            run: run.to_path_buf(),
        };
        match session
            .events
            .recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            Ok(Event::Ready) => Ok(session),
            Ok(_) => bail!("the guest did not boot; {}", evidence(run)),
            Err(_) => bail!("the guest did not boot within {limit:?}; {}", evidence(run)),
        }
    }

    /// Runs a shell script in the guest.
    pub(crate) fn run(
        &mut self,
        script: &[u8],
        limit: Duration,
        sink: &mut dyn Sink,
    ) -> Result<Ended> {
        let deadline = Instant::now() + limit;
        let mut request = base64(script);
        request.push('\n');
        self.control
            .write_all(request.as_bytes())
            .context("the guest takes no command")?;
        let (mut status, mut streams) = (None, 2);
        loop {
            if let Some(status) = status.filter(|_| streams == 0) {
                return Ok(Ended::Status(status));
            }
            match self
                .events
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            {
                Ok(Event::Output {
                    stderr,
                    data,
                    ended,
                }) => {
                    sink.take(stderr, &data)
                        .context("cannot write the command's output")?;
                    streams -= i32::from(ended);
                }
                Ok(Event::Status(code)) => status = Some(code),
                Ok(Event::Ready) => {}
                Err(RecvTimeoutError::Timeout) => return Ok(Ended::TimedOut),
                Ok(Event::Gone) | Err(RecvTimeoutError::Disconnected) => {
                    bail!("the guest died under the command; {}", evidence(&self.run))
                }
            }
        }
    }
}

fn listen(path: &Path) -> Result<UnixListener> {
    let listener = UnixListener::bind(path)
        .with_context(|| format!("cannot make the socket {}", path.display()))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// QEMU's connection, or why QEMU ended before it made one.
fn accept(listener: &UnixListener, qemu: &mut Child, deadline: Instant) -> Result<UnixStream> {
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error).context("cannot talk to QEMU"),
        }
        if let Some(status) = qemu.try_wait()? {
            bail!("QEMU ended at once ({status})");
        }
        if Instant::now() >= deadline {
            bail!("QEMU did not start in time");
        }
        thread::sleep(Duration::from_millis(5));
    }
}

fn forward(mut stream: UnixStream, stderr: bool, mut splitter: Splitter, events: &Sender<Event>) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        for piece in splitter.push(&buffer[..length]) {
            let event = Event::Output {
                stderr,
                data: piece.data,
                ended: piece.ended,
            };
            if events.send(event).is_err() {
                return;
            }
        }
    }
    let _ = events.send(Event::Gone);
}

fn statuses(stream: UnixStream, events: &Sender<Event>) {
    use std::io::BufRead;
    for line in io::BufReader::new(stream).lines().map_while(Result::ok) {
        let event = match (line.trim(), line.trim().parse()) {
            ("ready", _) => Event::Ready,
            (_, Ok(status)) => Event::Status(status),
            _ => continue,
        };
        if events.send(event).is_err() {
            return;
        }
    }
    let _ = events.send(Event::Gone);
}

/// What QEMU and the guest's kernel said last; the whole is kept in the cache.
fn evidence(run: &Path) -> String {
    let mut text = String::new();
    for log in ["qemu.log", "console.log"] {
        let bytes = fs::read(run.join(log)).unwrap_or_default();
        text += &String::from_utf8_lossy(&bytes);
    }
    let kept = crate::workspace::cache().map(|dir| dir.join("console.log"));
    let place = match kept {
        Ok(path) if fs::write(&path, &text).is_ok() => path.display().to_string(),
        _ => "nowhere".to_owned(),
    };
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    // What went wrong stands before the registers and the stack, of which a panic prints pages.
    let trouble = ["Kernel panic", "BUG:", "Oops", "sysrq:"];
    let first = lines
        .iter()
        .position(|line| trouble.iter().any(|word| line.contains(word)));
    let from = first.unwrap_or(lines.len().saturating_sub(20));
    let told = lines[from..lines.len().min(from + 20)].join("\n  | ");
    format!("its console, kept in {place}, says:\n  | {told}")
}

/// Standard base64: the request is one line whatever the script holds.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| usize::from(chunk.get(at).copied().unwrap_or(0));
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            text.push(if place <= chunk.len() {
                char::from(ALPHABET[group >> (18 - 6 * place) & 63])
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_the_standard_one() {
        assert_eq!(base64(b""), "");
        assert_eq!(base64(b"f"), "Zg==");
        assert_eq!(base64(b"fo"), "Zm8=");
        assert_eq!(base64(b"foo"), "Zm9v");
        assert_eq!(base64(&[0xff, 0xfe, 0xfd, 0x00]), "//79AA==");
    }
}
