//! A running account, and commands about it as a person types them.

use std::process::Output;

use crate::binary::{Home, Up, text};
use crate::client::Client;

/// A running one in a folder of its own. Commands find it by their environment.
pub(crate) struct Lab {
    pub(crate) home: Home,
    pub(crate) up: Up,
}

impl Lab {
    /// Started with these arguments.
    pub(crate) fn with(arguments: &[&str]) -> Lab {
        let home = Home::new();
        let up = home.up(arguments);
        Lab { home, up }
    }

    /// The program, about this account.
    pub(crate) fn command(&self, arguments: &[&str]) -> std::process::Command {
        let connection = self.up.account()["connectionString"].as_str().expect("text");
        let mut command = self.home.peri(arguments);
        command.env("PERI_CONTROL", self.up.control()).env("PERI_CONNECTION_STRING", connection);
        command
    }

    /// Runs a command to its end, which must have this code.
    #[track_caller]
    pub(crate) fn expect(&self, code: i32, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output().expect("the program runs");
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", text(&output.stderr));
        output
    }

    /// What it prints.
    #[track_caller]
    pub(crate) fn says(&self, arguments: &[&str]) -> String {
        text(&self.expect(0, arguments).stdout).trim_end().to_owned()
    }

    /// It prints nothing and gives this reason.
    #[track_caller]
    pub(crate) fn refuses(&self, arguments: &[&str], code: i32, reason: &str) {
        let output = self.expect(code, arguments);
        let stderr = text(&output.stderr);
        assert!(stderr.contains(reason), "{arguments:?}: {stderr}");
        assert_eq!(text(&output.stdout), "", "{arguments:?}");
    }

    /// A connection to the account.
    pub(crate) fn client(&self) -> Client {
        Client::new(&self.up.account()["endpoint"])
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        std::fs::write(self.home.path().join(name), content).expect("the file can be written");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.home.path().join(name)).expect("the file can be read")
    }
}
