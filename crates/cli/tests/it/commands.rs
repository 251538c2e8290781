//! `peri help`, `version`, `completions` and `reset`, and the end of `--follow`.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::Duration;

use crate::binary::{TestFolder, text};
use crate::test_account::TestAccount;

#[test]
fn help_and_version_are_commands_too() {
    let folder = TestFolder::new();
    let of = |arguments: &[&str]| {
        let output = folder.run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout).to_owned()
    };
    assert_eq!(of(&["help"]), of(&["--help"]));
    assert_eq!(of(&["help", "clock"]), of(&["clock", "--help"]));
    assert_eq!(of(&["version"]), of(&["--version"]));
}

#[test]
fn completions_name_the_commands() {
    let folder = TestFolder::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = folder.run(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        for command in ["requests", "snapshot", "query"] {
            assert!(text(&output.stdout).contains(command), "{shell} lacks {command}");
        }
    }
}

#[test]
fn a_reset_deletes_all_databases_once_it_is_confirmed() {
    let account = TestAccount::with(&[]);
    account.write("items.ndjson", "{\"id\":\"1\",\"pk\":\"a\"}\n");
    account.expect(0, &["import", "d/c", "items.ndjson", "--create", "--partition-key", "/pk"]);
    let refused = account.expect(2, &["reset"]);
    assert!(text(&refused.stderr).contains("--yes"), "{}", text(&refused.stderr));
    account.expect(0, &["query", "d/c", "SELECT * FROM c"]);
    assert_eq!(text(&account.expect(0, &["reset", "--yes"]).stdout), "deleted: d\n");
    assert_eq!(text(&account.expect(0, &["reset", "--yes"]).stdout), "there were no databases\n");
    account.expect(6, &["query", "d/c", "SELECT * FROM c"]);
}

/// `peri requests --follow | head -1`, on an account that nobody uses afterwards.
#[cfg(unix)]
#[test]
fn following_ends_when_the_reader_does() {
    let account = TestAccount::with(&[]);
    for command in ["requests", "events"] {
        let mut following = account.command(&[command, "--follow"]);
        let mut following = following.stdout(Stdio::piped()).spawn().expect("the program runs");
        let mut lines = BufReader::new(following.stdout.take().expect("piped"));
        let mut heading = String::new();
        lines.read_line(&mut heading).expect("the heading");
        assert!(heading.starts_with("TIME"), "{heading}");
        drop(lines);
        let (ended, waiting) = std::sync::mpsc::channel();
        std::thread::spawn(move || ended.send(following.wait().expect("it ends").code()));
        let code = waiting.recv_timeout(Duration::from_secs(10));
        assert_eq!(code, Ok(Some(0)), "{command} goes on without a reader");
    }
}
