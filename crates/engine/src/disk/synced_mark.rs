//! The high-water mark: the newest record that has reached the disk, in a file of its own.
//!
//! Sync marks inside the journal vanish with the end of the file that they are in. This one does not: a
//! journal that ends before it has lost something. It is written after each sync of the journal, so it never
//! promises more than was synced, and it is itself synced less often than the journal where that would double
//! the cost of a write. The file has two slots, written in turn, so that a torn write leaves the other one.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

const FILE: &str = "synced";
const MAGIC: [u8; 8] = *b"PERISYN1";
/// Bytes of a slot: magic, turn, record, hash.
const SLOT: usize = 32;
const SLOTS: u64 = 2;

/// The mark of an open directory.
#[derive(Debug)]
pub(super) struct SyncedMark {
    file: File,
    /// How often it has been written.
    turn: u64,
}

/// The path of the mark in a data directory.
pub(super) fn path_in(directory: &Path) -> PathBuf {
    directory.join(FILE)
}

/// The mark of a directory; `None` if the file is not there or no slot of it is whole.
pub(super) fn read(directory: &Path) -> io::Result<Option<u64>> {
    let mut bytes = Vec::new();
    match File::open(path_in(directory)) {
        Ok(mut file) => file.read_to_end(&mut bytes)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(bytes.chunks(SLOT).filter_map(read_slot).max().map(|(_, record)| record))
}

impl SyncedMark {
    /// Goes on with the mark of a directory if it is at `record`, and otherwise sets it there.
    pub(super) fn continue_at(directory: &Path, record: u64) -> io::Result<SyncedMark> {
        let mut bytes = Vec::new();
        let opened = OpenOptions::new().read(true).write(true).open(path_in(directory));
        if let Ok(mut file) = opened
            && file.read_to_end(&mut bytes).is_ok()
            && let Some((turn, _)) =
                bytes.chunks(SLOT).filter_map(read_slot).max().filter(|newest| newest.1 == record)
        {
            return Ok(SyncedMark { file, turn });
        }
        SyncedMark::create(directory, record)
    }

    /// Writes a mark at `record`, synced, whatever mark there was.
    pub(super) fn create(directory: &Path, record: u64) -> io::Result<SyncedMark> {
        let new = directory.join("synced.new");
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(&new)?;
        file.write_all(&slot(0, record))?;
        file.sync_all()?;
        std::fs::rename(&new, path_in(directory))?;
        super::directory::sync_folder(directory)?;
        Ok(SyncedMark { file, turn: 0 })
    }

    /// Writes the mark. It survives the end of the process; `sync` lets it survive a power failure.
    pub(super) fn write(&mut self, record: u64) -> io::Result<()> {
        self.turn += 1;
        let at = (self.turn % SLOTS) * SLOT as u64;
        self.file.seek(SeekFrom::Start(at))?;
        self.file.write_all(&slot(self.turn, record))
    }

    /// Brings the mark to the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

fn slot(turn: u64, record: u64) -> [u8; SLOT] {
    let mut bytes = [0; SLOT];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..16].copy_from_slice(&turn.to_le_bytes());
    bytes[16..24].copy_from_slice(&record.to_le_bytes());
    let hash = xxh3_64(&bytes[..24]);
    bytes[24..].copy_from_slice(&hash.to_le_bytes());
    bytes
}

/// The turn and the record of a slot that is whole.
fn read_slot(bytes: &[u8]) -> Option<(u64, u64)> {
    let turn = u64::from_le_bytes(bytes.get(8..16)?.try_into().ok()?);
    let record = u64::from_le_bytes(bytes.get(16..24)?.try_into().ok()?);
    (bytes == slot(turn, record)).then_some((turn, record))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_whole_slot_counts() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        assert_eq!(read(path).unwrap(), None);
        let mut mark = SyncedMark::create(path, 7).unwrap();
        assert_eq!(read(path).unwrap(), Some(7));
        for record in [9, 12, 30] {
            mark.write(record).unwrap();
            assert_eq!(read(path).unwrap(), Some(record));
        }
        let mut bytes = std::fs::read(path_in(path)).unwrap();
        drop(mark);
        let mut mark = SyncedMark::continue_at(path, 30).unwrap();
        mark.write(31).unwrap();
        assert_eq!(read(path).unwrap(), Some(31), "the turns go on");
        SyncedMark::continue_at(path, 30).unwrap();
        assert_eq!(read(path).unwrap(), Some(30), "a mark that promises too much is set back");
        std::fs::write(path_in(path), &bytes).unwrap();
        bytes[SLOT + 20] ^= 1;
        std::fs::write(path_in(path), &bytes).unwrap();
        assert_eq!(read(path).unwrap(), Some(12), "a torn write leaves the mark before it");
        std::fs::write(path_in(path), []).unwrap();
        assert_eq!(read(path).unwrap(), None);
    }
}
