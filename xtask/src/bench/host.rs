//! On this machine: numawatch's programs beside bpftrace's, and how much slower a load gets.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::figures::{self, Spread};
use super::gauge::{self, Measured};
use super::table::{Line, Unit};
use crate::{apt, command, say, workspace};

/// The programs that take part.
pub(crate) struct Tools {
    pub(crate) gauge: PathBuf,
    pub(crate) numawatch: PathBuf,
    pub(crate) empty: PathBuf,
    pub(crate) bpftrace: PathBuf,
}

/// The places of an empty program in a fault, and of the tracepoint rung's programs.
const FAULT_PLACES: [&str; 5] = [
    "tp_btf:page_fault_user",
    "tp_btf:page_fault_kernel",
    "tp_btf:mm_page_alloc",
    "tp_btf:rss_stat",
    "tp_btf:sched_switch",
];

/// Programs that a first touch passes through, with the category of their tracepoint.
const FIRST_TOUCH: [(&str, &str); 3] = [
    ("exceptions", "page_fault_user"),
    ("kmem", "mm_page_alloc"),
    ("kmem", "rss_stat"),
];

/// What a host without fentry stands on, whatever this one has.
const TRACEPOINTS: [&str; 6] = [
    "--mechanism",
    "first_touch=tp_btf",
    "--mechanism",
    "map=tp_btf",
    "--mechanism",
    "migration=tp_btf",
];

/// Counts of the same must be this near, in percent.
const AGREE: f64 = 1.0;

/// How many times more turns a difference of two loads gets: on a virtual machine each is off by several percent.
const NOISY: u32 = 3;

/// Takes all figures of this machine, over so many turns.
pub(crate) fn measure(tools: &Tools, turns: u32) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    say::step("A context switch, both tasks watched", || {
        switch(tools, turns, "load", ("watched", 0.3), &mut lines)
    })?;
    say::step("A context switch, neither watched", || {
        switch(tools, turns, "other", ("not watched", 0.2), &mut lines)
    })?;
    say::step("A first touch, by the tracepoint rung", || {
        first_touch(tools, turns, &mut lines)
    })?;
    say::step("The ping-pong with and without numawatch", || {
        slower_ping_pong(tools, turns * NOISY, &mut lines)
    })?;
    say::step(
        "The fault loop with numawatch and with empty programs",
        || slower_faults(tools, turns * NOISY, &mut lines),
    )?;
    Ok(lines)
}

fn switch(
    tools: &Tools,
    turns: u32,
    watch: &str,
    (who, target): (&str, f64),
    lines: &mut Vec<Line>,
) -> Result<()> {
    let mut gauge = tools.measure("ping-pong", turns);
    tools.watch(&mut gauge, watch);
    gauge.args(TRACEPOINTS);
    tools.beside(&mut gauge, "sched.bt");
    tools.empty(
        &mut gauge,
        &["tp_btf:sched_switch", "tracepoint:sched/sched_switch"],
    );
    let measured = gauge::run(&mut gauge)?;
    if watch == "load" {
        agree(&measured, "on-CPU time")?;
    }
    let own = own_cost(&measured, "sched_switch")?;
    let theirs = bpftrace_cost(&measured, "sched", "sched_switch")?;
    against_bpftrace(
        lines,
        &format!("sched_switch, {who}"),
        &own,
        &theirs,
        target,
    )
}

/// Three lines: our cost of `what`, bpftrace's, and the ratio, of which at most `target` is wanted.
fn against_bpftrace(
    lines: &mut Vec<Line>,
    what: &str,
    own: &[f64],
    theirs: &[f64],
    target: f64,
) -> Result<()> {
    push(lines, what, own, Unit::Nanoseconds, None)?;
    push(
        lines,
        "the same by bpftrace",
        theirs,
        Unit::Nanoseconds,
        None,
    )?;
    let ratios = figures::ratios(own, theirs);
    push(lines, "ratio", &ratios, Unit::Times, Some(target))
}

fn first_touch(tools: &Tools, turns: u32, lines: &mut Vec<Line>) -> Result<()> {
    let mut gauge = tools.measure("faults", turns);
    tools.watch(&mut gauge, "load");
    gauge.args(TRACEPOINTS);
    tools.beside(&mut gauge, "first_touch.bt");
    let places: Vec<String> = FIRST_TOUCH
        .iter()
        .flat_map(|(category, name)| {
            [
                format!("tp_btf:{name}"),
                format!("tracepoint:{category}/{name}"),
            ]
        })
        .collect();
    let places: Vec<&str> = places.iter().map(String::as_str).collect();
    tools.empty(&mut gauge, &places);
    let measured = gauge::run(&mut gauge)?;
    agree(&measured, "first touches")?;
    let (mut own, mut theirs) = (Vec::new(), Vec::new());
    for (category, name) in FIRST_TOUCH {
        own.push(own_cost(&measured, name)?);
        theirs.push(bpftrace_cost(&measured, category, name)?);
        let what = format!("{name}, watched");
        let cost = own.last().context("just pushed")?;
        push(lines, &what, cost, Unit::Nanoseconds, None)?;
    }
    let (own, theirs) = (figures::sums(&own), figures::sums(&theirs));
    against_bpftrace(lines, "a first touch, these three", &own, &theirs, 0.3)
}

