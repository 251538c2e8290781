//! The data directory itself: its format version, and the lock that keeps other processes out.
//!
//! ```text
//! format         one line: what this is, and the version of everything else
//! lock           held while a process is in it; says which
//! manifest       which files have to be there
//! synced         the newest record that has reached the disk
//! journal/       what was committed last
//! base/          everything older, as trees
//! ```
//!
//! It is inspected before it is changed: a directory of something else or of another version is left as it
//! is.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::batch::Keyspace;
use super::error::OpenError;
use super::manifest::{self, Manifest};
use super::replay::ExpectedJournal;
use super::synced_mark::{self, SyncedMark};

/// The format version that this program writes.
pub(super) const FORMAT_VERSION: u32 = 3;
/// The oldest format version that it reads: all its data means the same in the newest.
const FORMAT_VERSION_OLDEST: u32 = 1;
const FORMAT_FILE: &str = "format";
const FORMAT_NAME: &str = "perihelion data directory, format ";
const LOCK_FILE: &str = "lock";
/// The folders of the journal and of the trees.
const FOLDERS: [&str; 2] = ["journal", "base"];
/// The first format version with a manifest: a directory of it without one has lost it.
const FORMAT_VERSION_MANIFEST: u32 = 3;
/// The first format version with a tree of replication messages.
const FORMAT_VERSION_REPLICATION: u32 = 2;

/// A locked data directory. Dropping it, or the end of the process, releases the lock.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    /// The operating system releases the lock with the file, however the process ends.
    lock: File,
    /// The content of the lock file before this process locked it; none if there was no such file.
    lock_before: Option<Vec<u8>>,
    /// Whether the directory has been opened, so that it may be changed.
    in_use: AtomicBool,
    /// The format version it had.
    version: u32,
    /// Whether it was empty.
    is_new: bool,
}

/// What a path holds before it is opened.
#[derive(Debug, PartialEq, Eq)]
enum DirectoryState {
    /// Nothing, or a directory with nothing in it.
    Empty,
    /// A data directory of this version, which can be read.
    Version(u32),
}

impl Directory {
    /// Locks the directory, creating it if it does not exist. Until it is `put_in_use`, nothing in an
    /// existing directory changes.
    pub(super) fn open(path: &Path) -> Result<Directory, OpenError> {
        if inspect(path)? == DirectoryState::Empty {
            fs::create_dir_all(path).map_err(OpenError::io("create", path))?;
        }
        let (lock, lock_before) = lock(path)?;
        // Inspected again under the lock: two processes may have found it empty.
        let (version, is_new) = match inspect(path)? {
            DirectoryState::Version(version) => (version, false),
            DirectoryState::Empty => {
                create_contents(path)?;
                (FORMAT_VERSION, true)
            }
        };
        let (path, in_use) = (path.to_owned(), AtomicBool::new(is_new));
        Ok(Directory { path, lock, lock_before, in_use, version, is_new })
    }

    /// What has to be in its journal. Fails if that is unknown, unless `accept_loss`.
    pub(super) fn expected_journal(&self, accept_loss: bool) -> Result<ExpectedJournal, OpenError> {
        let mut expected = ExpectedJournal { is_new: self.is_new, ..ExpectedJournal::default() };
        if self.version < FORMAT_VERSION_MANIFEST {
            return Ok(expected);
        }
        let path = manifest::path_in(&self.path);
        expected.manifest = manifest::read(&self.path).map_err(OpenError::io("read", &path))?;
        if expected.manifest.is_none() && !accept_loss {
            return Err(OpenError::lost(path, "it is missing or not whole"));
        }
        let path = synced_mark::path_in(&self.path);
        let mark = synced_mark::read(&self.path).map_err(OpenError::io("read", &path))?;
        if mark.is_none() && !accept_loss {
            return Err(OpenError::lost(path, "it is missing or not whole"));
        }
        expected.synced = mark.unwrap_or(0);
        Ok(expected)
    }

