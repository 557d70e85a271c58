//! The choice of a target by weight.
//!
//! Independent draws leave the weights by about the square root of the number of connections. [`Shares`] keeps a credit
//! for each target instead: with each connection every target gains its weight, and the target with the most credit
//! takes the connection and pays the sum of all weights. The credits sum to zero, and none falls below the negative sum
//! of the weights, because the target that pays has at least the mean, which is positive after the gains. So with n
//! targets each has its share of any number of connections within n.
//!
//! The multiples of the golden ratio, without a lock, were tried first: their distance from the weights has no bound,
//! and exceeds three connections for two targets after a thousand.

use parking_lot::Mutex;

/// The weights of some targets, and what each has not taken yet.
#[derive(Debug)]
pub(super) struct Shares {
    weights: Box<[u32]>,
    total: i128,
    /// In connections times the sum of the weights.
    credits: Mutex<Box<[i128]>>,
}

/// The most connections that a sequence begins after.
const MAX_START_OFFSET: u32 = 1_024;

impl Shares {
    /// Weights whose sum is at least 1. The sequence begins anywhere, so that many proxies with few connections each
    /// keep the shares together.
    pub(super) fn new(weights: impl IntoIterator<Item = u32>) -> Self {
        Self::starting_after(weights, fastrand::u32(..MAX_START_OFFSET))
    }

    fn starting_after(weights: impl IntoIterator<Item = u32>, connections: u32) -> Self {
        let weights: Box<[u32]> = weights.into_iter().collect();
        let total = weights.iter().map(|weight| i128::from(*weight)).sum();
        let shares = Self { credits: Mutex::new(vec![0; weights.len()].into()), total, weights };
        if shares.weights.len() > 1 {
            for _ in 0..connections {
                shares.next();
            }
        }
        shares
    }

    /// The index of the target of the next connection.
    pub(super) fn next(&self) -> usize {
        let mut credits = self.credits.lock();
        let mut most = (0, i128::MIN);
        for (index, (credit, weight)) in credits.iter_mut().zip(&self.weights).enumerate() {
            *credit += i128::from(*weight);
            if *credit > most.1 {
                most = (index, *credit);
            }
        }
        if let Some(credit) = credits.get_mut(most.0) {
            *credit -= self.total;
        }
        most.0
    }

    /// The weights.
    #[cfg(test)]
    pub(super) fn weights(&self) -> impl Iterator<Item = u32> {
        self.weights.iter().copied()
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
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn every_prefix_of_choices_keeps_the_weights(
            weights in prop::collection::vec(prop_oneof![1..10_u32, 1..=u32::MAX], 1..12),
            start in 0..MAX_START_OFFSET,
        ) {
            let shares = Shares::starting_after(weights.clone(), start);
            let total = shares.total;
            let targets = i128::try_from(weights.len()).unwrap();
            let mut taken = vec![0_i128; weights.len()];
            for count in 1..=2_000_i128 {
                taken[shares.next()] += 1;
                for (weight, taken) in weights.iter().zip(&taken) {
                    let difference = taken * total - count * i128::from(*weight);
                    prop_assert!(difference.abs() <= targets * total, "{taken} of {count}");
                }
            }
        }
    }

    #[test]
    fn weights_beyond_32_bits_are_kept() {
        let shares = Shares::new([u32::MAX, u32::MAX, u32::MAX]);
        let mut taken = [0; 3];
        for _ in 0..3_000 {
            taken[shares.next()] += 1;
        }
        assert!(taken.iter().all(|taken| (997..=1_003).contains(taken)), "{taken:?}");
    }

    #[test]
    fn five_hundred_connections_are_within_a_point_of_70_and_30() {
        for start in (0..MAX_START_OFFSET).step_by(16) {
            let shares = Shares::starting_after([70, 30], start);
            let first = (0..500).filter(|_| shares.next() == 0).count();
            assert!((348..=352).contains(&first), "{first}");
        }
    }

    #[test]
    fn many_proxies_with_few_connections_keep_a_small_share_together() {
        let mut rare = 0;
        for _ in 0..2_000 {
            let shares = Shares::new([99, 1]);
            rare += (0..5).filter(|_| shares.next() == 1).count();
        }
        assert!((50..=150).contains(&rare), "{rare} of 10000");
    }

    #[test]
    fn a_point_has_the_interval_of_its_weight() {
        let cumulative = sums([1, 2, 1]);
        let indices =
            [0, 1 << 62, (1 << 63) - 1, 3 << 62, u64::MAX].map(|point| index_at(&cumulative, point));
        assert_eq!(indices, [0, 1, 1, 2, 2]);
    }
}
