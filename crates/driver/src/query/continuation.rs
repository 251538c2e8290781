//! Where a query stopped, as text that the caller carries to its next call.
//!
//! A continuation names EPK ranges, never partitions, so it stays good when they split. It
//! carries a fingerprint of the query and the container it belongs to, so that one of another query
//! is rejected instead of giving rows of neither.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use protocol::partition::{EffectivePartitionKey, EpkRange};
use serde::{Deserialize, Serialize};
use sql::Value;
use sql::value::{parse, write_json};

use super::offset_limit::OffsetLimit;
use super::position::{SortPosition, Ties};
use crate::error::{Error, ErrorKind};

const MARK: &str = "pq1.";

/// Where a query stopped.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Continuation {
    /// Each range continues by itself.
    Streams {
        streams: Vec<RangeStream>,
        window: OffsetLimit,
        /// With DISTINCT: the last row, where equal ones follow each other.
        last: Option<String>,
        /// With DISTINCT: all rows that were handed out, by their fingerprints, where equal ones may be
        /// anywhere.
        seen_rows: Vec<u64>,
    },
    /// The result is worked out anew, and this many of its rows were handed out.
    Replay { rows: u64 },
}

/// Where one range continues.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RangeStream {
    pub(super) range: EpkRange,
    pub(super) from: StreamStart,
}

/// Where the range resumes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum StreamStart {
    /// From the beginning of the range.
    Start,
    /// After a page, by the service's own continuation.
    Page(String),
    /// After a row, by its sort position.
    Position(SortPosition),
}

