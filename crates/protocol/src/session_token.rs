//! Session tokens: how far the reads and writes of a session have progressed in each partition.
//!
//! Input and output: the `x-ms-session-token` header, `{range}:{version}#{lsn}[#{region}={lsn}]*`, joined
//! by commas. Whether a replica can serve a read is one comparison here. What happens if it cannot is
//! decided by the server; which token to send is decided by the client.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::lsn::Lsn;
use crate::partition_range::RangeId;

/// The progress of a session in one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionToken {
    /// The partition key range of the partition.
    pub range: RangeId,
    /// The version of the region set; it grows when regions change, and is −1 for a single region.
    pub version: i64,
    /// The LSN that the session has seen, over all regions.
    pub lsn: Lsn,
    /// The LSNs that the session has seen of each region's own writes; empty for a single region.
    pub regions: Vec<RegionProgress>,
}

/// The progress of a session in the writes of one region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionProgress {
    /// The number of the region, which never changes within an account.
    pub region: u32,
    /// The LSN; `None`, written −1, before the first write of the region.
    pub lsn: Option<Lsn>,
}

/// The error of a malformed session token.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("session token: expected `range:version#lsn[#region=lsn]`, found `{found}`")]
pub struct SessionTokenError {
    /// The malformed part, truncated to a reasonable length.
    pub found: String,
}

/// The error of merging two tokens of one version that name different regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("session tokens of the same version name different regions")]
pub struct RegionMismatchError;

impl PartitionToken {
    /// A token for an account with a single region.
    pub fn new(range: RangeId, lsn: Lsn) -> PartitionToken {
        PartitionToken { range, version: -1, lsn, regions: Vec::new() }
    }

    /// Parses the token of one partition, without commas. The short form `0:5` means version −1.
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

    /// Whether a replica of this version that has applied `applied` has everything that the session has
    /// seen.
    pub fn is_satisfied_by(&self, version: i64, applied: Lsn) -> bool {
        match self.version.cmp(&version) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Equal => self.lsn <= applied,
            std::cmp::Ordering::Greater => false,
        }
    }

    /// The progress in one region's writes.
    pub fn region(&self, region: u32) -> Option<RegionProgress> {
        self.regions.iter().copied().find(|progress| progress.region == region)
    }

    /// The progress of both tokens, merged as the clients do: the higher version determines the regions;
    /// within one version both must name the same regions. The caller compares the ranges: after a split
    /// the token of the parent is merged into those of the children.
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

/// Parses an LSN; −1 means that nothing was seen.
fn parse_lsn(text: &str) -> Option<Option<Lsn>> {
    if text == "-1" { Some(None) } else { text.parse().ok().map(Some) }
}

/// The text before and after the first `separator`. By hand because the standard library searches as for
/// long texts; these have a dozen characters, and every request has one.
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

/// The progress of a session in several partitions, one token per partition key range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionToken(Vec<PartitionToken>);

impl SessionToken {
    /// Parses a comma-separated list; empty text is an empty list. Tokens of one range are merged.
    pub fn parse(text: &str) -> Result<SessionToken, SessionTokenError> {
        let mut token = SessionToken::default();
        for part in parts(text) {
            let partition = PartitionToken::parse(part)?;
            token.record(partition).map_err(|RegionMismatchError| bad(part))?;
        }
        Ok(token)
    }

    /// Finds the token of one range in a header without parsing the others.
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

    /// The token of one range.
    pub fn get(&self, range: RangeId) -> Option<&PartitionToken> {
        self.0.iter().find(|token| token.range == range)
    }

    /// The tokens of all partitions.
    pub fn partitions(&self) -> &[PartitionToken] {
        &self.0
    }

    /// Merges the token of one partition into the session token.
    pub fn record(&mut self, token: PartitionToken) -> Result<(), RegionMismatchError> {
        match self.0.iter_mut().find(|known| known.range == token.range) {
            Some(known) => *known = known.merge(&token)?,
            None => self.0.push(token),
        }
        Ok(())
    }

    /// Removes a range, as after a split.
    pub fn remove(&mut self, range: RangeId) -> Option<PartitionToken> {
        let index = self.0.iter().position(|token| token.range == range)?;
        Some(self.0.remove(index))
    }

    /// The progress of both session tokens, merged range by range.
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
    fn one_range_is_found_without_parsing_the_rest() {
        let text = "0:-1#42, 1:1#7#1=5,2:what is this";
        assert_eq!(SessionToken::find(text, RangeId(1)), Ok(Some(token("1:1#7#1=5"))));
        assert_eq!(SessionToken::find(text, RangeId(9)), Ok(None));
        assert!(SessionToken::find(text, RangeId(2)).is_err());
        assert!(SessionToken::find("nonsense", RangeId(2)).is_err());
    }

    #[test]
    fn errors_name_the_malformed_part() {
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
    fn a_replica_satisfies_a_token_once_it_has_applied_its_lsn() {
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
    fn merging_keeps_the_highest_progress() {
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
        fn any_text_parses_or_fails_without_panic(text in any::<String>(), like in "[0-9:#=,-]{0,30}") {
            let _ = SessionToken::parse(&text);
            let _ = SessionToken::parse(&like);
            let _ = SessionToken::find(&like, RangeId(0));
        }
    }
}
