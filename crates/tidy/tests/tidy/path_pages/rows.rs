//! Reads the rows of a page that follows a request through the code.

use std::fmt;

use crate::markdown;
use crate::source::Function;

/// One row: a file, and the functions of it that the request passes through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Line of the page it stands on.
    pub line: usize,
    /// How the row is reached from the one before.
    pub reached: Reached,
    /// Path of the file from the root of the repository.
    pub file: String,
    /// Functions in the order in which they are reached.
    pub functions: Vec<FunctionName>,
}

/// How a row is reached, by the mark beside its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reached {
    /// No mark: a function that was reached before calls it.
    Called,
    /// `↑`: its first function was called before, and continues.
    Resumed,
    /// `⇢`: another task, thread or library calls it.
    HandedOver,
}

/// A function as a page names it: `function`, or `Type::function` where a file has several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FunctionName {
    /// Type or trait that the function belongs to.
    pub owner: Option<String>,
    /// Name of the function itself.
    pub name: String,
}

impl FunctionName {
    fn read(text: &str) -> FunctionName {
        let text = text.trim_end_matches("()");
        match text.rsplit_once("::") {
            Some((owner, name)) => FunctionName { owner: Some(owner.into()), name: name.into() },
            None => FunctionName { owner: None, name: text.into() },
        }
    }

    /// Whether the page means this function.
    pub(crate) fn fits(&self, function: &Function) -> bool {
        function.name == self.name && (self.owner.is_none() || function.owner == self.owner)
    }
}

impl fmt::Display for FunctionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.owner {
            Some(owner) => write!(f, "{owner}::{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// The rows of the page `text`, and what is wrong with their form: line, colon, sentence.
pub(crate) fn read_rows(text: &str) -> (Vec<Row>, Vec<String>) {
    let (mut rows, mut problems) = (Vec::new(), Vec::new());
    for (line, cells) in markdown::table_rows(text) {
        if !cells[0].starts_with(|c: char| c.is_ascii_digit()) {
            continue;
        }
        match read_row(line, &cells, rows.len() + 1) {
            Ok(row) => rows.push(row),
            Err(problem) => problems.push(format!("{line}: {problem}")),
        }
    }
    if rows.is_empty() && problems.is_empty() {
        problems.push("1: the page has no numbered rows".into());
    }
    (rows, problems)
}

fn read_row(line: usize, cells: &[String], expected: usize) -> Result<Row, String> {
    let [number, file, functions, _] = cells else {
        return Err("a row has four cells: number, file, functions, what happens".into());
    };
    let (number, mark) = number.split_once(' ').unwrap_or((number, ""));
    if number != expected.to_string() {
        return Err(format!("row {expected} is expected here, and this is {number}"));
    }
    let reached = match mark.trim() {
        "" => Reached::Called,
        "↑" => Reached::Resumed,
        "⇢" => Reached::HandedOver,
        other => return Err(format!("`{other}` is no mark: it is ↑ or ⇢")),
    };
    let path = match markdown::code_spans(file).as_slice() {
        [path] if *file == format!("[`{path}`](../{path})") => path.clone(),
        _ => return Err("a file is written [`crates/…`](../crates/…)".into()),
    };
    let functions =
        markdown::code_spans(functions).iter().map(|name| FunctionName::read(name)).collect::<Vec<_>>();
    if functions.is_empty() {
        return Err("a row names at least one function".into());
    }
    Ok(Row { line, reached, file: path, functions })
}