    /// The trees that have to be there, if its manifest does not say.
    pub(super) fn trees_by_format(&self) -> &'static [Keyspace] {
        if self.version < FORMAT_VERSION_REPLICATION {
            return &[Keyspace::Catalog, Keyspace::Items, Keyspace::Log];
        }
        &Keyspace::ALL
    }

    /// Fails if one of its folders is missing.
    pub(super) fn check_folders(&self) -> Result<(), OpenError> {
        let missing = FOLDERS.into_iter().map(|name| self.path.join(name)).find(|path| !path.is_dir());
        missing.map_or(Ok(()), |path| Err(OpenError::damaged(path, "it is missing")))
    }

    /// Declares the directory opened: from now on it may be changed.
    pub(super) fn put_in_use(&self) {
        // Relaxed: only `drop` reads it, which has exclusive access.
        self.in_use.store(true, Ordering::Relaxed);
    }

    /// Marks it as being of the current version. Called after all of it has been read, and after it has got
    /// its manifest.
    pub(super) fn upgrade_format(&self) -> Result<(), OpenError> {
        if self.version == FORMAT_VERSION {
            return Ok(());
        }
        write_format(&self.path)?;
        sync_folder(&self.path).map_err(OpenError::io("write to", &self.path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn journal(&self) -> PathBuf {
        self.path.join("journal")
    }

    pub(super) fn trees(&self) -> PathBuf {
        self.path.join("base")
    }
}

/// A directory that was not opened stays as it was, its lock file included.
impl Drop for Directory {
    fn drop(&mut self) {
        if *self.in_use.get_mut() {
            return;
        }
        // Errors are dropped: the caller has one already, and the content of the lock file only informs.
        let _ = match &self.lock_before {
            Some(content) => {
                let restored = self.lock.set_len(0).and_then(|()| self.lock.rewind());
                restored.and_then(|()| self.lock.write_all(content))
            }
            None => fs::remove_file(self.path.join(LOCK_FILE)),
        };
    }
}

/// Fills an empty directory. The format comes last: with it, everything else has to be there.
fn create_contents(path: &Path) -> Result<(), OpenError> {
    for folder in FOLDERS {
        let folder = path.join(folder);
        fs::create_dir_all(&folder).map_err(OpenError::io("create", &folder))?;
    }
    manifest::write(path, &Manifest::default()).map_err(OpenError::io("write", manifest::path_in(path)))?;
    let mark = SyncedMark::create(path, 0);
    mark.map_err(OpenError::io("write", synced_mark::path_in(path)))?;
    write_format(path)?;
    sync_folder(path).map_err(OpenError::io("write to", path))
}

fn inspect(path: &Path) -> Result<DirectoryState, OpenError> {
    match fs::read_to_string(path.join(FORMAT_FILE)) {
        Ok(text) => return check_format(path, &text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            return Err(not_a_data_directory(path, FORMAT_FILE));
        }
        Err(error) => return Err(OpenError::io("read", path.join(FORMAT_FILE))(error)),
    }
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(DirectoryState::Empty),
        Err(error) => return Err(OpenError::io("read", path)(error)),
    };
    for entry in entries {
        let entry = entry.map_err(OpenError::io("read", path))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // What a process leaves that ended while it created the directory.
        let partial = match name.as_str() {
            "lock" | "format.new" | "manifest.new" | "synced" | "synced.new" | "lost+found" => true,
            "manifest" => manifest::read(path).is_ok_and(|found| found == Some(Manifest::default())),
            "journal" | "base" => fs::read_dir(entry.path()).is_ok_and(|mut inside| inside.next().is_none()),
            _ => false,
        };
        if !partial {
            return Err(not_a_data_directory(path, &name));
        }
    }
    Ok(DirectoryState::Empty)
}

fn not_a_data_directory(path: &Path, example: &str) -> OpenError {
    OpenError::NotDataDirectory { path: path.to_owned(), example: example.to_owned() }
}

fn check_format(path: &Path, text: &str) -> Result<DirectoryState, OpenError> {
    let found =
        text.trim_end().strip_prefix(FORMAT_NAME).ok_or_else(|| not_a_data_directory(path, FORMAT_FILE))?;
    match found.parse() {
        Ok(version @ FORMAT_VERSION_OLDEST..=FORMAT_VERSION) => Ok(DirectoryState::Version(version)),
        _ => {
            let found: String = found.chars().take(20).collect();
            Err(OpenError::OtherVersion { path: path.to_owned(), found, expected: FORMAT_VERSION })
        }
    }
}

fn write_format(path: &Path) -> Result<(), OpenError> {
    let (file, new) = (path.join(FORMAT_FILE), path.join("format.new"));
    let write = || {
        let mut format = File::create(&new)?;
        writeln!(format, "{FORMAT_NAME}{FORMAT_VERSION}")?;
        format.sync_all()?;
        fs::rename(&new, &file)
    };
    write().map_err(OpenError::io("write", &file))
}

/// Locks the directory for this process. Also returns what the lock file said before, if there was one.
fn lock(path: &Path) -> Result<(File, Option<Vec<u8>>), OpenError> {
    let name = path.join(LOCK_FILE);
    let io = |error| OpenError::io("open", &name)(error);
    loop {
        let existed = name.exists();
        let mut options = OpenOptions::new();
        // Its content names the holder, so it must not be truncated before the lock is taken.
        let mut file = options.read(true).write(true).create(true).truncate(false).open(&name).map_err(io)?;
        let locked = file.try_lock();
        let mut before = Vec::new();
        file.read_to_end(&mut before).map_err(io)?;
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = String::from_utf8_lossy(&before).trim().parse().ok();
                return Err(OpenError::InUse { path: path.to_owned(), holder });
            }
            Err(TryLockError::Error(error)) => return Err(OpenError::io("lock", &name)(error)),
        }
        // A process whose opening failed may have removed the file that was just locked.
        if !is_same_file(&file, &name) {
            continue;
        }
        let mut sign = || {
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{}", std::process::id())
        };
        sign().map_err(OpenError::io("write", &name))?;
        return Ok((file, existed.then_some(before)));
    }
}

