//! Damaged data directories: truncated, altered, incomplete.

use super::*;

pub(super) fn files(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(path.join("journal")).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.clone(), fs::read(&path).unwrap())).collect()
}

/// A directory with one item per commit and a sync mark after `marked` of them, as a killed process leaves
/// it.
fn killed(directory: &tempfile::TempDir, items: u32) -> PathBuf {
    let account = open(directory.path()).unwrap();
    let container = with_container(&account);
    for id in 0..items {
        upsert(&container, id, 10, 100).unwrap();
    }
    let copy = directory.path().with_extension("killed");
    copy_killed(directory.path(), &copy);
    copy
}

/// Copies a directory as a process that was killed leaves it: without a last sync.
pub(super) fn copy_killed(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to.join("journal")).unwrap();
    fs::create_dir_all(to.join("base")).unwrap();
    fs::copy(from.join("format"), to.join("format")).unwrap();
    for (path, bytes) in files(from) {
        fs::write(to.join("journal").join(path.file_name().unwrap()), bytes).unwrap();
    }
}

#[test]
fn a_truncated_journal_opens_with_its_intact_records() {
    let directory = tempfile::tempdir().unwrap();
    let copy = killed(&directory, 8);
    let whole = files(&copy);
    let (name, bytes) = whole.last_key_value().unwrap();
    let first = bytes.len() - 1_500;
    let mut counts = Vec::new();
    for length in (first..bytes.len()).step_by(97) {
        fs::write(name, &bytes[..length]).unwrap();
        let account = open(&copy).unwrap();
        let items = account.catalog.snapshot().container("d", "c").map_or(0, |c| c.store.usage().items);
        counts.push(items);
        let torn = account.disk.as_ref().unwrap().health().truncated_tail;
        assert!(torn.is_some_and(|torn| torn.contains("cut off")), "cut at {length}");
        drop(account);
        let account = open(&copy).unwrap();
        assert_eq!(account.disk.as_ref().unwrap().health().truncated_tail, None, "it is cut once");
        drop(account);
        for path in files(&copy).into_keys() {
            fs::remove_file(path).unwrap();
        }
        for (path, bytes) in &whole {
            fs::write(path, bytes).unwrap();
        }
    }
    assert!(counts.is_sorted() && counts.first() < counts.last(), "{counts:?}");
    let _ = fs::remove_dir_all(copy);
}

#[test]
fn damage_to_synced_data_is_an_error_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let account = open(directory.path()).unwrap();
    let container = with_container(&account);
    for id in 0..8 {
        upsert(&container, id, 10, 100).unwrap();
    }
    // A clean end syncs, and marks what it synced.
    account.disk.as_ref().unwrap().close();
    let (name, bytes) = files(directory.path()).pop_last().unwrap();
    for at in [40, 700, 1_500] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x40;
        fs::write(&name, &damaged).unwrap();
        let before = files(directory.path());
        let error = open(directory.path()).unwrap_err();
        assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
        assert!(error.advice().contains("copy"), "{}", error.advice());
        assert_eq!(files(directory.path()), before);
    }
    fs::remove_file(&name).unwrap();
    fs::write(&name, &bytes).unwrap();
    open(directory.path()).unwrap();
}

#[test]
fn a_missing_segment_is_detected() {
    let directory = tempfile::tempdir().unwrap();
    for _ in 0..3 {
        let account = open(directory.path()).unwrap();
        if account.catalog.snapshot().database("d").is_none() {
            with_container(&account);
        }
        let container = Arc::clone(account.catalog.snapshot().container("d", "c").unwrap());
        upsert(&container, 1, 10, 100).unwrap();
        account.disk.as_ref().unwrap().close();
    }
    let middle = files(directory.path()).into_keys().nth(1).unwrap();
    fs::remove_file(middle).unwrap();
    let error = open(directory.path()).unwrap_err().to_string();
    assert!(error.contains("missing"), "{error}");
}
