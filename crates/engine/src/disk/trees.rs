//! The checkpointed data: one LSM tree on disk per keyspace.
//!
//! The trees are `lsm-tree`'s. They only ever ingest sorted runs of keys, which become tables directly: no
//! second journal, no tables in memory, no threads of their own. Ingesting a run twice changes nothing, so a
//! crash between two trees is harmless.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use lsm_tree::compaction::Leveled;
use lsm_tree::config::BlockSizePolicy;
use lsm_tree::{
    AbstractTree as _, AnyTree, Cache, Config, Guard as _, SequenceNumberCounter, Table, UserValue,
};

use super::batch::Keyspace;
use super::error::OpenError;
use super::manifest::{Manifest, TreeVersion};

/// Data is read once, in order, when a directory is opened: a cache would never be hit.
const CACHE_BYTES: u64 = 1024 * 1024;
/// Larger than usual: blocks are read in order, never for a single key.
const BLOCK_BYTES: u32 = 64 * 1024;

/// The file that names the current version of a tree, as `lsm-tree` calls it.
const CURRENT: &str = "current";
/// The folder of a tree's tables, as `lsm-tree` calls it.
const TABLES: &str = "tables";

/// A key and its value; none for a removed key.
pub(super) type Entry = (Bytes, Option<Bytes>);

/// The trees of a data directory, which are created with the first checkpoint.
pub(super) struct Trees {
    folder: PathBuf,
    trees: OnceLock<[Tree; 4]>,
}

struct Tree {
    path: PathBuf,
    tree: AnyTree,
    next: SequenceNumberCounter,
}

impl std::fmt::Debug for Trees {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Base").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Trees {
    /// Opens the trees in `folder`, if they exist.
    pub(super) fn open(folder: PathBuf) -> Result<Trees, OpenError> {
        let trees = Trees { trees: OnceLock::new(), folder };
        // The catalog is written last, so where it exists the others do.
        if trees.folder.join(Keyspace::Catalog.name()).exists() {
            trees.create()?;
        }
        Ok(trees)
    }

    /// Creates the trees that do not exist yet.
    pub(super) fn create(&self) -> Result<(), OpenError> {
        self.trees().map(drop)
    }

    /// The version of each tree on disk, if they exist.
    pub(super) fn versions(&self) -> Result<BTreeMap<Keyspace, TreeVersion>, OpenError> {
        if self.trees.get().is_none() {
            return Ok(BTreeMap::new());
        }
        let version = |space| {
            let tree = self.existing(space).expect("all of them exist or none");
            let mut tables: Vec<u64> = tree.tree.current_version().iter_tables().map(Table::id).collect();
            tables.sort_unstable();
            let version = version_on_disk(&self.folder, space)?;
            Ok((space, TreeVersion::Exactly { version, tables }))
        };
        Keyspace::ALL.into_iter().map(version).collect()
    }

    fn trees(&self) -> Result<&[Tree; 4], OpenError> {
        if let Some(trees) = self.trees.get() {
            return Ok(trees);
        }
        let open = |space: Keyspace| Tree::open(self.folder.join(space.name()));
        let trees = [
            open(Keyspace::Items)?,
            open(Keyspace::Log)?,
            open(Keyspace::Replication)?,
            open(Keyspace::Catalog)?,
        ];
        Ok(self.trees.get_or_init(|| trees))
    }

    fn existing(&self, space: Keyspace) -> Option<&Tree> {
        let [items, log, replication, catalog] = self.trees.get()?;
        Some(match space {
            Keyspace::Items => items,
            Keyspace::Log => log,
            Keyspace::Replication => replication,
            Keyspace::Catalog => catalog,
        })
    }

    /// Ingests a sorted run of keys into a tree. Cost grows with the run.
    pub(super) fn put(&self, space: Keyspace, entries: Vec<Entry>) -> Result<(), OpenError> {
        if entries.is_empty() {
            return Ok(());
        }
        self.trees()?;
        let tree = self.existing(space).expect("just made");
        let put = || {
            let mut ingestion = tree.tree.ingestion()?;
            for (key, value) in &entries {
                match value {
                    Some(value) => ingestion.write(&key[..], UserValue::from(&value[..]))?,
                    None => ingestion.write_tombstone(&key[..])?,
                }
            }
            ingestion.finish()
        };
        put().map_err(|error| tree.error(error))
    }

