//! One segment of the journal: a file with a header and records.
//!
//! The file is always longer than its records: it grows by whole blocks of zeros before a record is written,
//! and at least one zero follows the last record. So a file that was cut short is recognised as such wherever
//! it was cut, be it between two records: nothing else makes it end without zeros. Segments of the first
//! kind, which format 2 had, end with their last record.
//!
//! Pure: the bytes of a file in, its contents out. `replay`, which sees all segments, decides whether damage
//! can be repaired.

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use super::batch::{self, KeyChange, Payload};
use super::record::{self, ParsedRecord};

/// Bytes before the first record.
pub(super) const HEADER_LENGTH: usize = 32;
/// The file is a multiple of this many bytes long.
const BLOCK: u64 = 4096;
/// Bytes by which the file grows at most.
const GROWTH_MAX: u64 = 1024 * 1024;
const MAGIC: [u8; 8] = *b"PERIJRN2";
/// The magic of segments that end with their last record.
const MAGIC_UNPADDED: [u8; 8] = *b"PERIJRN1";

/// The file name of the segment with this number.
pub(super) fn file_name(number: u64) -> String {
    format!("{number:012}.log")
}

/// The segment number of a file name.
pub(super) fn number_of(name: &str) -> Option<u64> {
    name.strip_suffix(".log").filter(|number| number.len() >= 12)?.parse().ok()
}

/// The length that a file needs whose records end at `position`: the smallest one, and one with room for
/// more, so that it need not grow for each record.
pub(super) fn file_lengths(position: u64) -> (u64, u64) {
    let blocks = |bytes: u64| (bytes / BLOCK + 1) * BLOCK;
    (blocks(position), blocks(position + (position / 8).min(GROWTH_MAX)))
}

/// The header of a segment: `first` is the number of its first record.
pub(super) fn header(number: u64, first: u64) -> [u8; HEADER_LENGTH] {
    header_of(MAGIC, number, first)
}

/// The header of a segment whose file ends with its last record, as format 2 had it.
#[cfg(test)]
pub(super) fn unpadded_header(number: u64, first: u64) -> [u8; HEADER_LENGTH] {
    header_of(MAGIC_UNPADDED, number, first)
}

fn header_of(magic: [u8; 8], number: u64, first: u64) -> [u8; HEADER_LENGTH] {
    let mut bytes = [0; HEADER_LENGTH];
    bytes[..8].copy_from_slice(&magic);
    bytes[8..16].copy_from_slice(&number.to_le_bytes());
    bytes[16..24].copy_from_slice(&first.to_le_bytes());
    let check = xxh3_64(&bytes[..24]);
    bytes[24..].copy_from_slice(&check.to_le_bytes());
    bytes
}

/// The contents of a segment.
#[derive(Debug, Default)]
pub(super) struct SegmentScan {
    /// The number its first record has or would have; `None` when even the header cannot be read.
    pub(super) first: Option<u64>,
    /// The number the next record would have.
    pub(super) next: u64,
    /// The changes of its intact records, in order.
    pub(super) changes: Vec<KeyChange>,
    /// Bytes up to the first damage, or all of them.
    pub(super) whole: usize,
    /// Whether something other than records follows, or the file was cut short.
    pub(super) damaged: bool,
    /// Whether the file was cut short: it ends without the zeros that follow every record.
    pub(super) cut_short: bool,
    /// Whether zeros follow the last record of an intact file.
    pub(super) padded: bool,
    /// Intact records after the damage.
    pub(super) orphaned: usize,
    /// The newest record known to have reached the disk, by the sync marks anywhere in the segment.
    pub(super) synced: u64,
}

