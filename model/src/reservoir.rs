//! A random sample of what passes by, of a size that doesn't grow with it, without a look at each.
//!
//! Vitter's reservoir with skips ("Algorithm L", Li 1994): how many to pass over until the next one enters is drawn, so a
//! run of a million costs a few steps.

/// A small generator of random numbers (xorshift64): the same seed, the same numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Starts from a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        // Zero would stay zero, and seeds that are near each other are not to begin alike.
        let mixed = (seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Self(if mixed == 0 { 1 } else { mixed })
    }

    /// The next.
    pub fn next_u64(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// One below `end`; 0 if that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        let product = u128::from(self.next_u64()) * end as u128;
        usize::try_from(product >> 64).unwrap_or(0)
    }

    /// One in (0, 1).
    fn unit(&mut self) -> f64 {
        ((self.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }
}

/// A sample of at most its capacity of everything that was offered, each with the same chance.
#[derive(Clone, Debug)]
pub struct Reservoir {
    capacity: usize,
    items: Vec<u64>,
    /// How many were offered.
    seen: u64,
    /// The next that enters, counted from 0, once it is full.
    next: u64,
    weight: f64,
}

impl Reservoir {
    /// An empty one; memory is taken as it fills.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            items: Vec::new(),
            seen: 0,
            next: 0,
            weight: 1.0,
        }
    }

    /// How many were offered.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// What it holds.
    #[must_use]
    pub fn items(&self) -> &[u64] {
        &self.items
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
        if self.capacity == 0 {
            self.seen += count;
            return;
        }
        let item = |at: u64| first + at * step;
        let begin = self.seen;
        self.seen += count;
        let room = (self.capacity - self.items.len()) as u64;
        let fills = room.min(count);
        if fills > 0 {
            self.items.extend((0..fills).map(item));
            if self.items.len() == self.capacity {
                self.next = begin + fills - 1;
                self.skip(random);
            }
        }
        while self.items.len() == self.capacity && self.next < self.seen {
            let slot = random.below(self.capacity);
            if let Some(place) = self.items.get_mut(slot) {
                *place = item(self.next - begin);
            }
            self.skip(random);
        }
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is no less than 0, and where it is too large nothing enters any more"
    )]
    fn skip(&mut self, random: &mut Random) {
        self.weight *= (random.unit().ln() / self.capacity as f64).exp();
        let passed = (random.unit().ln() / (1.0 - self.weight).ln()).floor();
        self.next = self.next.saturating_add(passed as u64).saturating_add(1);
    }

    /// Moves a random choice of `count` of the items to the start, in random order, and gives it.
    pub fn draw(&mut self, count: usize, random: &mut Random) -> &[u64] {
        let count = count.min(self.items.len());
        for at in 0..count {
            let other = at + random.below(self.items.len() - at);
            self.items.swap(at, other);
        }
        self.items.get(..count).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_all_there() {
        let mut random = Random::new(1);
        let mut reservoir = Reservoir::new(10);
        reservoir.offer(100, 5, 3, &mut random);
        reservoir.offer(1_000, 1, 2, &mut random);
        assert_eq!(reservoir.items, [100, 105, 110, 1_000, 1_001]);
        assert_eq!((reservoir.seen(), reservoir.len()), (5, 5));
    }

    #[test]
    fn it_never_holds_more_than_its_capacity_and_counts_all() {
        let mut random = Random::new(2);
        let mut reservoir = Reservoir::new(8);
        reservoir.offer(0, 1, 1_000_000, &mut random);
        reservoir.offer(0, 4096, u64::from(u32::MAX), &mut random);
        assert_eq!(reservoir.len(), 8);
        assert_eq!(reservoir.seen(), 1_000_000 + u64::from(u32::MAX));
    }

    #[test]
    fn one_without_room_counts_all_the_same() {
        let mut reservoir = Reservoir::new(0);
        reservoir.offer(0, 1, 7, &mut Random::new(3));
        assert_eq!((reservoir.seen(), reservoir.is_empty()), (7, true));
    }

    /// Each tenth of the stream has its tenth of the sample, however it is cut into runs: over 2,000 samples of 50 each
    /// tenth is due 10,000, with a standard deviation of under 100.
    #[test]
    fn everything_has_the_same_chance() {
        for run in [1_u64, 7, 400, 1_000] {
            let mut random = Random::new(run);
            let mut tenths = [0_u32; 10];
            for _ in 0..2_000 {
                let mut reservoir = Reservoir::new(50);
                let mut at = 0;
                while at < 1_000 {
                    let count = run.min(1_000 - at);
                    reservoir.offer(at, 1, count, &mut random);
                    at += count;
                }
                for item in &reservoir.items {
                    tenths[(*item / 100) as usize] += 1;
                }
            }
            for count in tenths {
                assert!((9_500..=10_500).contains(&count), "{run}: {tenths:?}");
            }
        }
    }

    #[test]
    fn a_draw_of_all_repeats_none_and_leaves_none_out() {
        let mut random = Random::new(4);
        let mut reservoir = Reservoir::new(100);
        reservoir.offer(0, 1, 100, &mut random);
        let mut drawn = reservoir.draw(200, &mut random).to_vec();
        drawn.sort_unstable();
        assert_eq!(drawn, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn a_draw_is_no_prefix() {
        let mut random = Random::new(5);
        let mut sum = 0;
        for _ in 0..1_000 {
            let mut reservoir = Reservoir::new(100);
            reservoir.offer(0, 1, 100, &mut random);
            sum += reservoir.draw(10, &mut random).iter().sum::<u64>();
        }
        // The mean of 10,000 of 0..100, whose standard deviation is 29.
        assert!((485_000..505_000).contains(&sum), "{sum}");
    }
}
