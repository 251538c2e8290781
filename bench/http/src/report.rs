//! The tables: absolute values, and the ratio to the better of the other clients.

use std::fmt::Write;

use crate::load::Rate;
use crate::subject::{Kind, Protocol};

/// The measurements of one cell: the rates of all clients, in the order of [`Kind::ALL`], for each round.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The protocol of the cell.
    pub protocol: Protocol,
    /// The number of requests in flight.
    pub in_flight: usize,
    /// The rates of each client, round by round.
    pub rounds: Vec<[Rate; 3]>,
}

impl Cell {
    /// Requests per second of the first client, as a multiple of the better of the others. It is the median of the ratios
    /// within the rounds, so that a slower machine affects both sides. The better one is chosen once for all rounds: the
    /// better of two in each single round would beat either of them.
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

    /// Whether the first client is at least equal, within the accuracy of the measurement.
    pub fn holds(&self) -> bool {
        self.rate_ratio() >= 0.97 && self.processor_ratio() <= 1.03
    }

    fn median_of(&self, kind: usize, value: impl Fn(Rate) -> f64) -> f64 {
        median(self.rounds.iter().map(|round| value(round[kind])))
    }
}

/// Formats the tables as Markdown.
pub fn tables(cells: &[Cell], allocations: &[(Protocol, [f64; 3])]) -> String {
    let names = Kind::ALL.map(Kind::name);
    let mut text = String::new();
    let mut line = |line: String| writeln!(text, "{line}").expect("a string takes everything");
    line(format!("| requests/s | in flight | {} | ratio |", names.join(" | ")));
    line("|---|---:|---:|---:|---:|---:|".to_owned());
    for cell in cells {
        let values = [0, 1, 2].map(|kind| format!("{:.0}", cell.median_of(kind, |rate| rate.per_second)));
        let (protocol, in_flight) = (cell.protocol.name(), cell.in_flight);
        line(format!(
            "| {protocol} | {in_flight} | {} | **{:.2}×** |",
            values.join(" | "),
            cell.rate_ratio()
        ));
    }
    line(format!("\n| processor µs per request | in flight | {} | ratio |", names.join(" | ")));
    line("|---|---:|---:|---:|---:|---:|".to_owned());
    for cell in cells {
        let values = [0, 1, 2].map(|kind| format!("{:.1}", cell.median_of(kind, |rate| rate.processor_us)));
        let (protocol, in_flight) = (cell.protocol.name(), cell.in_flight);
        line(format!(
            "| {protocol} | {in_flight} | {} | **{:.2}×** |",
            values.join(" | "),
            cell.processor_ratio()
        ));
    }
    line(format!("\n| allocations per request | {} |", names.join(" | ")));
    line("|---|---:|---:|---:|".to_owned());
    for (protocol, counts) in allocations {
        line(format!("| {} | {} |", protocol.name(), counts.map(|count| format!("{count:.1}")).join(" | ")));
    }
    text
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
