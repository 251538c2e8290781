//! The position of a reader in each EPK range, and its text form, the continuation.

use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use protocol::partition::{EffectivePartitionKey, EpkRange};
use serde::{Deserialize, Serialize};

use super::ChangeFeedMode;
use crate::error::{Error, ErrorKind};

const MARK: &str = "cf1.";

/// One EPK range and the position of its reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RangeCursor {
    pub(super) range: EpkRange,
    pub(super) since: FeedPosition,
}

/// The position in the change feed of one EPK range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedPosition {
    /// The beginning of the container's history.
    Beginning,
    /// The time of the request.
    Now,
    /// This time, as HTTP writes it.
    Time(String),
    /// The ETag of the last page.
    Etag(String),
}

impl FeedPosition {
    pub(super) fn time(time: SystemTime) -> FeedPosition {
        FeedPosition::Time(httpdate::fmt_http_date(time))
    }
}

/// The positions of a reader in all ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Continuation(pub(super) Vec<RangeCursor>);

#[derive(Serialize, Deserialize)]
struct Wire {
    f: String,
    s: Vec<WireCursor>,
}

#[derive(Serialize, Deserialize)]
struct WireCursor {
    a: String,
    b: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    e: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    t: Option<String>,
}

/// What a feed is known by: its container, its mode and its part of the EPK space.
pub(super) fn fingerprint(container: &str, mode: ChangeFeedMode, part: &EpkRange) -> u64 {
    let mode = match mode {
        ChangeFeedMode::LatestVersion => "latest",
        ChangeFeedMode::AllVersionsAndDeletes => "all",
    };
    let text = format!("{container}\0{mode}\0{part}");
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

impl Continuation {
    /// The text to hand out.
    pub(super) fn to_text(&self, fingerprint: u64) -> String {
        let cursors = self.0.iter().map(|cursor| {
            let (a, b) = (cursor.range.min.to_hex(), cursor.range.max.to_hex());
            match &cursor.since {
                // A reader that begins now has asked where now is before it hands out anything.
                FeedPosition::Beginning | FeedPosition::Now => WireCursor { a, b, e: None, t: None },
                FeedPosition::Time(time) => WireCursor { a, b, e: None, t: Some(time.clone()) },
                FeedPosition::Etag(etag) => WireCursor { a, b, e: Some(etag.clone()), t: None },
            }
        });
        let wire = Wire { f: format!("{fingerprint:016x}"), s: cursors.collect() };
        let json = serde_json::to_vec(&wire).expect("text is always JSON");
        format!("{MARK}{}", URL_SAFE_NO_PAD.encode(json))
    }

    /// Reads what [`Continuation::to_text`] wrote for the same feed.
    pub(super) fn parse(text: &str, fingerprint: u64) -> Result<Continuation, Error> {
        let unreadable = || {
            let message = "the continuation is not one of this driver's change feeds: pass on what the last page \
                           gave, unchanged, or start without one";
            Error::new(ErrorKind::BadRequest, message)
        };
        let encoded = text.trim().strip_prefix(MARK).ok_or_else(unreadable)?;
        let json = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| unreadable())?;
        let wire: Wire = serde_json::from_slice(&json).map_err(|_| unreadable())?;
        if u64::from_str_radix(&wire.f, 16) != Ok(fingerprint) {
            let message = "the continuation belongs to another container, mode or range: use it with the change feed \
                           it came from, or start without one";
            return Err(Error::new(ErrorKind::BadRequest, message));
        }
        let cursors: Option<Vec<RangeCursor>> = wire
            .s
            .into_iter()
            .map(|cursor| {
                let epk = |hex: &str| EffectivePartitionKey::from_hex(hex).ok();
                let range = EpkRange::new(epk(&cursor.a)?, epk(&cursor.b)?);
                let since = match (cursor.e, cursor.t) {
                    (Some(etag), _) => FeedPosition::Etag(etag),
                    (None, Some(time)) => FeedPosition::Time(time),
                    (None, None) => FeedPosition::Beginning,
                };
                (!range.is_empty()).then_some(RangeCursor { range, since })
            })
            .collect();
        let in_order = |cursors: &Vec<RangeCursor>| {
            cursors.windows(2).all(|pair| pair[0].range.max <= pair[1].range.min)
        };
        cursors
            .filter(|cursors| !cursors.is_empty() && in_order(cursors))
            .map(Continuation)
            .ok_or_else(unreadable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor(min: &str, max: &str, since: FeedPosition) -> RangeCursor {
        let key = |hex| EffectivePartitionKey::from_hex(hex).expect("hex");
        RangeCursor { range: EpkRange::new(key(min), key(max)), since }
    }

    #[test]
    fn a_continuation_survives_its_text() {
        let cursors = vec![
            cursor("", "10", FeedPosition::Etag("\"42\"".into())),
            cursor("10", "20", FeedPosition::Beginning),
            cursor("20", "FF", FeedPosition::Time("Sun, 06 Nov 1994 08:49:37 GMT".into())),
        ];
        let text = Continuation(cursors.clone()).to_text(7);
        assert_eq!(Continuation::parse(&text, 7).expect("ours").0, cursors);
    }

    #[test]
    fn a_continuation_of_another_feed_is_an_error() {
        let mine = fingerprint("rid", ChangeFeedMode::LatestVersion, &EpkRange::FULL);
        let text = Continuation(vec![cursor("", "FF", FeedPosition::Beginning)]).to_text(mine);
        for other in [
            fingerprint("other", ChangeFeedMode::LatestVersion, &EpkRange::FULL),
            fingerprint("rid", ChangeFeedMode::AllVersionsAndDeletes, &EpkRange::FULL),
        ] {
            let error = Continuation::parse(&text, other).expect_err("another feed");
            assert!(error.message().contains("belongs to another"), "{error}");
        }
        let backwards =
            [cursor("10", "20", FeedPosition::Beginning), cursor("", "10", FeedPosition::Beginning)];
        for text in ["", "cf1.", "cf1.e30", "\"42\"", &Continuation(backwards.to_vec()).to_text(mine)] {
            assert_eq!(Continuation::parse(text, mine).expect_err(text).kind(), ErrorKind::BadRequest);
        }
    }
}
