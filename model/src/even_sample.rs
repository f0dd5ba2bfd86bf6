//! A random sample of what passes by, spread evenly over it, of a size that doesn't grow with it, without a look at each.
//!
//! The stream is cut into strides, and of each one item is chosen at random. When they become too many, strides are joined
//! in pairs, of which one of the two items stays. What lies in blocks, as memory does by its nodes, is so told far better
//! than by as many items drawn from the whole; what alternates from page to page, as interleaving has it, as well.

use crate::random::Random;

/// See the module's doc. Every item has the same chance.
#[derive(Clone, Debug)]
pub struct EvenSample {
    capacity: usize,
    /// One of each stride so far, in the stream's order.
    items: Vec<u64>,
    /// What was drawn of the items, in random order.
    drawn: Vec<u64>,
    /// How many were offered.
    seen: u64,
    /// Items a stride.
    stride: u64,
    /// The place in the stream of the one that is chosen of the stride behind the items'.
    next: u64,
}

impl EvenSample {
    /// An empty one, which will hold `capacity` items at most, and half of that at least where there are so many; memory is
    /// taken as it fills.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            // Strides are joined in pairs.
            capacity: capacity.next_multiple_of(2).max(2),
            items: Vec::new(),
            drawn: Vec::new(),
            seen: 0,
            stride: 1,
            next: 0,
        }
    }

    /// How many were offered.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// How many it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Offers `count` items: `first`, `first + step`, and so on.
    pub fn offer(&mut self, first: u64, step: u64, count: u64, random: &mut Random) {
        let begin = self.seen;
        self.seen += count;
        while self.next < self.seen {
            if self.items.len() == self.capacity && !self.join(random) {
                continue;
            }
            self.items.push(first + (self.next - begin) * step);
            let stride_start = self.items.len() as u64 * self.stride;
            self.next = stride_start + random.below(self.stride);
        }
    }

    /// Joins strides in pairs. Whether the item that was chosen behind them still is: its stride has a second half now.
    fn join(&mut self, random: &mut Random) -> bool {
        let pairs = self.items.chunks_exact(2);
        self.items = pairs
            .map(|pair| pair[usize::from(random.below(2) == 1)])
            .collect();
        let second_half = self.items.len() as u64 * self.stride * 2 + self.stride;
        let stays = random.below(2) == 0;
        if !stays {
            self.next = second_half + random.below(self.stride);
        }
        self.stride *= 2;
        stays
    }

    /// Draws `count` of the items, evenly too, each with the same chance.
    pub fn draw(&mut self, count: usize, random: &mut Random) {
        let (held, count) = (self.items.len() as u64, count.min(self.items.len()) as u64);
        // Where in the first stride to begin, in parts of an item.
        let phase = random.below(held);
        // One of each cell at random: at equal steps it would always be the same of items that alternate.
        let edge = |at: u64| (at * held + phase) / count;
        let mut place = |at: u64| {
            let among = edge(at + 1) - edge(at);
            usize::try_from((edge(at) + random.below(among)) % held).ok()
        };
        self.drawn = (0..count)
            .filter_map(|at| self.items.get(place(at)?).copied())
            .collect();
        random.shuffle(&mut self.drawn);
    }

    /// What was drawn the last time, in random order.
    #[must_use]
    pub fn drawn(&self) -> &[u64] {
        &self.drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_all_there() {
        let mut random = Random::new(1);
        let mut sample = EvenSample::new(10);
        sample.offer(100, 5, 3, &mut random);
        sample.offer(1_000, 1, 2, &mut random);
        assert_eq!(sample.items, [100, 105, 110, 1_000, 1_001]);
        assert_eq!((sample.seen(), sample.len()), (5, 5));
    }

    #[test]
    fn it_holds_between_half_of_its_capacity_and_all_of_it() {
        for count in [9, 10, 11, 100, 1_000_000, 4_294_967_296] {
            let mut sample = EvenSample::new(8);
            sample.offer(0, 4096, count, &mut Random::new(count));
            assert!((4..=8).contains(&sample.len()), "{count}: {sample:?}");
            assert_eq!(sample.seen(), count);
        }
    }

    /// One item is held of each stride, at last of 16, whichever places joins left for it; however the stream is cut into
    /// runs. Over 8,000 samples each place is due 500, with a standard deviation of 22.
    #[test]
    fn everything_has_the_same_chance() {
        for run in [1, 7, 48] {
            let mut random = Random::new(run);
            let mut times = [0_u32; 48];
            for _ in 0..8_000 {
                let mut sample = EvenSample::new(4);
                let mut at = 0;
                while at < 48 {
                    let count = run.min(48 - at);
                    sample.offer(at, 1, count, &mut random);
                    at += count;
                }
                let strides: Vec<u64> = sample.items.iter().map(|item| item / 16).collect();
                assert_eq!(strides, [0, 1, 2], "{sample:?}");
                for item in &sample.items {
                    times[usize::try_from(*item).unwrap()] += 1;
                }
            }
            for n in times {
                assert!((390..=610).contains(&n), "{run}: {times:?}");
            }
        }
    }

    /// Over 4,000 draws of 30 of 50 each is due 2,400, with a standard deviation of 31.
    #[test]
    fn all_that_is_held_has_the_same_chance_to_be_drawn() {
        let mut random = Random::new(5);
        let mut sample = EvenSample::new(50);
        sample.offer(0, 1, 50, &mut random);
        let mut times = [0_u32; 50];
        for _ in 0..4_000 {
            sample.draw(30, &mut random);
            assert_eq!(sample.drawn().len(), 30);
            for item in sample.drawn() {
                times[usize::try_from(*item).unwrap()] += 1;
            }
        }
        for n in times {
            assert!((2_240..=2_560).contains(&n), "{times:?}");
        }
    }

    /// Of 8,192 that alternate, 4,096 are drawn: half are of each kind, with a standard deviation of under 32.
    #[test]
    fn what_alternates_is_drawn_of_both_kinds() {
        for seed in 0..100 {
            let mut random = Random::new(seed);
            let mut sample = EvenSample::new(8_192);
            sample.offer(0, 1, 8_192, &mut random);
            sample.draw(4_096, &mut random);
            let odd = sample.drawn().iter().filter(|item| **item % 2 == 1).count();
            assert!((1_888..=2_208).contains(&odd), "{seed}: {odd}");
        }
    }

    #[test]
    fn a_draw_of_all_repeats_none_and_leaves_none_out() {
        let mut random = Random::new(4);
        let mut sample = EvenSample::new(100);
        sample.offer(0, 1, 100, &mut random);
        sample.draw(200, &mut random);
        let mut drawn = sample.drawn().to_vec();
        drawn.sort_unstable();
        assert_eq!(drawn, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn of_nothing_nothing_is_drawn() {
        let mut sample = EvenSample::new(4);
        sample.draw(3, &mut Random::new(1));
        assert!(sample.drawn().is_empty());
    }
}
