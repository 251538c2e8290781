//! Session tokens: what a client has seen.
//!
//! In and out: the `x-ms-session-token` header, `{range}:{version}#{lsn}[#{region}={lsn}]*`, joined
//! by commas. Whether a replica may answer is one comparison here; what to do when it may not is
//! left to the server, and which token to send to the client.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::lsn::Lsn;
use crate::partition_range::RangeId;

/// What was seen of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionToken {
    /// The partition.
    pub range: RangeId,
    /// Grows when the set of regions changes; −1 where there is only one.
    pub version: i64,
    /// What was seen, wherever it was written.
    pub lsn: Lsn,
    /// What was seen of each region's own writes; empty in the single-region form.
    pub regions: Vec<RegionProgress>,
}

/// What was seen of the writes made in one region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionProgress {
    /// The region's number, stable for the life of the account.
    pub region: u32,
    /// `None`, written −1, before anything was written there.
    pub lsn: Option<Lsn>,
}

/// A token that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("session token: expected `range:version#lsn[#region=lsn]`, found `{found}`")]
pub struct SessionTokenError {
    /// The part that could not be read, cut to a reasonable length.
    pub found: String,
}

/// Two tokens of one version that do not name the same regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("session tokens of the same version name different regions")]
pub struct RegionMismatchError;

impl PartitionToken {
    /// The single-region form.
    pub fn new(range: RangeId, lsn: Lsn) -> PartitionToken {
        PartitionToken { range, version: -1, lsn, regions: Vec::new() }
    }

    /// Reads one token, without commas. The bare form `0:5` counts as version −1.
    ///
    /// Cost: one pass; allocates only for the regions, if it names any.
    pub fn parse(text: &str) -> Result<PartitionToken, SessionTokenError> {
        let text = text.trim();
        let (range, rest) = cut(text, b':').ok_or_else(|| bad(text))?;
        let range = range.parse().map_err(|_| bad(text))?;
        PartitionToken::parse_progress(range, rest).ok_or_else(|| bad(text))
    }

    fn parse_progress(range: RangeId, text: &str) -> Option<PartitionToken> {
        let Some((version, rest)) = cut(text, b'#') else {
            return Some(PartitionToken::new(range, parse_lsn(text)?.unwrap_or_default()));
        };
        let (lsn, mut rest) = cut(rest, b'#').map_or((rest, None), |(lsn, rest)| (lsn, Some(rest)));
        let lsn = parse_lsn(lsn)?.unwrap_or_default();
        let mut regions = Vec::new();
        while let Some(parts) = rest {
            let (part, next) = cut(parts, b'#').map_or((parts, None), |(part, next)| (part, Some(next)));
            let (region, lsn) = cut(part, b'=')?;
            regions.push(RegionProgress { region: region.parse().ok()?, lsn: parse_lsn(lsn)? });
            rest = next;
        }
        Some(PartitionToken { range, version: version.parse().ok()?, lsn, regions })
    }

    /// Whether a replica of this version that has applied `applied` has all that was seen.
    pub fn is_satisfied_by(&self, version: i64, applied: Lsn) -> bool {
        match self.version.cmp(&version) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Equal => self.lsn <= applied,
            std::cmp::Ordering::Greater => false,
        }
    }

    /// What was seen of one region's writes.
    pub fn region(&self, region: u32) -> Option<RegionProgress> {
        self.regions.iter().copied().find(|progress| progress.region == region)
    }

    /// What was seen by either, as the clients put it together: the higher version gives the
    /// regions; within one version both must name the same ones. The ranges are the caller's
    /// business: after a split a parent's token is merged into a child's.
    pub fn merge(&self, other: &PartitionToken) -> Result<PartitionToken, RegionMismatchError> {
        let (newer, older) = if self.version >= other.version { (self, other) } else { (other, self) };
        let same_regions = newer.regions.len() == older.regions.len()
            && newer.regions.iter().all(|progress| older.region(progress.region).is_some());
        if newer.version == older.version && !same_regions {
            return Err(RegionMismatchError);
        }
        let regions = newer.regions.iter().map(|progress| {
            let seen = older.region(progress.region).and_then(|progress| progress.lsn);
            RegionProgress { region: progress.region, lsn: progress.lsn.max(seen) }
        });
        Ok(PartitionToken {
            range: self.range,
            version: newer.version,
            lsn: newer.lsn.max(older.lsn),
            regions: regions.collect(),
        })
    }
}

/// −1 says that nothing was seen.
fn parse_lsn(text: &str) -> Option<Option<Lsn>> {
    if text == "-1" { Some(None) } else { text.parse().ok().map(Some) }
}