fn slower_ping_pong(tools: &Tools, turns: u32, lines: &mut Vec<Line>) -> Result<()> {
    let against = |with: &dyn Fn(&mut Command)| {
        let mut gauge = tools.measure("ping-pong", turns);
        with(&mut gauge);
        gauge::run(gauge.arg("--alternate"))
    };
    let watched = |who: &'static str| {
        against(&|gauge| {
            tools.watch(gauge, who);
            gauge.args(TRACEPOINTS);
        })
    };
    let (both, neither) = (watched("load")?, watched("other")?);
    let empty = against(&|gauge| tools.empty(gauge, &["tp_btf:sched_switch"]))?;
    let bare = [&both, &neither, &empty].map(Measured::each_unit_bare);
    push(
        lines,
        "a context switch",
        &bare.concat(),
        Unit::Nanoseconds,
        None,
    )?;
    for (what, measured, target) in [
        ("both watched", both, Some(8.0)),
        ("neither watched", neither, Some(4.0)),
        ("an empty program alone", empty, None),
    ] {
        let more = percent_more(&measured.each_unit(), &measured.each_unit_bare());
        let what = format!("ping-pong slower, {what}");
        push(lines, &what, &more, Unit::Percent, target)?;
    }
    Ok(())
}

/// One turn of each kind in every round, so that all of them meet the same disturbance.
fn slower_faults(tools: &Tools, turns: u32, lines: &mut Vec<Line>) -> Result<()> {
    let (mut bare, mut empty, mut watched) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..turns {
        bare.extend(tools.one_turn("faults", |_| ())?);
        empty.extend(tools.one_turn("faults", |gauge| tools.empty(gauge, &FAULT_PLACES))?);
        watched.extend(tools.one_turn("faults", |gauge| {
            tools.watch(gauge, "load");
            gauge.args(TRACEPOINTS);
        })?);
    }
    push(
        lines,
        "a first touch, nobody watching",
        &bare,
        Unit::Nanoseconds,
        None,
    )?;
    push(
        lines,
        "the same with empty programs",
        &empty,
        Unit::Nanoseconds,
        None,
    )?;
    let more = percent_more(&watched, &empty);
    push(
        lines,
        "fault loop slower than with empty programs",
        &more,
        Unit::Percent,
        Some(15.0),
    )
}

impl Tools {
    /// Finds or builds them, but for numawatch's own.
    pub(crate) fn bpftrace() -> Result<PathBuf> {
        if let Some(found) = command::find("bpftrace") {
            return Ok(found);
        }
        let root = apt::provide(&["bpftrace"], "what numawatch is measured beside")?;
        Ok(root.join("usr/bin/bpftrace"))
    }

    fn measure(&self, load: &str, turns: u32) -> Command {
        let mut command = Command::new(&self.gauge);
        command.args(["measure", "--load", load, "--units"]);
        // Half a second a turn.
        command.arg(if load == "ping-pong" {
            "300000"
        } else {
            "307200"
        });
        command.args(["--turns", &turns.to_string()]);
        command
    }

    fn one_turn(&self, load: &str, with: impl Fn(&mut Command)) -> Result<Vec<f64>> {
        let mut gauge = self.measure(load, 1);
        with(&mut gauge);
        Ok(gauge::run(&mut gauge)?.each_unit())
    }

    fn watch(&self, gauge: &mut Command, watch: &str) {
        gauge.arg("--numawatch").arg(&self.numawatch);
        gauge.args(["--watch", watch]);
    }

    fn beside(&self, gauge: &mut Command, script: &str) {
        let scripts: &Path = &workspace::root().join("xtask/src/bench");
        gauge.arg("--statistics");
        gauge.arg("--bpftrace").arg(&self.bpftrace);
        gauge.arg("--script").arg(scripts.join(script));
    }

    fn empty(&self, gauge: &mut Command, places: &[&str]) {
        gauge.arg("--object").arg(&self.empty);
        for place in places {
            gauge.args(["--empty", place]);
        }
    }
}

fn own_cost(measured: &Measured, name: &str) -> Result<Vec<f64>> {
    let empty = measured.program("empty", &format!("tp_btf:{name}"))?;
    Ok(figures::above_empty(
        measured.program("numawatch", name)?,
        empty,
    ))
}

fn bpftrace_cost(measured: &Measured, category: &str, name: &str) -> Result<Vec<f64>> {
    let empty = measured.program("empty", &format!("tracepoint:{category}/{name}"))?;
    Ok(figures::above_empty(
        measured.program("bpftrace", name)?,
        empty,
    ))
}

fn agree(measured: &Measured, what: &str) -> Result<()> {
    let (own, theirs) = (measured.count("numawatch")?, measured.count("bpftrace")?);
    let difference = figures::difference_percent(own, theirs);
    say::note(&format!(
        "{what}: numawatch counted {own}, bpftrace {theirs}: {difference:.2} % apart"
    ));
    if difference > AGREE || own == 0 {
        bail!("numawatch and bpftrace disagree on {what}: {own} and {theirs}");
    }
    Ok(())
}

fn percent_more(with: &[f64], without: &[f64]) -> Vec<f64> {
    let ratios = figures::ratios(with, without);
    ratios.iter().map(|ratio| (ratio - 1.0) * 100.0).collect()
}

fn push(
    lines: &mut Vec<Line>,
    what: &str,
    turns: &[f64],
    unit: Unit,
    target: Option<f64>,
) -> Result<()> {
    let spread = Spread::of(turns).with_context(|| format!("{what}: no turn was measured"))?;
    lines.push(Line {
        what: what.to_owned(),
        spread,
        unit,
        target,
    });
    Ok(())
}