/// What a query is known by: its text, its parameters, and the container.
pub(super) fn fingerprint(body: &Bytes, container: &str) -> u64 {
    // FNV-1a, by hand: continuations carry it, so it has to be the same in every process and version.
    let bytes = body.iter().chain(b"\0").chain(container.as_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[derive(Serialize, Deserialize)]
struct Wire {
    /// The fingerprint, in hexadecimal.
    q: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    r: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    w: Option<OffsetLimit>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    l: Option<String>,
    /// The fingerprints of rows, eight bytes each, in base64.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    m: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    s: Vec<WireStream>,
}

#[derive(Serialize, Deserialize)]
struct WireStream {
    a: String,
    b: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    c: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    k: Option<Vec<Option<String>>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    d: Vec<(String, u32)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    u: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    v: Option<u64>,
}

impl Continuation {
    /// The text to hand out.
    pub(super) fn to_text(&self, fingerprint: u64) -> String {
        let q = format!("{fingerprint:016x}");
        let wire = match self {
            Continuation::Replay { rows } => {
                Wire { q, r: Some(*rows), w: None, l: None, m: String::new(), s: Vec::new() }
            }
            Continuation::Streams { streams, window, last, seen_rows: met } => Wire {
                q,
                r: None,
                w: Some(*window),
                l: last.clone(),
                m: URL_SAFE_NO_PAD.encode(met.iter().flat_map(|row| row.to_le_bytes()).collect::<Vec<u8>>()),
                s: joined(streams).iter().map(write_stream).collect(),
            },
        };
        let json = serde_json::to_vec(&wire).expect("text and numbers are always JSON");
        format!("{MARK}{}", URL_SAFE_NO_PAD.encode(json))
    }

    /// Reads what [`Continuation::to_text`] wrote for the same query.
    pub(super) fn parse(text: &str, fingerprint: u64) -> Result<Continuation, Error> {
        let unreadable = || {
            let message = "the continuation is not one of this driver's queries: pass on what the last page gave, \
                           unchanged, or start without one";
            Error::new(ErrorKind::BadRequest, message)
        };
        let encoded = text.trim().strip_prefix(MARK).ok_or_else(unreadable)?;
        let json = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| unreadable())?;
        let wire: Wire = serde_json::from_slice(&json).map_err(|_| unreadable())?;
        if u64::from_str_radix(&wire.q, 16) != Ok(fingerprint) {
            let message = "the continuation belongs to another query, other parameters or another container: use it \
                           with the query it came from, or start without one";
            return Err(Error::new(ErrorKind::BadRequest, message));
        }
        if let Some(rows) = wire.r {
            return Ok(Continuation::Replay { rows });
        }
        let streams: Option<Vec<RangeStream>> = wire.s.into_iter().map(read_stream).collect();
        let streams =
            streams.filter(|streams| streams.windows(2).all(|pair| pair[0].range.max <= pair[1].range.min));
        let met = URL_SAFE_NO_PAD.decode(&wire.m).map_err(|_| unreadable())?;
        let (met, []) = met.as_chunks::<8>() else { return Err(unreadable()) };
        let met = met.iter().map(|row| u64::from_le_bytes(*row)).collect();
        match (streams, wire.w) {
            (Some(streams), Some(window)) => {
                Ok(Continuation::Streams { streams, window, last: wire.l, seen_rows: met })
            }
            _ => Err(unreadable()),
        }
    }
}

/// The streams, with neighbours that have not begun put together.
fn joined(streams: &[RangeStream]) -> Vec<RangeStream> {
    let mut joined: Vec<RangeStream> = Vec::with_capacity(streams.len());
    for stream in streams {
        match joined.last_mut() {
            Some(RangeStream { range, from: StreamStart::Start })
                if stream.from == StreamStart::Start && range.max == stream.range.min =>
            {
                range.max = stream.range.max.clone();
            }
            _ => joined.push(stream.clone()),
        }
    }
    joined
}

fn write_stream(stream: &RangeStream) -> WireStream {
    let (a, b) = (stream.range.min.to_hex(), stream.range.max.to_hex());
    let empty = WireStream { a, b, c: None, k: None, d: Vec::new(), u: None, v: None };
    match &stream.from {
        StreamStart::Start => empty,
        StreamStart::Page(continuation) => WireStream { c: Some(continuation.clone()), ..empty },
        StreamStart::Position(SortPosition { keys, ties }) => WireStream {
            k: Some(keys.iter().map(write_key).collect()),
            d: ties.documents.iter().map(|(rid, rows)| (rid.to_string(), *rows)).collect(),
            u: ties.up_to,
            v: ties.down_to,
            ..empty
        },
    }
}

fn read_stream(wire: WireStream) -> Option<RangeStream> {
    let epk = |hex: &str| EffectivePartitionKey::from_hex(hex).ok();
    let range = EpkRange::new(epk(&wire.a)?, epk(&wire.b)?);
    if range.is_empty() {
        return None;
    }
    let from = match (wire.c, wire.k) {
        (Some(continuation), None) => StreamStart::Page(continuation),
        (None, None) => StreamStart::Start,
        (None, Some(keys)) => {
            let keys: Option<Vec<Value>> = keys.iter().map(|key| read_key(key.as_deref())).collect();
            let documents = wire.d.into_iter().map(|(rid, rows)| (rid.into(), rows)).collect();
            StreamStart::Position(SortPosition { keys: keys?, ties: Ties::new(documents, wire.u, wire.v) })
        }
        (Some(_), Some(_)) => return None,
    };
    Some(RangeStream { range, from })
}

/// A key as JSON text; none for undefined, which JSON does not have.
fn write_key(key: &Value) -> Option<String> {
    if !key.is_defined() {
        return None;
    }
    let mut text = Vec::new();
    write_json(key, &mut text);
    String::from_utf8(text).ok()
}

fn read_key(text: Option<&str>) -> Option<Value> {
    match text {
        None => Some(Value::Undefined),
        Some(text) => parse(text.as_bytes()).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(min: &str, max: &str) -> EpkRange {
        let key = |hex| EffectivePartitionKey::from_hex(hex).expect("hex");
        EpkRange::new(key(min), key(max))
    }

    fn streams(streams: Vec<RangeStream>) -> Continuation {
        let window = OffsetLimit { skip: 1, take: Some(2) };
        Continuation::Streams { streams, window, last: Some("\"x\"".into()), seen_rows: vec![7, u64::MAX] }
    }

    #[test]
    fn a_continuation_survives_its_text() {
        let mut position =
            SortPosition::after(vec![Value::Undefined, Value::Null, Value::from("é")], "rid".into());
        position.ties = Ties::new(vec![("rid".into(), 2)], Some(7), Some(9));
        for continuation in [
            Continuation::Replay { rows: 12 },
            streams(vec![]),
            streams(vec![
                RangeStream { range: range("", "10"), from: StreamStart::Page("+RID:~x#y".into()) },
                RangeStream { range: range("10", "20"), from: StreamStart::Position(position) },
                RangeStream { range: range("30", "FF"), from: StreamStart::Start },
            ]),
        ] {
            let text = continuation.to_text(42);
            assert!(text.bytes().all(|byte| byte.is_ascii_graphic()), "{text}");
            assert_eq!(Continuation::parse(&text, 42).expect("ours"), continuation);
        }
    }

    #[test]
    fn adjacent_ranges_that_were_not_read_are_written_as_one() {
        let start = |min, max| RangeStream { range: range(min, max), from: StreamStart::Start };
        let text = streams(vec![start("", "10"), start("10", "20"), start("30", "40")]).to_text(1);
        let expected = streams(vec![start("", "20"), start("30", "40")]);
        assert_eq!(Continuation::parse(&text, 1).expect("ours"), expected);
    }

    #[test]
    fn a_continuation_of_another_query_is_a_clear_error() {
        let body = Bytes::from_static(b"{\"query\":\"SELECT 1\"}");
        let ours = fingerprint(&body, "rid");
        let text = Continuation::Replay { rows: 1 }.to_text(ours);
        for (other_body, container) in [(&b"{\"query\":\"SELECT 2\"}"[..], "rid"), (&body[..], "other")] {
            let other = fingerprint(&Bytes::copy_from_slice(other_body), container);
            let error = Continuation::parse(&text, other).expect_err("another query");
            assert_eq!(error.kind(), ErrorKind::BadRequest);
            assert!(error.message().contains("another query"), "{error}");
        }
    }

    #[test]
    fn an_invalid_continuation_is_an_error() {
        let backwards = streams(vec![
            RangeStream { range: range("10", "20"), from: StreamStart::Start },
            RangeStream { range: range("", "10"), from: StreamStart::Start },
        ]);
        for text in ["", "x", "pq1.", "pq1.!!", "pq1.e30", "+RID:~abc#RT:1", &backwards.to_text(1)] {
            let error = Continuation::parse(text, 1).expect_err(text);
            assert!(error.message().contains("not one of this driver's"), "{error}");
        }
    }

    #[test]
    fn fingerprints_do_not_change_from_version_to_version() {
        let body = Bytes::from_static(b"{\"query\":\"SELECT * FROM c\"}");
        assert_eq!(fingerprint(&body, "AAAAAIAAAAA="), fingerprint(&body, "AAAAAIAAAAA="));
        assert_eq!(fingerprint(&Bytes::new(), ""), 0xaf63_bd4c_8601_b7df);
    }
}
