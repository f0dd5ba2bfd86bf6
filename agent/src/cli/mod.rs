//! The command line: what can be asked, its help and its examples.

mod values;

use crate::engines::selection::Selection;
use crate::export::otlp::Protocol;
use crate::probes::{attach, forced};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell;
use model::signal::{Mechanism, SignalName};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Which inference process pays for remote memory, how much, and why.
#[derive(Debug, Parser)]
#[command(name = "numawatch", version, about, long_about = LONG, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const LONG: &str = "Which inference process pays for remote memory, how much, and why.\n\n\
Watches page faults, NUMA balancing and the scheduler with eBPF, without hardware counters, and \
attributes remote touches and cross-socket moves to each inference process. Needs root, or CAP_BPF, \
CAP_PERFMON and CAP_SYS_PTRACE.";

const EXAMPLES: &str = "Examples:
  numawatch tui                               the dashboard
  numawatch snapshot                          two seconds, one table
  numawatch snapshot --json --for 10s --pid 4242 | jq '.processes[0].verdict'
  numawatch agent                             OTLP to OTEL_EXPORTER_OTLP_ENDPOINT
  numawatch topo                              nodes, GPUs and NICs, and what lies between them
  numawatch check --pid 4242                  what is on the wrong node, and what to type
  numawatch doctor                            what this host can measure, and why not
  numawatch launch --gpu 0 -- llama-server -m model.gguf

Exit status: 0 fine, 1 a check failed, 2 wrong use or it can't start.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the dashboard
    Tui(Tui),
    /// Watch for a while, then print one table or one JSON document
    Snapshot(Snapshot),
    /// Watch until stopped, and export metrics over OTLP
    Agent(Agent),
    /// Show sockets, nodes, GPUs and NICs, and what lies between them
    Topo(Topo),
    /// Watch for 5 s, then tell what is on the wrong node, why, and what to type
    Check(Check),
    /// Tell what this host can measure, signal by signal, and why not
    Doctor(Doctor),
    /// Run a command on a GPU's or a given node, with its memory bound there
    Launch(Launch),
    /// Make the self-test's events; numawatch starts it itself
    #[command(name = crate::selftest::process::SUBCOMMAND, hide = true)]
    SelfTestEvents,
    /// Find one process's placement again and again, and tell what each time cost; for the bench
    #[command(hide = true)]
    RefreshPlacement(RefreshPlacement),
    /// Print a shell's completion script
    #[command(
        after_help = "Example:\n  numawatch completions bash > /etc/bash_completion.d/numawatch"
    )]
    Completions {
        /// bash, zsh, fish, elvish or powershell
        shell: Shell,
    },
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  numawatch tui\n  numawatch tui --match 'llama|vllm' --interval 500ms\n\nKeys: ? in the dashboard."
)]
pub(crate) struct Tui {
    #[command(flatten)]
    pub(crate) watch: Watch,
    /// Write the log to this file [default: numawatch/tui.log in XDG_STATE_HOME]
    #[arg(long, value_name = "FILE", env = "NUMAWATCH_LOG_FILE")]
    pub(crate) log_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  numawatch snapshot\n  numawatch snapshot --json --for 10s --pid 4242\n\nThe document is described in docs/json.md. Ctrl-C ends the watching early and prints."
)]
pub(crate) struct Snapshot {
    #[command(flatten)]
    pub(crate) watch: Watch,
    /// How long to watch before printing
    #[arg(long = "for", value_name = "DURATION", default_value = "2s", value_parser = values::span, allow_hyphen_values = true)]
    pub(crate) span: Duration,
    /// Look at every page for the placement, instead of a sample: holds each process's lock, 10 ms a GiB
    #[arg(long)]
    pub(crate) exact: bool,
    /// Print the snapshot as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318 numawatch agent\n  numawatch agent --otlp-endpoint http://localhost:4317 --otlp-protocol grpc\n  numawatch agent --json > frames.jsonl\n\nAlso read: OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_TIMEOUT, OTEL_RESOURCE_ATTRIBUTES, and each of the\nOTEL_EXPORTER_OTLP_ variables in its METRICS_ form."
)]
pub(crate) struct Agent {
    #[command(flatten)]
    pub(crate) watch: Watch,
    /// The collector's base URL [env: OTEL_EXPORTER_OTLP_ENDPOINT] [default: http://localhost:4318]
    #[arg(long, value_name = "URL")]
    pub(crate) otlp_endpoint: Option<String>,
    /// How OTLP is carried [env: OTEL_EXPORTER_OTLP_PROTOCOL] [default: http/protobuf]
    #[arg(long, value_name = "PROTOCOL", value_enum)]
    pub(crate) otlp_protocol: Option<Protocol>,
    /// Time between two exports [env: OTEL_METRIC_EXPORT_INTERVAL, ms] [default: 60s]
    #[arg(long, value_name = "DURATION", value_parser = values::span, allow_hyphen_values = true)]
    pub(crate) otlp_interval: Option<Duration>,
    /// Also print each snapshot as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  numawatch check\n  numawatch check --pid 4242 --strict || exit 1\n  numawatch check --json --for 30s | jq '.findings[].id'\n\nExits 1 when something fails; with --strict also when something warns or can't be known. What each finding means is\nin docs/findings.md."
)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) watch: Watch,
    /// How long to watch before answering
    #[arg(long = "for", value_name = "DURATION", default_value = "5s", value_parser = values::span, allow_hyphen_values = true)]
    pub(crate) span: Duration,
    /// Exit with 1 for warnings and unknowns too
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print answers and findings as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  numawatch doctor\n  numawatch doctor --self-test\n  numawatch doctor --json | jq '.signals[] | select(.reason)'\n\nExits 1 when a check fails: nothing can be attached, the scheduler's signal can't be had, or a signal doesn't see\nwhat the self-test does. Each check is described in docs/doctor.md."
)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) probes: Probes,
    /// Make known events, and check that each signal sees them; takes up to 3 s
    #[arg(long)]
    pub(crate) self_test: bool,
    /// Print the checks as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  numawatch topo\n  numawatch topo --json | jq '.topology.devices[] | {label, address, node}'\n\nThe words between two devices are nvidia-smi's; a device whose node nobody tells has none, and not 0. Needs no\nprivileges. docs/topology.md says where each is from."
)]
pub(crate) struct Topo {
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) nvml: Nvml,
    /// Read proc and sys below this folder: another machine's, for support
    #[arg(long, value_name = "FOLDER", hide = true)]
    pub(crate) root: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  numawatch launch --gpu 0 -- llama-server -m model.gguf\n  numawatch launch --gpu 3b:00.0 --gpu 5e:00.0 --needs 60G -- vllm serve MODEL -tp 2\n  numawatch launch --node 1 --dry-run -- ./server\n\nIt becomes the command: no process of numawatch stays. Exit status: the command's; 2 when it isn't launched, 126 when\nthe command can't be run, 127 when there is none. docs/launch.md has the rest."
)]
pub(crate) struct Launch {
    /// A GPU by number, PCI address or device (0, 3b:00.0, renderD128), whose node is taken; can be repeated
    #[arg(
        long = "gpu",
        value_name = "ID",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    pub(crate) gpus: Vec<String>,
    /// The node, where no GPU tells it
    #[arg(long, value_name = "N", value_parser = values::node, allow_hyphen_values = true)]
    pub(crate) node: Option<u32>,
    /// Memory that must be free there, such as 60G or 512MiB; 0 for none [default: the model files among the arguments]
    #[arg(long, value_name = "SIZE", value_parser = values::size, allow_hyphen_values = true)]
    pub(crate) needs: Option<u64>,
    /// Print the same as a numactl line, with the engine's own flags, and run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct RefreshPlacement {
    /// The process
    #[arg(long, value_name = "PID", value_parser = values::pid, allow_hyphen_values = true)]
    pub(crate) pid: u32,
    /// How often
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        allow_hyphen_values = true
    )]
    pub(crate) count: u32,
}

