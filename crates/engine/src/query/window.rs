//! OFFSET, LIMIT and TOP over the pages of a result.

use sql::Statement;

/// What OFFSET, LIMIT and TOP still let through, at some row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    skip: u64,
    left: Option<u64>,
    passed: u64,
}

/// What becomes of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is one of those that OFFSET skips.
    Skip,
    /// It is returned.
    Return,
}

impl Window {
    /// The window of `statement` after `passed` rows, skipped or returned.
    pub(super) fn after(statement: &Statement, passed: u64) -> Window {
        let (offset, limit) = (statement.offset(), statement.limit());
        let returned = passed.saturating_sub(offset);
        let left = limit.map(|limit| limit.saturating_sub(returned));
        Window { skip: offset.saturating_sub(passed), left, passed }
    }

    /// What becomes of the next row.
    pub(super) fn turn(&self) -> Turn {
        if self.skip > 0 { Turn::Skip } else { Turn::Return }
    }

    /// Moves behind it.
    pub(super) fn pass(&mut self) {
        self.passed = self.passed.saturating_add(1);
        match self.skip {
            0 => self.left = self.left.map(|left| left.saturating_sub(1)),
            _ => self.skip -= 1,
        }
    }

    /// Whether no further row is returned.
    pub(super) fn is_over(&self) -> bool {
        self.left == Some(0)
    }

    /// How many rows may be looked at to return `count` of them.
    pub(super) fn rows_for(&self, count: usize) -> usize {
        let bounded = |rows: u64| usize::try_from(rows).unwrap_or(usize::MAX);
        bounded(self.skip).saturating_add(self.left.map_or(count, |left| count.min(bounded(left))))
    }

    /// What a token has to say of it: nothing when every row counts.
    pub(super) fn told(&self, statement: &Statement) -> u64 {
        if statement.is_limited() { self.passed } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_stays_the_same_however_it_is_cut_into_pages() {
        for (text, expected) in [
            ("SELECT * FROM c", vec![0, 1, 2, 3, 4, 5, 6, 7]),
            ("SELECT TOP 3 * FROM c", vec![0, 1, 2]),
            ("SELECT TOP 0 * FROM c", vec![]),
            ("SELECT * FROM c OFFSET 2 LIMIT 3", vec![2, 3, 4]),
            ("SELECT * FROM c OFFSET 6 LIMIT 30", vec![6, 7]),
        ] {
            let statement = Statement::prepare(text, &[], &sql::QuerySchema::default()).unwrap();
            let mut passed = 0;
            let mut returned = Vec::new();
            for row in 0..8 {
                // Each row on a page of its own.
                let mut window = Window::after(&statement, passed);
                if window.is_over() {
                    break;
                }
                if window.turn() == Turn::Return {
                    returned.push(row);
                }
                window.pass();
                passed = window.passed;
            }
            assert_eq!(returned, expected, "{text}");
        }
    }
}
