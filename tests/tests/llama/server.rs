//! A real llama.cpp server with a real model, and something for it to decode.

use crate::engine::{MODEL, PYTHON, provide};
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use tests::process::LIMIT;

/// The server; killed on drop.
pub(crate) struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// Starts it and waits until it answers.
    pub(crate) fn start() -> Self {
        let home = provide();
        let port = free_port();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/llama/serve.py");
        let mut command = Command::new(home.join(PYTHON));
        command
            .arg(script)
            .arg("--model")
            .arg(home.join(MODEL))
            .args(["--port", &port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut server = Self {
            child: spawn_bound(command),
            port,
        };
        let end = Instant::now() + LIMIT;
        while !server
            .request("GET /health", "")
            .is_ok_and(|answer| answer.contains("200 OK"))
        {
            let ended = server.child.try_wait().expect("a child");
            assert!(
                ended.is_none() && Instant::now() < end,
                "the server doesn't answer: {ended:?}"
            );
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        server
    }

    /// Its pid.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Has it decode this many tokens; gives the text.
    pub(crate) fn decode(&self, tokens: u32) -> String {
        let body = serde_json::json!({
            "prompt": "The kernel placed the page on the wrong node, and",
            "n_predict": tokens,
            "ignore_eos": true,
        });
        let answer = self
            .request("POST /completion", &body.to_string())
            .expect("an answer");
        assert!(answer.contains("200 OK"), "{answer}");
        answer
    }

    fn request(&self, what: &str, body: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(LIMIT))?;
        write!(
            stream,
            "{what} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a program that ends with this one, however that ends: a server kept in a static is never dropped.
fn spawn_bound(mut command: Command) -> Child {
    let (sender, receiver) = std::sync::mpsc::channel();
    // The signal comes when the thread ends that has started the program: this one stays.
    std::thread::spawn(move || {
        // SAFETY: touches no memory.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        let _ = sender.send(command.spawn());
        loop {
            std::thread::park();
        }
    });
    receiver
        .recv()
        .expect("a thread")
        .expect("the program starts")
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its address").port()
}
