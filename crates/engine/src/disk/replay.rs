//! Reads the journal when a directory is opened, and decides whether it is whole.
//!
//! Segments are read in parallel. Damage after the last record that was synced is what a process or a machine
//! leaves that ended in the middle of a write: a torn tail, which is cut off, saved in a file of its own, and
//! reported. A file that is missing or was cut short, records that are missing, and damage before that record
//! are a loss of data: the directory is not opened, unless the caller accepts the loss. Reading changes
//! nothing; [`CutOff::carry_out`] does, once everything else has been read.

use std::fs;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use super::batch::KeyChange;
use super::directory::sync_folder;
use super::error::OpenError;
use super::manifest::Manifest;
use super::segment::{self, SegmentScan};

/// A segment that will not grow any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SealedSegment {
    pub(super) number: u64,
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    /// The numbers of its first record, and of the record after its last one.
    pub(super) records: std::ops::Range<u64>,
}

/// What has to be in the journal.
#[derive(Clone, Debug, Default)]
pub(super) struct ExpectedJournal {
    /// The directory's manifest; none in directories of older formats.
    pub(super) manifest: Option<Manifest>,
    /// The newest record that is known to have reached the disk.
    pub(super) synced: u64,
    /// Whether the directory was created just now, so that nothing has to be there.
    pub(super) is_new: bool,
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
    /// The newest record that is known to have reached the disk and is there.
    pub(super) synced: u64,
    pub(super) files: Vec<SealedSegment>,
    /// What has to be cut off before the journal goes on.
    pub(super) cut: Option<CutOff>,
}

/// The end of a journal that is to be cut off.
#[derive(Debug)]
pub(super) struct CutOff {
    /// The segment to shorten, the bytes of its whole records, and whether zeros follow them.
    shortened: Option<(PathBuf, usize, bool)>,
    /// The segments to set aside.
    dropped: Vec<PathBuf>,
    /// What the cut-off part amounts to.
    tail: TornTail,
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
    /// The loss that was accepted, if it was more than a torn tail.
    pub(crate) loss: Option<String>,
}

impl std::fmt::Display for TornTail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(loss) = &self.loss {
            write!(f, "data was lost ({loss}): ")?;
        }
        write!(f, "{} bytes cut off at byte {} of {}", self.bytes, self.at, self.file.display())?;
        if self.orphaned > 0 {
            write!(f, ", with {} records behind a hole", self.orphaned)?;
        }
        let files: Vec<String> = self.saved_in.iter().map(|path| path.display().to_string()).collect();
        if files.is_empty() { Ok(()) } else { write!(f, "; kept in {}", files.join(", ")) }
    }
}

/// One segment that was read and scanned.
#[derive(Debug)]
pub(super) struct ScannedSegment {
    number: u64,
    path: PathBuf,
    length: usize,
    /// The part after the whole records that is not zeros.
    tail: std::ops::Range<usize>,
    scan: SegmentScan,
}

/// Where the usable part of a journal ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Within this segment, after its whole records.
    Within(usize),
    /// Before this segment, of which nothing is usable.
    Before(usize),
}

/// The decision on whether a journal is whole.
#[derive(Debug)]
enum JournalDecision {
    /// Everything that has to be there is there.
    Whole,
    /// It ends with a write that was not completed.
    Torn(End),
    /// Data is missing or damaged; what comes before this end is usable.
    Lost(End, OpenError),
}

