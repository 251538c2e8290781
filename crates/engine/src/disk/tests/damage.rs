//! Damaged data directories: truncated, altered, incomplete.

use super::*;

/// The journal files of a directory.
pub(super) fn files(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(path.join("journal")).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.clone(), fs::read(&path).unwrap())).collect()
}

/// Every file of a directory with its content.
fn contents(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(path).unwrap() {
        let entry = entry.unwrap().path();
        if entry.is_dir() {
            found.insert(entry.clone(), Vec::new());
            found.extend(contents(&entry));
        } else {
            found.insert(entry.clone(), fs::read(&entry).unwrap());
        }
    }
    found
}

/// Copies a directory as a process that was killed leaves it: without a last sync.
pub(super) fn copy_killed(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).unwrap();
    for (path, content) in contents(from) {
        let target = to.join(path.strip_prefix(from).unwrap());
        if path.is_dir() {
            fs::create_dir_all(target).unwrap();
        } else {
            fs::write(target, content).unwrap();
        }
    }
}

/// Where the records of a journal file begin, and where the last one ends.
pub(super) fn record_starts(path: &Path, bytes: &[u8]) -> Vec<usize> {
    let number = segment::number_of(path.file_name().unwrap().to_str().unwrap()).unwrap();
    let whole = segment::scan(number, &bytes::Bytes::copy_from_slice(bytes)).whole;
    let mut starts = vec![segment::HEADER_LENGTH];
    while let Some(start) = starts.last().copied().filter(|start| *start < whole) {
        starts.push(start + record::claimed_length(&bytes[start..]).unwrap());
    }
    starts
}

fn open_accepting_loss(path: &Path) -> Result<Account, OpenError> {
    open_data_dir(DataDir { fsync: Fsync::Never, accept_loss: true, ..DataDir::new(path) })
}

fn item_count(account: &Account) -> u64 {
    account.catalog.snapshot().container("d", "c").map_or(0, |c| c.store.usage().items)
}

/// Opening must fail as damage, and change nothing. Returns the message with its advice.
#[track_caller]
fn refused(path: &Path) -> String {
    let before = contents(path);
    let error = open(path).expect_err("it is refused");
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    assert!(contents(path) == before, "a refused opening changes nothing: {error}");
    format!("{error}; {}", error.advice())
}

/// A directory with one item per commit, as a process leaves it that was killed before it synced them.
fn killed(items: u32) -> tempfile::TempDir {
    let (directory, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let account = open(directory.path()).unwrap();
    let container = with_container(&account);
    for id in 0..items {
        upsert(&container, id, 10, 100).unwrap();
    }
    copy_killed(directory.path(), killed.path());
    killed
}

/// A directory with several journal files and trees, closed cleanly.
fn checkpointed_directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let account = open(directory.path()).unwrap();
    let container = with_container(&account);
    for id in 0..200 {
        upsert(&container, id, 400, 100).unwrap();
    }
    checkpointed(&account);
    account.disk.as_ref().unwrap().close_and_wait();
    drop((container, account));
    // A checkpoint in the background may remove the files of a round before its end.
    for round in 0..50 {
        let account = open(directory.path()).unwrap();
        let container = Arc::clone(account.catalog.snapshot().container("d", "c").unwrap());
        for id in 0..60 {
            upsert(&container, id, 400, 200 + round).unwrap();
        }
        account.disk.as_ref().unwrap().close_and_wait();
        if files(directory.path()).len() > 2 {
            return directory;
        }
    }
    panic!("checkpoints leave no files to damage");
}

#[test]
fn a_write_that_did_not_end_is_cut_off_once_and_reported() {
    let directory = killed(8);
    let (name, bytes) = files(directory.path()).pop_last().unwrap();
    let starts = record_starts(&name, &bytes);
    let end = *starts.last().unwrap();
    let copy = tempfile::tempdir().unwrap();
    let mut counts = Vec::new();
    for torn_at in (end - 1_500..end - 1).step_by(97) {
        copy_killed(directory.path(), copy.path());
        let name = copy.path().join("journal").join(name.file_name().unwrap());
        let mut torn = bytes.clone();
        torn[torn_at..].fill(0);
        fs::write(&name, &torn).unwrap();
        let account = open(copy.path()).unwrap();
        counts.push(item_count(&account));
        let reported = account.disk.as_ref().unwrap().health().truncated_tail;
        let between_records = starts.contains(&torn_at);
        assert_eq!(reported.is_some_and(|torn| torn.contains("cut off")), !between_records, "at {torn_at}");
        drop(account);
        let account = open(copy.path()).unwrap();
        assert_eq!(account.disk.as_ref().unwrap().health().truncated_tail, None, "it is cut once");
    }
    assert!(counts.is_sorted() && counts.first() < counts.last(), "{counts:?}");
}

