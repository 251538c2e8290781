//! Names that do not exist, containers of others, and text of other people on the terminal.

use super::Workflows;
use crate::binary::text;
use crate::test_account::TestAccount;

#[test]
fn a_misspelled_container_is_an_error_and_is_not_created() {
    let account = TestAccount::with(&[]);
    account.fails_with(&["durable", "list"], 6, "the account has no database \"duroxide\"");
    account.client().create_container();
    account.fails_with(&["durable", "list", "--database", "d"], 6, "the database \"d\" has no container");
    let wrong = ["durable", "list", "--database", "d", "--container", "c"];
    account.fails_with(&wrong, 6, "has the partition key");
    let mut command = account.command(&["durable", "tail"]);
    command.env("COSMOSDB_DATABASE", "d").env("COSMOSDB_CONTAINER", "missing");
    let output = command.output().expect("the program runs");
    assert_eq!(output.status.code(), Some(6));
    assert!(text(&output.stderr).contains("no container \"missing\""), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("hint: name the container"), "{}", text(&output.stderr));
    let status = account.stdout_of(&["status", "--json"]);
    assert!(!status.contains("duroxide") && !status.contains("missing"), "{status}");
}

#[test]
fn instances_that_do_not_exist_are_errors_with_a_next_step() {
    let workflows = Workflows::stopped();
    for command in ["show", "history", "why", "cancel"] {
        let output = workflows.account.expect(6, &["durable", command, "nobody"]);
        let stderr = text(&output.stderr);
        assert!(stderr.contains("there is no instance \"nobody\""), "{command}: {stderr}");
        assert!(stderr.contains("hint: `peri durable list`"), "{command}: {stderr}");
    }
    let account = &workflows.account;
    account.fails_with(&["durable", "show", "a/b"], 6, "cannot be the id of an instance");
    account.fails_with(&["durable", "list", "--created-since", "soon"], 2, "30m");
    account.fails_with(&["durable", "retry", "--rate", "0"], 2, "items per second");
}

#[test]
fn text_of_orchestrations_neither_controls_the_terminal_nor_forges_lines() {
    let workflows = Workflows::started();
    workflows.start("red\u{202e}", "Broken", "\u{1b}[31mred\nFORGED LINE\u{9b}2J");
    workflows.end("red\u{202e}");
    for arguments in [
        &["list"][..],
        &["show", "red\u{202e}", "--timeline"],
        &["history", "red\u{202e}"],
        &["why", "red\u{202e}"],
        &["why", "red\u{202e}", "--json"],
        &["history", "red\u{202e}", "--json"],
        &["purge", "red\u{202e}", "--yes"],
    ] {
        let shown = workflows.durable(arguments);
        let is_obeyed = |c: char| (c != '\n' && c.is_control()) || ('\u{2028}'..='\u{202e}').contains(&c);
        assert!(!shown.contains(is_obeyed), "{arguments:?}: {shown:?}");
        assert!(!shown.lines().any(|line| line.starts_with("FORGED")), "{arguments:?}: {shown}");
    }
    workflows.account.fails_with(&["durable", "why", "x\u{1b}[2J"], 6, "\\u{1b}");
}
