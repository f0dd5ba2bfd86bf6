//! Empty programs at given places.

use anyhow::{Context as _, Result, bail};
use aya::programs::{Program, ProgramError};
use aya::{Btf, Ebpf};
use std::path::Path;
use std::str::FromStr;

/// Where an empty program goes: `fentry:do_swap_page`, `tracepoint:sched/sched_switch`.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    kind: String,
    target: String,
}

impl FromStr for Place {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (kind, target) = text
            .split_once(':')
            .context("say it like fentry:do_swap_page")?;
        Ok(Self {
            kind: kind.to_owned(),
            target: target.to_owned(),
        })
    }
}

/// An empty program, attached while this lives.
pub(crate) struct Empty {
    /// Its place, as it was asked for.
    pub(crate) place: String,
    /// Its program.
    pub(crate) id: u32,
    _object: Ebpf,
}

/// Attaches one. A program has one target, so each place has a copy of its own.
pub(crate) fn attach(object: &Path, place: &Place) -> Result<Empty> {
    let Place { kind, target } = place;
    let place = format!("{kind}:{target}");
    let mut ebpf = Ebpf::load_file(object).with_context(|| object.display().to_string())?;
    let name = format!("empty_{kind}");
    let program = ebpf
        .program_mut(&name)
        .with_context(|| format!("the object has no program {name}"))?;
    let id = load(program, target).with_context(|| format!("an empty program at {place}"))?;
    Ok(Empty {
        place,
        id,
        _object: ebpf,
    })
}

fn load(program: &mut Program, target: &str) -> Result<u32> {
    let btf = || Btf::from_sys_fs();
    match program {
        Program::BtfTracePoint(p) => {
            p.load(target, &btf()?)?;
            p.attach()?;
        }
        Program::FEntry(p) => {
            p.load(target, &btf()?)?;
            p.attach()?;
        }
        Program::FExit(p) => {
            p.load(target, &btf()?)?;
            p.attach()?;
        }
        Program::RawTracePoint(p) => {
            p.load()?;
            p.attach(target)?;
        }
        Program::KProbe(p) => {
            p.load()?;
            p.attach(target, 0)?;
        }
        Program::TracePoint(p) => {
            let (category, name) = target
                .split_once('/')
                .context("a tracepoint is category/name")?;
            p.load()?;
            p.attach(category, name)?;
        }
        _ => bail!(ProgramError::UnexpectedProgramType),
    }
    Ok(info(program)?)
}

fn info(program: &Program) -> Result<u32, ProgramError> {
    program.info().map(|info| info.id())
}
