use super::*;
use crate::even_sample::EvenSample;
use crate::random::Random;
use crate::sampling::allocate;

fn sampled(class: MemoryClass, kind: MemoryKind, pages: u64, answers: &[(NodeId, u64)]) -> Sampled {
    let stratum = Stratum {
        pages,
        unit: 1,
        answers: answers.iter().copied().collect(),
    };
    let asked = stratum.asked();
    Sampled {
        class,
        kind,
        file: None,
        stratum,
        asked,
    }
}

const ANON: MemoryKind = MemoryKind::Anonymous;

#[test]
fn a_sample_is_scaled_to_the_kernels_account() {
    let found = [sampled(
        MemoryClass::Heap,
        ANON,
        18_000,
        &[(0, 300), (1, 100)],
    )];
    let accounted = BTreeMap::from([(ANON, 20_000 * PAGE)]);
    let told = placement(&found, &accounted, &[0, 1, 2]);
    let want = ByNode::from([(0, 15_000 * PAGE), (1, 5_000 * PAGE), (2, 0)]);
    assert_eq!(told.by_node_bytes, Some(want));
    let kinds = told.by_kind.as_ref().unwrap();
    assert_eq!(
        kinds[&ANON],
        ByNode::from([(0, 15_000 * PAGE), (1, 5_000 * PAGE)])
    );
    let classes = told.by_class.as_ref().unwrap();
    assert_eq!(classes[&MemoryClass::Heap], kinds[&ANON]);
    let margins = told.margin_by_node_bytes.as_ref().unwrap();
    assert!(margins[&0] > 500 * PAGE && margins[&0] < 1_500 * PAGE);
    assert!(margins[&2] > 0, "a node without an answer may hold some");
    assert!(told.is_estimate());
}

#[test]
fn what_has_answered_whole_is_counted_and_not_scaled() {
    let found = [sampled(MemoryClass::Heap, ANON, 400, &[(0, 300), (1, 100)])];
    let accounted = BTreeMap::from([(ANON, 450 * PAGE)]);
    let told = placement(&found, &accounted, &[0, 1]);
    let want = ByNode::from([(0, 300 * PAGE), (1, 100 * PAGE)]);
    assert_eq!(told.by_node_bytes, Some(want));
    assert_eq!(
        told.margin_by_node_bytes,
        Some(ByNode::from([(0, 0), (1, 0)]))
    );
    assert!(!told.is_estimate());
}

#[test]
fn what_came_since_the_addresses_were_looked_at_is_uncertain() {
    let found = [sampled(MemoryClass::Heap, ANON, 400, &[(0, 400)])];
    let accounted = BTreeMap::from([(ANON, 100_000 * PAGE)]);
    let told = placement(&found, &accounted, &[0, 1]);
    assert!(told.is_estimate());
    assert!(!told.is_conclusive(0.5), "{told:?}");
}

#[test]
fn what_gives_no_answer_is_uncertain() {
    let silent = Sampled {
        asked: 500,
        ..sampled(MemoryClass::LargeAnonymous, ANON, 95_000, &[])
    };
    let found = [
        sampled(MemoryClass::Heap, ANON, 5_000, &[(0, 5_000)]),
        silent,
    ];
    let accounted = BTreeMap::from([(ANON, 100_000 * PAGE)]);
    let told = placement(&found, &accounted, &[0, 1]);
    assert!(!told.is_conclusive(0.5), "{told:?}");
}

#[test]
fn an_answer_of_all_pages_or_of_a_large_sample_is_conclusive() {
    let all = [sampled(MemoryClass::Heap, ANON, 400, &[(0, 300), (1, 100)])];
    let accounted = BTreeMap::from([(ANON, 400 * PAGE)]);
    let mut told = placement(&all, &accounted, &[0, 1]);
    assert!(told.is_conclusive(0.1));
    told.coverage = Some(0.99);
    assert!(!told.is_conclusive(0.1), "some addresses may hold the rest");
    let many = [sampled(
        MemoryClass::Heap,
        ANON,
        50_000,
        &[(0, 3_000), (1, 1_000)],
    )];
    let accounted = BTreeMap::from([(ANON, 50_000 * PAGE)]);
    assert!(placement(&many, &accounted, &[0, 1]).is_conclusive(0.1));
    let few = [sampled(MemoryClass::Heap, ANON, 50_000, &[(0, 6), (1, 2)])];
    assert!(!placement(&few, &accounted, &[0, 1]).is_conclusive(0.1));
}

#[test]
fn kinds_are_scaled_each_to_its_own_account_and_add_up() {
    let found = [
        sampled(MemoryClass::Weights, MemoryKind::File, 3_000, &[(1, 30)]),
        sampled(MemoryClass::Weights, ANON, 1_000, &[(0, 10)]),
        sampled(MemoryClass::File, MemoryKind::File, 1_000, &[(0, 10)]),
    ];
    let accounted = BTreeMap::from([(MemoryKind::File, 8_000 * PAGE), (ANON, 1_000 * PAGE)]);
    let told = placement(&found, &accounted, &[0, 1]);
    let want = ByNode::from([(0, 3_000 * PAGE), (1, 6_000 * PAGE)]);
    assert_eq!(told.by_node_bytes, Some(want));
    let classes = told.by_class.unwrap();
    let weights = ByNode::from([(0, 1_000 * PAGE), (1, 6_000 * PAGE)]);
    assert_eq!(classes[&MemoryClass::Weights], weights);
    assert_eq!(
        classes[&MemoryClass::File],
        ByNode::from([(0, 2_000 * PAGE)])
    );
}