    /// Compacts overlapping tables. Cost depends on how much they overlap.
    pub(super) fn compact(&self, space: Keyspace) -> Result<(), OpenError> {
        let Some(tree) = self.existing(space) else { return Ok(()) };
        tree.tree.compact(Arc::new(Leveled::default()), tree.next.get()).map_err(|error| tree.error(error))
    }

    /// Drops tables that hold only keys in `[from, to)`. Other tables keep theirs.
    pub(super) fn drop_tables(&self, space: Keyspace, from: &[u8], to: &[u8]) -> Result<(), OpenError> {
        let Some(tree) = self.existing(space) else { return Ok(()) };
        tree.tree.drop_range(from..to).map_err(|error| tree.error(error))
    }

    /// The keys and values in `[from, to)`, in order.
    pub(super) fn range<'a>(
        &'a self,
        space: Keyspace,
        from: &[u8],
        to: &[u8],
    ) -> impl Iterator<Item = Result<(impl AsRef<[u8]> + use<>, UserValue), OpenError>> + use<'a> {
        let tree = self.existing(space);
        let (from, to) = (from.to_vec(), to.to_vec());
        tree.into_iter().flat_map(move |tree| {
            let entries = tree.tree.range(from.clone()..to.clone(), lsm_tree::SeqNo::MAX >> 1, None);
            entries.map(|entry| entry.into_inner().map_err(|error| tree.error(error)))
        })
    }

    /// The last key in `[from, to)`.
    pub(super) fn last_key(
        &self,
        space: Keyspace,
        from: &[u8],
        to: &[u8],
    ) -> Result<Option<Vec<u8>>, OpenError> {
        let Some(tree) = self.existing(space) else { return Ok(None) };
        let mut entries = tree.tree.range(from..to, lsm_tree::SeqNo::MAX >> 1, None);
        let last = entries.next_back().map(|entry| entry.key()).transpose();
        last.map(|key| key.map(|key| key.to_vec())).map_err(|error| tree.error(error))
    }
}

/// Fails if a tree is missing that has to be in `folder`, or if it is another version of it. Without a
/// manifest, `by_format` has to be there if any tree was completed. Changes nothing.
pub(super) fn check(
    folder: &Path,
    manifest: Option<&Manifest>,
    by_format: &[Keyspace],
) -> Result<(), OpenError> {
    let Some(manifest) = manifest else {
        // The catalog is written last, so where it exists the others do.
        let completed = folder.join(Keyspace::Catalog.name()).join(CURRENT).exists();
        let mut wanted = by_format.iter().filter(|_| completed);
        return wanted.try_for_each(|space| version_on_disk(folder, *space).map(drop));
    };
    for (space, wanted) in &manifest.trees {
        let found = version_on_disk(folder, *space)?;
        let TreeVersion::Exactly { version, tables } = wanted else { continue };
        let tree = folder.join(space.name());
        if *version != found {
            let detail = format!("it has version {found}, and should have version {version}");
            return Err(OpenError::damaged(tree, detail));
        }
        let paths = tables.iter().map(|table| tree.join(TABLES).join(table.to_string()));
        for path in paths {
            if !is_filled(&path) {
                return Err(OpenError::damaged(path, "it is missing or not whole"));
            }
        }
    }
    Ok(())
}

/// Whether a file exists and has content.
fn is_filled(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.len() > 0)
}

/// The version that a tree in `folder` has. Fails if the tree or its version is missing.
fn version_on_disk(folder: &Path, space: Keyspace) -> Result<u64, OpenError> {
    let tree = folder.join(space.name());
    let missing = |path: PathBuf| OpenError::damaged(path, "it is missing or not whole");
    let current = std::fs::read(tree.join(CURRENT)).map_err(|_| missing(tree.join(CURRENT)))?;
    let version = current.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    let version = version.ok_or_else(|| missing(tree.join(CURRENT)))?;
    let named = tree.join(format!("v{version}"));
    if !is_filled(&named) {
        return Err(missing(named));
    }
    if tree.join(TABLES).is_dir() { Ok(version) } else { Err(missing(tree.join(TABLES))) }
}

