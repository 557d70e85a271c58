//! The rate of new sessions.

/// Microseconds in a second, and the parts of a token.
const PARTS_PER_TOKEN: u64 = 1_000_000;

/// A token bucket, full at first, that holds the tokens of one second.
#[derive(Debug)]
pub(super) struct Rate {
    per_second: u64,
    /// The parts of tokens that are left.
    left: u64,
    at: u64,
}

impl Rate {
    pub(super) fn new(per_second: u32) -> Self {
        let per_second = u64::from(per_second);
        Self { per_second, left: per_second * PARTS_PER_TOKEN, at: 0 }
    }

    /// Takes a token at a time in microseconds. False if there is none.
    pub(super) fn take(&mut self, now: u64) -> bool {
        let gained = now.saturating_sub(self.at).saturating_mul(self.per_second);
        self.left = self.left.saturating_add(gained).min(self.per_second * PARTS_PER_TOKEN);
        self.at = self.at.max(now);
        let enough = self.left >= PARTS_PER_TOKEN;
        if enough {
            self.left -= PARTS_PER_TOKEN;
        }
        enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_so_many_and_as_many_at_once() {
        let mut rate = Rate::new(100);
        let taken = |rate: &mut Rate, now| (0..1_000).filter(|_| rate.take(now)).count();
        assert_eq!(taken(&mut rate, 0), 100);
        assert_eq!(taken(&mut rate, 9_999), 0);
        assert_eq!(taken(&mut rate, 10_000), 1);
        assert_eq!(taken(&mut rate, 5_000), 0, "time never goes back");
        assert_eq!(taken(&mut rate, 510_000), 50);
        assert_eq!(taken(&mut rate, u64::MAX), 100);
        assert_eq!(taken(&mut Rate::new(0), 1_000_000), 0);
    }
}
