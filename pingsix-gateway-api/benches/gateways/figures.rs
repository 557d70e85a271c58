//! The figures of a test, and the table of several rounds.

use std::fmt;
use std::time::Duration;

/// The measured values of one round of a test, in the order of the table.
#[derive(Debug, Default)]
pub(crate) struct Figures(Vec<(String, Value)>);

/// One measured value.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
enum Value {
    Milliseconds(f64),
    Megabytes(f64),
    Count(f64),
    /// Processor time for each second.
    Cores(f64),
}

impl Figures {
    pub(crate) fn time(&mut self, what: impl Into<String>, time: Duration) {
        self.0.push((what.into(), Value::Milliseconds(time.as_secs_f64() * 1e3)));
    }

    pub(crate) fn bytes(&mut self, what: impl Into<String>, bytes: u64) {
        self.0.push((what.into(), Value::Megabytes(float(bytes) / 1e6)));
    }

    pub(crate) fn count(&mut self, what: impl Into<String>, count: usize) {
        self.0.push((what.into(), Value::Count(float(count as u64))));
    }

    /// The share of a core that `cpu` of `wall` is.
    pub(crate) fn cores(&mut self, what: impl Into<String>, cpu: Duration, wall: Duration) {
        self.0.push((what.into(), Value::Cores(cpu.as_secs_f64() / wall.as_secs_f64())));
    }
}

#[allow(clippy::cast_precision_loss, reason = "figures are far below 2^52")]
fn float(value: u64) -> f64 {
    value as f64
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Milliseconds(value) if *value < 20.0 => write!(f, "{value:.1} ms"),
            Self::Milliseconds(value) => write!(f, "{value:.0} ms"),
            Self::Megabytes(value) => write!(f, "{value:.0} MB"),
            Self::Count(value) => write!(f, "{value}"),
            Self::Cores(value) => write!(f, "{value:.3} cores"),
        }
    }
}

/// The figures of all rounds, by controller.
#[derive(Debug, Default)]
pub(crate) struct Table(Vec<(String, Vec<Figures>)>);

impl Table {
    pub(crate) fn add(&mut self, controller: &str, figures: Figures) {
        match self.0.iter_mut().find(|(name, _)| name == controller) {
            Some((_, rounds)) => rounds.push(figures),
            None => self.0.push((controller.to_owned(), vec![figures])),
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(|(name, _)| name.as_str()).collect();
        writeln!(f, "| median (minimum to maximum) | {} |", names.join(" | "))?;
        writeln!(f, "|---|{}", "---|".repeat(names.len()))?;
        let mut rows: Vec<&str> = Vec::new();
        for (what, _) in self.0.iter().flat_map(|(_, rounds)| rounds).flat_map(|figures| &figures.0) {
            if !rows.contains(&what.as_str()) {
                rows.push(what);
            }
        }
        for row in rows {
            write!(f, "| {row} |")?;
            for (_, rounds) in &self.0 {
                let figures = rounds.iter().flat_map(|figures| &figures.0);
                let mut values: Vec<Value> =
                    figures.filter(|(what, _)| what == row).map(|(_, value)| *value).collect();
                values.sort_by(|one, other| one.partial_cmp(other).unwrap());
                match &values[..] {
                    [] => write!(f, " |")?,
                    [value] => write!(f, " {value} |")?,
                    [least, .., most] => write!(f, " {} ({least} to {most}) |", values[values.len() / 2])?,
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
