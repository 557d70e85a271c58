//! The choice of a target by weight.
//!
//! Independent draws leave the weights by about the square root of the number of connections. The multiples of the
//! golden ratio, taken modulo 1, fall evenly into every interval instead, whatever the number of connections. So the
//! n-th connection takes the target whose interval has the n-th multiple, and the shares are right within a few
//! connections at any time. One atomic counter is all the state.

use std::sync::atomic::{AtomicU64, Ordering};

/// 2^64 divided by the golden ratio.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// The weights of some targets, and the number of connections so far.
#[derive(Debug)]
pub(super) struct Shares {
    /// The sums of the weights up to and with each target.
    cumulative: Box<[u64]>,
    counter: AtomicU64,
}

impl Shares {
    /// Weights whose sum is at least 1. The sequence starts anywhere, so that many proxies together keep the shares.
    pub(super) fn new(weights: impl IntoIterator<Item = u32>) -> Self {
        Self::starting_at(weights, fastrand::u64(..))
    }

    fn starting_at(weights: impl IntoIterator<Item = u32>, start: u64) -> Self {
        let cumulative = sums(weights);
        Self { cumulative, counter: AtomicU64::new(start) }
    }

    /// The index of the target of the next connection.
    pub(super) fn next(&self) -> usize {
        let count = self.counter.fetch_add(1, Ordering::Relaxed);
        index_at(&self.cumulative, count.wrapping_mul(STEP))
    }

    /// The weights.
    #[cfg(test)]
    pub(super) fn weights(&self) -> impl Iterator<Item = u64> {
        let before = std::iter::once(&0).chain(&self.cumulative);
        self.cumulative.iter().zip(before).map(|(sum, before)| sum - before)
    }
}

/// The sums of the weights up to and with each one. Documents have fewer than 2^32 targets, so 64 bits suffice.
pub(super) fn sums(weights: impl IntoIterator<Item = u32>) -> Box<[u64]> {
    let add = |sum: &mut u64, weight: u32| {
        *sum += u64::from(weight);
        Some(*sum)
    };
    weights.into_iter().scan(0, add).collect()
}

/// The index of the interval that has a point, given as a fraction of 2^64.
pub(super) fn index_at(cumulative: &[u64], point: u64) -> usize {
    let total = cumulative.last().copied().unwrap_or_default();
    let place = (u128::from(point) * u128::from(total)) >> 64;
    cumulative.partition_point(|sum| u128::from(*sum) <= place)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn every_prefix_of_choices_keeps_the_weights(
            weights in prop::collection::vec(prop_oneof![1..10_u32, 1..=u32::MAX], 1..12),
            start: u64,
        ) {
            let shares = Shares::starting_at(weights.clone(), start);
            let total: f64 = weights.iter().copied().map(f64::from).sum();
            let allowed = f64::from(u32::try_from(weights.len()).unwrap() + 1);
            let mut taken = vec![0_u32; weights.len()];
            for count in 1..=4_000_u32 {
                taken[shares.next()] += 1;
                for (weight, taken) in weights.iter().zip(&taken) {
                    let due = f64::from(count) * f64::from(*weight) / total;
                    prop_assert!((f64::from(*taken) - due).abs() <= allowed, "{count}: {taken} for {due}");
                }
            }
        }
    }

    #[test]
    fn weights_beyond_32_bits_are_kept() {
        let shares = Shares::starting_at([u32::MAX, u32::MAX, u32::MAX], 7);
        let mut taken = [0; 3];
        for _ in 0..3_000 {
            taken[shares.next()] += 1;
        }
        assert!(taken.iter().all(|taken| (990..=1_010).contains(taken)), "{taken:?}");
    }

    #[test]
    fn five_hundred_connections_are_within_a_point_of_70_and_30() {
        for start in 0..10_000 {
            let shares = Shares::starting_at([70, 30], start);
            let first = (0..500).filter(|_| shares.next() == 0).count();
            assert!((345..=355).contains(&first), "{first}");
        }
    }
}
