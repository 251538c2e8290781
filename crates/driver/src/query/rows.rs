//! The rows of a page: slices of its body, read no further than merging needs.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use sql::Value;

use crate::error::{Error, ErrorKind};

#[derive(Deserialize)]
struct Feed<T> {
    #[serde(rename = "Documents")]
    documents: Vec<T>,
}

/// Each row as JSON text, sharing the body's memory.
pub(crate) fn plain(body: &Bytes) -> Result<Vec<Bytes>, Error> {
    let feed: Feed<&RawValue> = serde_json::from_slice(body).map_err(|error| bad(&error))?;
    Ok(feed.documents.into_iter().map(|row| slice(body, row)).collect())
}

/// A row of a query with ORDER BY.
#[derive(Clone, Debug)]
pub(super) struct OrderedRow {
    /// What it is ordered by; undefined where it has nothing.
    pub(super) keys: Vec<Value>,
    /// The document it is from.
    pub(super) rid: Box<str>,
    /// What the caller gets.
    pub(super) payload: Bytes,
}

/// Rows in the envelope of a rewritten ORDER BY query.
pub(super) fn ordered(body: &Bytes) -> Result<Vec<OrderedRow>, Error> {
    #[derive(Deserialize)]
    struct Envelope<'a> {
        #[serde(rename = "_rid", borrow)]
        rid: Cow<'a, str>,
        #[serde(rename = "orderByItems")]
        items: Vec<Item>,
        #[serde(borrow)]
        payload: &'a RawValue,
    }
    let feed: Feed<Envelope<'_>> = serde_json::from_slice(body).map_err(|error| bad(&error))?;
    let rows = feed.documents.into_iter().map(|row| OrderedRow {
        keys: row.items.into_iter().map(|item| item.item).collect(),
        rid: row.rid.into(),
        payload: slice(body, row.payload),
    });
    Ok(rows.collect())
}

/// A value in its envelope: `{}` where it is undefined.
#[derive(Debug, Deserialize)]
pub(super) struct Item {
    #[serde(default)]
    pub(super) item: Value,
}

/// A row of a query with GROUP BY or aggregates.
#[derive(Debug)]
pub(super) struct GroupRow {
    /// What its group is known by; empty when there is one group only.
    pub(super) keys: Vec<Value>,
    /// The parts of its aggregates, or the value it has in common.
    pub(super) payload: Value,
}

/// Rows in the envelope of a rewritten GROUP BY query, or of one with aggregates in a list.
pub(super) fn grouped(body: &Bytes) -> Result<Vec<GroupRow>, Error> {
    #[derive(Deserialize)]
    struct Envelope {
        #[serde(rename = "groupByItems", default)]
        items: Vec<Item>,
        #[serde(default)]
        payload: Value,
    }
    let feed: Feed<Envelope> = serde_json::from_slice(body).map_err(|error| bad(&error))?;
    let rows = feed.documents.into_iter().map(|row| GroupRow {
        keys: row.items.into_iter().map(|item| item.item).collect(),
        payload: row.payload,
    });
    Ok(rows.collect())
}

/// A row of a query for one score of a hybrid search.
#[derive(Clone, Debug)]
pub(super) struct ScoredRow {
    /// The document it is from.
    pub(super) rid: Box<str>,
    /// Every score it has, not only the one that was asked for.
    pub(super) scores: Box<[f64]>,
    /// What the caller gets.
    pub(super) payload: Bytes,
}

/// Rows in the envelope of a score's query.
pub(super) fn scored(body: &Bytes) -> Result<Vec<ScoredRow>, Error> {
    #[derive(Deserialize)]
    struct Envelope<'a> {
        #[serde(rename = "_rid", borrow)]
        rid: Cow<'a, str>,
        #[serde(borrow)]
        payload: Payload<'a>,
    }
    #[derive(Deserialize)]
    struct Payload<'a> {
        #[serde(borrow)]
        payload: &'a RawValue,
        #[serde(rename = "componentScores")]
        scores: Box<[f64]>,
    }
    let feed: Feed<Envelope<'_>> = serde_json::from_slice(body).map_err(|error| bad(&error))?;
    let rows = feed.documents.into_iter().map(|row| ScoredRow {
        rid: row.rid.into(),
        scores: row.payload.scores,
        payload: slice(body, row.payload.payload),
    });
    Ok(rows.collect())
}

/// Rows that are values.
pub(super) fn values(body: &Bytes) -> Result<Vec<Value>, Error> {
    read(body)
}

/// Rows of one kind.
pub(super) fn read<T: DeserializeOwned>(body: &Bytes) -> Result<Vec<T>, Error> {
    let feed: Feed<T> = serde_json::from_slice(body).map_err(|error| bad(&error))?;
    Ok(feed.documents)
}

fn slice(body: &Bytes, part: &RawValue) -> Bytes {
    body.slice_ref(part.get().as_bytes())
}

fn bad(error: &serde_json::Error) -> Error {
    Error::new(
        ErrorKind::BadResponse,
        format!("the service did not respond with a page of this query: {error}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_share_the_memory_of_their_page() {
        let body = Bytes::from_static(br#"{"_rid":"x","Documents":[{"a": 1}, "b", null],"_count":3}"#);
        let rows = plain(&body).expect("a page");
        assert_eq!(rows, [&br#"{"a": 1}"#[..], br#""b""#, b"null"]);
        assert_eq!(
            rows[1].as_ptr(),
            body[body.iter().position(|byte| *byte == b'b').expect("there") - 1..].as_ptr()
        );
    }

    #[test]
    fn undefined_keys_and_null_are_different() {
        let body = Bytes::from_static(
            br#"{"Documents":[{"_rid":"r","orderByItems":[{"item":null},{},{"item":1}],"payload":{"x":1}}]}"#,
        );
        let rows = ordered(&body).expect("a page");
        assert_eq!(rows[0].keys, [Value::Null, Value::Undefined, Value::from(1i64)]);
        assert_eq!((&*rows[0].rid, &rows[0].payload[..]), ("r", &br#"{"x":1}"#[..]));
    }

    #[test]
    fn what_is_not_a_page_of_the_query_is_an_error() {
        for body in [&b""[..], b"{}", b"[]", br#"{"Documents":[1]}"#, br#"{"Documents":[{"_rid":1}]}"#] {
            let body = Bytes::copy_from_slice(body);
            assert_eq!(ordered(&body).expect_err("no page").kind(), ErrorKind::BadResponse);
        }
    }
}
