//! Continuation tokens: where a page ended, as text that a client sends with its next request.
//!
//! A token names an EPK range and a position among its items, never a partition, so it stays valid when
//! partitions split or merge. It is self-contained: the server remembers nothing.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use protocol::partition::{EffectivePartitionKey, EpkRange};
use protocol::resource_id::{ContainerRid, ItemRid};
use thiserror::Error;

use super::sort_position::SortPosition;
use crate::items::Ordinal;

/// Where the next page begins: a range that has been partly read and, where partitions changed in between,
/// others that were partly read before it. What lies after the last of them has not been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continuation {
    /// At least one range, in EPK order.
    pub(crate) ranges: Vec<RangeProgress>,
    /// Rows that OFFSET skipped and that TOP or LIMIT let through so far.
    pub(crate) rows_passed: u64,
}

/// An EPK range and the position up to which it has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeProgress {
    pub(crate) range: EpkRange,
    /// The position among its items.
    pub(crate) position: ItemPosition,
    /// Rows at that position that were already returned: a join makes many of one item, and many rows may
    /// share what a token has room for.
    pub(crate) rows_returned: usize,
}

/// A position among the items of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ItemPosition {
    /// Before the first item.
    Start,
    /// At this item, in order of creation.
    Item(Ordinal),
    /// At this item, among those without the value that the others are ordered by.
    Undefined(Ordinal),
    /// At this index entry.
    Entry(Vec<u8>),
    /// At this position in a result that is sorted anew for each page.
    Sorted(SortPosition),
    /// After this many rows of a result whose rows can only be counted.
    RowCount(usize),
}

/// A continuation token as a client sends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContinuationToken {
    /// A token of this engine.
    Own(Continuation),
    /// A token of the service, which names the item that was returned last.
    Service(Ordinal),
}

impl ContinuationToken {
    /// Parses a token; `None` means from the beginning. One of the service (`-RID:~…#RT:1#…`, `+RID:~…`)
    /// names the item that was returned last; one of another container says nothing about this one.
    pub fn parse(
        text: &str,
        container: ContainerRid,
    ) -> Result<Option<ContinuationToken>, InvalidContinuation> {
        if text.starts_with(['{', '[']) {
            return Continuation::parse_gateway(text, container).map(ContinuationToken::Own).map(Some);
        }
        let Some(service) = text.strip_prefix(['+', '-']).and_then(|rest| rest.strip_prefix("RID:~")) else {
            return Continuation::parse(text).map(ContinuationToken::Own).map(Some);
        };
        let rid = service.split('#').next().unwrap_or(service);
        // Rids write `-` for base64's `/`.
        STANDARD.decode(rid.replace('-', "/")).map_err(|_| InvalidContinuation)?;
        let item = rid.parse::<ItemRid>().ok().filter(|rid| rid.container == container);
        Ok(item.map(|rid| ContinuationToken::Service(Ordinal(rid.ordinal))))
    }
}

/// A token that neither this engine nor the service wrote.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("Invalid Continuation Token")]
pub struct InvalidContinuation;

const MARK: &str = "PERI:2";
/// Ranges that one token may have: each split in the middle of a query adds one.
const RANGES_MAX: usize = 16;

impl Continuation {
    /// A continuation of one range.
    pub(crate) fn at(range: EpkRange, position: ItemPosition, rows_returned: usize) -> Continuation {
        Continuation { ranges: vec![RangeProgress { range, position, rows_returned }], rows_passed: 0 }
    }

    /// After an item, in whatever partition that is.
    pub fn after(Ordinal(item): Ordinal) -> Continuation {
        Continuation::at(EpkRange::FULL, ItemPosition::Item(Ordinal(item.saturating_add(1))), 0)
    }

    /// The header's text: printable ASCII, about 1 KB at the most.
    pub fn to_text(&self) -> String {
        let passed = if self.rows_passed == 0 { String::new() } else { format!("#{:x}", self.rows_passed) };
        self.ranges.iter().fold(MARK.to_owned() + &passed, |text, progress| text + &progress.to_text())
    }

    /// The header's text for a request that the gateway routes: JSON with the EPK range that comes next and
    /// the position in it, `null` at its beginning.
    pub fn to_gateway_text(&self) -> String {
        let EpkRange { min, max } = self.range();
        let is_start = self.rows_passed == 0
            && matches!(
                self.ranges.as_slice(),
                [RangeProgress { position: ItemPosition::Start, rows_returned: 0, .. }]
            );
        // Tokens and EPKs have no characters that JSON escapes.
        let token = if is_start { "null".to_owned() } else { format!("\"{}\"", self.to_text()) };
        format!(
            "{{\"token\":{token},\"range\":{{\"min\":\"{}\",\"max\":\"{}\"}}}}",
            min.to_hex(),
            max.to_hex()
        )
    }