/// Decides whether a journal has everything that it has to have. Pure.
fn decide(
    folder: &Path,
    files: &[ScannedSegment],
    checkpointed: u64,
    expected: &ExpectedJournal,
) -> JournalDecision {
    let marks = files.iter().map(|file| file.scan.synced).max().unwrap_or(0);
    let synced = marks.max(expected.synced).max(checkpointed);
    let lost = |end, path: &Path, detail: String| JournalDecision::Lost(end, OpenError::lost(path, detail));
    let listed = expected.manifest.as_ref().map(|manifest| &manifest.segments);
    let missing = listed
        .into_iter()
        .flatten()
        .find(|(number, _)| files.binary_search_by_key(number, |file| &file.number).is_err());
    let mut next = None;
    for (index, file) in files.iter().enumerate() {
        if let Some((number, first)) = missing.filter(|(number, _)| **number < file.number) {
            return lost(End::Before(index), &folder.join(segment::file_name(*number)), missing_text(*first));
        }
        let before = next.unwrap_or(checkpointed + 1);
        match (file.scan.first, next) {
            // Segments that were checkpointed may still be there.
            (Some(first), None) if first <= before => {}
            (Some(first), Some(next)) if first == next => {}
            (Some(first), _) => {
                let detail = format!("records {before} to {} are missing before it", first.saturating_sub(1));
                return lost(End::Before(index), &file.path, detail);
            }
            (None, _) => {
                // A file that is not in the manifest yet has no record yet.
                let in_use = listed.is_some_and(|listed| listed.contains_key(&file.number));
                return match before > synced && !in_use {
                    true => JournalDecision::Torn(End::Before(index)),
                    false => lost(End::Before(index), &file.path, "its header cannot be read".to_owned()),
                };
            }
        }
        let SegmentScan { next: end, whole, .. } = file.scan;
        if file.scan.cut_short {
            let detail = format!("it was cut short at byte {}, in or before record {end}", file.length);
            return lost(End::Within(index), &file.path, detail);
        }
        if file.scan.damaged && end > synced {
            return JournalDecision::Torn(End::Within(index));
        }
        if file.scan.damaged {
            let detail =
                format!("record {end} at byte {whole} cannot be read, although it had reached the disk");
            return lost(End::Within(index), &file.path, detail);
        }
        next = Some(end);
    }
    let all = End::Before(files.len());
    if let Some((number, first)) = missing {
        return lost(all, &folder.join(segment::file_name(*number)), missing_text(*first));
    }
    // A journal without files began never, or was removed: only a manifest can tell that it began never.
    if files.is_empty() && expected.manifest.is_none() && !expected.is_new {
        return lost(all, folder, "it has no journal files".to_owned());
    }
    let newest = next.map_or(checkpointed, |next| next - 1);
    if newest < synced {
        let path = files.last().map_or(folder, |file| &file.path);
        let detail = format!("it ends with record {newest}, although record {synced} had reached the disk");
        return lost(all, path, detail);
    }
    JournalDecision::Whole
}

fn missing_text(first: u64) -> String {
    format!("it is missing; it has the records from {first} on")
}

/// The segments of the journal in `folder`, read and scanned.
#[derive(Debug)]
pub(super) struct ScannedJournal {
    folder: PathBuf,
    files: Vec<ScannedSegment>,
}

impl ScannedJournal {
    /// Fails if the journal lacks what it has to have, whose records up to `checkpointed` are in the trees.
    pub(super) fn check(&self, checkpointed: u64, expected: &ExpectedJournal) -> Result<(), OpenError> {
        match decide(&self.folder, &self.files, checkpointed, expected) {
            JournalDecision::Lost(_, error) => Err(error),
            JournalDecision::Whole | JournalDecision::Torn(_) => Ok(()),
        }
    }

    /// The contents of the journal, whose records up to `checkpointed` are in the trees. Fails if data is
    /// missing, unless `accept_loss`. Changes nothing on disk.
    pub(super) fn replay(
        mut self,
        checkpointed: u64,
        expected: &ExpectedJournal,
        accept_loss: bool,
    ) -> Result<Replay, OpenError> {
        let next_file = self.files.last().map_or(1, |file| file.number + 1);
        let listed = expected.manifest.iter().flat_map(|manifest| manifest.segments.keys());
        let next_file = listed.max().map_or(next_file, |number| next_file.max(number + 1));
        let (end, loss) = match decide(&self.folder, &self.files, checkpointed, expected) {
            JournalDecision::Whole => (None, None),
            JournalDecision::Torn(end) => (Some(end), None),
            JournalDecision::Lost(end, error) if accept_loss => (Some(end), Some(error.to_string())),
            JournalDecision::Lost(_, error) => return Err(error),
        };
        let marks = self.files.iter().map(|file| file.scan.synced).max().unwrap_or(0);
        let cut = end.map(|end| self.cut_at(end, checkpointed, loss));
        let newest = self.files.last().map_or(checkpointed, |file| file.scan.next - 1);
        let synced = marks.max(expected.synced).max(checkpointed).min(newest);
        let mut changes = Vec::with_capacity(self.files.iter().map(|file| file.scan.changes.len()).sum());
        let mut files = Vec::with_capacity(self.files.len());
        for mut file in self.files {
            // A segment that has been checkpointed as a whole adds nothing.
            if file.scan.next > checkpointed + 1 {
                changes.append(&mut file.scan.changes);
            }
            files.push(SealedSegment {
                number: file.number,
                path: file.path,
                bytes: file.scan.whole as u64,
                records: file.scan.first.unwrap_or(file.scan.next)..file.scan.next,
            });
        }
        Ok(Replay { changes, next: newest + 1, next_file, synced, files, cut })
    }