/// Before and after the first `separator`. The standard library's searches are made for long texts; these
/// have a dozen characters, and every request has one.
fn cut(text: &str, separator: u8) -> Option<(&str, &str)> {
    let at = text.as_bytes().iter().position(|byte| *byte == separator)?;
    Some((&text[..at], &text[at + 1..]))
}

fn bad(text: &str) -> SessionTokenError {
    SessionTokenError { found: text.chars().take(64).collect() }
}

impl FromStr for PartitionToken {
    type Err = SessionTokenError;

    fn from_str(text: &str) -> Result<PartitionToken, SessionTokenError> {
        PartitionToken::parse(text)
    }
}

impl fmt::Display for PartitionToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}#{}", self.range, self.version, self.lsn)?;
        self.regions.iter().try_for_each(|RegionProgress { region, lsn }| match lsn {
            Some(lsn) => write!(f, "#{region}={lsn}"),
            None => write!(f, "#{region}=-1"),
        })
    }
}

/// What was seen of several partitions; one token per range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionToken(Vec<PartitionToken>);

impl SessionToken {
    /// Reads a comma-joined list; empty text is an empty list. Tokens of one range are merged.
    pub fn parse(text: &str) -> Result<SessionToken, SessionTokenError> {
        let mut token = SessionToken::default();
        for part in parts(text) {
            let partition = PartitionToken::parse(part)?;
            token.record(partition).map_err(|RegionMismatchError| bad(part))?;
        }
        Ok(token)
    }

    /// Finds one range's token in a header without reading the others.
    ///
    /// Cost: one pass over the text, no list.
    pub fn find(text: &str, range: RangeId) -> Result<Option<PartitionToken>, SessionTokenError> {
        for part in parts(text) {
            let part = part.trim();
            let (id, rest) = cut(part, b':').ok_or_else(|| bad(part))?;
            if id.trim().parse() == Ok(range) {
                return PartitionToken::parse_progress(range, rest).map(Some).ok_or_else(|| bad(part));
            }
        }
        Ok(None)
    }

    /// One range's token.
    pub fn get(&self, range: RangeId) -> Option<&PartitionToken> {
        self.0.iter().find(|token| token.range == range)
    }

    /// All of them.
    pub fn partitions(&self) -> &[PartitionToken] {
        &self.0
    }

    /// Adds what was seen of one partition to what is known of it.
    pub fn record(&mut self, token: PartitionToken) -> Result<(), RegionMismatchError> {
        match self.0.iter_mut().find(|known| known.range == token.range) {
            Some(known) => *known = known.merge(&token)?,
            None => self.0.push(token),
        }
        Ok(())
    }

    /// Forgets a range, as after a split.
    pub fn remove(&mut self, range: RangeId) -> Option<PartitionToken> {
        let index = self.0.iter().position(|token| token.range == range)?;
        Some(self.0.remove(index))
    }

    /// What was seen by either.
    pub fn merge(mut self, other: SessionToken) -> Result<SessionToken, RegionMismatchError> {
        for token in other.0 {
            self.record(token)?;
        }
        Ok(self)
    }
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').filter(|part| !part.trim().is_empty())
}

impl FromStr for SessionToken {
    type Err = SessionTokenError;

    fn from_str(text: &str) -> Result<SessionToken, SessionTokenError> {
        SessionToken::parse(text)
    }
}

impl From<PartitionToken> for SessionToken {
    fn from(token: PartitionToken) -> SessionToken {
        SessionToken(vec![token])
    }
}