/// Whom to watch and how; the same for every command that watches.
#[derive(Debug, Args)]
pub(crate) struct Watch {
    /// Watch this process and its children; can be repeated
    #[arg(long = "pid", value_name = "PID", value_delimiter = ',', value_parser = values::pid, allow_hyphen_values = true)]
    pub(crate) pids: Vec<u32>,
    /// Watch processes whose command line matches this regular expression
    #[arg(long = "match", value_name = "REGEX")]
    pub(crate) pattern: Option<String>,
    /// Watch every process
    #[arg(long)]
    pub(crate) all: bool,
    /// Time between two snapshots, at least 100ms
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = values::interval, allow_hyphen_values = true, env = "NUMAWATCH_INTERVAL")]
    pub(crate) interval: Duration,
    /// Make known events first, and mark signals that don't see them as unreliable; takes up to 3 s
    #[arg(long)]
    pub(crate) self_test: bool,
    /// Change a threshold, e.g. remote_from=0.4; can be repeated
    #[arg(long = "threshold", value_name = "NAME=VALUE", value_parser = values::threshold, allow_hyphen_values = true)]
    pub(crate) thresholds: Vec<(String, f64)>,
    #[command(flatten)]
    pub(crate) nvml: Nvml,
    #[command(flatten)]
    pub(crate) probes: Probes,
}

/// NVIDIA's management library.
#[derive(Debug, Args)]
pub(crate) struct Nvml {
    /// The library, when it isn't where the loader finds it
    #[arg(
        long = "nvml",
        value_name = "FILE",
        env = "NUMAWATCH_NVML",
        hide = true
    )]
    pub(crate) path: Option<PathBuf>,
}