/// Scans the segment with this number.
pub(super) fn scan(number: u64, bytes: &Bytes) -> SegmentScan {
    let mut scan = SegmentScan::default();
    let Some((first, padded)) = read_header(number, bytes) else {
        scan.damaged = true;
        scan.scan_past_damage(bytes, 0);
        return scan;
    };
    (scan.first, scan.next, scan.whole, scan.padded) = (Some(first), first, HEADER_LENGTH, padded);
    loop {
        let rest = &bytes[scan.whole..];
        if padded && rest.first() == Some(&0) && rest.iter().all(|byte| *byte == 0) {
            return scan;
        }
        match record::parse(rest) {
            ParsedRecord::End if padded => break,
            ParsedRecord::End => return scan,
            ParsedRecord::Record { sequence, payload } if sequence == scan.next => {
                match batch::read(&bytes.slice_ref(payload)) {
                    Ok(Payload::Changes(changes)) => scan.changes.extend(changes),
                    Ok(Payload::Synced(synced)) => scan.synced = scan.synced.max(synced),
                    Err(_) => break,
                }
                scan.whole += record::HEADER_LENGTH + payload.len();
                scan.next += 1;
            }
            ParsedRecord::Record { .. } | ParsedRecord::Broken => break,
        }
    }
    scan.damaged = true;
    scan.cut_short = padded && ends_too_early(&bytes[scan.whole..], bytes.len());
    scan.scan_past_damage(bytes, scan.whole);
    scan
}

/// Whether a padded file of `length` bytes, whose last bytes are `rest`, was cut short. Otherwise `rest` is
/// what a write leaves that did not end, or bytes that were appended to the file later.
fn ends_too_early(rest: &[u8], length: usize) -> bool {
    match rest.first() {
        None => true,
        // A record does not begin with a zero, so the records ended before this byte.
        Some(0) => false,
        Some(_) => {
            // The file had room for the whole record, and a zero after it, before the record was written.
            let needed = record::claimed_length(rest).unwrap_or(record::HEADER_LENGTH);
            rest.len() <= needed || !(length as u64).is_multiple_of(BLOCK)
        }
    }
}

impl SegmentScan {
    /// Looks for intact records after damage: a sync mark there tells what should have been before it.
    fn scan_past_damage(&mut self, bytes: &Bytes, from: usize) {
        let mut at = from;
        while let Some(found) = record::find(&bytes[at..]) {
            at += found;
            let ParsedRecord::Record { payload, .. } = record::parse(&bytes[at..]) else { return };
            self.orphaned += 1;
            if let Ok(Payload::Synced(synced)) = batch::read(&bytes.slice_ref(payload)) {
                self.synced = self.synced.max(synced);
            }
            at += record::HEADER_LENGTH + payload.len();
        }
    }
}

/// The number of the first record, and whether zeros follow the last one.
fn read_header(number: u64, bytes: &[u8]) -> Option<(u64, bool)> {
    let found = bytes.get(..HEADER_LENGTH)?;
    let first = u64::from_le_bytes(found[16..24].try_into().ok()?);
    let matching = [(MAGIC, true), (MAGIC_UNPADDED, false)]
        .into_iter()
        .find(|(magic, _)| found == header_of(*magic, number, first));
    matching.map(|(_, padded)| (first, padded))
}

#[cfg(test)]
mod tests {
    use super::super::batch::{Batch, Keyspace, mark};
    use super::*;

    /// A segment of records 5, 6, …: a commit for each `false`, a sync mark of what precedes for each `true`.
    fn file(marks: &[bool]) -> (Vec<u8>, Vec<usize>) {
        let (mut bytes, starts) = unpadded(MAGIC, marks);
        let length = file_lengths(bytes.len() as u64).0;
        bytes.resize(length as usize, 0);
        (bytes, starts)
    }

    /// The header and the records of such a segment.
    fn unpadded(magic: [u8; 8], marks: &[bool]) -> (Vec<u8>, Vec<usize>) {
        let mut bytes = header_of(magic, 3, 5).to_vec();
        let mut starts = Vec::new();
        for (sequence, is_mark) in (5..).zip(marks) {
            let mut frame = if *is_mark {
                mark(sequence - 1)
            } else {
                let mut batch = Batch::new(0);
                batch.put(Keyspace::Items, &u64::to_be_bytes(sequence), |to| to.extend_from_slice(b"value"));
                batch.into_frame()
            };
            let hash = record::hash_of(&frame);
            record::seal(&mut frame, sequence, hash);
            starts.push(bytes.len());
            bytes.extend_from_slice(&frame);
        }
        starts.push(bytes.len());
        (bytes, starts)
    }

    #[test]
    fn an_intact_segment_is_scanned_to_its_end() {
        let (bytes, _) = file(&[false, false, true, false]);
        let scan = scan(3, &Bytes::from(bytes));
        assert_eq!((scan.first, scan.next, scan.changes.len(), scan.synced), (Some(5), 9, 3, 6));
        assert!(!scan.damaged);
    }

