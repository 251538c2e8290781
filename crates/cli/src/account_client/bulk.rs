//! Many items in one request: the bulk form of a batch, in which each stands for itself.
//!
//! A request goes to one physical partition, so whoever sends it has to know which there are. What
//! becomes of each item is told apart; what to do about it is the caller's affair.

use std::time::Duration;

use http::Method;
use protocol::batch::{BatchResult, parse_results};
use protocol::container::PartitionKeyDefinition;
use protocol::headers as name;
use protocol::partition::{EffectivePartitionKey, EpkRange, PartitionKey, effective_key};
use protocol::partition_range::RangeId;
use protocol::status::Status;
use serde::Deserialize;

use super::client::{AccountClient, AccountError, reason_in};

/// Pages of ranges that are read at the most.
const RANGE_PAGES_MAX: usize = 1_000;

/// The physical partitions of a container, as they were when somebody asked.
#[derive(Debug, Default)]
pub(crate) struct Ranges(Vec<(EpkRange, RangeId)>);

/// An item on its way.
#[derive(Clone, Debug)]
pub(crate) struct Upsert {
    /// Its partition key, as headers write it.
    pub(crate) key: String,
    /// Where that is on the ring.
    pub(crate) place: EffectivePartitionKey,
    /// The item as JSON text.
    pub(crate) text: String,
}

/// What became of one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is there.
    Stored,
    /// It never will be.
    Refused(String),
    /// Not yet: after so long, if the account said.
    Later(Option<Duration>),
    /// It belongs to another partition, or will in a moment.
    Elsewhere,
}

impl Ranges {
    /// The one that a place belongs to; none where the ranges have a gap, which they never should.
    pub(crate) fn of(&self, place: &EffectivePartitionKey) -> Option<RangeId> {
        let after = self.0.partition_point(|(range, _)| range.min <= *place);
        let (range, id) = self.0.get(after.checked_sub(1)?)?;
        range.contains(place).then_some(*id)
    }
}

impl Upsert {
    /// An item of a container with this key definition.
    pub(crate) fn new(key: &PartitionKey, definition: &PartitionKeyDefinition, text: String) -> Upsert {
        Upsert { key: key.to_header(), place: effective_key(definition, key), text }
    }

