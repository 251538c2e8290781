//! The manifest: what has to be in a data directory.
//!
//! ```text
//! perihelion manifest 1
//! checkpointed 4711
//! journal 000000000007.log 4712
//! tree items 12 3,5,8
//! hash 0123456789abcdef
//! ```
//!
//! It names the newest record that the trees have, each journal file with the number of its first record, and
//! each tree with its version and its tables (`*` while a checkpoint changes it). It is replaced as a whole, synced, before
//! anything that it names may be missed: a journal file before its first record, a checkpoint before the
//! files that it makes superfluous are removed. So whatever it names must be there.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use xxhash_rust::xxh3::xxh3_64;

use super::batch::Keyspace;
use super::directory::sync_folder;
use super::segment;

const FILE: &str = "manifest";
const FIRST_LINE: &str = "perihelion manifest 1";

/// The version of a tree, as the manifest knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TreeVersion {
    /// The tree has exactly this version, with these tables.
    Exactly { version: u64, tables: Vec<u64> },
    /// A checkpoint may have been changing the tree, which exists.
    Changing,
}

/// What has to be in a data directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Manifest {
    /// The trees have every record up to this one.
    pub(super) checkpointed: u64,
    /// The number of the first record of each journal segment.
    pub(super) segments: BTreeMap<u64, u64>,
    /// The trees that exist.
    pub(super) trees: BTreeMap<Keyspace, TreeVersion>,
}

impl Manifest {
    /// The text of the manifest's file.
    pub(super) fn encode(&self) -> String {
        let mut text = format!("{FIRST_LINE}\ncheckpointed {}\n", self.checkpointed);
        for (number, first) in &self.segments {
            let _ = writeln!(text, "journal {} {first}", segment::file_name(*number));
        }
        for (space, version) in &self.trees {
            let _ = match version {
                TreeVersion::Exactly { version, tables } => {
                    let tables: Vec<String> = tables.iter().map(u64::to_string).collect();
                    writeln!(text, "tree {} {version} {}", space.name(), tables.join(","))
                }
                TreeVersion::Changing => writeln!(text, "tree {} *", space.name()),
            };
        }
        let hash = xxh3_64(text.as_bytes());
        let _ = writeln!(text, "hash {hash:016x}");
        text
    }

    /// Reads the text of a manifest; `None` if it is not whole.
    pub(super) fn decode(text: &str) -> Option<Manifest> {
        let lines = text.rfind("hash ")?;
        let hash = u64::from_str_radix(text[lines..].strip_prefix("hash ")?.strip_suffix('\n')?, 16).ok()?;
        let text = &text[..lines];
        let mut lines = text.lines();
        if xxh3_64(text.as_bytes()) != hash || lines.next() != Some(FIRST_LINE) {
            return None;
        }
        let mut manifest = Manifest::default();
        for line in lines {
            match *line.split(' ').collect::<Vec<_>>() {
                ["checkpointed", record] => manifest.checkpointed = record.parse().ok()?,
                ["journal", name, first] => {
                    manifest.segments.insert(segment::number_of(name)?, first.parse().ok()?);
                }
                ["tree", name, "*"] => {
                    manifest.trees.insert(Keyspace::named(name)?, TreeVersion::Changing);
                }
                ["tree", name, version, tables] => {
                    let tables = tables.split(',').filter(|table| !table.is_empty());
                    let tables = tables.map(|table| table.parse().ok()).collect::<Option<_>>()?;
                    let version = TreeVersion::Exactly { version: version.parse().ok()?, tables };
                    manifest.trees.insert(Keyspace::named(name)?, version);
                }
                _ => return None,
            }
        }
        Some(manifest)
    }
}

/// The path of the manifest in a data directory.
pub(super) fn path_in(directory: &Path) -> PathBuf {
    directory.join(FILE)
}

/// The manifest of a directory; `None` if the file is not there or not whole.
pub(super) fn read(directory: &Path) -> io::Result<Option<Manifest>> {
    match fs::read(path_in(directory)) {
        Ok(bytes) => Ok(std::str::from_utf8(&bytes).ok().and_then(Manifest::decode)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Replaces the manifest of a directory, and syncs it.
pub(super) fn write(directory: &Path, manifest: &Manifest) -> io::Result<()> {
    let new = directory.join("manifest.new");
    let mut file = File::create(&new)?;
    file.write_all(manifest.encode().as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path_in(directory))?;
    sync_folder(directory)
}

/// The manifest of an open directory.
#[derive(Debug)]
pub(super) struct ManifestFile {
    directory: PathBuf,
    current: Mutex<Manifest>,
}

impl ManifestFile {
    /// Replaces whatever manifest the directory has by `manifest`.
    pub(super) fn create(directory: PathBuf, manifest: Manifest) -> io::Result<ManifestFile> {
        write(&directory, &manifest)?;
        Ok(ManifestFile { directory, current: Mutex::new(manifest) })
    }

    /// Changes the manifest. If it cannot be written, it stays as it was.
    pub(super) fn update(&self, change: impl FnOnce(&mut Manifest)) -> io::Result<()> {
        // The lock is held while it is written, so that the newest one is written last.
        let mut current = self.current.lock();
        let mut changed = current.clone();
        change(&mut changed);
        if changed != *current {
            write(&self.directory, &changed)?;
            *current = changed;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        Manifest {
            checkpointed: 41,
            segments: BTreeMap::from([(3, 30), (4, 50)]),
            trees: BTreeMap::from([
                (Keyspace::Catalog, TreeVersion::Exactly { version: 7, tables: vec![3, 12] }),
                (Keyspace::Items, TreeVersion::Changing),
                (Keyspace::Log, TreeVersion::Exactly { version: 0, tables: vec![] }),
            ]),
        }
    }

    #[test]
    fn a_manifest_round_trips_and_every_altered_byte_is_noticed() {
        let text = manifest().encode();
        assert_eq!(Manifest::decode(&text), Some(manifest()));
        assert_eq!(Manifest::decode(&Manifest::default().encode()), Some(Manifest::default()));
        for at in 0..text.len() {
            assert_eq!(Manifest::decode(&text[..at]), None, "cut at {at}");
            let mut altered = text.clone().into_bytes();
            altered[at] ^= 1;
            assert_ne!(Manifest::decode(&String::from_utf8(altered).unwrap()), Some(manifest()), "at {at}");
        }
    }

    #[test]
    fn an_update_is_on_the_disk_when_it_returns() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(read(directory.path()).unwrap(), None);
        let file = ManifestFile::create(directory.path().to_owned(), manifest()).unwrap();
        file.update(|manifest| manifest.checkpointed = 42).unwrap();
        assert_eq!(read(directory.path()).unwrap().unwrap().checkpointed, 42);
    }
}
