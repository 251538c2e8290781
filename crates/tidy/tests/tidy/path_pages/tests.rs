//! The rules of a page, each on small sources.

use super::*;

const LOOP: &str = "impl Loop { pub fn run(&self) { let at = locate(); self.attempt(route(at)); finish(); } \
                    fn attempt(&self, x: u8) { self.transport.send(x) } }";
const OTHER: &str =
    "fn locate() {} fn route() {} fn finish() {} fn send() { write() } fn write() {} fn unused() {}";

fn found(rows: &str) -> Vec<String> {
    found_on(&format!("```rust\nclient.read().await?;\n```\n\n{rows}"), None)
}

fn found_on(page: &str, files_max: Option<usize>) -> Vec<String> {
    let files = [
        ("crates/a/src/call.rs", "fn read() {} impl IntoFuture for Read { fn into_future(self) { run() } }"),
        ("crates/a/src/loop.rs", LOOP),
        ("crates/a/src/other.rs", OTHER),
    ];
    let files = files.map(|(path, text)| SourceFile::parse(path, Some(vec!["a".into()]), text).unwrap());
    let find = |path: &str| files.iter().find(|file| file.path == path);
    problems(page, files_max, &find)
}

fn rows(rows: &[(&str, &str, &str)]) -> String {
    let row = |(number, file, functions): &(&str, &str, &str)| {
        let path = format!("crates/a/src/{file}.rs");
        format!("| {number} | [`{path}`](../{path}) | {functions} | text |\n")
    };
    format!(
        "| # | file | functions | what happens |\n|---|---|---|---|\n{}",
        rows.iter().map(row).collect::<String>()
    )
}

#[test]
fn a_page_that_follows_the_calls_is_true() {
    let page = rows(&[
        ("1", "call", "`read`, `into_future`"),
        ("2", "loop", "`Loop::run`"),
        ("3", "other", "`locate`, `route`"),
        ("4", "other", "`send`, `write`"),
        ("5 ↑", "loop", "`Loop::run`"),
        ("6", "other", "`finish`"),
    ]);
    assert_eq!(found(&page), [""; 0]);
}

#[test]
fn a_function_that_is_not_called_is_named() {
    let page = rows(&[("1", "call", "`into_future`"), ("2", "loop", "`run`"), ("3", "other", "`unused`")]);
    assert_eq!(found(&page), ["9: `unused` is not called by any of `run`, `into_future`, the example"]);
}

#[test]
fn functions_are_reached_in_the_order_of_the_page() {
    let page =
        rows(&[("1", "call", "`into_future`"), ("2", "loop", "`run`"), ("3", "other", "`finish`, `route`")]);
    assert_eq!(found(&page), ["9: `run` calls `route` before what the page has it call earlier"]);
}

#[test]
fn going_back_up_needs_a_call_that_has_not_returned() {
    let up = |function| {
        rows(&[
            ("1", "call", "`into_future`"),
            ("2", "loop", "`run`"),
            ("3", "other", "`locate`"),
            ("4 ↑", "loop", function),
        ])
    };
    assert_eq!(found(&up("`run`")), [""; 0]);
    assert_eq!(found(&up("`attempt`")), ["10: `attempt` cannot go on: it was not called, or has returned"]);
}

#[test]
fn a_hand_over_needs_no_caller_and_is_rare() {
    let page = rows(&[("1", "call", "`into_future`"), ("2 ⇢", "other", "`unused`"), ("3", "loop", "`run`")]);
    assert_eq!(found(&page), [""; 0]);
    let four = rows(&[
        ("1 ⇢", "other", "`unused`"),
        ("2 ⇢", "other", "`unused`"),
        ("3 ⇢", "other", "`unused`"),
        ("4 ⇢", "other", "`unused`"),
    ]);
    assert_eq!(found(&four), ["10: a page has at most 3 hand-overs"]);
}

#[test]
fn a_page_without_an_example_begins_with_its_first_function() {
    assert_eq!(found_on(&rows(&[("1", "loop", "`run`"), ("2", "other", "`send`")]), None), [""; 0]);
}

#[test]
fn files_functions_and_form_are_checked() {
    let page = rows(&[("1", "gone", "`f`"), ("2", "loop", "`gone`"), ("3", "loop", "`Other::run`")]);
    assert_eq!(
        found(&page),
        [
            "7: there is no file crates/a/src/gone.rs",
            "8: crates/a/src/loop.rs defines no function `gone`",
            "9: crates/a/src/loop.rs defines no function `Other::run`",
        ]
    );
    assert_eq!(found("no table"), ["1: the page has no numbered rows"]);
    assert_eq!(found(&rows(&[("2", "loop", "`run`")])), ["7: row 1 is expected here, and this is 2"]);
    assert_eq!(found(&rows(&[("1 ?", "loop", "`run`")])), ["7: `?` is no mark: it is ↑ or ⇢"]);
    assert_eq!(found(&rows(&[("1", "loop", "run")])), ["7: a row names at least one function"]);
    let page = "| 1 | [`loop.rs`](../crates/a/src/loop.rs) | `run` | text |\n";
    assert_eq!(found_on(page, None), ["1: a file is written [`crates/…`](../crates/…)"]);
}

#[test]
fn a_page_passes_through_a_limited_number_of_files() {
    let page = rows(&[("1", "loop", "`run`"), ("2", "other", "`send`")]);
    assert_eq!(found_on(&page, Some(1)), ["1: the page passes through 2 files, over 1"]);
    assert_eq!(found_on(&page, Some(2)), [""; 0]);
}