    /// Drops what comes after `end` from the journal, and says what has to be cut off on disk.
    fn cut_at(&mut self, end: End, checkpointed: u64, loss: Option<String>) -> CutOff {
        let (keep, shortened) = match end {
            End::Within(index) => (index + 1, self.files.get(index)),
            End::Before(index) => (index, None),
        };
        // Records that the trees have already would come before a gap in the numbers of records.
        let ends_before_trees =
            keep.checked_sub(1).is_some_and(|last| self.files[last].scan.next <= checkpointed);
        let keep = if ends_before_trees { 0 } else { keep };
        let shortened = shortened.filter(|_| keep > 0);
        let first = shortened.or(self.files.get(keep));
        let mut tail = TornTail {
            file: first.map_or_else(|| self.folder.clone(), |file| file.path.clone()),
            at: shortened.map_or(0, |file| file.tail.start as u64),
            bytes: shortened.map_or(0, |file| file.tail.len() as u64),
            orphaned: shortened.map_or(0, |file| file.scan.orphaned),
            saved_in: Vec::new(),
            loss,
        };
        let shortened = shortened.map(|file| (file.path.clone(), file.scan.whole, file.scan.padded));
        let dropped = self.files.split_off(keep);
        for file in &dropped {
            tail.bytes += file.length as u64;
            tail.orphaned += file.scan.changes.len() + file.scan.orphaned;
        }
        let dropped = dropped.into_iter().map(|file| file.path).collect();
        CutOff { shortened, dropped, tail }
    }
}

impl CutOff {
    /// Cuts off the end, saves it in files of its own, and returns what was cut off. What is left is whole.
    pub(super) fn carry_out(mut self, folder: &Path) -> Result<TornTail, OpenError> {
        if let Some((path, whole, padded)) = &self.shortened {
            let aside = aside_of(path);
            cut(path, &aside, *whole, *padded).map_err(OpenError::io("cut", path))?;
            self.tail.saved_in.push(aside);
        }
        for path in &self.dropped {
            let aside = aside_of(path);
            fs::rename(path, &aside).map_err(OpenError::io("rename", path))?;
            self.tail.saved_in.push(aside);
        }
        sync_folder(folder).map_err(OpenError::io("write to", folder))?;
        Ok(self.tail)
    }
}

/// Saves what follows the first `whole` bytes of a segment in `aside`, and removes it from the segment.
fn cut(path: &Path, aside: &Path, whole: usize, padded: bool) -> io::Result<()> {
    let bytes = fs::read(path)?;
    fs::write(aside, &bytes[tail_of(&bytes, whole)])?;
    let mut file = fs::OpenOptions::new().write(true).open(path)?;
    if padded {
        // Zeros first: the file is never without the zeros that show where its records end.
        file.seek(SeekFrom::Start(whole as u64))?;
        file.write_all(&vec![0; bytes.len() - whole])?;
        file.set_len(segment::file_lengths(bytes.len().max(whole + 1) as u64 - 1).0)?;
    } else {
        file.set_len(whole as u64)?;
    }
    file.sync_all()
}

/// The part of a segment after its first `whole` bytes, without the zeros around it.
fn tail_of(bytes: &[u8], whole: usize) -> std::ops::Range<usize> {
    let rest = &bytes[whole..];
    let start = rest.iter().position(|byte| *byte != 0).unwrap_or(rest.len());
    let end = rest.iter().rposition(|byte| *byte != 0).map_or(start, |last| last + 1);
    whole + start..whole + end
}

/// A name for what is cut off a segment, which no file has yet.
fn aside_of(path: &Path) -> PathBuf {
    let names = (1..).map(|number| path.with_extension(format!("{number}.torn")));
    let mut names = std::iter::once(path.with_extension("torn")).chain(names);
    names.find(|name| !name.exists()).expect("the numbers do not end")
}

/// Reads the segments of the journal in `folder`, in order of their numbers.
pub(super) fn scan(folder: &Path) -> Result<ScannedJournal, OpenError> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder).map_err(OpenError::io("read", folder))? {
        let name = entry.map_err(OpenError::io("read", folder))?.file_name();
        numbers.extend(name.to_str().and_then(segment::number_of));
    }
    numbers.sort_unstable();
    let paths: Vec<PathBuf> = numbers.iter().map(|number| folder.join(segment::file_name(*number))).collect();
    let scans = in_parallel(paths.len(), |index| -> io::Result<_> {
        let bytes = Bytes::from(fs::read(&paths[index])?);
        let scan = segment::scan(numbers[index], &bytes);
        Ok((bytes.len(), tail_of(&bytes, scan.whole), scan))
    });
    let mut files = Vec::with_capacity(paths.len());
    for ((number, path), read) in numbers.into_iter().zip(paths).zip(scans) {
        let (length, tail, scan) = read.map_err(OpenError::io("read", &path))?;
        files.push(ScannedSegment { number, path, length, tail, scan });
    }
    Ok(ScannedJournal { folder: folder.to_owned(), files })
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