    #[test]
    fn a_segment_that_is_cut_anywhere_is_recognised_unless_it_loses_only_zeros() {
        let (bytes, starts) = file(&[false, false, true, false]);
        let end = *starts.last().unwrap();
        for length in HEADER_LENGTH..bytes.len() {
            let scan = scan(3, &Bytes::copy_from_slice(&bytes[..length]));
            assert_eq!((scan.cut_short, scan.damaged), (length <= end, length <= end), "cut at {length}");
        }
    }

    #[test]
    fn a_segment_cut_at_a_block_boundary_is_recognised() {
        let mut bytes = header(3, 5).to_vec();
        let mut sequence = 5;
        while bytes.len() < 3 * BLOCK as usize {
            let mut batch = Batch::new(0);
            batch.put(Keyspace::Items, b"key", |to| to.resize(to.len() + 100, 0));
            let mut frame = batch.into_frame();
            let hash = record::hash_of(&frame);
            record::seal(&mut frame, sequence, hash);
            bytes.extend_from_slice(&frame);
            sequence += 1;
        }
        bytes.resize(file_lengths(bytes.len() as u64).0 as usize, 0);
        for blocks in 1..3 {
            let cut = Bytes::copy_from_slice(&bytes[..blocks * BLOCK as usize]);
            assert!(scan(3, &cut).cut_short, "cut after {blocks} blocks");
        }
    }

    #[test]
    fn a_write_that_did_not_end_is_no_cut() {
        let (bytes, starts) = file(&[false, false, true, false]);
        for length in starts[3]..starts[4] - 1 {
            let mut torn = bytes.clone();
            torn[length..].fill(0);
            let scan = scan(3, &Bytes::from(torn));
            assert!(!scan.cut_short, "torn at {length}");
            assert_eq!((scan.next, scan.damaged), (8, length > starts[3]), "torn at {length}");
        }
    }

    #[test]
    fn bytes_after_the_zeros_are_damage_and_no_cut() {
        let (mut bytes, starts) = file(&[false, false]);
        bytes.extend_from_slice(b"PeRj half a record");
        let scan = scan(3, &Bytes::from(bytes));
        assert!(scan.damaged && !scan.cut_short);
        assert_eq!((scan.next, scan.whole), (7, starts[2]));
    }

    #[test]
    fn a_truncated_segment_of_the_first_kind_yields_its_intact_records() {
        let (bytes, starts) = unpadded(MAGIC_UNPADDED, &[false, false, true, false]);
        for length in HEADER_LENGTH..bytes.len() {
            let scan = scan(3, &Bytes::copy_from_slice(&bytes[..length]));
            let whole = starts.iter().filter(|start| **start <= length).count() - 1;
            assert_eq!((scan.next, scan.whole), (5 + whole as u64, starts[whole]), "cut at {length}");
            assert_eq!((scan.damaged, scan.orphaned), (!starts.contains(&length), 0), "cut at {length}");
        }
    }

    #[test]
    fn a_flipped_bit_is_detected_and_later_sync_marks_count() {
        let (bytes, starts) = file(&[false, false, true, false]);
        for at in 0..starts[2] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            let scan = scan(3, &Bytes::from(damaged));
            let record = starts.iter().filter(|start| **start <= at).count();
            assert!(scan.damaged, "flipped at {at}");
            if record > 0 {
                assert_eq!(scan.next, 4 + record as u64, "flipped at {at}");
            }
            assert_eq!(scan.synced, 6, "flipped at {at}");
            assert_eq!(scan.orphaned, 4 - record, "flipped at {at}");
        }
    }

    #[test]
    fn a_segment_with_another_number_is_rejected() {
        let (bytes, _) = file(&[false]);
        assert_eq!(scan(4, &Bytes::from(bytes)).first, None);
    }

    #[test]
    fn file_names_round_trip() {
        assert_eq!(file_name(7), "000000000007.log");
        assert_eq!(number_of("000000000007.log"), Some(7));
        for name in ["7.log", "000000000007.log.new", "000000000007.torn", "x"] {
            assert_eq!(number_of(name), None, "{name}");
        }
    }
}
