//! One record of the journal: a header that says how long it is and what it hashes to, and a payload.
//!
//! ```text
//! magic 4 · length 4 · sequence 8 · hash of the payload 8 · hash of the header 4 · payload
//! ```
//!
//! Pure: bytes in, bytes out. Records are numbered without gaps over the whole life of a directory, so
//! that one which is missing is noticed.

use xxhash_rust::xxh3::xxh3_64;

/// Bytes before the payload.
pub(super) const HEADER_LENGTH: usize = 28;
const MAGIC: [u8; 4] = *b"PeRj";

/// What is found at a position in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParsedRecord<'a> {
    /// A complete and intact record.
    Record {
        /// The record's sequence number.
        sequence: u64,
        /// The bytes after the header.
        payload: &'a [u8],
    },
    /// Nothing: the segment ends here.
    End,
    /// Something else, or part of a record.
    Broken,
}

/// Begins a frame: space for the header, then the payload.
pub(super) fn begin(capacity: usize) -> Vec<u8> {
    let mut frame = Vec::with_capacity(HEADER_LENGTH + capacity);
    frame.resize(HEADER_LENGTH, 0);
    frame
}

/// The hash of a frame's payload. Cost grows with the payload, so it is computed before the journal's lock is
/// taken.
pub(super) fn hash_of(frame: &[u8]) -> u64 {
    xxh3_64(&frame[HEADER_LENGTH..])
}

/// Fills in the header.
pub(super) fn seal(frame: &mut [u8], sequence: u64, hash: u64) {
    let length = u32::try_from(frame.len() - HEADER_LENGTH).expect("checked before it is sealed");
    let (header, _) = frame.split_at_mut(HEADER_LENGTH);
    header[..4].copy_from_slice(&MAGIC);
    header[4..8].copy_from_slice(&length.to_le_bytes());
    header[8..16].copy_from_slice(&sequence.to_le_bytes());
    header[16..24].copy_from_slice(&hash.to_le_bytes());
    let check = check_of(&header[..24]);
    header[24..].copy_from_slice(&check.to_le_bytes());
}

/// Parses the record at the front of `bytes`.
pub(super) fn parse(bytes: &[u8]) -> ParsedRecord<'_> {
    if bytes.is_empty() {
        return ParsedRecord::End;
    }
    parse_whole(bytes)
        .map_or(ParsedRecord::Broken, |(sequence, payload)| ParsedRecord::Record { sequence, payload })
}

/// The length of the record at the front of `bytes`, as its header says; `None` if the header is not intact.
pub(super) fn claimed_length(bytes: &[u8]) -> Option<usize> {
    let header = bytes.get(..HEADER_LENGTH)?;
    if header[..4] != MAGIC || check_of(&header[..24]).to_le_bytes() != header[24..] {
        return None;
    }
    let length = u32::from_le_bytes(header[4..8].try_into().ok()?);
    Some(HEADER_LENGTH + length as usize)
}

fn parse_whole(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let length = claimed_length(bytes)?;
    let (header, rest) = bytes.split_at(HEADER_LENGTH);
    let sequence = u64::from_le_bytes(header[8..16].try_into().ok()?);
    let hash = u64::from_le_bytes(header[16..24].try_into().ok()?);
    let payload = rest.get(..length - HEADER_LENGTH)?;
    (xxh3_64(payload) == hash).then_some((sequence, payload))
}

/// Where the next whole record begins in `bytes`, if there is one at all.
pub(super) fn find(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + bytes.get(from..)?.windows(MAGIC.len()).position(|window| *window == MAGIC)?;
        if matches!(parse(&bytes[at..]), ParsedRecord::Record { .. }) {
            return Some(at);
        }
        from = at + 1;
    }
}

fn check_of(header: &[u8]) -> u32 {
    xxh3_64(header) as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(super) fn record(sequence: u64, payload: &[u8]) -> Vec<u8> {
        let mut frame = begin(payload.len());
        frame.extend_from_slice(payload);
        let hash = hash_of(&frame);
        seal(&mut frame, sequence, hash);
        frame
    }

    proptest! {
        #[test]
        fn a_record_round_trips_and_any_flipped_bit_is_detected(
            sequence: u64,
            payload: Vec<u8>,
            at: prop::sample::Index,
            bit in 0u8..8,
        ) {
            let mut frame = record(sequence, &payload);
            prop_assert_eq!(parse(&frame), ParsedRecord::Record { sequence, payload: &payload });
            let at = at.index(frame.len());
            frame[at] ^= 1 << bit;
            prop_assert_eq!(parse(&frame), ParsedRecord::Broken);
        }

        #[test]
        fn a_record_cut_short_is_broken(payload: Vec<u8>, cut: prop::sample::Index) {
            let frame = record(1, &payload);
            let cut = cut.index(frame.len() - 1) + 1;
            prop_assert_eq!(parse(&frame[..cut]), ParsedRecord::Broken);
        }

        #[test]
        fn the_next_record_is_found_after_garbage(garbage: Vec<u8>, payload: Vec<u8>) {
            let mut bytes = garbage.clone();
            bytes.extend_from_slice(&MAGIC);
            bytes.extend_from_slice(&record(7, &payload));
            prop_assert_eq!(find(&bytes), Some(garbage.len() + MAGIC.len()));
            prop_assert_eq!(find(&garbage), None);
        }
    }

    #[test]
    fn no_bytes_are_the_end() {
        assert_eq!(parse(&[]), ParsedRecord::End);
    }
}
