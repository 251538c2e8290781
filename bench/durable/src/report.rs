//! Figures by row and by who was measured.

/// What was measured, in order.
#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: Vec<(String, Vec<(String, f64, &'static str)>)>,
}

impl Report {
    /// Adds a figure, and prints it so that a long run can be followed.
    pub(crate) fn add(&mut self, row: &str, who: &str, value: f64, unit: &'static str) {
        eprintln!("{row}: {who} {value:.1} {unit}");
        let figure = (who.to_owned(), value, unit);
        match self.rows.iter_mut().find(|(name, _)| name == row) {
            Some((_, figures)) => figures.push(figure),
            None => self.rows.push((row.to_owned(), vec![figure])),
        }
    }

    /// Prints all rows, with the ratio of the first one to each of the others.
    pub(crate) fn print(&self) {
        println!("| measured | {} |", "figures, and what Perihelion's is of them");
        println!("|---|---|");
        for (row, figures) in &self.rows {
            let own = figures.iter().find(|(who, _, _)| who == "perihelion").map(|(_, value, _)| *value);
            let cells: Vec<String> = figures
                .iter()
                .map(|(who, value, unit)| match own {
                    Some(own) if who != "perihelion" => format!("{who} {value:.1} {unit} ({:.2}×)", own / value),
                    _ => format!("{who} {value:.1} {unit}"),
                })
                .collect();
            println!("| {row} | {} |", cells.join(", "));
        }
    }
}
