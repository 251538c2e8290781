//! Walks the rows of a page with a call stack; the rules are in the documentation of the module above.

use std::collections::BTreeSet;

use super::Sources;
use super::rows::{FunctionName, Reached, Row};
use crate::source::{Function, SourceFile};

const HAND_OVERS_MAX: usize = 3;

/// A function that has been called and has not returned.
struct Frame<'a> {
    /// Where the page names it; `None` for the page's own example.
    named: Option<(&'a str, &'a FunctionName)>,
    /// What its body mentions, in order.
    mentions: Vec<&'a str>,
    /// The file's functions, through which it may lead to others.
    file: Option<&'a SourceFile>,
    /// Index of the mention that led to the function it called last.
    at: usize,
}

/// Follows `rows` from `start`, the page's example. Returns the first step that cannot be made: line, colon, sentence.
pub(crate) fn walk(start: Option<Function>, rows: &[Row], sources: &Sources<'_>) -> Option<String> {
    let mut stack = Vec::new();
    if let Some(start) = &start {
        let mentions = start.mentions.iter().map(String::as_str).collect();
        stack.push(Frame { named: None, mentions, file: None, at: 0 });
    }
    let hand_overs = rows.iter().filter(|row| row.reached == Reached::HandedOver);
    if let Some(row) = hand_overs.clone().nth(HAND_OVERS_MAX) {
        return Some(format!("{}: a page has at most {HAND_OVERS_MAX} hand-overs", row.line));
    }
    for row in rows {
        for (index, name) in row.functions.iter().enumerate() {
            let reached = if index == 0 { row.reached } else { Reached::Called };
            if let Err(problem) = step(&mut stack, reached, row, name, sources) {
                return Some(format!("{}: {problem}", row.line));
            }
        }
    }
    None
}

/// Takes one step: `name` of `row` is on top of the stack afterwards.
fn step<'a, 's: 'a>(
    stack: &mut Vec<Frame<'a>>,
    reached: Reached,
    row: &'a Row,
    name: &'a FunctionName,
    sources: &Sources<'s>,
) -> Result<(), String> {
    match reached {
        Reached::Resumed => {
            let on_stack = stack.iter().rposition(|frame| frame.named == Some((&row.file, name)));
            let at = on_stack
                .ok_or_else(|| format!("`{name}` cannot go on: it was not called, or has returned"))?;
            stack.truncate(at + 1);
            return Ok(());
        }
        // The first function of a page without an example is where it begins.
        Reached::Called if stack.is_empty() => {}
        Reached::Called => {
            let caller = stack
                .iter()
                .enumerate()
                .rev()
                .find_map(|(index, frame)| Some((index, frame.leads_to(name)?)));
            let (index, at) = caller.ok_or_else(|| not_called(stack, name))?;
            stack.truncate(index + 1);
            stack[index].at = at;
        }
        Reached::HandedOver => {}
    }
    let file = sources(&row.file).ok_or_else(|| format!("there is no file {}", row.file))?;
    let bodies = file.functions.iter().filter(|one| name.fits(one));
    let mentions = bodies.flat_map(|one| one.mentions.iter().map(String::as_str)).collect();
    stack.push(Frame { named: Some((&row.file, name)), mentions, file: Some(file), at: 0 });
    Ok(())
}

impl Frame<'_> {
    /// Index of the first mention, not before the last one that was taken, that leads to `name`.
    fn leads_to(&self, name: &FunctionName) -> Option<usize> {
        let ways = self.file.map(|file| ways_to(file, &name.name)).unwrap_or_default();
        let leads = |mention: &str| mention == name.name || ways.contains(mention);
        (self.at..self.mentions.len()).find(|at| leads(self.mentions[*at]))
    }

    fn shown(&self) -> String {
        self.named.map_or_else(|| "the example".into(), |(_, name)| format!("`{name}`"))
    }
}

/// The functions of `file` that mention `name`, directly or through others of the file.
fn ways_to<'a>(file: &'a SourceFile, name: &str) -> BTreeSet<&'a str> {
    let mut ways: BTreeSet<&str> = BTreeSet::new();
    loop {
        let before = ways.len();
        for function in &file.functions {
            if function.mentions.iter().any(|mention| mention == name || ways.contains(mention.as_str())) {
                ways.insert(&function.name);
            }
        }
        if ways.len() == before {
            return ways;
        }
    }
}

/// Says why no function on the stack calls `name`: none mentions it, or one does so too early.
fn not_called(stack: &[Frame<'_>], name: &FunctionName) -> String {
    let callers = stack.iter().rev().map(Frame::shown).collect::<Vec<_>>().join(", ");
    let early = stack.iter().rev().find(|frame| frame.mentions.contains(&name.name.as_str()));
    match early {
        Some(frame) => format!("{} calls `{name}` before what the page has it call earlier", frame.shown()),
        None => format!("`{name}` is not called by any of {callers}"),
    }
}
