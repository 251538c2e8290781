//! The pages `docs/one-*.md`, each of which follows one request through the code, are true.
//!
//! The rows of a page's tables, read as one list, are
//!
//! ```text
//! | # | file | functions | what happens |
//! |---|---|---|---|
//! | 1 | [`crates/x/src/a.rs`](../crates/x/src/a.rs) | `first`, `Type::second` | … |
//! ```
//!
//! Every file exists and defines the functions of its row, the numbers count up from one, and the functions are
//! reached in the order of the page. For that the test walks the page with a call stack:
//!
//! 1. At the bottom of the stack is the page's first Rust example, if it has one; else the first function.
//! 2. A function is called by one that is on the stack: the caller's body mentions its name, or the name of a function
//!    in the caller's file that leads to it in the same way. The topmost such caller counts, and what stands above it
//!    has returned. `.await` mentions `into_future` and `poll`.
//! 3. A caller goes forward: the mention does not stand before that of the function it called last. Arguments come
//!    before the call that takes them.
//! 4. `9 ↑` goes back up: the row's first function is on the stack and continues, and what stands above it has returned.
//! 5. `7 ⇢` is a hand-over: another task, thread or library calls the row's first function, so no caller is looked
//!    for. A page has at most three.
//!
//! Names are compared, not resolved: the walk proves that the calls can happen in this order, not that they do.

mod rows;
mod walk;

use std::collections::BTreeSet;
use std::fs;

use rows::{Row, read_rows};

use crate::markdown;
use crate::source::{Function, SourceFile};
use crate::workspace::{find, relative, root, source_file};

/// How many files a page may pass through.
const FILES_MAX: &[(&str, usize)] = &[("docs/one-read.md", 25)];

/// Pages that are not in this form yet.
const NOT_YET: &[&str] = &[];

#[test]
fn pages_that_follow_a_request_are_true() {
    let mut pages = Vec::new();
    find(&root().join("docs"), "md", &mut pages);
    let pages = pages
        .iter()
        .map(|page| relative(page))
        .filter(|page| page.starts_with("docs/one-"))
        .collect::<Vec<_>>();
    let mut report = Vec::new();
    for page in &pages {
        let text = fs::read_to_string(root().join(page)).expect("the page was found");
        let files_max = FILES_MAX.iter().find(|(of, _)| of == page).map(|(_, max)| *max);
        let problems = problems(&text, files_max, &source_file);
        if !NOT_YET.contains(&page.as_str()) {
            report.extend(problems.iter().map(|problem| format!("{page}:{problem}")));
        } else if problems.is_empty() {
            report.push(format!("{page} is true: remove it from NOT_YET in {}", file!()));
        }
    }
    for page in NOT_YET.iter().chain(FILES_MAX.iter().map(|(page, _)| page)) {
        if !pages.iter().any(|one| one == page) {
            report.push(format!("{page} does not exist, but is listed in {}", file!()));
        }
    }
    assert!(report.is_empty(), "\n{}\n", report.join("\n"));
}

/// Finds a source file by its path from the root.
type Sources<'a> = dyn Fn(&str) -> Option<&'a SourceFile> + 'a;

/// Everything that is wrong with the page `text`: line, colon, sentence.
fn problems(text: &str, files_max: Option<usize>, sources: &Sources<'_>) -> Vec<String> {
    let (rows, mut problems) = read_rows(text);
    problems.extend(rows.iter().flat_map(|row| undefined(row, sources)));
    let files = rows.iter().map(|row| &row.file).collect::<BTreeSet<_>>().len();
    if let Some(max) = files_max
        && files > max
    {
        problems.push(format!("1: the page passes through {files} files, over {max}"));
    }
    if problems.is_empty() {
        match start(text) {
            Ok(start) => problems.extend(walk::walk(start, &rows, sources)),
            Err(error) => problems.push(format!("1: the first Rust example cannot be read: {error}")),
        }
    }
    problems
}

/// The page's first Rust example, as a function that makes its calls.
fn start(text: &str) -> Result<Option<Function>, String> {
    markdown::first_rust_block(text).map(|block| SourceFile::parse_statements(&block)).transpose()
}

/// What a row names and the sources do not have.
fn undefined(row: &Row, sources: &Sources<'_>) -> Vec<String> {
    let Some(file) = sources(&row.file) else {
        return vec![format!("{}: there is no file {}", row.line, row.file)];
    };
    let missing = row.functions.iter().filter(|name| !file.functions.iter().any(|one| name.fits(one)));
    missing.map(|name| format!("{}: {} defines no function `{name}`", row.line, row.file)).collect()
}

#[cfg(test)]
mod tests;
