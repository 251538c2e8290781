//! Replays the journal when a directory is opened.
//!
//! Segments are read in parallel. Damage after the last sync mark is what a process or a machine leaves that
//! ended in the middle of a write: it is cut off, saved in a file of its own, and reported. Damage before it
//! is a loss of durable data, and the directory is not opened.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use super::batch::KeyChange;
use super::directory::sync_folder;
use super::error::OpenError;
use super::segment::{self, SegmentScan};

/// A segment that will not grow any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SealedSegment {
    pub(super) number: u64,
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
}

/// The contents of the journal.
#[derive(Debug)]
pub(super) struct Replay {
    /// Its changes, in order.
    pub(super) changes: Vec<KeyChange>,
    /// The sequence number that the next record gets.
    pub(super) next: u64,
    /// The number that the next segment gets.
    pub(super) next_file: u64,
    pub(super) files: Vec<SealedSegment>,
    pub(super) torn: Option<TornTail>,
}

/// A torn tail that was cut off: the last writes before a crash, none of which was complete on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TornTail {
    /// The segment that was cut.
    pub(crate) file: PathBuf,
    /// The byte at which it was cut.
    pub(crate) at: u64,
    /// How many bytes were cut off, in this segment and later ones.
    pub(crate) bytes: u64,
    /// Intact records among them, which cannot be used without the missing ones before them.
    pub(crate) orphaned: usize,
    /// The files that the cut-off bytes were saved in.
    pub(crate) saved_in: Vec<PathBuf>,
}

impl std::fmt::Display for TornTail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes cut off at byte {} of {}", self.bytes, self.at, self.file.display())?;
        if self.orphaned > 0 {
            write!(f, ", with {} records behind a hole", self.orphaned)?;
        }
        let files: Vec<String> = self.saved_in.iter().map(|path| path.display().to_string()).collect();
        write!(f, "; kept in {}", files.join(", "))
    }
}

/// One segment that was read and scanned.
struct ScannedSegment {
    number: u64,
    path: PathBuf,
    length: usize,
    scan: SegmentScan,
}

/// Reads the journal in `folder`, whose records up to `checkpointed` are in the trees already.
pub(super) fn replay(folder: &Path, checkpointed: u64) -> Result<Replay, OpenError> {
    let mut files = read_all(folder)?;
    let next_file = files.last().map_or(1, |file| file.number + 1);
    let torn = match first_damage(&files, checkpointed)? {
        Some(index) => Some(cut(folder, &mut files, index)?),
        None => None,
    };
    let next = files.last().map_or(checkpointed + 1, |file| file.scan.next);
    let mut changes = Vec::with_capacity(files.iter().map(|file| file.scan.changes.len()).sum());
    let mut sealed = Vec::with_capacity(files.len());
    for mut file in files {
        // A segment that has been checkpointed as a whole adds nothing.
        if file.scan.next > checkpointed + 1 {
            changes.append(&mut file.scan.changes);
        }
        sealed.push(SealedSegment { number: file.number, path: file.path, bytes: file.scan.whole as u64 });
    }
    Ok(Replay { changes, next, next_file, files: sealed, torn })
}

/// The first segment with a torn tail. Fails if durable data is damaged or missing.
fn first_damage(files: &[ScannedSegment], checkpointed: u64) -> Result<Option<usize>, OpenError> {
    let synced = files.iter().map(|file| file.scan.synced).max().unwrap_or(0).max(checkpointed);
    let mut expected: Option<u64> = None;
    for (index, file) in files.iter().enumerate() {
        let before = expected.unwrap_or(checkpointed + 1);
        let begins = match (file.scan.first, expected) {
            // Segments that were checkpointed may still be there.
            (Some(first), None) if first <= before => first,
            (Some(first), Some(expected)) if first == expected => first,
            (Some(first), _) => {
                let detail = format!("records {before} to {} are missing before it", first - 1);
                return Err(OpenError::damaged(&file.path, detail));
            }
            (None, _) if before > synced => return Ok(Some(index)),
            (None, _) => return Err(OpenError::damaged(&file.path, "its header cannot be read")),
        };
        debug_assert!(begins <= file.scan.next, "a file ends after it begins");
        if file.scan.damaged {
            if file.scan.next > synced {
                return Ok(Some(index));
            }
            let detail = format!(
                "record {} at byte {} cannot be read, although it had reached the disk",
                file.scan.next, file.scan.whole
            );
            return Err(OpenError::damaged(&file.path, detail));
        }
        expected = Some(file.scan.next);
    }
    Ok(None)
}

