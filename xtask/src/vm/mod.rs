//! `vm`: boots a machine with NUMA nodes in QEMU and runs commands in it.

mod binaries;
mod cpio;
mod kernel;
mod layout;
mod modules;
mod qemu;
mod rootfs;
mod serve;
mod session;
mod stream;

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::builder::PossibleValuesParser;

use crate::say;
use session::{Ended, Session, Sink};

/// Status when the guest itself failed: didn't boot, or died under the command.
const GUEST_FAILED: u8 = 125;
/// Status past the time limit, as `timeout` has it.
const TIMED_OUT: u8 = 124;

/// A boot takes 4 s; this is for a machine that has much else to do.
const BOOT_LIMIT: Duration = Duration::from_mins(2);

const EXAMPLES: &str = "\
Examples:
  cargo xtask vm -- numawatch snapshot --json --all
  cargo xtask vm --kernel 7 --layout sparse -- sh -c 'cat /sys/devices/system/node/node*/distance'
  cargo xtask vm --gpu-node 1 -- cat /sys/class/drm/renderD128/device/numa_node
  cargo xtask vm --add target/debug/my-tool --disk /tmp/models -- my-tool /disk/model.gguf

Output and status:
  COMMAND's stdout and stderr come out byte for byte as this command's own, and it exits with
  COMMAND's status; 124 past --timeout, 125 if the guest did not boot or died. The kernel's console
  is shown only then. COMMAND is run as it is: for a pipe or a variable write `sh -c '…'`.

Many commands in one boot (--serve), for tests:
  Write requests to stdin: a line with a length in bytes, then a shell script of that length.
  Each is answered on stdout: a line `STATUS OUT ERR`, then OUT bytes of the script's stdout and
  ERR bytes of its stderr. Files, sysctls and background processes stay until stdin is closed.
  A script past --timeout (counted for each) is answered with status 124, and the guest is over.";

/// Boots a machine with several NUMA nodes and runs COMMAND in it, as root.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// The guest's kernel, fetched once into the cache; 7 is the newest 7.x of that day
    #[arg(long, default_value = kernel::SOURCES[0].name, value_parser = kernel_names())]
    kernel: String,
    /// Its nodes and sockets
    #[arg(long, default_value = layout::LAYOUTS[0].name, value_parser = layout_names())]
    layout: String,
    /// Its memory, shared out evenly among the nodes
    #[arg(long, default_value = "1G", value_parser = parse_mib)]
    memory: u64,
    /// Seconds that COMMAND may take, the boot not counted
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    timeout: u64,
    /// A program to put on the guest's PATH, with the shared libraries that it needs
    #[arg(long, value_name = "FILE")]
    add: Vec<PathBuf>,
    /// A directory to find on /disk in the guest (a copy: what is written there is lost)
    #[arg(long, value_name = "DIR")]
    disk: Option<PathBuf>,
    /// Give the guest a GPU (virtio) on this node; takes the kernel with GPU drivers
    #[arg(long, value_name = "NODE")]
    gpu_node: Option<usize>,
    /// Kernel modules to load, with what they depend on: brd, zram
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    modules: Vec<String>,
    /// Take numawatch and workload as they were built last, and none that was never built
    #[arg(long)]
    no_build: bool,
    /// Serve many scripts from stdin in one boot, see --help
    #[arg(long, conflicts_with = "command")]
    serve: bool,
    /// What to run
    #[arg(last = true, required_unless_present = "serve")]
    command: Vec<String>,
}

impl Args {
    /// A bare guest of the default kind.
    fn bare() -> Self {
        Self {
            kernel: kernel::SOURCES[0].name.to_owned(),
            layout: layout::LAYOUTS[0].name.to_owned(),
            memory: 1024,
            timeout: 60,
            add: Vec::new(),
            disk: None,
            gpu_node: None,
            modules: Vec::new(),
            no_build: true,
            serve: false,
            command: Vec::new(),
        }
    }
}

fn kernel_names() -> PossibleValuesParser {
    PossibleValuesParser::new(kernel::SOURCES.iter().map(|source| source.name))
}

fn layout_names() -> PossibleValuesParser {
    PossibleValuesParser::new(
        layout::LAYOUTS
            .iter()
            .map(|layout| clap::builder::PossibleValue::new(layout.name).help(layout.about)),
    )
}

