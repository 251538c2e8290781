//! Everything that has left the journal: one ordered tree on disk per space.
//!
//! The trees are `lsm-tree`'s. They are only ever given sorted runs of keys, whole, which become tables
//! directly: no second journal, no tables in memory, no threads of their own. A run that was given
//! twice changes nothing, which is what makes a crash between two trees harmless.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use lsm_tree::compaction::Leveled;
use lsm_tree::config::BlockSizePolicy;
use lsm_tree::{AbstractTree as _, AnyTree, Cache, Config, Guard as _, SequenceNumberCounter, UserValue};

use super::batch::Space;
use super::error::OpenError;

/// Everything is read once, in order, when a directory is opened. There is nothing to cache.
const CACHE_BYTES: u64 = 1024 * 1024;
/// Larger than usual: blocks are read in order, never for one key.
const BLOCK_BYTES: u32 = 64 * 1024;

/// A key, and its value unless it goes.
pub(super) type Entry = (Bytes, Option<Bytes>);

/// The trees. They are made when there is something to put into them.
pub(super) struct Base {
    folder: PathBuf,
    trees: OnceLock<[Tree; 4]>,
}

struct Tree {
    path: PathBuf,
    tree: AnyTree,
    next: SequenceNumberCounter,
}

impl std::fmt::Debug for Base {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Base").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Base {
    /// Opens the trees in `folder`, if there are any.
    pub(super) fn open(folder: PathBuf) -> Result<Base, OpenError> {
        let base = Base { trees: OnceLock::new(), folder };
        // The catalog is filled last, so where it is the others are.
        if base.folder.join(Space::Catalog.name()).exists() {
            base.trees()?;
        }
        Ok(base)
    }

    fn trees(&self) -> Result<&[Tree; 4], OpenError> {
        if let Some(trees) = self.trees.get() {
            return Ok(trees);
        }
        let open = |space: Space| Tree::open(self.folder.join(space.name()));
        let trees = [open(Space::Items)?, open(Space::Log)?, open(Space::Mesh)?, open(Space::Catalog)?];
        Ok(self.trees.get_or_init(|| trees))
    }

    fn existing(&self, space: Space) -> Option<&Tree> {
        let [items, log, mesh, catalog] = self.trees.get()?;
        Some(match space {
            Space::Items => items,
            Space::Log => log,
            Space::Mesh => mesh,
            Space::Catalog => catalog,
        })
    }

    /// Puts a sorted run of keys into a tree. Its cost grows with the run.
    pub(super) fn put(&self, space: Space, entries: Vec<Entry>) -> Result<(), OpenError> {
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

    /// Puts tables that overlap together. What it costs depends on how much they do.
    pub(super) fn compact(&self, space: Space) -> Result<(), OpenError> {
        let Some(tree) = self.existing(space) else { return Ok(()) };
        tree.tree.compact(Arc::new(Leveled::default()), tree.next.get()).map_err(|error| tree.error(error))
    }

    /// Gives up tables that hold nothing but keys in `[from, to)`. Others keep theirs.
    pub(super) fn drop_tables(&self, space: Space, from: &[u8], to: &[u8]) -> Result<(), OpenError> {
        let Some(tree) = self.existing(space) else { return Ok(()) };
        tree.tree.drop_range(from..to).map_err(|error| tree.error(error))
    }

    /// The keys and values in `[from, to)`, in order.
    pub(super) fn range<'a>(
        &'a self,
        space: Space,
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
        space: Space,
        from: &[u8],
        to: &[u8],
    ) -> Result<Option<Vec<u8>>, OpenError> {
        let Some(tree) = self.existing(space) else { return Ok(None) };
        let mut entries = tree.tree.range(from..to, lsm_tree::SeqNo::MAX >> 1, None);
        let last = entries.next_back().map(|entry| entry.key()).transpose();
        last.map(|key| key.map(|key| key.to_vec())).map_err(|error| tree.error(error))
    }
}

impl Tree {
    fn open(path: PathBuf) -> Result<Tree, OpenError> {
        let (next, visible) = (SequenceNumberCounter::default(), SequenceNumberCounter::default());
        let opened = Config::new(&path, next.clone(), visible.clone())
            .use_cache(Arc::new(Cache::with_capacity_bytes(CACHE_BYTES)))
            // No filters: nothing is ever looked up by one key.
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
        // A file that is shorter than it was, or gone, is damage, not a refusal.
        lsm_tree::Error::Io(source)
            if !matches!(source.kind(), std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::NotFound) =>
        {
            OpenError::Refused { action: "use", path: path.to_owned(), source }
        }
        other => OpenError::damaged(path, other),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Scratch;
    use super::*;

    fn entry(key: u8, value: Option<&'static str>) -> Entry {
        (Bytes::copy_from_slice(&[key]), value.map(|value| Bytes::from_static(value.as_bytes())))
    }

    fn all(base: &Base) -> Vec<(u8, String)> {
        let entries = base.range(Space::Items, &[], &[0xFF]);
        entries
            .map(|entry| {
                let (key, value) = entry.unwrap();
                (key.as_ref()[0], String::from_utf8(value.to_vec()).unwrap())
            })
            .collect()
    }

    #[test]
    fn later_runs_win_and_survive_reopening_and_compaction() {
        let scratch = Scratch::new();
        let base = Base::open(scratch.path().to_owned()).unwrap();
        assert_eq!(all(&base), [], "nothing is made before it is needed");
        base.put(Space::Items, vec![entry(1, Some("a")), entry(2, Some("b")), entry(3, Some("c"))]).unwrap();
        for _ in 0..6 {
            base.put(Space::Items, vec![entry(1, None), entry(2, Some("B"))]).unwrap();
            base.compact(Space::Items).unwrap();
        }
        let expected = [(2, "B".to_owned()), (3, "c".to_owned())];
        assert_eq!(all(&base), expected);
        assert_eq!(base.last_key(Space::Items, &[], &[3]).unwrap(), Some(vec![2]));
        drop(base);
        let base = Base::open(scratch.path().to_owned()).unwrap();
        assert_eq!(all(&base), expected);
        base.put(Space::Items, vec![entry(3, None)]).unwrap();
        assert_eq!(all(&base), [(2, "B".to_owned())], "what comes after reopening wins, too");
    }

    #[test]
    fn damage_is_noticed_when_it_is_read() {
        let scratch = Scratch::new();
        let base = Base::open(scratch.path().to_owned()).unwrap();
        let long: &'static str = Box::leak("x".repeat(10_000).into_boxed_str());
        base.put(Space::Items, (0..100).map(|key| entry(key, Some(long))).collect()).unwrap();
        drop(base);
        let tables = scratch.path().join("items/tables");
        let table = std::fs::read_dir(&tables).unwrap().next().unwrap().unwrap().path();
        let mut bytes = std::fs::read(&table).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&table, bytes).unwrap();
        let base = Base::open(scratch.path().to_owned()).unwrap();
        let read: Result<Vec<_>, _> = base.range(Space::Items, &[], &[0xFF]).collect();
        assert!(matches!(read.err(), Some(OpenError::Damaged { .. })));
    }
}