/// Cuts off everything from the damage in `files[index]` on, and saves it in files of its own.
fn cut(folder: &Path, files: &mut Vec<ScannedSegment>, index: usize) -> Result<TornTail, OpenError> {
    let dropped = files.split_off(index + 1);
    let damaged = &files[index];
    let mut torn = TornTail {
        file: damaged.path.clone(),
        at: damaged.scan.whole as u64,
        bytes: (damaged.length - damaged.scan.whole) as u64,
        orphaned: damaged.scan.orphaned,
        saved_in: Vec::new(),
    };
    if damaged.scan.first.is_some() {
        let aside = damaged.path.with_extension("torn");
        let cut = || {
            let bytes = fs::read(&damaged.path)?;
            fs::write(&aside, &bytes[damaged.scan.whole..])?;
            let file = fs::OpenOptions::new().write(true).open(&damaged.path)?;
            file.set_len(damaged.scan.whole as u64)?;
            file.sync_all()
        };
        cut().map_err(OpenError::io("cut", &damaged.path))?;
        torn.saved_in.push(aside);
    } else {
        set_aside(damaged, &mut torn)?;
        files.pop();
    }
    for file in &dropped {
        torn.bytes += file.length as u64;
        torn.orphaned += file.scan.changes.len() + file.scan.orphaned;
        set_aside(file, &mut torn)?;
    }
    sync_folder(folder).map_err(OpenError::io("write to", folder))?;
    Ok(torn)
}

fn set_aside(file: &ScannedSegment, torn: &mut TornTail) -> Result<(), OpenError> {
    let aside = file.path.with_extension("torn");
    fs::rename(&file.path, &aside).map_err(OpenError::io("rename", &file.path))?;
    torn.saved_in.push(aside);
    Ok(())
}

/// The segments in order of their numbers, each read and scanned.
fn read_all(folder: &Path) -> Result<Vec<ScannedSegment>, OpenError> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder).map_err(OpenError::io("read", folder))? {
        let name = entry.map_err(OpenError::io("read", folder))?.file_name();
        numbers.extend(name.to_str().and_then(segment::number_of));
    }
    numbers.sort_unstable();
    let paths: Vec<PathBuf> = numbers.iter().map(|number| folder.join(segment::file_name(*number))).collect();
    let scans = in_parallel(paths.len(), |index| -> io::Result<(usize, SegmentScan)> {
        let bytes = Bytes::from(fs::read(&paths[index])?);
        Ok((bytes.len(), segment::scan(numbers[index], &bytes)))
    });
    let mut files = Vec::with_capacity(paths.len());
    for ((number, path), read) in numbers.into_iter().zip(paths).zip(scans) {
        let (length, scan) = read.map_err(OpenError::io("read", &path))?;
        files.push(ScannedSegment { number, path, length, scan });
    }
    Ok(files)
}

/// Calls `work` with 0, 1, … `count` on every core, and returns the results in that order. By hand: a pool of
/// a library would outlive the one time it is needed, when a directory is opened.
pub(crate) fn in_parallel<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(count);
    if threads <= 1 {
        return (0..count).map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let run = || {
        // Relaxed: each index is taken once, and joining the threads orders the results.
        let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|index| *index < count);
        std::iter::from_fn(take).map(|index| (index, work(index))).collect::<Vec<_>>()
    };
    let mut results: Vec<(usize, T)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        let joined = workers.into_iter().map(|worker| worker.join());
        joined.flat_map(|results| results.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    results.sort_unstable_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}
