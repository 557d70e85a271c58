//! The table: one row for each figure.

use std::collections::BTreeMap;
use std::sync::Once;

use crate::proxies::Kind;

/// A figure of a workload.
pub(crate) struct Figure {
    /// The name with its unit.
    pub(crate) name: &'static str,
    /// The goal, if there is one.
    pub(crate) goal: &'static str,
}

/// The values of the figures, by round.
pub(crate) type Rounds = Vec<Vec<f64>>;

/// Prints the rows of a workload, with the head of the table before the first one.
pub(crate) fn rows(workload: &str, figures: &[Figure], measured: &BTreeMap<Kind, Rounds>) {
    static HEAD: Once = Once::new();
    HEAD.call_once(|| {
        println!(
            "| workload | figure | sidecar | HAProxy | nginx | sidecar / HAProxy | sidecar / nginx | goal |"
        );
        println!("|---|---|---|---|---|---|---|---|");
    });
    print(workload, figures, Kind::ALL.map(|kind| measured.get(&kind)));
}

/// Prints the rows of a workload: the medians of each column, and ratios of the first column to each other one.
pub(crate) fn print<const N: usize>(workload: &str, figures: &[Figure], columns: [Option<&Rounds>; N]) {
    for (index, Figure { name, goal }) in figures.iter().enumerate() {
        let values =
            columns.map(|rounds| Some(rounds?.iter().map(|round| round[index]).collect::<Vec<f64>>()));
        let medians = values.iter().map(|values| values.as_ref().map(|values| number(median(values))));
        let (first, others) = values.split_first().unwrap();
        let ratios = others.iter().map(|other| ratios(first.as_ref()?, other.as_ref()?));
        let cells: Vec<String> =
            medians.chain(ratios).map(|cell| cell.unwrap_or_else(|| "-".to_owned())).collect();
        let workload = if index == 0 { workload } else { "" };
        println!("| {workload} | {name} | {} | {goal} |", cells.join(" | "));
    }
}

fn median(values: &[f64]) -> f64 {
    percentile(values, 50)
}

/// The value that so many percent do not exceed.
pub(crate) fn percentile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[(sorted.len() * percent).div_ceil(100).clamp(1, sorted.len()) - 1]
}

/// `None` without anything to compare with.
fn ratios(over: &[f64], under: &[f64]) -> Option<String> {
    let ratios: Vec<f64> = over.iter().zip(under).map(|(over, under)| over / under).collect();
    let text =
        format!("{:.2} ({:.2} to {:.2})", median(&ratios), percentile(&ratios, 0), percentile(&ratios, 100));
    ratios.iter().all(|ratio| ratio.is_finite()).then_some(text)
}

/// A number with three digits, or all digits of a whole one.
pub(crate) fn number(value: f64) -> String {
    let digits = match value {
        _ if value >= 100.0 => 0,
        _ if value >= 10.0 => 1,
        _ if value >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    if value < 1_000.0 {
        return text;
    }
    let mut grouped = String::new();
    for (index, digit) in text.chars().enumerate() {
        if index > 0 && (text.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}
