//! One segment of the journal: a file with a header and records.
//!
//! Pure: the bytes of a file in, its contents out. `replay`, which sees all segments, decides whether damage
//! can be repaired.

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use super::batch::{self, KeyChange, Payload};
use super::record::{self, ParsedRecord};

/// Bytes before the first record.
pub(super) const HEADER_LENGTH: usize = 32;
const MAGIC: [u8; 8] = *b"PERIJRN1";

/// The file name of the segment with this number.
pub(super) fn file_name(number: u64) -> String {
    format!("{number:012}.log")
}

/// The segment number of a file name.
pub(super) fn number_of(name: &str) -> Option<u64> {
    name.strip_suffix(".log").filter(|number| number.len() >= 12)?.parse().ok()
}

/// The header of a segment: `first` is the number of its first record.
pub(super) fn header(number: u64, first: u64) -> [u8; HEADER_LENGTH] {
    let mut bytes = [0; HEADER_LENGTH];
    bytes[..8].copy_from_slice(&MAGIC);
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
    /// Whether something other than records follows.
    pub(super) damaged: bool,
    /// Intact records after the damage.
    pub(super) orphaned: usize,
    /// The newest record known to have reached the disk, by the sync marks anywhere in the segment.
    pub(super) synced: u64,
}

/// Scans the segment with this number.
pub(super) fn scan(number: u64, bytes: &Bytes) -> SegmentScan {
    let mut scan = SegmentScan::default();
    let Some(first) = read_header(number, bytes) else {
        scan.damaged = true;
        scan.scan_past_damage(bytes, 0);
        return scan;
    };
    (scan.first, scan.next, scan.whole) = (Some(first), first, HEADER_LENGTH);
    loop {
        match record::parse(&bytes[scan.whole..]) {
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
    scan.scan_past_damage(bytes, scan.whole);
    scan
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

fn read_header(number: u64, bytes: &[u8]) -> Option<u64> {
    let found = bytes.get(..HEADER_LENGTH)?;
    let first = u64::from_le_bytes(found[16..24].try_into().ok()?);
    (found == header(number, first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::super::batch::{Batch, Keyspace, mark};
    use super::*;

    /// A segment of records 5, 6, …: a commit for each `false`, a sync mark of what precedes for each `true`.
    fn file(marks: &[bool]) -> (Vec<u8>, Vec<usize>) {
        let mut bytes = header(3, 5).to_vec();
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
    fn a_truncated_segment_yields_its_intact_records() {
        let (bytes, starts) = file(&[false, false, true, false]);
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