impl fmt::Display for SessionToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, token) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            token.fmt(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn token(text: &str) -> PartitionToken {
        text.parse().expect(text)
    }

    #[test]
    fn every_form_is_read_and_written() {
        for text in ["0:-1#42", "0:1#42#1=40#2=38", "1:1#12#3=-1", "17:0#0"] {
            assert_eq!(token(text).to_string(), text);
        }
        assert_eq!(token("0:5").to_string(), "0:-1#5", "the bare form counts as version -1");
        assert_eq!(token("0:-1#-1").lsn, Lsn::ZERO);
        assert_eq!(token("1:1#12#3=-1").region(3), Some(RegionProgress { region: 3, lsn: None }));
        let list: SessionToken = "0:-1#42,1:1#7#1=5".parse().expect("a list");
        assert_eq!(list.to_string(), "0:-1#42,1:1#7#1=5");
        assert_eq!(list.get(RangeId(1)).map(|token| token.lsn), Some(Lsn(7)));
        assert_eq!("".parse(), Ok(SessionToken::default()));
    }

    #[test]
    fn one_range_is_found_without_reading_the_rest() {
        let text = "0:-1#42, 1:1#7#1=5,2:what is this";
        assert_eq!(SessionToken::find(text, RangeId(1)), Ok(Some(token("1:1#7#1=5"))));
        assert_eq!(SessionToken::find(text, RangeId(9)), Ok(None));
        assert!(SessionToken::find(text, RangeId(2)).is_err());
        assert!(SessionToken::find("nonsense", RangeId(2)).is_err());
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for text in [
            "x",
            "0",
            ":1#2",
            "a:1#2",
            "0:",
            "0:x#1",
            "0:1#",
            "0:1#x",
            "0:1#2#3",
            "0:1#2#a=1",
            "0:1#2#1=",
            "0:1#-2",
            "0:1#2#1=2=3",
        ] {
            let error = text.parse::<PartitionToken>().expect_err(text);
            assert_eq!(error.found, text);
        }
        assert_eq!("é".repeat(500).parse::<PartitionToken>().expect_err("long").found.chars().count(), 64);
    }

    #[test]
    fn a_replica_answers_once_it_has_what_was_seen() {
        for (text, version, applied, satisfied) in [
            ("0:1#42", 1, 41, false),
            ("0:1#42", 1, 42, true),
            ("0:1#42", 1, 43, true),
            ("0:2#1", 1, 100, false),
            ("0:1#100", 2, 1, true),
            ("0:-1#5", -1, 4, false),
            ("0:5", 1, 0, true),
        ] {
            assert_eq!(
                token(text).is_satisfied_by(version, Lsn(applied)),
                satisfied,
                "{text} at {version}#{applied}"
            );
        }
    }

    #[test]
    fn merging_keeps_the_furthest() {
        for (left, right, expected) in [
            ("0:-1#5", "0:-1#7", Ok("0:-1#7")),
            ("0:1#5#1=9#2=-1", "0:1#7#1=3#2=4", Ok("0:1#7#1=9#2=4")),
            ("0:1#9#1=9", "0:2#7#1=3#2=4", Ok("0:2#9#1=9#2=4")),
            ("0:1#5#1=9", "0:1#5#2=9", Err(RegionMismatchError)),
            ("0:1#5#1=9", "0:1#5", Err(RegionMismatchError)),
        ] {
            let merged = token(left).merge(&token(right)).map(|token| token.to_string());
            assert_eq!(merged, expected.map(str::to_owned), "{left} + {right}");
        }
    }

    #[test]
    fn lists_merge_range_by_range() {
        let left: SessionToken = "0:1#5,1:1#5".parse().expect("a list");
        let right: SessionToken = "1:1#6,2:1#1".parse().expect("a list");
        let mut both = left.merge(right).expect("the same regions");
        assert_eq!(both.to_string(), "0:1#5,1:1#6,2:1#1");
        assert_eq!(both.remove(RangeId(1)), Some(token("1:1#6")));
        assert_eq!(both.remove(RangeId(1)), None);
        assert_eq!("0:1#5,0:1#3".parse::<SessionToken>().map(|token| token.to_string()), Ok("0:1#5".into()));
    }

    fn any_token() -> impl Strategy<Value = PartitionToken> {
        let progress = (any::<u32>(), prop::option::of(any::<u64>().prop_map(Lsn)))
            .prop_map(|(region, lsn)| RegionProgress { region, lsn });
        (any::<u32>(), any::<i64>(), any::<u64>(), prop::collection::vec(progress, 0..4)).prop_map(
            |(range, version, lsn, regions)| PartitionToken {
                range: RangeId(range),
                version,
                lsn: Lsn(lsn),
                regions,
            },
        )
    }

    proptest! {
        #[test]
        fn a_token_survives_its_text(token in any_token()) {
            prop_assert_eq!(token.to_string().parse(), Ok(token));
        }

        #[test]
        fn a_merged_token_asks_for_at_least_as_much(versions in (0i64..3, 0i64..3), lsns in (0u64..9, 0u64..9), replica in (0i64..3, 0u64..9)) {
            let make = |version, lsn| PartitionToken { range: RangeId(0), version, lsn: Lsn(lsn), regions: Vec::new() };
            let (a, b) = (make(versions.0, lsns.0), make(versions.1, lsns.1));
            let merged = a.merge(&b).unwrap();
            prop_assert_eq!(&merged, &b.merge(&a).unwrap());
            let satisfied = |token: &PartitionToken| token.is_satisfied_by(replica.0, Lsn(replica.1));
            if satisfied(&merged) {
                prop_assert!(satisfied(&a) && satisfied(&b));
            }
        }

        #[test]
        fn no_text_is_too_strange(text in any::<String>(), like in "[0-9:#=,-]{0,30}") {
            let _ = SessionToken::parse(&text);
            let _ = SessionToken::parse(&like);
            let _ = SessionToken::find(&like, RangeId(0));
        }
    }
}
