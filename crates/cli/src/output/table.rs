//! Rows in columns, for people.

use std::fmt;

/// A table without lines: a heading, and columns as wide as what is in them. Numbers are set right.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns and nothing in it.
    pub(crate) fn new(heading: &[&str]) -> Table {
        Table { rows: vec![heading.iter().map(|&title| title.to_owned()).collect()] }
    }

    /// Adds a row; it has as many cells as the heading.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.rows[0].len(), "a cell for every column");
        self.rows.push(cells);
    }

    fn width(&self, column: usize) -> usize {
        self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
    }

    /// Whether everything below the heading is a number.
    fn is_numeric(&self, column: usize) -> bool {
        let is_number = |text: &String| text.parse::<f64>().is_ok();
        self.rows.len() > 1 && self.rows[1..].iter().all(|row| is_number(&row[column]))
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows[0].len();
        let shape: Vec<(usize, bool)> =
            (0..columns).map(|at| (self.width(at), self.is_numeric(at))).collect();
        for (at, row) in self.rows.iter().enumerate() {
            let cells: Vec<String> = row
                .iter()
                .zip(&shape)
                .map(
                    |(cell, &(width, numeric))| {
                        if numeric { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
                    },
                )
                .collect();
            let end = if at == 0 { "" } else { "\n" };
            write!(f, "{end}{}", cells.join("  ").trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_cells_and_numbers_stand_right() {
        let mut table = Table::new(&["NAME", "ITEMS", "NOTE"]);
        table.row(vec!["West US".to_owned(), "5".to_owned(), String::new()]);
        table.row(vec!["é".to_owned(), "1000".to_owned(), "x".to_owned()]);
        assert_eq!(table.to_string(), "NAME     ITEMS  NOTE\nWest US      5\né         1000  x");
        assert_eq!(Table::new(&["A", "B"]).to_string(), "A  B");
    }
}
