//! Where a feed stopped, as text that a client carries to its next request.
//!
//! A token names a position on the ring and a place among the items there, never a partition, so it
//! stays valid when partitions split or merge. It is self-contained: the server remembers nothing.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use protocol::partition::EffectivePartitionKey;
use thiserror::Error;

use crate::store::Ordinal;

/// Where to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Continuation {
    /// The partition to go on with owns this position.
    pub(crate) epk: EffectivePartitionKey,
    /// The place among its items.
    pub(crate) position: Position,
    /// Rows of the item at that place which were already returned: a join makes many of one.
    pub(crate) rows_returned: usize,
}

/// A place among the items of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    /// Before everything.
    Start,
    /// At this item, in order of creation.
    Item(Ordinal),
    /// At this item, among those that lack the value the rest are ordered by.
    Missing(Ordinal),
    /// At this index entry.
    Entry(Vec<u8>),
    /// After this many rows of a result that has to be worked out as a whole.
    Row(usize),
}

/// A token nobody here wrote.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("Invalid Continuation Token")]
pub(crate) struct BadContinuation;

const MARK: &str = "PERI:1";

impl Continuation {
    /// The header's text: printable ASCII, under 1 KB.
    pub(crate) fn to_text(&self) -> String {
        let position = match &self.position {
            Position::Start => "S".to_owned(),
            Position::Item(Ordinal(ordinal)) => format!("I{ordinal:x}"),
            Position::Missing(Ordinal(ordinal)) => format!("M{ordinal:x}"),
            Position::Entry(entry) => format!("E{}", URL_SAFE_NO_PAD.encode(entry)),
            Position::Row(count) => format!("R{count:x}"),
        };
        format!("{MARK}#EPK:{}#POS:{position}#ROW:{:x}", self.epk.to_hex(), self.rows_returned)
    }

    /// Reads what [`Continuation::to_text`] wrote.
    pub(crate) fn parse(text: &str) -> Result<Continuation, BadContinuation> {
        read(text).ok_or(BadContinuation)
    }
}

fn read(text: &str) -> Option<Continuation> {
    let mut parts = text.split('#');
    (parts.next()? == MARK).then_some(())?;
    let epk = EffectivePartitionKey::from_hex(parts.next()?.strip_prefix("EPK:")?).ok()?;
    let position = parts.next()?.strip_prefix("POS:")?;
    let rows_returned = usize::from_str_radix(parts.next()?.strip_prefix("ROW:")?, 16).ok()?;
    parts.next().is_none().then_some(())?;
    let ordinal = |text: &str| u64::from_str_radix(text, 16).ok().map(Ordinal);
    let (kind, value) = position.split_at_checked(1)?;
    let position = match kind {
        "S" if value.is_empty() => Position::Start,
        "I" => Position::Item(ordinal(value)?),
        "M" => Position::Missing(ordinal(value)?),
        // An entry holds at least its space and its ordinal.
        "E" => Position::Entry(URL_SAFE_NO_PAD.decode(value).ok().filter(|entry| entry.len() >= 16)?),
        "R" => Position::Row(usize::from_str_radix(value, 16).ok()?),
        _ => return None,
    };
    Some(Continuation { epk, position, rows_returned })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_survive_the_way_through_a_header() {
        for position in [
            Position::Start,
            Position::Item(Ordinal(77)),
            Position::Missing(Ordinal(u64::MAX)),
            Position::Entry(vec![0xFF; 290]),
            Position::Row(12),
        ] {
            let epk = EffectivePartitionKey::from_hex("1FFF").unwrap();
            let token = Continuation { epk, position, rows_returned: 3 };
            let text = token.to_text();
            assert!(text.len() < 1024 && text.bytes().all(|byte| byte.is_ascii_graphic()), "{text}");
            assert_eq!(Continuation::parse(&text), Ok(token));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "PERI:1",
            "garbage",
            "PERI:1#EPK:zz#POS:S#ROW:0",
            "PERI:1#EPK:#POS:Q#ROW:0",
            "PERI:2#EPK:#POS:S#ROW:0",
            "PERI:1#EPK:#POS:Eab#ROW:0",
            "PERI:1#EPK:#POS:é#ROW:0",
        ] {
            assert_eq!(Continuation::parse(text), Err(BadContinuation), "{text}");
        }
    }
}