impl Tree {
    fn open(path: PathBuf) -> Result<Tree, OpenError> {
        let (next, visible) = (SequenceNumberCounter::default(), SequenceNumberCounter::default());
        let opened = Config::new(&path, next.clone(), visible.clone())
            .use_cache(Arc::new(Cache::with_capacity_bytes(CACHE_BYTES)))
            // No bloom filters: no key is ever looked up by itself.
            .expect_point_read_hits(true)
            .data_block_size_policy(BlockSizePolicy::all(BLOCK_BYTES))
            .open();
        let tree = opened.map_err(|error| open_error(&path, error))?;
        let first = tree.get_highest_seqno().map_or(0, |newest| newest + 1);
        next.set(first);
        visible.set(first);
        Ok(Tree { path, tree, next })
    }

    fn error(&self, error: lsm_tree::Error) -> OpenError {
        open_error(&self.path, error)
    }
}

fn open_error(path: &Path, error: lsm_tree::Error) -> OpenError {
    match error {
        // A file that is too short or missing is damage, not a failed operation.
        lsm_tree::Error::Io(source)
            if !matches!(
                source.kind(),
                ErrorKind::UnexpectedEof
                    | ErrorKind::NotFound
                    // An empty file has no end to seek back from.
                    | ErrorKind::InvalidInput
                    | ErrorKind::InvalidData
            ) =>
        {
            OpenError::Io { action: "use", path: path.to_owned(), source }
        }
        other => OpenError::damaged(path, other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: u8, value: Option<&'static str>) -> Entry {
        (Bytes::copy_from_slice(&[key]), value.map(|value| Bytes::from_static(value.as_bytes())))
    }

    fn all(trees: &Trees) -> Vec<(u8, String)> {
        let entries = trees.range(Keyspace::Items, &[], &[0xFF]);
        entries
            .map(|entry| {
                let (key, value) = entry.unwrap();
                (key.as_ref()[0], String::from_utf8(value.to_vec()).unwrap())
            })
            .collect()
    }

    #[test]
    fn later_runs_win_and_survive_reopening_and_compaction() {
        let directory = tempfile::tempdir().unwrap();
        let trees = Trees::open(directory.path().to_owned()).unwrap();
        assert_eq!(all(&trees), [], "nothing is made before it is needed");
        trees
            .put(Keyspace::Items, vec![entry(1, Some("a")), entry(2, Some("b")), entry(3, Some("c"))])
            .unwrap();
        for _ in 0..6 {
            trees.put(Keyspace::Items, vec![entry(1, None), entry(2, Some("B"))]).unwrap();
            trees.compact(Keyspace::Items).unwrap();
        }
        let expected = [(2, "B".to_owned()), (3, "c".to_owned())];
        assert_eq!(all(&trees), expected);
        assert_eq!(trees.last_key(Keyspace::Items, &[], &[3]).unwrap(), Some(vec![2]));
        drop(trees);
        let trees = Trees::open(directory.path().to_owned()).unwrap();
        assert_eq!(all(&trees), expected);
        trees.put(Keyspace::Items, vec![entry(3, None)]).unwrap();
        assert_eq!(all(&trees), [(2, "B".to_owned())], "what comes after reopening wins, too");
    }

    #[test]
    fn damage_is_detected_when_it_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let trees = Trees::open(directory.path().to_owned()).unwrap();
        let long: &'static str = Box::leak("x".repeat(10_000).into_boxed_str());
        trees.put(Keyspace::Items, (0..100).map(|key| entry(key, Some(long))).collect()).unwrap();
        drop(trees);
        let tables = directory.path().join("items/tables");
        let table = std::fs::read_dir(&tables).unwrap().next().unwrap().unwrap().path();
        let mut bytes = std::fs::read(&table).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&table, bytes).unwrap();
        let trees = Trees::open(directory.path().to_owned()).unwrap();
        let read: Result<Vec<_>, _> = trees.range(Keyspace::Items, &[], &[0xFF]).collect();
        assert!(matches!(read.err(), Some(OpenError::Damaged { .. })));
    }
}
