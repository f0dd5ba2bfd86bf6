//! Resident pages by stratum: what their mappings hold and what they are; how many, and a bounded sample of their addresses.

use crate::host::maps::Mapped;
use crate::host::move_pages::nodes_of;
use crate::host::pagemap::{PAGE, Resident};
use model::even_sample::EvenSample;
use model::mapping::{Content, Memory, MemoryClass};
use model::process::{ByNode, MemoryKind, WEIGHTS_FILES};
use model::random::Random;
use model::sampled::Sampled;
use model::sampling::{Stratum, allocate};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ops::Range;

/// The most pages that are asked for of a process, and the most addresses that are kept of a stratum. Of a large one half of
/// it is kept at least, for 1.5 percentage points at worst in 95 of 100, and far less where nodes lie in blocks.
const QUERIES: usize = 8_192;

/// They are asked for in so many rounds, each of every stratum, so that a refresh that must stop early has asked all alike, and
/// overshoots by about 256 questions.
const ROUNDS: usize = 32;

/// Once all have been asked, so many rounds are asked again each refresh, in turn: the answers are 4 refreshes old at most.
const AGAIN: usize = 8;

/// What a stratum's pages have in common: their mappings' class, their kind, pages a question, and of weights the file, as a
/// place in [`Strata::files`].
type Key = (MemoryClass, MemoryKind, u64, Option<usize>);

/// See the module's doc.
#[derive(Debug, Default)]
pub(super) struct Strata {
    by_key: BTreeMap<Key, Pages>,
    /// Files of weights, the first [`WEIGHTS_FILES`] of them.
    files: Vec<String>,
    /// The round that is asked next.
    next: usize,
    /// Rounds that have answers.
    answered: usize,
}

/// One stratum's.
#[derive(Debug)]
struct Pages {
    sample: EvenSample,
    /// How many of the sample are asked for, from its start.
    share: usize,
    answers: [Answers; ROUNDS],
}

/// One round's.
#[derive(Clone, Debug, Default)]
struct Answers {
    asked: u64,
    by_node: ByNode,
}

impl Pages {
    fn new() -> Self {
        Self {
            sample: EvenSample::new(QUERIES),
            share: 0,
            answers: Default::default(),
        }
    }

    /// The addresses of a round.
    fn round(&self, round: usize) -> &[u64] {
        // Rounded up, so that the first round has a page of each.
        let upto = |round: usize| (self.share * round).div_ceil(ROUNDS);
        let drawn = self.sample.drawn();
        drawn.get(upto(round)..upto(round + 1)).unwrap_or_default()
    }
}

impl Strata {
    /// Adds resident pages, which are divided among the mappings that they lie in. Both ascend.
    pub(super) fn add(
        &mut self,
        mappings: &VecDeque<Mapped>,
        found: &[Resident],
        random: &mut Random,
    ) {
        let mut mappings = mappings.iter().peekable();
        for resident in found {
            // One run may reach over several mappings, and one mapping hold several runs.
            while mappings
                .next_if(|m| m.range.end <= resident.range.start)
                .is_some()
            {}
            let mut rest = mappings.clone();
            while let Some(mapped) = rest.next_if(|m| m.range.start < resident.range.end) {
                let start = resident.range.start.max(mapped.range.start);
                let end = resident.range.end.min(mapped.range.end);
                if let Some(content) = mapped.content {
                    let file = mapped.file.as_deref().and_then(|f| self.place_of(f));
                    self.offer(content, file, start..end, resident.of_file, random);
                }
            }
        }
    }

    /// All resident pages that were added, bytes.
    pub(super) fn resident_bytes(&self) -> u64 {
        let bytes = |((_, _, pages, _), of): (&Key, &Pages)| of.sample.seen() * pages * PAGE;
        self.by_key.iter().map(bytes).sum()
    }

    /// A file's place among those that are told apart; `None` when they are too many.
    fn place_of(&mut self, file: &str) -> Option<usize> {
        let known = self.files.iter().position(|f| f == file);
        if known.is_some() || self.files.len() >= WEIGHTS_FILES {
            return known;
        }
        self.files.push(file.to_owned());
        Some(self.files.len() - 1)
    }

    fn offer(
        &mut self,
        content: Content,
        file: Option<usize>,
        range: Range<u64>,
        of_file: bool,
        random: &mut Random,
    ) {
        let step = match content.memory {
            Memory::Hugetlb { page_bytes } => page_bytes.max(PAGE),
            _ => PAGE,
        };
        // A huge page is counted where it begins, however the run was cut.
        let first = range.start.next_multiple_of(step);
        let count = range.end.saturating_sub(first).div_ceil(step);
        if count > 0 {
            let kind = content.memory.kind(of_file);
            let key = (content.class, kind, step / PAGE, file);
            let pages = self.by_key.entry(key).or_insert_with(Pages::new);
            pages.sample.offer(first, step, count, random);
        }
    }