/// Boots, runs, and gives the command's status.
pub(crate) fn main(args: &Args) -> ExitCode {
    let result = boot(args).and_then(|mut guest| {
        let session = &mut guest.session;
        let limit = Duration::from_secs(args.timeout);
        if args.serve {
            return serve::serve(session, limit, io::stdin().lock(), io::stdout().lock());
        }
        let ended = session.run(script(&args.command).as_bytes(), limit, &mut Through)?;
        Ok(match ended {
            Ended::Status(status) => status,
            Ended::TimedOut => {
                eprintln!(
                    "error: the command took longer than {} s (--timeout)",
                    args.timeout
                );
                TIMED_OUT
            }
        })
    });
    match result {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(GUEST_FAILED)
        }
    }
}

/// Fetches and builds all that guests need, so that tests can start them with `--no-build`.
pub(crate) fn prepare() -> Result<()> {
    binaries::build()?;
    for source in kernel::SOURCES {
        for plain in [false, true] {
            kernel::provide(source.name, plain)?;
        }
    }
    // The first boot finds out about QEMU and busybox, and that all of it works here.
    let args = Args::bare();
    say::step("Booting a guest once", || boot(&args).map(drop))
}

/// A running guest. Fields are dropped in this order: QEMU ends before its files go.
struct Guest {
    session: Session,
    _run: RunDir,
}

fn boot(args: &Args) -> Result<Guest> {
    let layout = layout::find(&args.layout)?;
    if !args.no_build {
        binaries::build()?;
    }
    let kernel = kernel::provide(&args.kernel, args.gpu_node.is_some())?;
    let mut wanted = qemu::modules(args.disk.is_some(), args.gpu_node.is_some());
    wanted.extend(args.modules.iter().cloned());
    let modules = modules::resolve(&kernel.modules, &wanted)?;
    let mut programs = binaries::built();
    programs.extend(args.add.iter().cloned());
    let token = token()?;
    let run = RunDir::create()?;
    let contents = rootfs::Contents {
        programs: &programs,
        modules: &modules,
        token: &token,
        disk: args.disk.is_some(),
    };
    fs::write(run.0.join("initramfs"), rootfs::build(&contents)?)
        .with_context(|| format!("cannot write the initramfs into {}", run.0.display()))?;
    if let Some(dir) = &args.disk {
        rootfs::disk_image(dir, &run.0.join("disk"))?;
    }
    let qemu = qemu::command(&qemu::Machine {
        layout,
        memory_mib: args.memory,
        kernel: &kernel,
        run: &run.0,
        disk: args.disk.is_some(),
        gpu_node: args.gpu_node,
    })?;
    let session = Session::boot(qemu, &run.0, &token, BOOT_LIMIT)?;
    Ok(Guest { session, _run: run })
}

/// Passes a command's output through as it comes.
struct Through;

impl Sink for Through {
    fn take(&mut self, stderr: bool, bytes: &[u8]) -> io::Result<()> {
        if stderr {
            return io::stderr().write_all(bytes);
        }
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        stdout.flush()
    }
}

/// The words of a command as a shell script that becomes it.
fn script(command: &[String]) -> String {
    let quote = |word: &String| format!("'{}'", word.replace('\'', r"'\''"));
    let words: Vec<String> = command.iter().map(quote).collect();
    format!(
        "exec {}
",
        words.join(" ")
    )
}

/// `1G`, `512M` or a number of MiB.
fn parse_mib(text: &str) -> Result<u64> {
    let (number, unit) = match text.strip_suffix(['G', 'g']) {
        Some(number) => (number, 1024),
        None => (text.strip_suffix(['M', 'm']).unwrap_or(text), 1),
    };
    match number.parse::<u64>() {
        Ok(number) => Ok(number * unit),
        Err(_) => bail!("say it like 1G or 768M"),
    }
}

/// A word that no command prints.
fn token() -> Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes))?;
    Ok(bytes
        .iter()
        .fold("end-of-command-".to_owned(), |text, byte| {
            text + &format!("{byte:02x}")
        }))
}

/// One run's files; removed with it.
struct RunDir(PathBuf);

impl RunDir {
    fn create() -> Result<Self> {
        // Below the temporary directory, not the cache: a socket's path has 108 bytes at most.
        let parent = std::env::temp_dir().join("numawatch-vm");
        remove_abandoned(&parent);
        let dir = parent.join(std::process::id().to_string());
        fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
        Ok(Self(dir))
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Removes what runs that were killed left behind.
fn remove_abandoned(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if !Path::new("/proc").join(entry.file_name()).exists() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_words() {
        let command = ["echo", "it's", "$HOME", ""].map(str::to_owned);
        assert_eq!(script(&command), "exec 'echo' 'it'\\''s' '$HOME' ''\n");
    }

    #[test]
    fn memory_is_in_mib() {
        assert_eq!(parse_mib("1G").unwrap(), 1024);
        assert_eq!(parse_mib("768M").unwrap(), 768);
        assert!(parse_mib("much").is_err());
    }
}
