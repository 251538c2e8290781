//! OFFSET, LIMIT and TOP, counted over the merged rows.

use serde::{Deserialize, Serialize};

/// What is still to be skipped and to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OffsetLimit {
    #[serde(rename = "s")]
    pub(super) skip: u64,
    #[serde(rename = "t")]
    pub(super) take: Option<u64>,
}

impl OffsetLimit {
    /// Whether the next row is let through.
    pub(super) fn admits_next(&mut self) -> bool {
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        match &mut self.take {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }

    /// Whether no further row is let through.
    pub(super) fn is_closed(&self) -> bool {
        self.take == Some(0)
    }

    /// The most rows that are still needed, those to be skipped included.
    pub(super) fn needed(&self) -> Option<u64> {
        self.take.map(|take| take.saturating_add(self.skip))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_skipped_then_taken_then_dropped() {
        for (skip, take, expected) in [
            (0, None, vec![0, 1, 2, 3, 4]),
            (2, None, vec![2, 3, 4]),
            (1, Some(2), vec![1, 2]),
            (0, Some(0), vec![]),
            (9, Some(1), vec![]),
        ] {
            let mut window = OffsetLimit { skip, take };
            let admitted: Vec<i32> = (0..5).filter(|_| window.admits_next()).collect();
            assert_eq!(admitted, expected, "{skip} {take:?}");
            assert_eq!(window.is_closed(), take == Some(expected.len() as u64));
        }
        assert_eq!(OffsetLimit { skip: 3, take: Some(4) }.needed(), Some(7));
    }
}