#[test]
fn a_journal_that_is_cut_anywhere_is_refused_and_its_rest_can_be_opened() {
    let directory = killed(8);
    let (name, bytes) = files(directory.path()).pop_last().unwrap();
    let starts = record_starts(&name, &bytes);
    let within = starts.windows(2).flat_map(|pair| [pair[0] + 1, pair[0] + 30, pair[1] - 1]);
    let copy = tempfile::tempdir().unwrap();
    let name = copy.path().join("journal").join(name.file_name().unwrap());
    for length in starts.iter().copied().chain(within).chain([0, 1, 31]) {
        copy_killed(directory.path(), copy.path());
        fs::write(&name, &bytes[..length]).unwrap();
        let message = refused(copy.path());
        assert!(message.contains("--accept-data-loss"), "cut at {length}: {message}");
        assert!(message.contains(&name.display().to_string()), "cut at {length}: {message}");
        let account = open_accepting_loss(copy.path()).unwrap();
        let reported = account.disk.as_ref().unwrap().health().truncated_tail.unwrap_or_default();
        assert!(reported.contains("data was lost"), "cut at {length}: {reported}");
        let left = item_count(&account);
        drop(account);
        let account = open(copy.path()).unwrap();
        assert_eq!(item_count(&account), left, "it is whole again");
    }
    fs::write(&name, &bytes).unwrap();
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
        assert!(refused(directory.path()).contains("put back a copy"));
    }
    // Zeros where records were look like a file that never had them; the high-water mark knows better.
    for start in record_starts(&name, &bytes).iter().rev().skip(2) {
        let mut emptied = bytes.clone();
        emptied[*start..].fill(0);
        fs::write(&name, &emptied).unwrap();
        let message = refused(directory.path());
        assert!(message.contains("had reached the disk"), "{message}");
    }
    fs::write(&name, &bytes).unwrap();
    open(directory.path()).unwrap();
}

#[test]
fn a_missing_journal_file_is_named() {
    let directory = checkpointed_directory();
    let copy = tempfile::tempdir().unwrap();
    let (mut counts, all) = (Vec::new(), item_count(&open(directory.path()).unwrap()));
    for name in files(directory.path()).into_keys() {
        copy_killed(directory.path(), copy.path());
        let name = copy.path().join("journal").join(name.file_name().unwrap());
        fs::remove_file(&name).unwrap();
        let message = refused(copy.path());
        assert!(message.contains(&format!("{} is damaged: it is missing", name.display())), "{message}");
        let account = open_accepting_loss(copy.path()).unwrap();
        counts.push(item_count(&account));
        upsert(account.catalog.snapshot().container("d", "c").unwrap(), 777, 10, 300).unwrap();
        let before = everything(&account);
        drop(account);
        assert_eq!(everything(&open(copy.path()).unwrap()), before, "writes after the loss are kept");
    }
    assert!(counts.iter().all(|count| *count <= all), "{counts:?}");
}

/// Whether a file describes a version of a tree that is not the current one.
fn is_superseded_version(name: &Path) -> bool {
    let version = name.file_name().and_then(|name| name.to_str()?.strip_prefix('v')?.parse().ok());
    let current = fs::read(name.with_file_name("current")).ok();
    let current = current.and_then(|bytes| bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)));
    version.is_some() && version != current
}

#[test]
fn a_missing_or_emptied_file_anywhere_is_damage() {
    let directory = checkpointed_directory();
    let copy = tempfile::tempdir().unwrap();
    let needed = |name: &PathBuf| !name.ends_with("lock") && !is_superseded_version(name);
    let names: Vec<PathBuf> = contents(directory.path()).into_keys().filter(needed).collect();
    assert!(names.iter().filter(|name| name.starts_with(directory.path().join("base"))).count() > 12);
    for name in &names {
        let name = copy.path().join(name.strip_prefix(directory.path()).unwrap());
        copy_killed(directory.path(), copy.path());
        let (is_folder, is_format) = (name.is_dir(), name.ends_with("format"));
        if is_folder {
            fs::remove_dir_all(&name).unwrap();
        } else {
            fs::remove_file(&name).unwrap();
        }
        let before = contents(copy.path());
        match open(copy.path()) {
            Err(OpenError::Damaged { .. }) if !is_format => {}
            Err(OpenError::NotDataDirectory { .. }) if is_format => {}
            Err(other) => panic!("{} removed: {other:?}", name.display()),
            Ok(_) => panic!("{} removed, and opened", name.display()),
        }
        assert!(contents(copy.path()) == before, "{} removed", name.display());
        if !is_folder && !is_format {
            copy_killed(directory.path(), copy.path());
            fs::write(&name, b"").unwrap();
            refused(copy.path());
        }
    }
    copy_killed(directory.path(), copy.path());
    open(copy.path()).unwrap();
}

#[test]
fn an_older_copy_of_a_tree_or_of_the_journal_is_damage() {
    let directory = checkpointed_directory();
    let (older, newer) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    copy_killed(directory.path(), older.path());
    let account = open(directory.path()).unwrap();
    let container = Arc::clone(account.catalog.snapshot().container("d", "c").unwrap());
    for id in 0..200 {
        upsert(&container, id, 400, 300).unwrap();
    }
    checkpointed(&account);
    account.disk.as_ref().unwrap().close_and_wait();
    for name in ["base/items", "base/log", "base/catalog", "base", "journal"] {
        copy_killed(directory.path(), newer.path());
        fs::remove_dir_all(newer.path().join(name)).unwrap();
        copy_killed(&older.path().join(name), &newer.path().join(name));
        refused(newer.path());
    }
}

