//! Samples, and ratios of one arm to another.

use std::fmt;
use std::time::Duration;

/// The median of values.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// The median of times.
pub(crate) fn median_time(times: &[Duration]) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort();
    sorted[sorted.len() / 2]
}

/// One ratio for each round.
pub(crate) struct Ratios(Vec<f64>);

impl Ratios {
    pub(crate) fn of(over: &[Duration], under: &[Duration]) -> Self {
        Self(over.iter().zip(under).map(|(over, under)| over.as_secs_f64() / under.as_secs_f64()).collect())
    }
}

impl fmt::Display for Ratios {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, most) = self
            .0
            .iter()
            .fold((f64::MAX, f64::MIN), |(least, most), ratio| (least.min(*ratio), most.max(*ratio)));
        write!(f, "{:.2} ({least:.2} to {most:.2})", median(&self.0))
    }
}
