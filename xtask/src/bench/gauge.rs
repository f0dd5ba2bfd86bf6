//! Runs `gauge` (tests/src/bin/gauge), here or in the guest, and reads what it says.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::figures::Runs;
use crate::command;

/// Linux keeps this many bytes of a program's name.
const NAME_BYTES: usize = 15;

/// What one run of `gauge measure` said.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Measured {
    /// CPU time of each turn, in nanoseconds, and its units.
    pub(crate) turns: Vec<(u64, u64)>,
    /// The same of turns without numawatch, before the first and after each.
    bare: Vec<(u64, u64)>,
    /// By owner and name. Two programs of one name and owner are one.
    programs: BTreeMap<(String, String), Vec<Runs>>,
    counts: BTreeMap<String, u64>,
}

impl Measured {
    /// A program's turns.
    pub(crate) fn program(&self, owner: &str, name: &str) -> Result<&[Runs]> {
        // Empty programs are named by their place, which is told in full.
        let kept = name
            .get(..NAME_BYTES)
            .filter(|_| owner != "empty")
            .unwrap_or(name);
        let key = (owner.to_owned(), kept.to_owned());
        let runs = self.programs.get(&key);
        Ok(runs
            .with_context(|| format!("{owner} has no program {name} attached"))?
            .as_slice())
    }

    /// What an owner counted of the load.
    pub(crate) fn count(&self, owner: &str) -> Result<u64> {
        let count = self.counts.get(owner);
        count
            .copied()
            .with_context(|| format!("gauge said no count of {owner}"))
    }

    /// Nanoseconds a unit, turn by turn.
    pub(crate) fn each_unit(&self) -> Vec<f64> {
        each_unit(&self.turns)
    }

    /// The same without numawatch: of each turn the mean of the one before it and the one after it, so that a machine that
    /// gets slower or faster meanwhile is no difference.
    pub(crate) fn each_unit_bare(&self) -> Vec<f64> {
        let bare = each_unit(&self.bare);
        bare.windows(2)
            .map(|two| two.iter().sum::<f64>() / 2.0)
            .collect()
    }
}

fn each_unit(turns: &[(u64, u64)]) -> Vec<f64> {
    turns
        .iter()
        .map(|&(nanoseconds, units)| nanoseconds as f64 / units as f64)
        .collect()
}

/// Runs it.
pub(crate) fn run(command: &mut Command) -> Result<Measured> {
    parse(&command::output(command)?)
}

fn parse(text: &str) -> Result<Measured> {
    let mut measured = Measured::default();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        read_line(&words, &mut measured)
            .with_context(|| format!("gauge said what is not understood: {line}"))?;
    }
    Ok(measured)
}

fn read_line(words: &[&str], measured: &mut Measured) -> Result<()> {
    match words {
        ["turn", _, nanoseconds, units] => {
            measured.turns.push((nanoseconds.parse()?, units.parse()?));
        }
        ["bare", _, nanoseconds, units] => {
            measured.bare.push((nanoseconds.parse()?, units.parse()?));
        }
        ["program", turn, owner, name, nanoseconds, runs] => {
            let turn: usize = turn.parse()?;
            let key = ((*owner).to_owned(), (*name).to_owned());
            let turns = measured.programs.entry(key).or_default();
            let new = Runs {
                nanoseconds: nanoseconds.parse()?,
                runs: runs.parse()?,
            };
            match turns.get_mut(turn) {
                Some(there) => {
                    there.nanoseconds += new.nanoseconds;
                    there.runs += new.runs;
                }
                None => turns.push(new),
            }
        }
        ["count", owner, n] => {
            measured.counts.insert((*owner).to_owned(), n.parse()?);
        }
        _ => bail!("no such line"),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_turns_programs_and_counts() {
        let text = "turn 0 500 10\nprogram 0 numawatch page_fault_kern 40 2\nprogram 0 empty tp_btf:page_fault_kernel 6 2\n\
            turn 1 700 10\nprogram 1 numawatch page_fault_kern 60 2\nprogram 1 numawatch page_fault_kern 1 1\ncount bpftrace 17\n";
        let measured = parse(text).unwrap();
        assert_eq!(measured.each_unit(), [50.0, 70.0]);
        let turns = measured.program("numawatch", "page_fault_kernel").unwrap();
        assert_eq!((turns[0].nanoseconds, turns[0].runs), (40, 2));
        assert_eq!((turns[1].nanoseconds, turns[1].runs), (61, 3));
        assert!(
            measured
                .program("empty", "tp_btf:page_fault_kernel")
                .is_ok()
        );
        assert_eq!(measured.count("bpftrace").unwrap(), 17);
        assert!(measured.count("numawatch").is_err());
    }

    #[test]
    fn a_turn_is_held_against_those_without_numawatch_around_it() {
        let text = "bare 0 100 10\nturn 0 140 10\nbare 1 120 10\nturn 1 150 10\nbare 2 140 10\n";
        let measured = parse(text).unwrap();
        assert_eq!(measured.each_unit(), [14.0, 15.0]);
        assert_eq!(measured.each_unit_bare(), [11.0, 13.0]);
    }

    #[test]
    fn anything_else_is_refused() {
        assert!(parse("turn 0 much 10\n").is_err());
        assert!(parse("hello\n").is_err());
    }
}
