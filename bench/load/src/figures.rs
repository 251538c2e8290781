//! Numbers for people: medians, ratios, units.

use std::time::Duration;

/// The middle of some measurements; of an even number, the mean of the two in the middle.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        length if length % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// The median of the quotients of measurements made in the same round, so that a machine that slows
/// down during the run slows both sides of every quotient.
pub(crate) fn median_ratio(dividends: &[f64], divisors: &[f64]) -> Option<f64> {
    let ratios: Vec<f64> =
        dividends.iter().zip(divisors).map(|(dividend, divisor)| dividend / divisor).collect();
    median(&ratios)
}

/// Milliseconds of a duration.
pub(crate) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Three significant digits or whole numbers, with thousands apart.
pub(crate) fn number(value: f64) -> String {
    match value {
        value if value >= 100.0 => thousands(value.round() as u64),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// A ratio, with the sign of times.
pub(crate) fn times(ratio: f64) -> String {
    if ratio >= 100.0 { format!("{}×", thousands(ratio.round() as u64)) } else { format!("{ratio:.2}×") }
}

fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A table that is both readable as it is and valid Markdown.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these column titles.
    pub(crate) fn new(titles: &[&str]) -> Table {
        Table { rows: vec![titles.iter().map(|title| (*title).to_owned()).collect()] }
    }

    /// Adds a row of as many cells as there are titles.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.rows[0].len(), "a row has a cell for every title");
        self.rows.push(cells);
    }

    /// The text: first column to the left, all others to the right.
    pub(crate) fn render(&self) -> String {
        let width =
            |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.rows[0].len()).map(width).collect();
        let mut lines = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
                if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            lines.push(format!("| {} |", cells.collect::<Vec<_>>().join(" | ")));
            if index == 0 {
                let rules = widths.iter().enumerate().map(|(column, width)| {
                    if column == 0 { "-".repeat(width + 2) } else { format!("{}:", "-".repeat(width + 1)) }
                });
                lines.push(format!("|{}|", rules.collect::<Vec<_>>().join("|")));
            }
        }
        lines.join("\n") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::{Table, median, median_ratio, number, times};

    #[test]
    fn the_median_is_the_middle_or_the_mean_of_two() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        // A machine twice as slow in the second round changes nothing.
        assert_eq!(median_ratio(&[30.0, 15.0], &[10.0, 5.0]), Some(3.0));
    }

    #[test]
    fn numbers_are_short_and_grouped() {
        for (value, text) in [(1_234_567.4, "1,234,567"), (99.95, "100.0"), (12.34, "12.3"), (0.056, "0.06")]
        {
            assert_eq!(number(value), text);
        }
        assert_eq!(times(2.5), "2.50×");
    }

    #[test]
    fn a_table_lines_up_and_is_markdown() {
        let mut table = Table::new(&["a", "b"]);
        table.row(vec!["long".to_owned(), "1×".to_owned()]);
        assert_eq!(table.render(), "| a    |  b |\n|------|---:|\n| long | 1× |\n");
    }
}
