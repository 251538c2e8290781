//! One file of the journal: a header, then records.
//!
//! Pure: the bytes of a file in, what they say out. Whether damage is forgivable is decided by whoever
//! sees all files (`replay`).

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use super::batch::{self, Change, Payload};
use super::record::{self, Found};

/// Bytes before the first record.
pub(super) const HEADER_LENGTH: usize = 32;
const MAGIC: [u8; 8] = *b"PERIJRN1";

/// The name of the file with this number.
pub(super) fn file_name(number: u64) -> String {
    format!("{number:012}.log")
}

/// The number of the file with this name.
pub(super) fn number_of(name: &str) -> Option<u64> {
    name.strip_suffix(".log").filter(|number| number.len() >= 12)?.parse().ok()
}

/// What a file begins with: `first` is the number of its first record.
pub(super) fn header(number: u64, first: u64) -> [u8; HEADER_LENGTH] {
    let mut bytes = [0; HEADER_LENGTH];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..16].copy_from_slice(&number.to_le_bytes());
    bytes[16..24].copy_from_slice(&first.to_le_bytes());
    let check = xxh3_64(&bytes[..24]);
    bytes[24..].copy_from_slice(&check.to_le_bytes());
    bytes
}

/// What a file says.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// The number its first record has or would have; `None` when even the header cannot be read.
    pub(super) first: Option<u64>,
    /// The number the next record would have.
    pub(super) next: u64,
    /// What its whole records change, in order.
    pub(super) changes: Vec<Change>,
    /// Bytes up to the first damage, or all of them.
    pub(super) whole: usize,
    /// Whether something else follows.
    pub(super) damaged: bool,
    /// Whole records behind the damage.
    pub(super) stranded: usize,
    /// The newest record known to have reached the disk, as far as marks anywhere in the file say.
    pub(super) synced: u64,
}

/// Reads the file with this number.
pub(super) fn scan(number: u64, bytes: &Bytes) -> Scan {
    let mut scan = Scan::default();
    let Some(first) = read_header(number, bytes) else {
        scan.damaged = true;
        scan.look_behind(bytes, 0);
        return scan;
    };
    (scan.first, scan.next, scan.whole) = (Some(first), first, HEADER_LENGTH);
    loop {
        match record::parse(&bytes[scan.whole..]) {
            Found::End => return scan,
            Found::Record { sequence, payload } if sequence == scan.next => {
                match batch::read(&bytes.slice_ref(payload)) {
                    Ok(Payload::Changes(changes)) => scan.changes.extend(changes),
                    Ok(Payload::Synced(synced)) => scan.synced = scan.synced.max(synced),
                    Err(_) => break,
                }
                scan.whole += record::HEADER_LENGTH + payload.len();
                scan.next += 1;
            }
            Found::Record { .. } | Found::Broken => break,
        }
    }
    scan.damaged = true;
    scan.look_behind(bytes, scan.whole);
    scan
}

impl Scan {
    /// Looks for whole records behind damage: a mark there says what should have been before it.
    fn look_behind(&mut self, bytes: &Bytes, from: usize) {
        let mut at = from;
        while let Some(found) = record::find(&bytes[at..]) {
            at += found;
            let Found::Record { payload, .. } = record::parse(&bytes[at..]) else { return };
            self.stranded += 1;
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
    use super::super::batch::{Batch, Space, mark};
    use super::*;

    /// A file of records 5, 6, …: a commit for each `false`, a mark of what precedes for each `true`.
    fn file(marks: &[bool]) -> (Vec<u8>, Vec<usize>) {
        let mut bytes = header(3, 5).to_vec();
        let mut starts = Vec::new();
        for (sequence, is_mark) in (5..).zip(marks) {
            let mut frame = if *is_mark {
                mark(sequence - 1)
            } else {
                let mut batch = Batch::new(0);
                batch.put(Space::Items, &u64::to_be_bytes(sequence), |to| to.extend_from_slice(b"value"));
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
    fn a_whole_file_says_everything() {
        let (bytes, _) = file(&[false, false, true, false]);
        let scan = scan(3, &Bytes::from(bytes));
        assert_eq!((scan.first, scan.next, scan.changes.len(), scan.synced), (Some(5), 9, 3, 6));
        assert!(!scan.damaged);
    }

    #[test]
    fn a_file_cut_anywhere_says_what_is_whole_before_the_cut() {
        let (bytes, starts) = file(&[false, false, true, false]);
        for length in HEADER_LENGTH..bytes.len() {
            let scan = scan(3, &Bytes::copy_from_slice(&bytes[..length]));
            let whole = starts.iter().filter(|start| **start <= length).count() - 1;
            assert_eq!((scan.next, scan.whole), (5 + whole as u64, starts[whole]), "cut at {length}");
            assert_eq!((scan.damaged, scan.stranded), (!starts.contains(&length), 0), "cut at {length}");
        }
    }

    #[test]
    fn a_flipped_bit_anywhere_is_noticed_and_marks_behind_it_still_count() {
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
            assert_eq!(scan.stranded, 4 - record, "flipped at {at}");
        }
    }

    #[test]
    fn a_file_under_another_number_is_not_taken_for_this_one() {
        let (bytes, _) = file(&[false]);
        assert_eq!(scan(4, &Bytes::from(bytes)).first, None);
    }

    #[test]
    fn names_and_numbers_belong_together() {
        assert_eq!(file_name(7), "000000000007.log");
        assert_eq!(number_of("000000000007.log"), Some(7));
        for name in ["7.log", "000000000007.log.new", "000000000007.torn", "x"] {
            assert_eq!(number_of(name), None, "{name}");
        }
    }
}