    /// Reads what [`Continuation::to_gateway_text`] wrote, or a list of such objects, in EPK order.
    fn parse_gateway(text: &str, container: ContainerRid) -> Result<Continuation, InvalidContinuation> {
        let json: serde_json::Value = serde_json::from_str(text).map_err(|_| InvalidContinuation)?;
        let parts = json.as_array().map_or(std::slice::from_ref(&json), Vec::as_slice);
        let mut all = Continuation { ranges: Vec::new(), rows_passed: 0 };
        for part in parts {
            let bound = |name: &str| {
                let hex = part["range"][name].as_str().ok_or(InvalidContinuation)?;
                EffectivePartitionKey::from_hex(hex).map_err(|_| InvalidContinuation)
            };
            let range = EpkRange::new(bound("min")?, bound("max")?);
            let position = match &part["token"] {
                serde_json::Value::Null => ItemPosition::Start,
                serde_json::Value::String(token) => match ContinuationToken::parse(token, container)? {
                    None => ItemPosition::Start,
                    Some(ContinuationToken::Service(Ordinal(item))) => {
                        ItemPosition::Item(Ordinal(item.saturating_add(1)))
                    }
                    Some(ContinuationToken::Own(inner)) => {
                        all.rows_passed = all.rows_passed.max(inner.rows_passed);
                        all.ranges.extend(inner.ranges);
                        continue;
                    }
                },
                _ => return Err(InvalidContinuation),
            };
            all.ranges.push(RangeProgress { range, position, rows_returned: 0 });
        }
        if (1..=RANGES_MAX).contains(&all.ranges.len()) { Ok(all) } else { Err(InvalidContinuation) }
    }

    /// Reads what [`Continuation::to_text`] wrote.
    pub(crate) fn parse(text: &str) -> Result<Continuation, InvalidContinuation> {
        let mut parts = text.split('#').peekable();
        let marked = parts.next() == Some(MARK);
        let passed = parts.next_if(|part| !part.contains(':'));
        let passed =
            passed.map_or(Ok(0), |count| u64::from_str_radix(count, 16).map_err(|_| InvalidContinuation))?;
        let ranges: Option<Vec<RangeProgress>> = parts.map(RangeProgress::parse).collect();
        let ranges = ranges.filter(|all| marked && (1..=RANGES_MAX).contains(&all.len()));
        ranges.map(|ranges| Continuation { ranges, rows_passed: passed }).ok_or(InvalidContinuation)
    }

    /// The EPK range it covers: from the beginning of its first range to the end of the last.
    pub fn range(&self) -> EpkRange {
        let ends = self.ranges.first().zip(self.ranges.last());
        let (first, last) = ends.expect("a token has at least one stretch");
        EpkRange::new(first.range.min.clone(), last.range.max.clone())
    }

    /// The number of returned rows, for a result that continues by counting them.
    pub fn returned_rows(&self) -> Option<usize> {
        self.ranges.iter().find_map(|progress| match progress.position {
            ItemPosition::RowCount(count) => Some(count),
            _ => None,
        })
    }

    /// Divides `within`, which one partition owns, into the ranges that remain to be read, with their
    /// positions.
    pub fn remaining(&self, within: &EpkRange) -> Vec<RangeProgress> {
        let begun = self.ranges.iter().filter_map(|progress| {
            Some(RangeProgress { range: progress.range.intersect(within)?, ..progress.clone() })
        });
        let mut remaining: Vec<RangeProgress> = begun.collect();
        let end = self.ranges.last().map_or(&within.min, |last| &last.range.max);
        let rest = EpkRange::new(end.max(&within.min).clone(), within.max.clone());
        if !rest.is_empty() {
            remaining.push(RangeProgress { range: rest, position: ItemPosition::Start, rows_returned: 0 });
        }
        remaining
    }

    /// Divides `within` into the ranges that remain to be read from the end to the beginning, in that order.
    pub(crate) fn remaining_backwards(&self, within: &EpkRange) -> Vec<RangeProgress> {
        let begun = self.ranges.iter().rev().filter_map(|progress| {
            Some(RangeProgress { range: progress.range.intersect(within)?, ..progress.clone() })
        });
        let mut remaining: Vec<RangeProgress> = begun.collect();
        let end = self.ranges.first().map_or(&within.max, |first| &first.range.min);
        let rest = EpkRange::new(within.min.clone(), end.min(&within.max).clone());
        if !rest.is_empty() {
            remaining.push(RangeProgress { range: rest, position: ItemPosition::Start, rows_returned: 0 });
        }
        remaining
    }

