//! Tables for people, without lines: a heading, and columns as wide as their cells.
//!
//! On a terminal, long cells are wrapped to its width. Cells may contain text of other people (names, error messages), so
//! control characters are escaped.

use std::fmt;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Width};

use super::printable;

/// The space between two columns.
const COLUMN_GAP: u16 = 2;

/// A table with a heading. Columns of numbers are aligned to the right.
#[derive(Debug)]
pub(crate) struct Table {
    heading: Vec<String>,
    rows: Vec<Vec<String>>,
    /// The least width of each column; none for columns that are as wide as their cells.
    widths: Vec<u16>,
}

impl Table {
    /// A table with these columns and without rows.
    pub(crate) fn new(heading: &[&str]) -> Table {
        Table {
            heading: heading.iter().map(|&title| title.to_owned()).collect(),
            rows: Vec::new(),
            widths: Vec::new(),
        }
    }

    /// A table whose columns have at least these widths, for rows that are printed one by one.
    pub(crate) fn with_widths(heading: &[&str], widths: &[u16]) -> Table {
        Table { widths: widths.to_vec(), ..Table::new(heading) }
    }

    /// Adds a row with a cell for each column.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.heading.len(), "a cell for every column");
        self.rows.push(cells.iter().map(|cell| printable(cell).into_owned()).collect());
    }

    /// The rows alone, without the heading.
    pub(crate) fn rows(&self) -> String {
        self.render(None)
    }

    fn render(&self, heading: Option<&Vec<String>>) -> String {
        let mut table = comfy_table::Table::new();
        table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        table.add_rows(heading.into_iter().chain(&self.rows));
        let widths = match table.width() {
            Some(terminal) => fitting(&self.widths, terminal),
            None => self.widths.clone(),
        };
        for (at, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, COLUMN_GAP));
            if self.widths.is_empty() && self.is_numeric(at) {
                column.set_cell_alignment(CellAlignment::Right);
            }
            if let Some(width) = widths.get(at) {
                column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(width + COLUMN_GAP)));
            }
        }
        table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
    }

    /// Whether all cells of a column are numbers.
    fn is_numeric(&self, column: usize) -> bool {
        let is_number = |text: &String| text.parse::<f64>().is_ok();
        !self.rows.is_empty() && self.rows.iter().all(|row| is_number(&row[column]))
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(Some(&self.heading)))
    }
}

/// The width of the terminal, or a usual one if stdout is none.
pub(crate) fn terminal_width() -> usize {
    comfy_table::Table::new().width().map_or(100, usize::from)
}

/// The widths, of which the largest are reduced until the columns fit in `available`.
fn fitting(widths: &[u16], available: u16) -> Vec<u16> {
    let mut fitting = widths.to_vec();
    let gaps = u32::from(COLUMN_GAP) * fitting.len() as u32;
    while fitting.iter().map(|width| u32::from(*width)).sum::<u32>() + gaps > u32::from(available) {
        match fitting.iter_mut().max() {
            Some(widest) if *widest > 1 => *widest -= 1,
            // No column can be narrower: the terminal is too small for this table.
            _ => break,
        }
    }
    fitting
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[[&str; 3]]) -> Table {
        let mut table = Table::new(&["NAME", "ITEMS", "NOTE"]);
        for row in rows {
            table.row(row.map(str::to_owned).to_vec());
        }
        table
    }

    #[test]
    fn columns_are_as_wide_as_their_cells_and_numbers_are_aligned_to_the_right() {
        let table = table(&[["West US", "5", ""], ["é", "1000", "x"]]);
        assert_eq!(table.to_string(), "NAME     ITEMS  NOTE\nWest US      5\né         1000  x");
        assert_eq!(table.rows(), "West US     5\né        1000  x");
        assert_eq!(Table::new(&["A", "B"]).to_string(), "A  B");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let table = table(&[["東日本", "x", "a"], ["West", "y", "b"]]);
        assert_eq!(table.to_string(), "NAME    ITEMS  NOTE\n東日本  x      a\nWest    y      b");
    }

    #[test]
    fn control_characters_are_escaped() {
        let table = table(&[["a\u{1b}[31mb", "1", "c\td\ne\u{7f}"]]);
        assert_eq!(table.rows(), "a\\u{1b}[31mb  1  c\\td\\ne\\u{7f}");
    }

    #[test]
    fn minimal_widths_fit_the_terminal() {
        assert_eq!(fitting(&[12, 20, 8, 0], 80), [12, 20, 8, 0]);
        assert_eq!(fitting(&[12, 20, 8, 0], 40), [12, 12, 8, 0]);
        assert_eq!(fitting(&[12, 20], 20), [8, 8]);
        assert_eq!(fitting(&[3, 3], 2), [1, 1]);
        assert_eq!(fitting(&[], 10), [0_u16; 0]);
    }

    #[test]
    fn rows_with_minimal_widths_line_up_when_they_are_printed_one_by_one() {
        let line = |name: &str| {
            let mut table = Table::with_widths(&["NAME", "NOTE"], &[8, 0]);
            table.row(vec![name.to_owned(), "x".to_owned()]);
            table.rows()
        };
        assert_eq!([line("a"), line("東")], ["a         x", "東        x"]);
        assert_eq!(Table::with_widths(&["NAME", "NOTE"], &[8, 0]).to_string(), "NAME      NOTE");
    }
}
