//! A real Prometheus 3.x that receives OTLP, and what it has to say.
//!
//! Debian builds Prometheus without its OTLP endpoint. Where that is missing, OTLP goes to VictoriaMetrics' `vmagent`,
//! which writes each sample on to Prometheus as it came (remote write): one more real receiver on the way.

use crate::process::LIMIT;
use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running Prometheus with an empty store; ended and removed on drop.
#[derive(Debug)]
pub struct Prometheus {
    // Before the directory: what runs has its files in there.
    server: Server,
    gateway: Option<Server>,
    _directory: Directory,
}

/// A series and all its samples.
#[derive(Clone, Debug, Deserialize)]
pub struct Series {
    /// The labels, `__name__` among them.
    #[serde(rename = "metric")]
    pub labels: BTreeMap<String, String>,
    /// Unix time in seconds and the value as text, oldest first.
    #[serde(rename = "values")]
    pub samples: Vec<(f64, String)>,
}

impl Prometheus {
    /// Starts it on free ports of the loopback interface.
    ///
    /// # Errors
    /// When it can't be found, or doesn't come up.
    pub fn start() -> Result<Self> {
        let program = program("NUMAWATCH_PROMETHEUS", "prometheus", "prometheus")?;
        let directory = Directory::new()?;
        let configuration = directory.0.join("prometheus.yml");
        std::fs::write(&configuration, "global: {}\n").context("prometheus.yml")?;
        let has_otlp = help(&program)?.contains("web.enable-otlp-receiver");
        let server = Server::start("prometheus", "/-/ready", &directory, |port| {
            let mut command = Command::new(&program);
            command
                .arg(flag("--config.file=", &configuration))
                .arg(flag("--storage.tsdb.path=", &directory.0.join("store")))
                .arg(format!("--web.listen-address=127.0.0.1:{port}"))
                .arg(if has_otlp {
                    "--web.enable-otlp-receiver"
                } else {
                    "--web.enable-remote-write-receiver"
                });
            command
        })?;
        let gateway = if has_otlp {
            None
        } else {
            Some(gateway(&server, &directory)?)
        };
        Ok(Self {
            server,
            gateway,
            _directory: directory,
        })
    }

    /// Its base URL for OTLP over HTTP, as `OTEL_EXPORTER_OTLP_ENDPOINT` wants it.
    #[must_use]
    pub fn otlp_endpoint(&self) -> String {
        match &self.gateway {
            None => format!("http://127.0.0.1:{}/api/v1/otlp", self.server.port),
            Some(gateway) => format!("http://127.0.0.1:{}/opentelemetry", gateway.port),
        }
    }

    /// Every sample of every series that `selector` selects, from the last hour.
    ///
    /// # Errors
    /// When it doesn't answer, or refuses the selector.
    pub fn samples(&self, selector: &str) -> Result<Vec<Series>> {
        #[derive(Deserialize)]
        struct Answer {
            data: Data,
        }
        #[derive(Deserialize)]
        struct Data {
            result: Vec<Series>,
        }
        let query = format!("{selector}[1h]");
        let path = format!("/api/v1/query?query={}", percent_encoded(&query));
        let body = get(self.server.port, &path).with_context(|| query.clone())?;
        let answer: Answer = serde_json::from_str(&body).with_context(|| body.clone())?;
        Ok(answer.data.result)
    }
}

fn gateway(prometheus: &Server, directory: &Directory) -> Result<Server> {
    let program = program("NUMAWATCH_VMAGENT", "vmagent", "victoria-metrics")?;
    Server::start("vmagent", "/health", directory, |port| {
        let mut command = Command::new(&program);
        command
            .arg(format!("-httpListenAddr=127.0.0.1:{port}"))
            .arg(format!(
                "-remoteWrite.url=http://127.0.0.1:{}/api/v1/write",
                prometheus.port
            ))
            .arg(flag(
                "-remoteWrite.tmpDataPath=",
                &directory.0.join("gateway"),
            ))
            // Prometheus' own protocol, and its names of metrics and labels.
            .args([
                "-remoteWrite.forcePromProto",
                "-opentelemetry.usePrometheusNaming",
            ])
            // At once, instead of once a second.
            .arg("-remoteWrite.flushInterval=100ms");
        command
    })
}

/// `variable`, the PATH, or the cache that `cargo xtask` fills.
fn program(variable: &str, name: &str, package: &str) -> Result<PathBuf> {
    if let Some(program) = std::env::var_os(variable) {
        return Ok(program.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let cached = cache().map(|cache| cache.join(package).join("usr/bin"));
    std::env::split_paths(&path)
        .chain(cached)
        .map(|directory| directory.join(name))
        .find(|program| program.is_file())
        .with_context(|| {
            format!("{name} is not here: type `cargo xtask test --only host`, or set {variable}")
        })
}

fn cache() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value: &OsString| !value.is_empty());
    set("NUMAWATCH_CACHE")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(set("XDG_CACHE_HOME")?).join("numawatch")))
        .or_else(|| Some(PathBuf::from(set("HOME")?).join(".cache/numawatch")))
}

fn help(program: &Path) -> Result<String> {
    let help = Command::new(program).arg("--help").output();
    let help = help.with_context(|| program.display().to_string())?;
    Ok([help.stdout, help.stderr]
        .map(|text| String::from_utf8_lossy(&text).into_owned())
        .concat())
}

fn flag(start: &str, path: &Path) -> OsString {
    let mut flag = OsString::from(start);
    flag.push(path);
    flag
}

/// A program that serves HTTP on a port of its own; ended on drop.
#[derive(Debug)]
struct Server {
    port: u16,
    child: Child,
}

impl Server {
    /// Starts it and waits until `ready` answers with 200.
    fn start(
        name: &str,
        ready: &str,
        directory: &Directory,
        command: impl Fn(u16) -> Command,
    ) -> Result<Self> {
        let log = directory.0.join(format!("{name}.log"));
        // A port that was free a moment ago can be taken by now.
        for _ in 0..5 {
            let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
            let child = command(port)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(File::create(&log)?)
                .spawn()
                .with_context(|| name.to_owned())?;
            let mut server = Self { port, child };
            let end = Instant::now() + LIMIT;
            while server.child.try_wait()?.is_none() {
                if get(port, ready).is_ok() {
                    return Ok(server);
                }
                ensure!(Instant::now() < end, "{name} is not ready after {LIMIT:?}");
                std::thread::sleep(Duration::from_millis(50));
            }
            let said = std::fs::read_to_string(&log)?;
            ensure!(
                said.contains("address already in use"),
                "{name} ended: {said}"
            );
        }
        bail!("{name} found no free port")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The body of an answer with status 200.
fn get(port: u16, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(LIMIT))?;
    // HTTP/1.0 has no chunks and ends with the connection.
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .context("no answer of HTTP's form")?;
    ensure!(head.contains(" 200 "), "{head}: {body}");
    Ok(body.to_owned())
}

fn percent_encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        // Writing into a String can't fail.
        let _ = write!(encoded, "%{byte:02x}");
    }
    encoded
}

/// A directory for one Prometheus; removed on drop.
#[derive(Debug)]
struct Directory(PathBuf);

impl Directory {
    fn new() -> Result<Self> {
        use std::sync::atomic::{AtomicU32, Ordering};
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("numawatch-prometheus-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
        Ok(Self(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
