//! Steps that close the account and open it again from its data directory.

use std::path::{Path, PathBuf};

use perihelion_emulator::clock::Clock;
use perihelion_emulator::engine::account::{Account, AccountSettings};
use perihelion_emulator::{DataDir, OpenError};

use crate::client::TestAccount;
use crate::failure::{Failure, Guarantee, ensure};
use crate::fixture::Fixture;
use crate::seeded_random::SeededRandom;

/// The data directory of a simulated account, removed on drop.
pub(crate) struct DataDirectory(tempfile::TempDir);

impl DataDirectory {
    pub(crate) fn new() -> DataDirectory {
        DataDirectory(tempfile::tempdir().unwrap())
    }

    /// Opens the account in the directory, with its indexes built.
    pub(crate) fn open(&self, settings: &AccountSettings) -> Result<Account, OpenError> {
        let account = Account::open(settings.clone(), &DataDir::new(self.0.path()))?;
        account.make_indexes();
        Ok(account)
    }

    /// Copies the directory as it is on disk, as if the process were killed now.
    fn copy(&self) -> DataDirectory {
        let copy = DataDirectory::new();
        copy_folder(self.0.path(), copy.0.path());
        copy
    }

    /// Appends an incomplete record to the journal, as a process killed during a write leaves it.
    fn append_torn_record(&self, bytes: &[u8]) {
        let journal = std::fs::read_dir(self.0.path().join("journal")).unwrap();
        let mut files: Vec<PathBuf> = journal.map(|entry| entry.unwrap().path()).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "log"));
        files.sort();
        let last = files.last().unwrap();
        let mut content = std::fs::read(last).unwrap();
        content.extend_from_slice(bytes);
        std::fs::write(last, content).unwrap();
    }
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

impl Fixture {
    /// Closes the account or simulates a crash, and opens it again. Afterwards all regions have all writes, also
    /// those that stay paused. Returns whether there is a data directory.
    pub(crate) async fn restart(&mut self, rng: &mut SeededRandom) -> Result<bool, Failure> {
        let Some(directory) = self.directory.take() else { return Ok(false) };
        let killed = rng.chance(60);
        let directory = if killed { directory.copy() } else { directory };
        if killed && rng.chance(50) {
            let bytes: Vec<u8> = (0..rng.between(1, 60)).map(|_| rng.below(256) as u8).collect();
            directory.append_torn_record(&bytes);
        }
        let how = if killed { "is killed" } else { "ends" };
        self.log_line(format!("the account {how} and is opened again"));
        let clock = Clock::manual(self.now());
        self.uptime_before_restart = self.age();
        // The lock on the directory has to be released before it is opened again.
        self.account = TestAccount::new();
        let opened = directory.open(&self.settings);
        let opened = opened
            .map_err(|error| Failure { guarantee: Guarantee::Durability, details: error.to_string() })?;
        self.account = TestAccount::over(opened, clock);
        self.directory = Some(directory);
        self.splitting = None;
        // A paused region stays paused, but had all writes when the account was opened.
        let opened_at = self.uptime_before_restart;
        self.regions.iter_mut().for_each(|region| region.paused = region.paused.map(|_| opened_at));
        let before = self.ranges.clone();
        let after = self.read_ranges().await?;
        ensure(before == after, Guarantee::Durability, || {
            format!("ranges were {before:?}, and now {after:?}")
        })?;
        Ok(true)
    }
}