/// Whether `path` still leads to this open file, where the system can tell.
fn is_same_file(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;

        let identity = |found: fs::Metadata| (found.dev(), found.ino());
        let (open, named) = (file.metadata().map(identity), fs::metadata(path).map(identity));
        open.is_ok_and(|open| named.is_ok_and(|named| named == open))
    }
    #[cfg(not(unix))]
    {
        let _ = (file, path);
        true
    }
}

/// Syncs a folder, so that the names in it are durable, where the system can.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(path).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_directory_is_created_once_and_opened_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/b");
        drop(Directory::open(&path).unwrap());
        assert_eq!(names(&path), ["base", "format", "journal", "lock", "manifest", "synced"]);
        drop(Directory::open(&path).unwrap());
    }

    #[test]
    fn a_second_open_fails_and_names_the_holder() {
        let directory = tempfile::tempdir().unwrap();
        let first = Directory::open(directory.path()).unwrap();
        let error = Directory::open(directory.path()).unwrap_err();
        assert!(
            matches!(error, OpenError::InUse { holder: Some(id), .. } if id == std::process::id()),
            "{error}"
        );
        drop(first);
        Directory::open(directory.path()).unwrap();
    }

    #[test]
    fn a_foreign_directory_is_left_as_it_is() {
        type Expected = fn(&OpenError) -> bool;
        let cases: [(&str, &str, Expected); 4] = [
            ("notes.txt", "mine", |error| matches!(error, OpenError::NotDataDirectory { .. })),
            ("format", "something else", |error| matches!(error, OpenError::NotDataDirectory { .. })),
            (
                "format",
                "perihelion data directory, format 4\n",
                |error| matches!(error, OpenError::OtherVersion { found, .. } if found == "4"),
            ),
            ("format", "perihelion data directory, format one", |error| {
                matches!(error, OpenError::OtherVersion { .. })
            }),
        ];
        for (name, content, expected) in cases {
            let directory = tempfile::tempdir().unwrap();
            fs::write(directory.path().join(name), content).unwrap();
            let error = Directory::open(directory.path()).unwrap_err();
            assert!(expected(&error), "{name}: {error}");
            assert_eq!(names(directory.path()), [name], "nothing was added");
            assert_eq!(fs::read_to_string(directory.path().join(name)).unwrap(), content);
        }
    }

    #[test]
    fn an_older_format_is_upgraded_after_it_was_read() {
        let directory = tempfile::tempdir().unwrap();
        let format = directory.path().join("format");
        fs::write(&format, "perihelion data directory, format 1\n").unwrap();
        let directory = Directory::open(directory.path()).unwrap();
        assert_eq!(fs::read_to_string(&format).unwrap(), "perihelion data directory, format 1\n");
        directory.upgrade_format().unwrap();
        assert_eq!(fs::read_to_string(&format).unwrap(), "perihelion data directory, format 3\n");
    }

    #[test]
    fn a_directory_that_is_not_put_in_use_keeps_its_lock_file() {
        let directory = tempfile::tempdir().unwrap();
        let lock = directory.path().join("lock");
        drop(Directory::open(directory.path()).unwrap());
        fs::write(&lock, "4711\n").unwrap();
        drop(Directory::open(directory.path()).unwrap());
        assert_eq!(fs::read_to_string(&lock).unwrap(), "4711\n");
        fs::remove_file(&lock).unwrap();
        drop(Directory::open(directory.path()).unwrap());
        assert!(!lock.exists());
        let opened = Directory::open(directory.path()).unwrap();
        opened.put_in_use();
        drop(opened);
        assert_eq!(fs::read_to_string(&lock).unwrap(), format!("{}\n", std::process::id()));
    }

    #[test]
    fn an_interrupted_creation_is_completed() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("lock"), "123").unwrap();
        fs::write(directory.path().join("format.new"), "peri").unwrap();
        drop(Directory::open(directory.path()).unwrap());
        assert_eq!(names(directory.path()), ["base", "format", "journal", "lock", "manifest", "synced"]);
    }

    #[test]
    fn a_file_instead_of_a_directory_gives_advice() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "").unwrap();
        for path in [path.clone(), path.join("below")] {
            let error = Directory::open(&path).unwrap_err();
            assert!(error.advice().contains("not a file"), "{error}: {}", error.advice());
        }
    }
}