/// An initramfs's root is a tmpfs that mount tables call `rootfs`, and its pages are shared memory in the account.
#[test]
fn files_that_the_kernel_accounts_for_as_shared_memory_are_files_all_the_same() {
    let found = [
        sampled(MemoryClass::File, MemoryKind::File, 1_000, &[(0, 10)]),
        sampled(MemoryClass::Shared, MemoryKind::Shared, 3_000, &[(1, 30)]),
    ];
    let accounted = BTreeMap::from([(MemoryKind::File, 0), (MemoryKind::Shared, 8_000 * PAGE)]);
    let kinds = placement(&found, &accounted, &[0, 1]).by_kind.unwrap();
    assert_eq!(kinds[&MemoryKind::File], ByNode::from([(0, 2_000 * PAGE)]));
    assert_eq!(
        kinds[&MemoryKind::Shared],
        ByNode::from([(1, 6_000 * PAGE)])
    );
}

#[test]
fn a_kind_of_which_nothing_is_known_is_uncertain_whole() {
    let found = [sampled(
        MemoryClass::File,
        MemoryKind::File,
        100,
        &[(0, 100)],
    )];
    let accounted = BTreeMap::from([(ANON, 9_000 * PAGE), (MemoryKind::File, 100 * PAGE)]);
    let told = placement(&found, &accounted, &[0]);
    assert_eq!(told.by_node_bytes, Some(ByNode::from([(0, 100 * PAGE)])));
    assert_eq!(told.margin_by_node_bytes.unwrap()[&0], 9_000 * PAGE);
    assert!(!told.by_kind.unwrap().contains_key(&ANON));
}

#[test]
fn a_kind_of_which_there_is_nothing_is_told_apart_from_an_unknown_one() {
    let file =
        |answers: &[(NodeId, u64)]| [sampled(MemoryClass::File, MemoryKind::File, 100, answers)];
    let accounted = BTreeMap::from([
        (ANON, 0),
        (MemoryKind::File, 100 * PAGE),
        (MemoryKind::Shared, 0),
    ]);
    let named = |found: &[Sampled]| {
        let kinds = placement(found, &accounted, &[0]).by_kind.unwrap();
        let sums = kinds.into_iter().map(|(k, n)| (k, n.values().sum::<u64>()));
        sums.collect::<Vec<_>>()
    };
    let want = [
        (ANON, 0),
        (MemoryKind::File, 100 * PAGE),
        (MemoryKind::Shared, 0),
    ];
    assert_eq!(named(&file(&[(0, 100)])), want);
    // What the files are isn't sure, so what of them is shared memory isn't either.
    assert_eq!(named(&file(&[])), [(ANON, 0)]);
}

#[test]
fn strata_that_mostly_do_not_answer_are_named() {
    let mut few = sampled(MemoryClass::LargeAnonymous, ANON, 9_000, &[(0, 40)]);
    few.asked = 100;
    let mut tiny = sampled(MemoryClass::Stack, ANON, 10, &[]);
    tiny.asked = 10;
    let reason = placement(&[few, tiny], &BTreeMap::new(), &[0]).reason;
    let reason = reason.unwrap();
    assert!(
        reason.contains("large_anonymous give no answer"),
        "{reason}"
    );
    assert!(!reason.contains("stack"), "{reason}");
}

#[test]
fn shards_are_of_weight_together_when_they_do_not_answer() {
    let shard = |number: u32| Sampled {
        file: Some(format!("/m/{number}.safetensors")),
        asked: 64,
        ..sampled(MemoryClass::Weights, MemoryKind::File, 100, &[(0, 1)])
    };
    let shards: Vec<Sampled> = (0..30).map(shard).collect();
    let reason = placement(&shards, &BTreeMap::new(), &[0]).reason;
    assert!(reason.is_some_and(|r| r.contains("most pages of weights give")));
}

#[test]
fn weights_are_told_by_file_and_add_up_to_their_class() {
    let file = |file: Option<&str>, answers| Sampled {
        file: file.map(str::to_owned),
        ..sampled(MemoryClass::Weights, MemoryKind::File, 1_000, answers)
    };
    let found = [
        file(Some("/m/1.gguf"), &[(0, 30), (1, 10)]),
        file(Some("/m/2.gguf"), &[(1, 10)]),
        file(None, &[(0, 10)]),
        sampled(MemoryClass::File, MemoryKind::File, 1_000, &[(0, 10)]),
    ];
    let accounted = BTreeMap::from([(MemoryKind::File, 8_000 * PAGE)]);
    let told = placement(&found, &accounted, &[0, 1]);
    let want = BTreeMap::from([
        (
            "/m/1.gguf".to_owned(),
            ByNode::from([(0, 1_500 * PAGE), (1, 500 * PAGE)]),
        ),
        ("/m/2.gguf".to_owned(), ByNode::from([(1, 2_000 * PAGE)])),
    ]);
    assert_eq!(told.weights_by_file, Some(want));
    let weights = ByNode::from([(0, 3_500 * PAGE), (1, 2_500 * PAGE)]);
    assert_eq!(told.by_class.unwrap()[&MemoryClass::Weights], weights);
}