    /// Draws the pages that are asked for, and forgets answers of others.
    pub(super) fn draw(&mut self, random: &mut Random) {
        let shares = self.shares();
        for (pages, share) in self.by_key.values_mut().zip(shares) {
            pages.share = usize::try_from(share).unwrap_or(0);
            pages.sample.draw(pages.share, random);
            pages.answers = Default::default();
        }
        (self.next, self.answered) = (0, 0);
    }

    /// Asks where pages lie: the rounds that have no answers yet, or some of them again, while `may_go_on`, but one at least.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn ask(&mut self, pid: u32, may_go_on: &dyn Fn() -> bool) -> io::Result<()> {
        let missing = ROUNDS - self.answered;
        let rounds = if missing > 0 { missing } else { AGAIN };
        for _ in 0..rounds {
            self.ask_round(pid, self.next)?;
            self.next = (self.next + 1) % ROUNDS;
            self.answered = (self.answered + 1).min(ROUNDS);
            if !may_go_on() {
                break;
            }
        }
        Ok(())
    }

    fn ask_round(&mut self, pid: u32, round: usize) -> io::Result<()> {
        let each = self.by_key.values().enumerate();
        let questions =
            each.flat_map(|(at, pages)| pages.round(round).iter().map(move |a| (*a, at)));
        let mut questions: Vec<(u64, usize)> = questions.collect();
        // Neighbours share page tables.
        questions.sort_unstable();
        let addresses: Vec<u64> = questions.iter().map(|(address, _)| *address).collect();
        let nodes = nodes_of(pid, &addresses)?;
        let mut answers = vec![Answers::default(); self.by_key.len()];
        for ((_, at), node) in questions.iter().zip(nodes) {
            if let Some(answers) = answers.get_mut(*at) {
                answers.asked += 1;
                if let Ok(node) = u32::try_from(node) {
                    *answers.by_node.entry(node).or_default() += 1;
                }
            }
        }
        for (pages, answers) in self.by_key.values_mut().zip(answers) {
            if let Some(place) = pages.answers.get_mut(round) {
                *place = answers;
            }
        }
        Ok(())
    }

    /// Of each stratum some pages that are asked for, about `most` in all, and how many each stands for. hugetlb's are left
    /// out: nobody counts them as locked.
    pub(super) fn some(&self, most: usize) -> Vec<(f64, &[u64])> {
        let strata = self.by_key.values();
        let strata = strata.zip(self.by_key.keys().map(|(_, kind, ..)| *kind));
        let strata = strata.filter(|(_, kind)| *kind != MemoryKind::Huge);
        strata
            .map(|(pages, _)| {
                let count = (pages.share * most).div_ceil(QUERIES).min(pages.share);
                let some = pages.sample.drawn().get(..count).unwrap_or_default();
                (pages.sample.seen() as f64 / some.len().max(1) as f64, some)
            })
            .collect()
    }

    /// What the newest answers say of each stratum.
    pub(super) fn sampled(&self) -> Vec<Sampled> {
        let sampled = |((class, kind, unit, file), pages): (&Key, &Pages)| {
            let mut all = Answers::default();
            for round in &pages.answers {
                all.asked += round.asked;
                for (node, count) in &round.by_node {
                    *all.by_node.entry(*node).or_default() += count;
                }
            }
            Sampled {
                class: *class,
                kind: *kind,
                file: file.and_then(|place| self.files.get(place).cloned()),
                stratum: Stratum {
                    pages: pages.sample.seen() * unit,
                    unit: *unit,
                    answers: all.by_node,
                },
                asked: all.asked,
            }
        };
        self.by_key.iter().map(sampled).collect()
    }

    /// How many of each stratum to ask for. Huge pages come first: few questions tell much.
    fn shares(&self) -> Vec<u64> {
        let held = |pages: &Pages| pages.sample.len() as u64;
        let mut left = QUERIES as u64;
        let mut left_to_huge = left / 2;
        let mut huge_shares = BTreeMap::new();
        for (key, pages) in self.by_key.iter().filter(|((_, _, unit, _), _)| *unit > 1) {
            let share = held(pages).min(left_to_huge);
            left -= share;
            left_to_huge -= share;
            huge_shares.insert(*key, share);
        }
        let others: Vec<u64> = self
            .by_key
            .iter()
            .map(|(key, pages)| {
                let is_huge = huge_shares.contains_key(key);
                if is_huge { 0 } else { pages.sample.seen() }
            })
            .collect();
        let shares = allocate(&others, left);
        let share = |((key, pages), share): ((&Key, &Pages), u64)| {
            let share = huge_shares.get(key).copied().unwrap_or(share);
            share.min(held(pages))
        };
        self.by_key.iter().zip(shares).map(share).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped(start: u64, end: u64, class: MemoryClass, memory: Memory) -> Mapped {
        Mapped {
            range: start * PAGE..end * PAGE,
            content: Some(Content { class, memory }),
            file: None,
        }
    }

    fn resident(start: u64, end: u64, of_file: bool) -> Resident {
        Resident {
            range: start * PAGE..end * PAGE,
            of_file,
        }
    }

    fn seen(strata: &Strata) -> Vec<(Key, u64)> {
        let seen = strata.by_key.iter();
        seen.map(|(key, pages)| (*key, pages.sample.seen()))
            .collect()
    }

    #[test]
    fn runs_are_cut_at_the_borders_of_mappings() {
        let mappings = VecDeque::from([
            mapped(10, 20, MemoryClass::Heap, Memory::Anonymous),
            mapped(20, 30, MemoryClass::Weights, Memory::File),
            mapped(40, 50, MemoryClass::Anonymous, Memory::Anonymous),
        ]);
        let found = [
            resident(12, 25, false),
            resident(25, 28, true),
            resident(45, 60, false),
        ];
        let mut strata = Strata::default();
        strata.add(&mappings, &found, &mut Random::new(1));
        assert_eq!(
            seen(&strata),
            [
                ((MemoryClass::Weights, MemoryKind::Anonymous, 1, None), 5),
                ((MemoryClass::Weights, MemoryKind::File, 1, None), 3),
                ((MemoryClass::Heap, MemoryKind::Anonymous, 1, None), 8),
                ((MemoryClass::Anonymous, MemoryKind::Anonymous, 1, None), 5),
            ]
        );
    }

    #[test]
    fn weights_are_told_apart_by_file_as_many_as_there_is_room_for() {
        let file = |number: u64| {
            let start = number * 10;
            let mut shard = mapped(start, start + 10, MemoryClass::Weights, Memory::File);
            // Two mappings a file.
            shard.file = Some(format!("/m/{}.gguf", number / 2));
            shard
        };
        let mappings: VecDeque<Mapped> = (0..36).map(file).collect();
        let mut strata = Strata::default();
        strata.add(&mappings, &[resident(0, 360, true)], &mut Random::new(1));
        let told = strata.sampled();
        let pages = |file: Option<&str>| {
            let of = told.iter().find(|s| s.file.as_deref() == file);
            of.map(|s| s.stratum.pages)
        };
        assert_eq!(told.len(), WEIGHTS_FILES + 1);
        assert_eq!(pages(Some("/m/0.gguf")), Some(20));
        assert_eq!(pages(Some("/m/15.gguf")), Some(20));
        assert_eq!(pages(None), Some(40), "of the two that are too many");
    }

    #[test]
    fn what_lies_in_no_mapping_or_in_one_without_memory_is_left_out() {
        let mut device = mapped(10, 20, MemoryClass::File, Memory::File);
        device.content = None;
        let mut strata = Strata::default();
        let found = [resident(5, 8, false), resident(12, 15, true)];
        strata.add(&VecDeque::from([device]), &found, &mut Random::new(1));
        assert!(seen(&strata).is_empty());
    }

    #[test]
    fn a_huge_page_counts_once_however_its_run_is_cut() {
        let memory = Memory::Hugetlb {
            page_bytes: 512 * PAGE,
        };
        let mappings = VecDeque::from([mapped(512, 2_560, MemoryClass::Huge, memory)]);
        let found = [
            resident(512, 700, false),
            resident(700, 1_536, false),
            resident(1_536, 1_600, true),
        ];
        let mut strata = Strata::default();
        strata.add(&mappings, &found, &mut Random::new(1));
        assert_eq!(
            seen(&strata),
            [((MemoryClass::Huge, MemoryKind::Huge, 512, None), 3)]
        );
    }

    #[test]
    fn the_first_round_asks_of_each_and_all_rounds_ask_all() {
        for share in [1_usize, 31, 32, 33, 1_000] {
            let mut random = Random::new(1);
            let mut pages = Pages::new();
            pages.sample.offer(0, PAGE, share as u64, &mut random);
            pages.share = share;
            pages.sample.draw(pages.share, &mut random);
            let asked: Vec<usize> = (0..ROUNDS).map(|round| pages.round(round).len()).collect();
            assert!(asked[0] > 0, "{share}: {asked:?}");
            assert_eq!(asked.iter().sum::<usize>(), share);
        }
    }

    #[test]
    fn no_refresh_asks_for_more_than_its_budget() {
        let huge = Memory::Hugetlb {
            page_bytes: 512 * PAGE,
        };
        let million = 1_000_000;
        let mappings = VecDeque::from([
            mapped(0, million, MemoryClass::Heap, Memory::Anonymous),
            mapped(2 * million, 3 * million, MemoryClass::File, Memory::File),
            mapped(4 * million, 8 * million, MemoryClass::Huge, huge),
        ]);
        let found = [
            resident(0, million, false),
            resident(2 * million, 3 * million, true),
            resident(4 * million, 8 * million, true),
        ];
        let mut strata = Strata::default();
        strata.add(&mappings, &found, &mut Random::new(1));
        let shares = strata.shares();
        assert!(shares.iter().all(|share| *share > 500), "{shares:?}");
        assert!(shares.iter().sum::<u64>() <= QUERIES as u64, "{shares:?}");
    }
}