    /// The ranges before `at`, which remain for later pages of a feed that is read backwards.
    pub(crate) fn ranges_before(&self, at: &EffectivePartitionKey) -> impl Iterator<Item = RangeProgress> {
        self.ranges.iter().filter_map(move |progress| {
            let max = progress.range.max.clone().min(at.clone());
            let range = EpkRange::new(progress.range.min.clone(), max);
            (!range.is_empty()).then(|| RangeProgress { range, ..progress.clone() })
        })
    }

    /// The ranges after `at`, which remain for later pages.
    pub(crate) fn ranges_after(&self, at: &EffectivePartitionKey) -> impl Iterator<Item = RangeProgress> {
        self.ranges.iter().filter_map(move |progress| {
            let min = progress.range.min.clone().max(at.clone());
            let range = EpkRange::new(min, progress.range.max.clone());
            (!range.is_empty()).then(|| RangeProgress { range, ..progress.clone() })
        })
    }
}

impl RangeProgress {
    fn to_text(&self) -> String {
        let position = match &self.position {
            ItemPosition::Start => "S".to_owned(),
            ItemPosition::Item(Ordinal(ordinal)) => format!("I{ordinal:x}"),
            ItemPosition::Undefined(Ordinal(ordinal)) => format!("M{ordinal:x}"),
            ItemPosition::Entry(entry) => format!("E{}", URL_SAFE_NO_PAD.encode(entry)),
            ItemPosition::Sorted(sort_position) => sort_position.to_text(),
            ItemPosition::RowCount(count) => format!("R{count:x}"),
        };
        let EpkRange { min, max } = &self.range;
        format!("#{}:{}:{position}:{:x}", min.to_hex(), max.to_hex(), self.rows_returned)
    }

    fn parse(text: &str) -> Option<RangeProgress> {
        let mut parts = text.split(':');
        let mut epk = || EffectivePartitionKey::from_hex(parts.next()?).ok();
        let range = EpkRange::new(epk()?, epk()?);
        let (kind, value) = parts.next()?.split_at_checked(1)?;
        let rows_returned = usize::from_str_radix(parts.next()?, 16).ok()?;
        parts.next().is_none().then_some(())?;
        let ordinal = |text: &str| u64::from_str_radix(text, 16).ok().map(Ordinal);
        let position = match kind {
            "S" if value.is_empty() => ItemPosition::Start,
            "I" => ItemPosition::Item(ordinal(value)?),
            "M" => ItemPosition::Undefined(ordinal(value)?),
            // An entry holds at least its space and its ordinal.
            "E" => ItemPosition::Entry(URL_SAFE_NO_PAD.decode(value).ok().filter(|entry| entry.len() >= 16)?),
            "R" => ItemPosition::RowCount(usize::from_str_radix(value, 16).ok()?),
            kind => ItemPosition::Sorted(SortPosition::parse(kind, value)?),
        };
        Some(RangeProgress { range, position, rows_returned })
    }
}

#[cfg(test)]
mod tests {
    use protocol::resource_id::DatabaseRid;

    use super::super::sort_position::TieOrder;
    use super::*;

    fn epk(hex: &str) -> EffectivePartitionKey {
        EffectivePartitionKey::from_hex(hex).unwrap()
    }

    fn range(min: &str, max: &str) -> EpkRange {
        EpkRange::new(epk(min), epk(max))
    }

    #[test]
    fn a_token_says_where_each_epk_range_continues() {
        let begun = Continuation::at(range("10", "20"), ItemPosition::Item(Ordinal(5)), 0);
        let at = |within: &EpkRange| -> Vec<(EpkRange, ItemPosition)> {
            begun.remaining(within).into_iter().map(|part| (part.range, part.position)).collect()
        };
        let five = ItemPosition::Item(Ordinal(5));
        // Its own partition, its two children, one before, one behind, and one it was merged into.
        assert_eq!(at(&range("10", "20")), [(range("10", "20"), five.clone())]);
        assert_eq!(at(&range("10", "18")), [(range("10", "18"), five.clone())]);
        assert_eq!(at(&range("18", "20")), [(range("18", "20"), five.clone())]);
        assert_eq!(at(&range("", "10")), []);
        assert_eq!(at(&range("20", "FF")), [(range("20", "FF"), ItemPosition::Start)]);
        assert_eq!(
            at(&range("", "30")),
            [(range("10", "20"), five.clone()), (range("20", "30"), ItemPosition::Start)]
        );
        let ranges_after: Vec<RangeProgress> = begun.ranges_after(&epk("18")).collect();
        assert_eq!(
            ranges_after,
            [RangeProgress { range: range("18", "20"), position: five, rows_returned: 0 }]
        );
    }

