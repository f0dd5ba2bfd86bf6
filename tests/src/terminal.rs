//! A pseudo-terminal with a program in it, and what a person would see there.
#![allow(
    clippy::expect_used,
    reason = "a terminal that cannot go on fails its test"
)]
#![allow(clippy::missing_panics_doc, reason = "as above")]

use crate::process::LIMIT;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
pub use vt100::{Cell, Screen};
use vt100::{MouseProtocolMode, Parser};

/// The terminal; its program is killed on drop.
pub struct Terminal {
    child: Child,
    keyboard: File,
    /// Kept open: the settings of the terminal are read here after the program's end.
    line: OwnedFd,
    screen: Arc<Mutex<Parser>>,
}

impl Terminal {
    /// Starts a program in a terminal of `columns` x `rows`.
    #[must_use]
    pub fn start(mut command: Command, columns: u16, rows: u16) -> Self {
        let (master, line) = open(columns, rows);
        let end = || line.try_clone().expect("a descriptor");
        command
            .env("TERM", "xterm-256color")
            .stdin(end())
            .stdout(end())
            .stderr(end());
        // SAFETY: both calls are safe between fork and exec.
        unsafe {
            command.pre_exec(|| {
                libc::setsid();
                libc::ioctl(libc::STDIN_FILENO, libc::TIOCSCTTY, 0);
                Ok(())
            });
        }
        let child = command.spawn().expect("the program starts");
        let screen = Arc::new(Mutex::new(Parser::new(rows, columns, 0)));
        let keyboard = File::from(master);
        let mut output = keyboard.try_clone().expect("a descriptor");
        let seen = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                seen.lock().expect("no panic").process(&bytes[..count]);
            }
        });
        Self {
            child,
            keyboard,
            line,
            screen,
        }
    }

    /// Types.
    pub fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("a key");
    }

    /// Makes the window another size, and empty: what is on it then has been drawn for that size.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        let mut screen = self.screen.lock().expect("no panic");
        screen.screen_mut().set_size(rows, columns);
        screen.process(b"\x1b[2J");
        drop(screen);
        let size = libc::winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        // SAFETY: the kernel reads one winsize; it tells the program by SIGWINCH.
        unsafe { libc::ioctl(self.keyboard.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) };
    }

    /// What is on it now.
    #[must_use]
    pub fn text(&self) -> String {
        self.screen.lock().expect("no panic").screen().contents()
    }

    /// Waits until the screen is as it should be.
    #[track_caller]
    pub fn wait_until(&mut self, what: &str, is_so: impl Fn(&Screen) -> bool) {
        let end = Instant::now() + LIMIT;
        while !is_so(self.screen.lock().expect("no panic").screen()) {
            let ended = self.child.try_wait().expect("a child");
            if ended.is_some() {
                self.take_the_last();
                if is_so(self.screen.lock().expect("no panic").screen()) {
                    return;
                }
            }
            assert!(
                ended.is_none() && Instant::now() < end,
                "not {what}; {ended:?}; the screen:\n{}",
                self.text()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns once the program, which has ended, has left nothing to read: what it printed last may not be on the screen
    /// yet. The line is open here too, so that no end is read.
    fn take_the_last(&self) {
        let mut empty = 0;
        // What was read just before the first look is on the screen by the last one.
        while empty < 5 {
            let mut waiting: libc::c_int = 0;
            // SAFETY: the kernel writes one number.
            let done =
                unsafe { libc::ioctl(self.keyboard.as_raw_fd(), libc::FIONREAD, &raw mut waiting) };
            empty = if done == 0 && waiting > 0 {
                0
            } else {
                empty + 1
            };
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends the program a signal.
    pub fn signal(&self, signal: i32) {
        // SAFETY: the child has not been waited for.
        unsafe { libc::kill(self.child.id().cast_signed(), signal) };
    }

    /// Waits for the program's end, and for the last of its output.
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        let end = Instant::now() + LIMIT;
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                self.take_the_last();
                return status;
            }
            assert!(
                Instant::now() < end,
                "still running; the screen:\n{}",
                self.text()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The normal screen, a cursor, and no mouse: escape sequences of programs that follow would go astray otherwise.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        let parser = self.screen.lock().expect("no panic");
        let screen = parser.screen();
        !screen.alternate_screen()
            && !screen.hide_cursor()
            && !screen.bracketed_paste()
            && screen.mouse_protocol_mode() == MouseProtocolMode::None
    }

    /// Whether keys are echoed and lines edited, as a shell expects it.
    #[must_use]
    pub fn is_cooked(&self) -> bool {
        // SAFETY: all-zero is a termios, and the kernel writes one.
        let settings = unsafe {
            let mut settings: libc::termios = std::mem::zeroed();
            libc::tcgetattr(self.line.as_raw_fd(), &raw mut settings);
            settings
        };
        let cooked = libc::ECHO | libc::ICANON | libc::ISIG;
        settings.c_lflag & cooked == cooked
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn open(columns: u16, rows: u16) -> (OwnedFd, OwnedFd) {
    let (mut master, mut line) = (0, 0);
    let size = libc::winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: the kernel writes two descriptors, which are new and ours; null means no name and no settings.
    unsafe {
        let done = libc::openpty(
            &raw mut master,
            &raw mut line,
            std::ptr::null_mut(),
            std::ptr::null(),
            &raw const size,
        );
        assert_eq!(done, 0, "openpty: {}", std::io::Error::last_os_error());
        libc::fcntl(master, libc::F_SETFD, libc::FD_CLOEXEC);
        libc::fcntl(line, libc::F_SETFD, libc::FD_CLOEXEC);
        (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(line))
    }
}