    /// Bytes that it adds to a request.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len() + self.key.len() + 64
    }

    fn write(&self, to: &mut String) {
        to.push_str(r#"{"operationType":"Upsert","partitionKey":"#);
        to.push_str(&serde_json::to_string(&self.key).expect("a string is JSON"));
        to.push_str(r#","resourceBody":"#);
        to.push_str(&self.text);
        to.push('}');
    }
}

impl AccountClient {
    /// The container's physical partitions.
    pub(crate) async fn ranges(&self) -> Result<Ranges, AccountError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Feed {
            partition_key_ranges: Vec<Listed>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Listed {
            id: RangeId,
            min_inclusive: EffectivePartitionKey,
            max_exclusive: EffectivePartitionKey,
        }

        let (mut ranges, mut from) = (Vec::new(), None);
        for _ in 0..RANGE_PAGES_MAX {
            let mut ask = self.ask(Method::GET, "pkranges", bytes::Bytes::new());
            ask.headers.push((name::MAX_ITEM_COUNT, "-1".to_owned()));
            ask.headers.extend(from.map(|from| (name::CONTINUATION, from)));
            let answer = self.accept(self.send(ask).await?)?;
            let feed: Feed = self.read(&answer.body)?;
            let listed = feed.partition_key_ranges.into_iter();
            ranges.extend(listed.map(|one| (EpkRange::new(one.min_inclusive, one.max_exclusive), one.id)));
            from = answer.continuation();
            if from.is_none() {
                break;
            }
        }
        ranges.sort_by(|(a, _), (b, _)| a.min.cmp(&b.min));
        Ok(Ranges(ranges))
    }

    /// Stores items of one physical partition, each for itself, whether or not there are others of their
    /// ids. Says what became of each, in order.
    pub(crate) async fn bulk(&self, range: RangeId, items: &[&Upsert]) -> Result<Vec<Fate>, AccountError> {
        let bytes = items.iter().map(|item| item.bytes()).sum::<usize>();
        let mut body = String::with_capacity(bytes + 2);
        for item in items {
            body.push(if body.is_empty() { '[' } else { ',' });
            item.write(&mut body);
        }
        body.push(']');
        let mut ask = self.ask(Method::POST, "docs", body.into());
        let flag = |value: bool| if value { "True" } else { "False" }.to_owned();
        ask.headers = vec![
            (name::IS_BATCH_REQUEST, flag(true)),
            (name::BATCH_ATOMIC, flag(false)),
            (name::BATCH_CONTINUE_ON_ERROR, flag(true)),
            (name::PARTITION_KEY_RANGE_ID, range.to_string()),
            (name::PREFER, "return=minimal".to_owned()),
        ];
        ask.gone_is_final = true;
        let answer = self.send(ask).await?;
        if answer.status == Status::GONE {
            return Ok(vec![Fate::Elsewhere; items.len()]);
        }
        let answer = self.accept(answer)?;
        let results = parse_results(&answer.body)
            .map_err(|error| AccountError::Nonsense(self.endpoint().to_owned(), error.to_string()))?;
        if results.len() != items.len() {
            let said = format!("{} results for {} items", results.len(), items.len());
            return Err(AccountError::Nonsense(self.endpoint().to_owned(), said));
        }
        Ok(results.iter().map(fate).collect())
    }
}

/// What the result of one operation means.
fn fate(result: &BatchResult<&[u8]>) -> Fate {
    match result.status.0 {
        200..300 => Fate::Stored,
        410 => Fate::Elsewhere,
        408 | 424 | 429 | 449 | 500 | 503 => Fate::Later(result.retry_after_ms.map(Duration::from_millis)),
        status => {
            let reason = result.message.as_deref().and_then(reason_in);
            Fate::Refused(format!("{status}: {}", reason.as_deref().unwrap_or("without a reason")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(bounds: &[(&str, &str, u32)]) -> Ranges {
        let place = |hex: &str| EffectivePartitionKey::from_hex(hex).unwrap();
        Ranges(
            bounds
                .iter()
                .map(|(min, max, id)| (EpkRange::new(place(min), place(max)), RangeId(*id)))
                .collect(),
        )
    }

    #[test]
    fn a_place_belongs_to_the_range_around_it() {
        let ranges = ranges(&[("", "1F", 3), ("1F", "3F", 7), ("5F", "FF", 1)]);
        for (place, expected) in [
            ("", Some(3)),
            ("00", Some(3)),
            ("1E", Some(3)),
            ("1F", Some(7)),
            ("3F", None),
            ("60", Some(1)),
            ("FE", Some(1)),
        ] {
            let found = ranges.of(&EffectivePartitionKey::from_hex(place).unwrap());
            assert_eq!(found, expected.map(RangeId), "{place}");
        }
        assert_eq!(Ranges::default().of(&EffectivePartitionKey::MIN), None);
    }

    #[test]
    fn each_result_is_told_apart() {
        let result = |status: u16, wait: Option<u64>| BatchResult {
            retry_after_ms: wait,
            message: Some("no\nactivity".to_owned()),
            ..BatchResult::new(Status(status), 0.0)
        };
        for (status, wait, expected) in [
            (200, None, Fate::Stored),
            (201, None, Fate::Stored),
            (410, None, Fate::Elsewhere),
            (429, Some(7), Fate::Later(Some(Duration::from_millis(7)))),
            (449, None, Fate::Later(None)),
            (400, None, Fate::Refused("400: no".to_owned())),
            (413, None, Fate::Refused("413: no".to_owned())),
        ] {
            assert_eq!(fate(&result(status, wait)), expected, "{status}");
        }
    }
}