#[test]
fn huge_pages_count_by_their_size() {
    let mut huge = sampled(
        MemoryClass::Huge,
        MemoryKind::Huge,
        5_120,
        &[(0, 4), (1, 6)],
    );
    huge.stratum.unit = 512;
    let told = placement(&[huge], &BTreeMap::new(), &[0, 1]);
    let want = ByNode::from([(0, 4 << 21), (1, 6 << 21)]);
    assert_eq!(told.by_node_bytes, Some(want));
    assert!(!told.is_estimate());
}

/// A made-up process of three strata on two nodes: (class, kind, pages, of 1,000 on node 1).
const MADE_UP: [(MemoryClass, MemoryKind, u64, u64); 3] = [
    (MemoryClass::Weights, MemoryKind::File, 100_000, 970),
    (MemoryClass::LargeAnonymous, ANON, 70_000, 300),
    (MemoryClass::Heap, ANON, 6_000, 500),
];

/// One seeded run: its pages pass through samples, some are drawn and answer. Gives the error of node 1's share and
/// whether the interval holds the truth.
fn run(seed: u64, layout: Layout) -> (f64, bool) {
    let mut random = Random::new(seed);
    let pages: Vec<u64> = MADE_UP.iter().map(|stratum| stratum.2).collect();
    let shares = allocate(&pages, 8_192);
    let mut sampled = Vec::new();
    for ((class, kind, pages, per_mille), share) in MADE_UP.into_iter().zip(shares) {
        let mut sample = EvenSample::new(8_192);
        // Runs as a fragmented memory has them.
        for first in (0..pages).step_by(500) {
            sample.offer(first, 1, 500.min(pages - first), &mut random);
        }
        sample.draw(usize::try_from(share).unwrap(), &mut random);
        let drawn = sample.drawn();
        let is_one = |page: &&u64| match layout {
            Layout::InTurn if per_mille == 500 => **page % 2 == 1,
            Layout::Blocks | Layout::InTurn => **page < pages * per_mille / 1_000,
            Layout::Scattered => {
                (**page).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 < (per_mille << 32) / 1_000
            }
        };
        let ones = drawn.iter().filter(is_one).count() as u64;
        let asked = drawn.len() as u64;
        let answers = [(0, asked - ones), (1, ones)].into_iter().collect();
        sampled.push(Sampled {
            class,
            kind,
            file: None,
            stratum: Stratum {
                pages,
                unit: 1,
                answers,
            },
            asked,
        });
    }
    let accounted = BTreeMap::from([(MemoryKind::File, 100_000 * PAGE), (ANON, 76_000 * PAGE)]);
    let truth: u64 = MADE_UP
        .iter()
        .map(|(_, _, pages, n)| pages * n / 1_000)
        .sum();
    let told = placement(&sampled, &accounted, &[0, 1]);
    let found = told.by_node_bytes.unwrap()[&1] / PAGE;
    let margin = told.margin_by_node_bytes.unwrap()[&1] / PAGE;
    let error = found.abs_diff(truth);
    (error as f64 / 176_000.0, error <= margin)
}

/// How the nodes' pages lie in a stratum.
#[derive(Clone, Copy, Debug)]
enum Layout {
    /// In blocks, as policies make them.
    Blocks,
    /// One here, one there.
    Scattered,
    /// In turn, as interleaving has them, as long as there are of both.
    InTurn,
}

/// Over 1,000 seeded runs the error is within 2 percentage points in 95 of 100, and the interval holds the truth in 93.
#[test]
fn seeded_runs_keep_the_bound_and_the_interval() {
    for layout in [Layout::Blocks, Layout::Scattered, Layout::InTurn] {
        let runs: Vec<(f64, bool)> = (0..1_000).map(|seed| run(seed, layout)).collect();
        let within = runs.iter().filter(|(error, _)| *error <= 0.02).count();
        let covered = runs.iter().filter(|(_, covered)| *covered).count();
        assert!(
            within >= 950,
            "{layout:?}: {within} of 1,000 within 2 points"
        );
        assert!(covered >= 930, "{layout:?}: {covered} of 1,000 covered");
    }
}

#[test]
fn blocks_are_told_within_a_fifth_of_a_point() {
    let worst = (0..1_000).map(|seed| run(seed, Layout::Blocks).0);
    let worst = worst.fold(0.0, f64::max);
    assert!(worst <= 0.002, "{worst}");
}
