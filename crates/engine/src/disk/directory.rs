//! The data directory itself: its format version, and the lock that keeps other processes out.
//!
//! ```text
//! format         one line: what this is, and the version of everything else
//! lock           held while a process is in it; says which
//! journal/       what was committed last
//! base/          everything older, as trees
//! ```
//!
//! It is inspected before it is changed: a directory of something else or of another version is left as it
//! is.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use super::error::OpenError;

/// The format version that this program writes.
pub(super) const FORMAT_VERSION: u32 = 2;
/// The oldest format version that it reads: all its data means the same in the newest.
const FORMAT_VERSION_OLDEST: u32 = 1;
const FORMAT_FILE: &str = "format";
const FORMAT_NAME: &str = "perihelion data directory, format ";
const LOCK_FILE: &str = "lock";

/// A locked data directory. Dropping it, or the end of the process, releases the lock.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    /// The operating system releases the lock with the file, however the process ends.
    _lock: File,
}

/// What a path holds before it is opened.
#[derive(Debug, PartialEq, Eq)]
enum DirectoryState {
    /// Nothing, or a directory with nothing in it.
    Empty,
    /// A data directory of the current version.
    Current,
    /// A data directory of an older version that can be read.
    Older,
}

impl Directory {
    /// Locks the directory, creating it if it does not exist.
    pub(super) fn open(path: &Path) -> Result<Directory, OpenError> {
        let sight = inspect(path)?;
        if sight == DirectoryState::Empty {
            fs::create_dir_all(path).map_err(OpenError::io("create", path))?;
        }
        let lock = lock(path)?;
        // Inspected again under the lock: two processes may have found it empty.
        if inspect(path)? == DirectoryState::Empty {
            write_format(path)?;
        }
        for folder in ["journal", "base"] {
            let folder = path.join(folder);
            fs::create_dir_all(&folder).map_err(OpenError::io("create", &folder))?;
        }
        sync_folder(path).map_err(OpenError::io("write to", path))?;
        Ok(Directory { path: path.to_owned(), _lock: lock })
    }

    /// Marks it as being of the current version. Called after all of it has been read.
    pub(super) fn upgrade_format(&self) -> Result<(), OpenError> {
        match inspect(&self.path)? {
            DirectoryState::Older => write_format(&self.path),
            DirectoryState::Empty | DirectoryState::Current => Ok(()),
        }
    }

    pub(super) fn journal(&self) -> PathBuf {
        self.path.join("journal")
    }

    pub(super) fn trees(&self) -> PathBuf {
        self.path.join("base")
    }
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
        let name = entry.file_name();
        // What a process leaves that ended while it created the directory.
        let partial = ["lock", "format.new", "lost+found"];
        if !partial.iter().any(|partial| name == *partial) {
            return Err(not_a_data_directory(path, &name.to_string_lossy()));
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
        Ok(FORMAT_VERSION) => Ok(DirectoryState::Current),
        Ok(FORMAT_VERSION_OLDEST..FORMAT_VERSION) => Ok(DirectoryState::Older),
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

fn lock(path: &Path) -> Result<File, OpenError> {
    let name = path.join(LOCK_FILE);
    let io = || OpenError::io("open", &name);
    let mut options = OpenOptions::new();
    // Its content names the holder, so it must not be truncated before the lock is taken.
    let mut file = options.read(true).write(true).create(true).truncate(false).open(&name).map_err(io())?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let holder = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
            return Err(OpenError::InUse { path: path.to_owned(), holder });
        }
        Err(TryLockError::Error(error)) => return Err(OpenError::io("lock", &name)(error)),
    }
    let mut sign = || {
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{}", std::process::id())
    };
    sign().map_err(OpenError::io("write", &name))?;
    Ok(file)
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
        assert_eq!(names(&path), ["base", "format", "journal", "lock"]);
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
                "perihelion data directory, format 3\n",
                |error| matches!(error, OpenError::OtherVersion { found, .. } if found == "3"),
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
        assert_eq!(fs::read_to_string(&format).unwrap(), "perihelion data directory, format 2\n");
    }

    #[test]
    fn an_interrupted_creation_is_completed() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("lock"), "123").unwrap();
        fs::write(directory.path().join("format.new"), "peri").unwrap();
        drop(Directory::open(directory.path()).unwrap());
        assert_eq!(names(directory.path()), ["base", "format", "journal", "lock"]);
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