    #[test]
    fn tokens_round_trip_as_header_text() {
        for position in [
            ItemPosition::Start,
            ItemPosition::Item(Ordinal(77)),
            ItemPosition::Undefined(Ordinal(u64::MAX)),
            ItemPosition::Entry(vec![0xFF; 290]),
            ItemPosition::Sorted(SortPosition::at(&[7; 300], &[1; 12], TieOrder::Forwards)),
            ItemPosition::Sorted(SortPosition::at(&[7; 9000], &[1; 12], TieOrder::Backwards)),
            ItemPosition::RowCount(12),
        ] {
            let mut token = Continuation::at(range("1FFF", "2F"), position, 3);
            let text = token.to_text();
            assert_eq!(Continuation::parse(&text), Ok(token.clone()));
            token.rows_passed = 77;
            let text = token.to_text();
            assert!(text.len() < 1024 && text.bytes().all(|byte| byte.is_ascii_graphic()), "{text}");
            assert_eq!(Continuation::parse(&text), Ok(token));
        }
    }

    #[test]
    fn a_token_of_the_service_names_the_last_item() {
        let container = ContainerRid { database: DatabaseRid(1), container: 1 };
        let rid = ItemRid { container, ordinal: 77 }.to_string();
        for text in [format!("-RID:~{rid}#RT:1#TRC:2#ISV:2#IEO:65567#QCF:8"), format!("+RID:~{rid}")] {
            assert_eq!(
                ContinuationToken::parse(&text, container),
                Ok(Some(ContinuationToken::Service(Ordinal(77)))),
                "{text}"
            );
        }
        let other_container = "-RID:~a0NPAOszCpOChB4AAAAAAA==#RT:1#TRC:2#ISV:2#IEO:65567#QCF:8";
        assert_eq!(ContinuationToken::parse(other_container, container), Ok(None));
        for text in ["RID:~AAAA", "-RID:~!", "-RID:", "+", "-TRC:2"] {
            assert_eq!(ContinuationToken::parse(text, container), Err(InvalidContinuation), "{text}");
        }
    }

    #[test]
    fn a_token_of_the_gateway_is_json_with_a_range() {
        let container = ContainerRid { database: DatabaseRid(1), container: 1 };
        let rid = ItemRid { container, ordinal: 77 }.to_string();
        let start = Continuation::at(range("10", "FF"), ItemPosition::Start, 0);
        assert_eq!(start.to_gateway_text(), r#"{"token":null,"range":{"min":"10","max":"FF"}}"#);
        let inside = Continuation::at(range("", "10"), ItemPosition::Item(Ordinal(5)), 1);
        for token in [&start, &inside] {
            let text = token.to_gateway_text();
            assert_eq!(
                ContinuationToken::parse(&text, container),
                Ok(Some(ContinuationToken::Own(token.clone())))
            );
        }
        let list = format!("[{},{}]", inside.to_gateway_text(), start.to_gateway_text());
        let Ok(Some(ContinuationToken::Own(both))) = ContinuationToken::parse(&list, container) else {
            panic!("{list}");
        };
        assert_eq!(both.ranges, [inside.ranges.clone(), start.ranges.clone()].concat());
        let service = format!(r#"{{"token":"+RID:~{rid}#RT:1","range":{{"min":"","max":"FF"}}}}"#);
        let after = Continuation::at(range("", "FF"), ItemPosition::Item(Ordinal(78)), 0);
        assert_eq!(ContinuationToken::parse(&service, container), Ok(Some(ContinuationToken::Own(after))));
        for text in [
            "{}",
            "[]",
            "{",
            r#"{"token":5,"range":{"min":"","max":"FF"}}"#,
            r#"{"token":null,"range":{"min":"x","max":"FF"}}"#,
        ] {
            assert_eq!(ContinuationToken::parse(text, container), Err(InvalidContinuation), "{text}");
        }
    }

    #[test]
    fn malformed_tokens_are_rejected() {
        for text in [
            "",
            "PERI:2",
            "garbage",
            "PERI:2#zz:FF:S:0",
            "PERI:2#:FF:Q:0",
            "PERI:1#EPK:#POS:S#ROW:0",
            "PERI:2#:FF:Eab:0",
            "PERI:2#:FF:é:0",
            "PERI:2#:FF:S:0:0",
            "PERI:2#5",
            "PERI:2#x#:FF:S:0",
            "PERI:2#5#5#:FF:S:0",
            "PERI:2#:FF:K!:0",
        ] {
            assert_eq!(Continuation::parse(text), Err(InvalidContinuation), "{text}");
        }
    }
}
