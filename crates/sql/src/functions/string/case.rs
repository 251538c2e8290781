//! Upper and lower case, and case-insensitive comparison.
//!
//! Each character maps to at most one: `ß` has no upper case here, as in the service.

use smol_str::{SmolStr, SmolStrBuilder};

use super::super::FunctionContext;
use crate::value::Value;

/// `LOWER(s)`: the string in lower case.
pub(super) fn lower(args: &[Value], _: &FunctionContext<'_>) -> Value {
    mapped(args, lower_of)
}

/// `UPPER(s)`: the string in upper case.
pub(super) fn upper(args: &[Value], _: &FunctionContext<'_>) -> Value {
    mapped(args, upper_of)
}

fn mapped(args: &[Value], map: fn(char) -> char) -> Value {
    match args {
        [Value::String(text)] => Value::String(map_text(text, map)),
        _ => Value::Undefined,
    }
}

/// Maps every character; returns the original if nothing changes.
fn map_text(text: &SmolStr, map: fn(char) -> char) -> SmolStr {
    let Some((at, _)) = text.char_indices().find(|(_, each)| map(*each) != *each) else {
        return text.clone();
    };
    let mut result = SmolStrBuilder::new();
    result.push_str(&text[..at]);
    text[at..].chars().for_each(|each| result.push(map(each)));
    result.finish()
}

/// The lower case of a character, if it is a single character.
pub(super) fn lower_of(character: char) -> char {
    if character.is_ascii() {
        return character.to_ascii_lowercase();
    }
    single(character, character.to_lowercase())
}

/// The upper case of a character, if it is a single character.
pub(super) fn upper_of(character: char) -> char {
    if character.is_ascii() {
        return character.to_ascii_uppercase();
    }
    single(character, character.to_uppercase())
}

fn single(character: char, mut mapped: impl ExactSizeIterator<Item = char>) -> char {
    if mapped.len() == 1 { mapped.next().unwrap_or(character) } else { character }
}

/// Whether two strings are equal except for case.
pub(super) fn equal(left: &str, right: &str) -> bool {
    after_prefix(left, right).is_some_and(str::is_empty)
}

/// The rest of `text` after `prefix`, ignoring case, if it has that prefix.
pub(super) fn after_prefix<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    let mut rest = text.chars();
    for wanted in prefix.chars() {
        let found = rest.next()?;
        if found != wanted && upper_of(found) != upper_of(wanted) {
            return None;
        }
    }
    Some(rest.as_str())
}

/// Whether `text` ends with `suffix`, ignoring case.
pub(super) fn ends_with(text: &str, suffix: &str) -> bool {
    let mut rest = text.chars().rev();
    suffix
        .chars()
        .rev()
        .all(|wanted| rest.next().is_some_and(|found| found == wanted || upper_of(found) == upper_of(wanted)))
}

/// Whether `text` contains `term`, ignoring case. Cost: at worst the product of their lengths, in practice
/// the length of `text`.
pub(super) fn contains(text: &str, term: &str) -> bool {
    let Some(first) = term.chars().next().map(upper_of) else { return true };
    text.char_indices().any(|(at, each)| upper_of(each) == first && after_prefix(&text[at..], term).is_some())
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::check;

    #[test]
    fn case_maps_character_by_character() {
        check(&[
            ("LOWER", "\"ABC ÉÇ 123\"", "\"abc éç 123\""),
            ("UPPER", "\"abc éç 123\"", "\"ABC ÉÇ 123\""),
            ("UPPER", "\"straße\"", "\"STRAßE\""),
            ("LOWER", "\"already\"", "\"already\""),
            ("LOWER", "1", "u"),
            ("UPPER", "u", "u"),
        ]);
    }
}
