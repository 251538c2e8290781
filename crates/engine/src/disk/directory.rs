//! The data directory itself: whose it is, which version, and that nobody else is in it.
//!
//! ```text
//! format         one line: what this is, and the version of everything else
//! lock           held while a process is in it; says which
//! journal/       what was committed last
//! base/          everything older, as trees
//! ```
//!
//! Looking comes before touching: a directory of somebody else or of another version is left as it is.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use super::error::OpenError;

/// The version of the format this program writes.
pub(super) const FORMAT_VERSION: u32 = 2;
/// The oldest one that it reads: all that is in it means the same in the newest.
const FORMAT_VERSION_OLDEST: u32 = 1;
const FORMAT_FILE: &str = "format";
const FORMAT_NAME: &str = "perihelion data directory, format ";
const LOCK_FILE: &str = "lock";

/// A directory that is ours until this is dropped, or the process ends.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    /// The operating system gives it up with the file, however the process ends.
    _lock: File,
}

/// What is found at a path.
#[derive(Debug, PartialEq, Eq)]
enum Sight {
    /// Nothing, or a directory with nothing in it.
    Empty,
    /// A data directory of this version.
    Ours,
    /// One of an older version, which can be read.
    Older,
}

impl Directory {
    /// Takes the directory, making it if there is none.
    pub(super) fn open(path: &Path) -> Result<Directory, OpenError> {
        let sight = look(path)?;
        if sight == Sight::Empty {
            fs::create_dir_all(path).map_err(OpenError::refused("create", path))?;
        }
        let lock = lock(path)?;
        // Seen again under the lock: two processes may have found it empty.
        if look(path)? == Sight::Empty {
            write_format(path)?;
        }
        for folder in ["journal", "base"] {
            let folder = path.join(folder);
            fs::create_dir_all(&folder).map_err(OpenError::refused("create", &folder))?;
        }
        sync_folder(path).map_err(OpenError::refused("write to", path))?;
        Ok(Directory { path: path.to_owned(), _lock: lock })
    }

    /// Says that it is of the newest version from now on. Not before all of it has been read.
    pub(super) fn renew(&self) -> Result<(), OpenError> {
        match look(&self.path)? {
            Sight::Older => write_format(&self.path),
            Sight::Empty | Sight::Ours => Ok(()),
        }
    }

    pub(super) fn journal(&self) -> PathBuf {
        self.path.join("journal")
    }

    pub(super) fn base(&self) -> PathBuf {
        self.path.join("base")
    }
}

fn look(path: &Path) -> Result<Sight, OpenError> {
    match fs::read_to_string(path.join(FORMAT_FILE)) {
        Ok(text) => return check_format(path, &text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            return Err(not_ours(path, FORMAT_FILE));
        }
        Err(error) => return Err(OpenError::refused("read", path.join(FORMAT_FILE))(error)),
    }
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Sight::Empty),
        Err(error) => return Err(OpenError::refused("read", path)(error)),
    };
    for entry in entries {
        let entry = entry.map_err(OpenError::refused("read", path))?;
        let name = entry.file_name();
        // What a process that ended while it made the directory leaves behind.
        let begun = ["lock", "format.new", "lost+found"];
        if !begun.iter().any(|begun| name == *begun) {
            return Err(not_ours(path, &name.to_string_lossy()));
        }
    }
    Ok(Sight::Empty)
}

fn not_ours(path: &Path, example: &str) -> OpenError {
    OpenError::NotOurs { path: path.to_owned(), example: example.to_owned() }
}

