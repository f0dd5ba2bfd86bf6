//! Random numbers for samples: fast, repeatable, and no secret.

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
    pub fn below(&mut self, end: u64) -> u64 {
        let product = u128::from(self.next_u64()) * u128::from(end);
        u64::try_from(product >> 64).unwrap_or(0)
    }

    /// Brings items into random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            let other = usize::try_from(self.below(at as u64 + 1)).unwrap_or(at);
            items.swap(at, other);
        }
    }
}