/// How to attach; for tests and support.
#[derive(Debug, Args)]
pub(crate) struct Probes {
    /// Measure a signal by one mechanism only, e.g. first_touch=tp_btf, or not at all: hint=off; can be repeated
    #[arg(long = "mechanism", value_name = "SIGNAL=RUNG", value_parser = values::mechanism, allow_hyphen_values = true)]
    pub(crate) mechanisms: Vec<(SignalName, Option<Mechanism>)>,
    /// Break a signal's probe on purpose, to see the self-test find it
    #[arg(long = "break", value_name = "SIGNAL", value_parser = values::signal, hide = true, allow_hyphen_values = true)]
    pub(crate) broken: Vec<SignalName>,
    /// Make a map of the kernel side smaller, to see it full, e.g. TOUCH=4; can be repeated
    #[arg(long = "map-entries", value_name = "MAP=ENTRIES", value_parser = values::map_entries, hide = true, allow_hyphen_values = true)]
    pub(crate) entries: Vec<(String, u32)>,
    /// The kernel's BTF, when it isn't where the kernel puts it
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/sys/kernel/btf/vmlinux",
        env = "NUMAWATCH_BTF",
        hide = true
    )]
    pub(crate) btf: PathBuf,
}

impl Probes {
    /// How to attach.
    ///
    /// # Errors
    /// If two signals are forced to what can't be together.
    pub(crate) fn options(&self) -> anyhow::Result<attach::Options> {
        let forced: forced::Forced = self.mechanisms.iter().copied().collect();
        if let Some((signal, _)) = self
            .mechanisms
            .iter()
            .find(|(signal, m)| forced[signal] != *m)
        {
            anyhow::bail!(
                "--mechanism: {} is forced twice, to different rungs",
                signal.as_str()
            );
        }
        if let Some(why) = forced::clash(&forced) {
            anyhow::bail!("--mechanism: {why}");
        }
        Ok(attach::Options {
            btf: self.btf.clone(),
            forced,
            broken: self.broken.iter().copied().collect(),
            entries: self.entries.iter().cloned().collect(),
        })
    }
}

impl Watch {
    /// Whom to watch.
    ///
    /// # Errors
    /// If the expression is none.
    pub(crate) fn selection(&self) -> anyhow::Result<Selection> {
        Ok(Selection::new(
            self.pids.clone(),
            self.pattern.as_deref(),
            self.all,
        )?)
    }

    /// What is looked for, in words.
    pub(crate) fn words(&self) -> String {
        let mut words = Vec::new();
        if !self.pids.is_empty() {
            let pids: Vec<_> = self.pids.iter().map(u32::to_string).collect();
            words.push(format!("pid {} and children", pids.join(", ")));
        }
        if let Some(pattern) = &self.pattern {
            words.push(format!("command lines that match {pattern}"));
        }
        if self.all {
            words.push("every process".to_owned());
        }
        if words.is_empty() {
            words.push("inference engines, and whoever has a GPU device open".to_owned());
        }
        words.join(", ")
    }
}

/// Options that a variable can set instead.
const VARIABLES: [(&str, &str); 4] = [
    ("--interval", "NUMAWATCH_INTERVAL"),
    ("--log-file", "NUMAWATCH_LOG_FILE"),
    ("--btf", "NUMAWATCH_BTF"),
    ("--nvml", "NUMAWATCH_NVML"),
];

/// Reads the command line. An empty variable is unset, as OpenTelemetry has it.
///
/// # Errors
/// The parser's, for help too; [`one_line`] tells it.
pub(crate) fn parse() -> Result<Cli, clap::Error> {
    for (_, name) in VARIABLES {
        if std::env::var_os(name).is_some_and(|value| value.is_empty()) {
            // SAFETY: no other thread has been started yet.
            unsafe { std::env::remove_var(name) };
        }
    }
    Cli::try_parse()
}

/// What is wrong with the command line, in one line.
pub(crate) fn one_line(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "no subcommand; write tui, snapshot, check, agent, topo, launch or doctor (see numawatch --help)"
            .to_owned();
    }
    let text = error.to_string();
    let what: Vec<&str> = text
        .lines()
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let what = what.join(" ");
    let what = what.strip_prefix("error: ").unwrap_or(&what);
    let from = VARIABLES
        .iter()
        .find(|(option, name)| {
            let value = std::env::var(name).unwrap_or_default();
            what.contains(option) && what.contains(&format!("'{value}'"))
        })
        .map_or_else(String::new, |(_, name)| format!("from {name}; "));
    format!(
        "{what} ({from}see {} --help)",
        subcommand(std::env::args().nth(1))
    )
}

/// Whose help has the options.
fn subcommand(first: Option<String>) -> String {
    let command = Cli::command();
    let known = first.filter(|first| command.find_subcommand(first).is_some());
    known.map_or_else(
        || "numawatch".to_owned(),
        |name| format!("numawatch {name}"),
    )
}

#[cfg(test)]
mod tests;
