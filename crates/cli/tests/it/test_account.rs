//! A running account, and commands that use it.

use std::process::Output;

use crate::binary::{TestFolder, Up, text};
use crate::client::Client;

/// A running account in a temporary folder. Commands find it by their environment.
pub(crate) struct TestAccount {
    pub(crate) folder: TestFolder,
    pub(crate) up: Up,
}

impl TestAccount {
    /// Starts `peri up` with these arguments.
    pub(crate) fn with(arguments: &[&str]) -> TestAccount {
        let folder = TestFolder::new();
        let up = folder.up(arguments);
        TestAccount { folder, up }
    }

    /// A command of `peri` for this account.
    pub(crate) fn command(&self, arguments: &[&str]) -> std::process::Command {
        let connection = self.up.account()["connectionString"].as_str().expect("text");
        let mut command = self.folder.peri(arguments);
        command.env("PERI_CONTROL", self.up.control()).env("PERI_CONNECTION_STRING", connection);
        command
    }

    /// Runs a command, which must end with this exit code.
    #[track_caller]
    pub(crate) fn expect(&self, code: i32, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output().expect("the program runs");
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", text(&output.stderr));
        output
    }

    /// Runs a command that must succeed, and returns its output.
    #[track_caller]
    pub(crate) fn stdout_of(&self, arguments: &[&str]) -> String {
        text(&self.expect(0, arguments).stdout).trim_end().to_owned()
    }

    /// Runs a command that must fail with this exit code and reason, and print nothing to stdout.
    #[track_caller]
    pub(crate) fn fails_with(&self, arguments: &[&str], code: i32, reason: &str) {
        let output = self.expect(code, arguments);
        let stderr = text(&output.stderr);
        assert!(stderr.contains(reason), "{arguments:?}: {stderr}");
        assert_eq!(text(&output.stdout), "", "{arguments:?}");
    }

    /// A client of the account.
    pub(crate) fn client(&self) -> Client {
        Client::new(&self.up.account()["endpoint"])
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        std::fs::write(self.folder.path().join(name), content).expect("the file can be written");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).expect("the file can be read")
    }
}
