//! Ratios, with the absolute values beside.

use std::fmt::Write;

use crate::load::Rate;
use crate::subject::{Kind, Wire};

/// One cell: each client, round by round, in the order of [`Kind::ALL`].
#[derive(Clone, Debug)]
pub struct Cell {
    /// How it was sent.
    pub wire: Wire,
    /// How many at once.
    pub in_flight: usize,
    /// The rounds.
    pub rounds: Vec<[Rate; 3]>,
}

impl Cell {
    /// Requests per second of the first client, as a multiple of the better of the others: the median of
    /// the rounds, so that a machine that slows down slows both sides. Which one is the better is decided
    /// once: the luckier of two in each round would beat either of them.
    pub fn rate_ratio(&self) -> f64 {
        let ratios = [1, 2].map(|other| self.ratio_to(other, |rate| rate.per_second));
        ratios.into_iter().fold(f64::INFINITY, f64::min)
    }

    /// Processor time per request of the first client, as a multiple of the better of the others.
    pub fn processor_ratio(&self) -> f64 {
        let ratios = [1, 2].map(|other| self.ratio_to(other, |rate| rate.processor_us));
        ratios.into_iter().fold(0.0, f64::max)
    }

    fn ratio_to(&self, other: usize, value: impl Fn(Rate) -> f64) -> f64 {
        median(self.rounds.iter().map(|round| value(round[0]) / value(round[other])))
    }

    /// Whether the first client is at least equal, but for what a measurement can tell.
    pub fn holds(&self) -> bool {
        self.rate_ratio() >= 0.97 && self.processor_ratio() <= 1.03
    }

    fn median_of(&self, kind: usize, value: impl Fn(Rate) -> f64) -> f64 {
        median(self.rounds.iter().map(|round| value(round[kind])))
    }
}

/// The tables, as Markdown.
pub fn tables(cells: &[Cell], allocations: &[(Wire, [f64; 3])]) -> String {
    let names = Kind::ALL.map(Kind::name);
    let mut text = String::new();
    let mut line = |line: String| writeln!(text, "{line}").expect("a string takes everything");
    line(format!("| requests/s | in flight | {} | ratio |", names.join(" | ")));
    line("|---|---:|---:|---:|---:|---:|".to_owned());
    for cell in cells {
        let values = [0, 1, 2].map(|kind| format!("{:.0}", cell.median_of(kind, |rate| rate.per_second)));
        let (wire, in_flight) = (cell.wire.name(), cell.in_flight);
        line(format!("| {wire} | {in_flight} | {} | **{:.2}×** |", values.join(" | "), cell.rate_ratio()));
    }
    line(format!("\n| processor µs per request | in flight | {} | ratio |", names.join(" | ")));
    line("|---|---:|---:|---:|---:|---:|".to_owned());
    for cell in cells {
        let values = [0, 1, 2].map(|kind| format!("{:.1}", cell.median_of(kind, |rate| rate.processor_us)));
        let (wire, in_flight) = (cell.wire.name(), cell.in_flight);
        line(format!(
            "| {wire} | {in_flight} | {} | **{:.2}×** |",
            values.join(" | "),
            cell.processor_ratio()
        ));
    }
    line(format!("\n| allocations per request | {} |", names.join(" | ")));
    line("|---|---:|---:|---:|".to_owned());
    for (wire, counts) in allocations {
        line(format!("| {} | {} |", wire.name(), counts.map(|count| format!("{count:.1}")).join(" | ")));
    }
    text
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
