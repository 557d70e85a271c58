//! Chance that can be repeated.

use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{Rng as _, SeedableRng as _};

/// A source of chance.
pub(crate) struct SeededRng(StdRng);

impl SeededRng {
    /// The same seed and case give the same throws.
    pub(crate) fn new(seed: u64, case: usize) -> Self {
        Self(StdRng::seed_from_u64(seed.wrapping_mul(1_000_003).wrapping_add(case as u64)))
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0.random_range(0..bound)
    }

    /// [`Self::below`] for 32 bits.
    pub(crate) fn number(&mut self, bound: u32) -> u32 {
        self.0.random_range(0..bound)
    }

    /// True in so many of a hundred cases.
    pub(crate) fn percent(&mut self, share: usize) -> bool {
        self.below(100) < share
    }

    /// One of several.
    pub(crate) fn one<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }

    /// `count` of several, none twice, in any order.
    pub(crate) fn some(&mut self, count: usize, of: &[&str]) -> Vec<String> {
        let mut drawn: Vec<String> = of.iter().map(|&item| item.to_owned()).collect();
        drawn.shuffle(&mut self.0);
        drawn.truncate(count);
        drawn
    }

    /// The numbers below `bound` in any order.
    pub(crate) fn order(&mut self, bound: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..bound).collect();
        order.shuffle(&mut self.0);
        order
    }
}
