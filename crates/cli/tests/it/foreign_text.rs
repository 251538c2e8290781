//! Text of other people on the terminal, and who may use the control port.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;

use crate::binary::text;
use crate::test_account::TestAccount;

/// Sends a request that the account rejects and records.
fn request(account: &TestAccount, path: &str) {
    let endpoint = account.up.account()["endpoint"].as_str().expect("text");
    let address = endpoint.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(address).expect("connects");
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").expect("sent");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("a response");
    assert!(response.starts_with("HTTP/1.1 401"), "{response}");
}

/// Whether a terminal would obey a character of the text, apart from line ends.
fn obeyed(text: &str) -> bool {
    text.chars().any(|character| {
        character != '\n' && character.is_control() || ('\u{2028}'..='\u{202e}').contains(&character)
    })
}

#[test]
fn requests_of_others_neither_control_the_terminal_nor_forge_lines() {
    let account = TestAccount::with(&["--regions", "West US"]);
    // Red, a forged line, C1 control characters, a change of direction.
    request(&account, "/dbs/%1b%5b31mred%0aFORGED%20LINE/colls/%c2%9b2J%0d%e2%80%ae/docs/1");
    let shown = account.stdout_of(&["requests"]);
    assert!(!obeyed(&shown), "{shown:?}");
    assert_eq!(shown.lines().count(), 2, "{shown}");
    assert!(shown.contains("red") && shown.contains("FORGED LINE"), "{shown}");
    let json = account.stdout_of(&["requests", "--json"]);
    assert!(!obeyed(&json), "{json:?}");
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["requests"][0]["container"], "\u{9b}2J\r\u{202e}", "the same text for programs");
}

#[test]
fn messages_of_a_server_are_escaped_and_stay_in_one_line() {
    let account = TestAccount::with(&["--regions", "West US"]);
    let output = account.expect(6, &["fault", "rm", "a\u{1b}[2Jb\nhint: c"]);
    let stderr = text(&output.stderr);
    assert!(!obeyed(stderr), "{stderr:?}");
    assert!(!stderr.lines().any(|line| line.starts_with("hint: c")), "{stderr}");
    account.write("items.ndjson", "{\"id\":\"\\u001b[31m\\n\"}\n{\"no\":\"\\u009b\"}\n");
    let arguments =
        ["import", "d/c", "items.ndjson", "--create", "--partition-key", "/id", "--on-error", "skip"];
    let output = account.expect(7, &arguments);
    let stderr = text(&output.stderr);
    assert!(!obeyed(stderr), "{stderr:?}");
}

#[test]
fn commands_find_the_token_of_the_control_port() {
    let account = TestAccount::with(&["--regions", "West US", "--control-token", "secret"]);
    assert_eq!(account.up.ready["control"]["token"], "secret");
    account.fails_with(&["status"], 6, "--control-token");
    account.fails_with(&["status", "--control-token", "wrong"], 6, "--control-token");
    assert!(account.stdout_of(&["status", "--control-token", "secret"]).contains("West US"));
    let output = account.command(&["fault", "clear"]).env("PERI_CONTROL_TOKEN", "secret").output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}