fn check_format(path: &Path, text: &str) -> Result<Sight, OpenError> {
    let found = text.trim_end().strip_prefix(FORMAT_NAME).ok_or_else(|| not_ours(path, FORMAT_FILE))?;
    match found.parse() {
        Ok(FORMAT_VERSION) => Ok(Sight::Ours),
        Ok(FORMAT_VERSION_OLDEST..FORMAT_VERSION) => Ok(Sight::Older),
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
    write().map_err(OpenError::refused("write", &file))
}

fn lock(path: &Path) -> Result<File, OpenError> {
    let name = path.join(LOCK_FILE);
    let refused = || OpenError::refused("open", &name);
    let mut options = OpenOptions::new();
    // What is in it names the holder: it must survive until the lock is ours.
    let mut file =
        options.read(true).write(true).create(true).truncate(false).open(&name).map_err(refused())?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let holder = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
            return Err(OpenError::InUse { path: path.to_owned(), holder });
        }
        Err(TryLockError::Error(error)) => return Err(OpenError::refused("lock", &name)(error)),
    }
    let mut sign = || {
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{}", std::process::id())
    };
    sign().map_err(OpenError::refused("write", &name))?;
    Ok(file)
}

/// Makes the names in a folder durable, where the system can.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Scratch;
    use super::*;

    fn names(path: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(path).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_directory_is_made_once_and_opened_again() {
        let scratch = Scratch::new();
        let path = scratch.path().join("a/b");
        drop(Directory::open(&path).unwrap());
        assert_eq!(names(&path), ["base", "format", "journal", "lock"]);
        drop(Directory::open(&path).unwrap());
    }

    #[test]
    fn a_second_opening_is_refused_and_names_the_holder() {
        let scratch = Scratch::new();
        let first = Directory::open(scratch.path()).unwrap();
        let error = Directory::open(scratch.path()).unwrap_err();
        assert!(
            matches!(error, OpenError::InUse { holder: Some(id), .. } if id == std::process::id()),
            "{error}"
        );
        drop(first);
        Directory::open(scratch.path()).unwrap();
    }

    #[test]
    fn what_is_not_ours_is_left_as_it_is() {
        type Expected = fn(&OpenError) -> bool;
        let cases: [(&str, &str, Expected); 4] = [
            ("notes.txt", "mine", |error| matches!(error, OpenError::NotOurs { .. })),
            ("format", "something else", |error| matches!(error, OpenError::NotOurs { .. })),
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
            let scratch = Scratch::new();
            fs::write(scratch.path().join(name), content).unwrap();
            let error = Directory::open(scratch.path()).unwrap_err();
            assert!(expected(&error), "{name}: {error}");
            assert_eq!(names(scratch.path()), [name], "nothing was added");
            assert_eq!(fs::read_to_string(scratch.path().join(name)).unwrap(), content);
        }
    }

    #[test]
    fn an_older_version_is_taken_and_becomes_the_newest_when_it_was_read() {
        let scratch = Scratch::new();
        let format = scratch.path().join("format");
        fs::write(&format, "perihelion data directory, format 1\n").unwrap();
        let directory = Directory::open(scratch.path()).unwrap();
        assert_eq!(fs::read_to_string(&format).unwrap(), "perihelion data directory, format 1\n");
        directory.renew().unwrap();
        assert_eq!(fs::read_to_string(&format).unwrap(), "perihelion data directory, format 2\n");
    }

    #[test]
    fn a_directory_whose_making_was_cut_short_is_made_to_its_end() {
        let scratch = Scratch::new();
        fs::write(scratch.path().join("lock"), "123").unwrap();
        fs::write(scratch.path().join("format.new"), "peri").unwrap();
        drop(Directory::open(scratch.path()).unwrap());
        assert_eq!(names(scratch.path()), ["base", "format", "journal", "lock"]);
    }

    #[test]
    fn a_file_in_the_place_of_the_directory_says_what_to_do() {
        let scratch = Scratch::new();
        let path = scratch.path().join("file");
        fs::write(&path, "").unwrap();
        for path in [path.clone(), path.join("below")] {
            let error = Directory::open(&path).unwrap_err();
            assert!(error.advice().contains("not a file"), "{error}: {}", error.advice());
        }
    }
}
