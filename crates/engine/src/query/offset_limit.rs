//! OFFSET, LIMIT and TOP over the pages of a result.

use sql::Statement;

/// What OFFSET, LIMIT and TOP still let through after some rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OffsetLimit {
    skip: u64,
    left: Option<u64>,
    passed: u64,
}

/// What happens to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowDecision {
    /// OFFSET skips the row.
    Skip,
    /// The row is returned.
    Return,
}

impl OffsetLimit {
    /// The limits of `statement` after this many rows, skipped or returned.
    pub(super) fn after(statement: &Statement, passed: u64) -> OffsetLimit {
        let (offset, limit) = (statement.offset(), statement.limit());
        let returned = passed.saturating_sub(offset);
        let left = limit.map(|limit| limit.saturating_sub(returned));
        OffsetLimit { skip: offset.saturating_sub(passed), left, passed }
    }

    /// Decides what happens to the next row.
    pub(super) fn decide(&self) -> RowDecision {
        if self.skip > 0 { RowDecision::Skip } else { RowDecision::Return }
    }

    /// Counts one row, skipped or returned.
    pub(super) fn pass(&mut self) {
        self.passed = self.passed.saturating_add(1);
        match self.skip {
            0 => self.left = self.left.map(|left| left.saturating_sub(1)),
            _ => self.skip -= 1,
        }
    }

    /// Whether no further row will be returned.
    pub(super) fn is_exhausted(&self) -> bool {
        self.left == Some(0)
    }

    /// How many rows may have to be read to return `count` of them.
    pub(super) fn rows_for(&self, count: usize) -> usize {
        let bounded = |rows: u64| usize::try_from(rows).unwrap_or(usize::MAX);
        bounded(self.skip).saturating_add(self.left.map_or(count, |left| count.min(bounded(left))))
    }

    /// The number of rows that a token has to state: zero when the statement has no limits.
    pub(super) fn rows_passed(&self, statement: &Statement) -> u64 {
        if statement.is_limited() { self.passed } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offset_and_limit_do_not_depend_on_paging() {
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
                let mut offset_limit = OffsetLimit::after(&statement, passed);
                if offset_limit.is_exhausted() {
                    break;
                }
                if offset_limit.decide() == RowDecision::Return {
                    returned.push(row);
                }
                offset_limit.pass();
                passed = offset_limit.passed;
            }
            assert_eq!(returned, expected, "{text}");
        }
    }
}