/// Makes a directory what version 2 of the format would have: journal files without zeros at their end, and
/// no manifest.
fn make_format_2(path: &Path) {
    for (name, bytes) in files(path) {
        let starts = record_starts(&name, &bytes);
        let number = segment::number_of(name.file_name().unwrap().to_str().unwrap()).unwrap();
        let mut older = bytes[..*starts.last().unwrap()].to_vec();
        let first = u64::from_le_bytes(bytes[16..24].try_into().unwrap());
        older[..segment::HEADER_LENGTH].copy_from_slice(&segment::unpadded_header(number, first));
        fs::write(&name, older).unwrap();
    }
    fs::remove_file(path.join("manifest")).unwrap();
    fs::remove_file(path.join("synced")).unwrap();
    fs::write(path.join("format"), "perihelion data directory, format 2\n").unwrap();
}

#[test]
fn a_directory_of_format_2_is_opened_and_gets_a_manifest() {
    let directory = checkpointed_directory();
    let before = everything(&open(directory.path()).unwrap());
    make_format_2(directory.path());
    let account = open(directory.path()).unwrap();
    assert_eq!(everything(&account), before);
    account.disk.as_ref().unwrap().close_and_wait();
    assert!(fs::read_to_string(directory.path().join("format")).unwrap().contains("format 3"));
    fs::remove_file(directory.path().join("manifest")).unwrap();
    let message = refused(directory.path());
    assert!(message.contains("manifest"), "a lost manifest is no older format: {message}");
    let account = open_accepting_loss(directory.path()).unwrap();
    assert_eq!(everything(&account), before);
}

#[test]
fn what_a_directory_of_format_2_must_have_is_checked_without_a_manifest() {
    let directory = checkpointed_directory();
    make_format_2(directory.path());
    let copy = tempfile::tempdir().unwrap();
    for name in ["base/catalog", "base/items", "base/log", "base/mesh", "base", "journal"] {
        copy_killed(directory.path(), copy.path());
        fs::remove_dir_all(copy.path().join(name)).unwrap();
        refused(copy.path());
    }
    // All files but the first, which ends before what the trees have.
    copy_killed(directory.path(), copy.path());
    let names: Vec<PathBuf> = files(copy.path()).into_keys().collect();
    for name in &names[1..] {
        fs::remove_file(name).unwrap();
    }
    let bytes = fs::read(&names[0]).unwrap();
    fs::write(&names[0], &bytes[..record_starts(&names[0], &bytes)[0]]).unwrap();
    let checkpointed = load::checkpointed(&trees::Trees::open(copy.path().join("base")).unwrap()).unwrap();
    fs::write(
        &names[0],
        segment::unpadded_header(
            segment::number_of(names[0].file_name().unwrap().to_str().unwrap()).unwrap(),
            checkpointed - 5,
        ),
    )
    .unwrap();
    let message = refused(copy.path());
    assert!(message.contains("although record"), "{message}");
}

#[test]
fn an_item_whose_stored_text_is_not_json_is_reported_repaired_and_removable() {
    let directory = tempfile::tempdir().unwrap();
    let account = open(directory.path()).unwrap();
    let container = with_container(&account);
    (0..3).for_each(|id| upsert(&container, id, 10, 100).unwrap());
    // What earlier versions stored when a patch increased a number beyond the largest double.
    let epk = Document::parse(br#"{"id":"1","pk":"1"}"#, &container.store.schema(), 0).unwrap().epk;
    let item = Arc::clone(container.store.partition_of(&epk).latest_head().get(&epk, "1").unwrap());
    let body =
        String::from_utf8(item.body().to_vec()).unwrap().replace(r#""text":"xxxxxxxxxx""#, r#""text":"#);
    let text = bytes::Bytes::from([body.as_bytes(), &item.etag()].concat());
    let broken =
        Item::from_stored(crate::items::StoredItem { text: &text, body_length: body.len(), ..item.stored() });
    let mut batch = Batch::new(0);
    batch.put_item(container.system.rid.parse().unwrap(), 0, &broken);
    let disk = account.disk.as_ref().unwrap();
    disk.append(batch).unwrap();
    disk.close_and_wait();
    let account = open(directory.path()).unwrap();
    let damaged = account.disk.as_ref().unwrap().health().damaged_items;
    assert!(damaged.len() == 1 && damaged[0].contains("'1'"), "{damaged:?}");
    assert!(everything(&account).iter().any(|seen| seen.contains(":null,")));
    let container = Arc::clone(account.catalog.snapshot().container("d", "c").unwrap());
    delete(&container, 1, 200);
    account.disk.as_ref().unwrap().close_and_wait();
    let account = open(directory.path()).unwrap();
    assert_eq!(account.disk.as_ref().unwrap().health().damaged_items, Vec::<String>::new());
    assert_eq!(item_count(&account), 2);
}
