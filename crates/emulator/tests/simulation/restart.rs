//! Steps that end the account and open it again from its directory.

use std::path::{Path, PathBuf};

use perihelion_emulator::clock::Clock;
use perihelion_emulator::engine::account::{Account, AccountSettings};
use perihelion_emulator::{DataDir, OpenError};

use crate::client::TestAccount;
use crate::dice::Dice;
use crate::failure::{Failure, Promise, ensure};
use crate::stage::Stage;

/// A directory of its own, removed with it.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Scratch {
        let path = std::env::temp_dir().join(format!("perihelion-simulation-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    /// The account that is kept in it, ready to be asked.
    pub(crate) fn open(&self, settings: &AccountSettings) -> Result<Account, OpenError> {
        let account = Account::open(settings.clone(), &DataDir::new(&self.0))?;
        account.make_indexes();
        Ok(account)
    }

    /// What the operating system would have if everybody in it were killed now.
    fn as_it_is(&self) -> Scratch {
        let copy = Scratch::new();
        copy_folder(&self.0, &copy.0);
        copy
    }

    /// Leaves the beginning of a record behind, as whoever was killed while writing one.
    fn tear(&self, bytes: &[u8]) {
        let journal = std::fs::read_dir(self.0.join("journal")).unwrap();
        let mut files: Vec<PathBuf> = journal.map(|entry| entry.unwrap().path()).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "log"));
        files.sort();
        let last = files.last().unwrap();
        let mut content = std::fs::read(last).unwrap();
        content.extend_from_slice(bytes);
        std::fs::write(last, content).unwrap();
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
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

impl Stage {
    /// Ends the account, one way or the other, and opens it again. All regions have everything, also
    /// those that stay paused. Says whether there was anything to open.
    pub(crate) async fn restart(&mut self, dice: &mut Dice) -> Result<bool, Failure> {
        let Some(kept) = self.kept.take() else { return Ok(false) };
        let killed = dice.chance(60);
        let kept = if killed { kept.as_it_is() } else { kept };
        if killed && dice.chance(50) {
            let bytes: Vec<u8> = (0..dice.between(1, 60)).map(|_| dice.below(256) as u8).collect();
            kept.tear(&bytes);
        }
        let how = if killed { "is killed" } else { "ends" };
        self.tell(format!("the account {how} and is opened again"));
        let clock = Clock::manual(self.now());
        self.ran = self.age();
        // The directory is given up before it is taken again.
        self.account = TestAccount::new();
        let opened = kept.open(&self.settings);
        let opened =
            opened.map_err(|error| Failure { promise: Promise::Kept, details: error.to_string() })?;
        self.account = TestAccount::over(opened, clock);
        self.kept = Some(kept);
        self.splitting = None;
        // A region that was paused still is, but had everything when the account was opened.
        let opened_at = self.ran;
        self.regions.iter_mut().for_each(|region| region.paused = region.paused.map(|_| opened_at));
        let before = self.ranges.clone();
        let after = self.read_ranges().await?;
        ensure(before == after, Promise::Kept, || format!("ranges were {before:?}, and now {after:?}"))?;
        Ok(true)
    }
}
