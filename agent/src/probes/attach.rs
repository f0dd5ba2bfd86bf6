//! Attaches each signal's best rung that the kernel accepts.

mod load;
mod words;

pub(crate) use load::Host;
use load::{entries, load};
use words::{one_line, reason};

use super::forced::{self, Forced};
use super::ladder::{self, Kind, Refusal};
use super::layout::{Layout, LayoutError};
use super::rungs::{LIFECYCLE, Rung, rungs, target_names};
use aya::maps::Array;
use aya::programs::{Program, ProgramError};
use aya::{Btf, Ebpf};
use model::signal::{Signal, SignalName, SignalState};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// What to attach, and from which kernel description.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// The kernel's BTF.
    pub(crate) btf: PathBuf,
    /// Signals that may stand on one mechanism only.
    pub(crate) forced: Forced,
    /// Signals whose programs are taken away after they attached, so that the self-test has something to find.
    pub(crate) broken: BTreeSet<SignalName>,
    /// Entries of maps by name, other than the machine's size would have; so that tests find one full.
    pub(crate) entries: BTreeMap<String, u32>,
}

/// Nobody pays for a tracepoint at every page allocation where no driver can be meant.
const NO_DEVICE: &str = "no driver of a GPU, an accelerator or an RDMA device on this host";

impl Default for Options {
    fn default() -> Self {
        Self {
            btf: PathBuf::from("/sys/kernel/btf/vmlinux"),
            forced: Forced::new(),
            broken: BTreeSet::new(),
            entries: BTreeMap::new(),
        }
    }
}

/// Programs and links live as long as this does; the kernel removes them when the process ends in whatever way.
pub(crate) struct Attached {
    /// The loaded object.
    pub(crate) ebpf: Ebpf,
    /// Every signal that has probes, in order.
    pub(crate) signals: Vec<Signal>,
    /// Why children are not followed; `None` when they are.
    pub(crate) lifecycle: Option<String>,
    /// The maps of rows by name, and their entries.
    pub(crate) entries: Vec<(&'static str, u32)>,
}

/// Why nothing can be attached at all; one line: what, why, what to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AttachError {
    /// The kernel's layout isn't known.
    #[error("{0}; without it no probe can be attached")]
    Layout(LayoutError),
    /// The kernel's BTF isn't usable for loading.
    #[error("kernel BTF is not usable: {0}")]
    Btf(String),
    /// The kernel refuses to load anything.
    #[error(
        "the kernel refuses eBPF: {0}; run as root, or with CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE"
    )]
    Refused(String),
    /// The object and the kernel don't fit.
    #[error("the kernel side does not load: {0}")]
    Load(String),
}

/// Loads the object and attaches what this kernel accepts. Takes about 0.5 s.
pub(crate) fn attach(host: &Host<'_>, options: &Options) -> Result<Attached, AttachError> {
    let names = target_names().collect();
    let layout = Layout::read(&options.btf, &names).map_err(AttachError::Layout)?;
    let btf = Btf::parse_file(&options.btf, aya::Endianness::default())
        .map_err(|error| AttachError::Btf(one_line(&error)))?;
    let entries = entries(host.bounds, &options.entries);
    let ebpf = load(host, &entries, &layout, &btf)?;
    let mut attacher = Attacher {
        ebpf,
        layout: &layout,
        btf: &btf,
        attached: BTreeSet::new(),
    };
    let lifecycle = attacher.first(LIFECYCLE).err();
    let signals = SignalName::ALL
        .into_iter()
        .filter(|name| !rungs(*name).is_empty())
        .map(|name| {
            if name == SignalName::DriverAlloc && host.device_majors.is_empty() {
                return Signal::unavailable(name, NO_DEVICE);
            }
            attacher.signal(name, &options.forced)
        })
        .collect::<Vec<_>>();
    for name in &options.broken {
        attacher.spoil(*name);
    }
    let mut ebpf = attacher.ebpf;
    allow(&mut ebpf, ladder::may_count(&signals))?;
    Ok(Attached {
        ebpf,
        signals,
        lifecycle,
        entries,
    })
}

/// Tells the second rungs' programs what to count.
fn allow(ebpf: &mut Ebpf, bits: u32) -> Result<(), AttachError> {
    let failed = |error: aya::maps::MapError| AttachError::Load(one_line(&error));
    let map = ebpf
        .map_mut("MAY_COUNT")
        .ok_or_else(|| AttachError::Load("the object has no map MAY_COUNT".to_owned()))?;
    let mut map: Array<_, u32> = Array::try_from(map).map_err(failed)?;
    map.set(0, bits, 0).map_err(failed)
}

struct Attacher<'a> {
    ebpf: Ebpf,
    layout: &'a Layout,
    btf: &'a Btf,
    attached: BTreeSet<&'static str>,
}

impl Attacher<'_> {
    /// The signal on the first rung that stands.
    fn signal(&mut self, name: SignalName, forced: &Forced) -> Signal {
        match self.first(forced::allowed(name, forced)) {
            Ok((rung, stood, refusals)) => standing(name, rung, stood, &refusals),
            // Nobody was asked: it is off, or procfs' matter.
            Err(why) if why.is_empty() => Signal::unavailable(name, forced::off(name)),
            Err(why) => Signal::unavailable(name, why),
        }
    }

    /// The first rung that stands, with what is told of those above it; else why none does.
    fn first(
        &mut self,
        rungs: impl IntoIterator<Item = &'static Rung>,
    ) -> Result<(&'static Rung, Stood, Vec<Refusal>), String> {
        let mut refusals = Vec::new();
        for rung in rungs {
            let before = ladder::refused(rung, self.layout);
            let tried = before.is_none();
            let stood = match before {
                Some(why) => Err(why),
                None => self.stand(rung),
            };
            match stood {
                Ok(stood) => return Ok((rung, stood, refusals)),
                Err(why) => refusals.push(Refusal {
                    mechanism: rung.mechanism,
                    tried,
                    why,
                }),
            }
        }
        Err(ladder::words(&refusals).join("; "))
    }

    /// Attaches all of a rung's programs, or none.
    fn stand(&mut self, rung: &Rung) -> Result<Stood, String> {
        let mut stood = Stood::default();
        let mut new = Vec::new();
        for hook in rung.hooks {
            let (program, kind) = ladder::program(hook, rung.mechanism);
            let attached = ladder::target(hook, self.layout).and_then(|target| {
                if self.hook(program, kind, target)? {
                    new.push(program);
                }
                if !stood.targets.contains(&target) {
                    stood.targets.push(target);
                }
                Ok(())
            });
            match (attached, hook.else_blind) {
                (Ok(()), _) | (Err(_), Some("")) => {}
                (Err(why), Some(blind)) => stood.blind.push(format!("{blind} ({why})")),
                (Err(why), None) => {
                    for program in new {
                        self.detach(program);
                    }
                    return Err(why);
                }
            }
        }
        Ok(stood)
    }

    /// Whether the program is new; signals share programs.
    fn hook(
        &mut self,
        name: &'static str,
        kind: Kind,
        target: &'static str,
    ) -> Result<bool, String> {
        if self.attached.contains(name) {
            return Ok(false);
        }
        let program = self
            .ebpf
            .program_mut(name)
            .ok_or_else(|| format!("the object has no program {name}"))?;
        if let Err(error) = attach_program(program, target, self.btf) {
            // What loaded and found nothing to attach to would stay in the kernel for nothing.
            self.unload(name);
            return Err(reason(kind, target, &error));
        }
        self.attached.insert(name);
        Ok(true)
    }

    /// Takes a signal's programs away while it goes on saying that it is attached.
    fn spoil(&mut self, name: SignalName) {
        let hooks = rungs(name).iter().flat_map(|rung| rung.hooks);
        let programs: Vec<_> = hooks
            .flat_map(|hook| [hook.typed, hook.untyped])
            .filter(|program| self.attached.contains(program))
            .collect();
        for program in programs {
            self.detach(program);
        }
    }

    fn detach(&mut self, name: &'static str) {
        self.attached.remove(name);
        self.unload(name);
    }

    fn unload(&mut self, name: &str) {
        let unloaded = match self.ebpf.program_mut(name) {
            Some(Program::FEntry(p)) => p.unload(),
            Some(Program::FExit(p)) => p.unload(),
            Some(Program::BtfTracePoint(p)) => p.unload(),
            Some(Program::RawTracePoint(p)) => p.unload(),
            Some(Program::KProbe(p)) => p.unload(),
            _ => Ok(()),
        };
        match unloaded {
            Ok(()) | Err(ProgramError::NotLoaded) => {}
            Err(error) => tracing::warn!("program {name} does not unload: {error}"),
        }
    }
}

/// What stands of a rung.
#[derive(Default)]
struct Stood {
    targets: Vec<&'static str>,
    blind: Vec<String>,
}

/// A signal on a rung that stands: what it can't see, and why no better one stands.
fn standing(name: SignalName, rung: &Rung, stood: Stood, refusals: &[Refusal]) -> Signal {
    let mut reasons = stood.blind;
    reasons.extend(rung.blind.map(str::to_owned));
    let degraded = !reasons.is_empty();
    if degraded {
        let better: Vec<_> = refusals
            .iter()
            .filter(|r| r.mechanism != rung.mechanism)
            .cloned()
            .collect();
        reasons.extend(ladder::words(&better));
    }
    Signal {
        name,
        state: if degraded {
            SignalState::Degraded
        } else {
            SignalState::Attached
        },
        mechanism: Some(rung.mechanism),
        target: Some(stood.targets.join(", ")),
        reason: degraded.then(|| reasons.join("; ")),
    }
}

fn attach_program(program: &mut Program, target: &str, btf: &Btf) -> Result<(), ProgramError> {
    match program {
        Program::FEntry(p) => {
            p.load(target, btf)?;
            p.attach().map(drop)
        }
        Program::FExit(p) => {
            p.load(target, btf)?;
            p.attach().map(drop)
        }
        Program::BtfTracePoint(p) => {
            p.load(target, btf)?;
            p.attach().map(drop)
        }
        Program::RawTracePoint(p) => {
            p.load()?;
            p.attach(target).map(drop)
        }
        Program::KProbe(p) => {
            p.load()?;
            p.attach(target, 0).map(drop)
        }
        _ => Err(ProgramError::UnexpectedProgramType),
    }
}
