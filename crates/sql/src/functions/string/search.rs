//! String functions that search in strings.

use super::super::FunctionContext;
use super::super::argument::{leading_strings, optional_bool, or_undefined, whole};
use super::{case, utf16};
use crate::value::Value;

/// `CONTAINS(s, t[, ignoreCase])`: whether `s` contains `t`.
pub(super) fn contains(args: &[Value], _: &FunctionContext<'_>) -> Value {
    test(args, contains_exactly, case::contains)
}

/// `STARTSWITH(s, t[, ignoreCase])`: whether `s` starts with `t`.
pub(super) fn starts_with(args: &[Value], _: &FunctionContext<'_>) -> Value {
    test(
        args,
        |text, prefix| text.starts_with(prefix),
        |text, prefix| case::after_prefix(text, prefix).is_some(),
    )
}

/// `ENDSWITH(s, t[, ignoreCase])`: whether `s` ends with `t`.
pub(super) fn ends_with(args: &[Value], _: &FunctionContext<'_>) -> Value {
    test(args, |text, suffix| text.ends_with(suffix), case::ends_with)
}

/// `STRINGEQUALS(s, t[, ignoreCase])`: whether both are equal.
pub(super) fn string_equals(args: &[Value], _: &FunctionContext<'_>) -> Value {
    test(args, |left, right| left == right, case::equal)
}

type StringPredicate = fn(&str, &str) -> bool;

fn contains_exactly(text: &str, term: &str) -> bool {
    text.contains(term)
}

fn test(args: &[Value], exact: StringPredicate, ignoring_case: StringPredicate) -> Value {
    match (leading_strings(args), optional_bool(args, 2, false)) {
        (Some((text, term)), Some(ignore)) => {
            Value::Bool(if ignore { ignoring_case } else { exact }(text, term))
        }
        _ => Value::Undefined,
    }
}

/// `CONTAINS_ANY_CI(s, t1, …)`: whether `s` contains any term, ignoring case.
pub(super) fn contains_any_ci(args: &[Value], _: &FunctionContext<'_>) -> Value {
    first_that(args, case::contains, true)
}

/// `CONTAINS_ANY_CS(s, t1, …)`: whether `s` contains any term, regarding case.
pub(super) fn contains_any_cs(args: &[Value], _: &FunctionContext<'_>) -> Value {
    first_that(args, contains_exactly, true)
}

/// `CONTAINS_ALL_CI(s, t1, …)`: whether `s` contains all terms, ignoring case.
pub(super) fn contains_all_ci(args: &[Value], _: &FunctionContext<'_>) -> Value {
    first_that(args, case::contains, false)
}

/// `CONTAINS_ALL_CS(s, t1, …)`: whether `s` contains all terms, regarding case.
pub(super) fn contains_all_cs(args: &[Value], _: &FunctionContext<'_>) -> Value {
    first_that(args, contains_exactly, false)
}

/// Whether any (`decisive` is true) or all (`decisive` is false) terms are found. A term that is not a
/// string is undefined. As in OR and AND, a decisive result wins over undefined, and undefined over its
/// opposite.
fn first_that(args: &[Value], found: StringPredicate, decisive: bool) -> Value {
    let Some((Value::String(text), terms)) = args.split_first() else { return Value::Undefined };
    let mut met_undefined = false;
    for term in terms {
        match term {
            Value::String(term) if found(text, term) == decisive => return Value::Bool(decisive),
            Value::String(_) => {}
            _ => met_undefined = true,
        }
    }
    if met_undefined { Value::Undefined } else { Value::Bool(!decisive) }
}

/// `INDEX_OF(s, t[, start])`: the first position of `t` at or after `start`, or -1.
pub(super) fn index_of(args: &[Value], _: &FunctionContext<'_>) -> Value {
    let Some((text, term)) = leading_strings(args) else { return Value::Undefined };
    let from = match args.get(2).map(whole) {
        None => 0,
        Some(None) => return Value::Undefined,
        Some(Some(start)) => {
            let start = usize::try_from(start).unwrap_or(0);
            if start > utf16::length(text) {
                return Value::from(-1);
            }
            utf16::byte_of(text, start).byte
        }
    };
    position(text, text[from..].find(term.as_str()).map(|at| from + at))
}

/// `LASTINDEXOF(s, t[, start])`: the last position of `t` that ends at or before the character at `start`,
/// or -1.
pub(super) fn last_index_of(args: &[Value], _: &FunctionContext<'_>) -> Value {
    let Some((text, term)) = leading_strings(args) else { return Value::Undefined };
    let to = match args.get(2).map(whole) {
        None => text.len(),
        Some(None) => return Value::Undefined,
        Some(Some(start)) => match usize::try_from(start) {
            Ok(start) => utf16::byte_of(text, start.saturating_add(1)).byte,
            Err(_) => return Value::from(-1),
        },
    };
    position(text, text[..to].rfind(term.as_str()))
}

fn position(text: &str, byte: Option<usize>) -> Value {
    match byte {
        Some(byte) => or_undefined(i64::try_from(utf16::unit_of(text, byte)).ok()),
        None => Value::from(-1),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::check;

    #[test]
    fn text_is_found_with_and_without_case() {
        check(&[
            ("CONTAINS", "\"AdventureWorks\" ; \"Works\"", "true"),
            ("CONTAINS", "\"AdventureWorks\" ; \"works\"", "false"),
            ("CONTAINS", "\"AdventureWorks\" ; \"works\" ; true", "true"),
            ("CONTAINS", "\"AdventureWorks\" ; \"works\" ; false", "false"),
            ("CONTAINS", "\"AdventureWorks\" ; \"works\" ; 1", "u"),
            ("CONTAINS", "\"AdventureWorks\" ; \"works\" ; u", "u"),
            ("CONTAINS", "\"abc\" ; \"\"", "true"),
            ("CONTAINS", "\"abc\" ; \"\" ; true", "true"),
            ("CONTAINS", "\"ÀÉ\" ; \"é\" ; true", "true"),
            ("CONTAINS", "1 ; \"1\"", "u"),
            ("STARTSWITH", "\"abc\" ; \"AB\" ; true", "true"),
            ("STARTSWITH", "\"abc\" ; \"b\"", "false"),
            ("STARTSWITH", "\"ab\" ; \"abc\" ; true", "false"),
            ("ENDSWITH", "\"abc\" ; \"BC\" ; true", "true"),
            ("ENDSWITH", "\"abc\" ; \"BC\"", "false"),
            ("ENDSWITH", "\"c\" ; \"bc\" ; true", "false"),
            ("STRINGEQUALS", "\"abc\" ; \"aBC\" ; true", "true"),
            ("STRINGEQUALS", "\"abc\" ; \"aBC\"", "false"),
            ("STRINGEQUALS", "\"abc\" ; \"abcd\" ; true", "false"),
            ("STRINGEQUALS", "\"abc\" ; u", "u"),
        ]);
    }

    #[test]
    fn several_terms_combine_like_and_and_or() {
        check(&[
            ("CONTAINS_ALL_CI", "\"Have a nice day!\" ; \"HAVE\" ; \"nice\"", "true"),
            ("CONTAINS_ALL_CI", "\"Have a nice day!\" ; u ; \"nice\"", "u"),
            ("CONTAINS_ALL_CI", "\"Have a nice day!\" ; u ; \"had\"", "false"),
            ("CONTAINS_ALL_CS", "\"Have a nice day!\" ; \"HAVE\" ; \"nice\"", "false"),
            ("CONTAINS_ANY_CS", "\"Have a nice day!\" ; u ; \"nice\"", "true"),
            ("CONTAINS_ANY_CS", "\"Have a nice day!\" ; u ; \"had\"", "u"),
            ("CONTAINS_ANY_CS", "\"Have a nice day!\" ; \"HAVE\" ; \"NICE\"", "false"),
            ("CONTAINS_ANY_CI", "\"Have a nice day!\" ; \"HAD\" ; \"NICE\"", "true"),
            ("CONTAINS_ANY_CI", "1 ; \"1\"", "u"),
        ]);
    }

    #[test]
    fn positions_count_utf16_units() {
        check(&[
            ("INDEX_OF", "\"abcdeabc\" ; \"abc\"", "0"),
            ("INDEX_OF", "\"abcdeabc\" ; \"abc\" ; 1", "5"),
            ("INDEX_OF", "\"abcdeabc\" ; \"abc\" ; 6", "-1"),
            ("INDEX_OF", "\"abcdeabc\" ; \"abc\" ; 100", "-1"),
            ("INDEX_OF", "\"abcdeabc\" ; \"abc\" ; 1.5", "u"),
            ("INDEX_OF", "\"😀b\" ; \"b\"", "2"),
            ("INDEX_OF", "\"abc\" ; 1", "u"),
            ("LASTINDEXOF", "\"abcdeabc\" ; \"abc\"", "5"),
            ("LASTINDEXOF", "\"abcdeabc\" ; \"abc\" ; 6", "0"),
            ("LASTINDEXOF", "\"abcdeabc\" ; \"abc\" ; 7", "5"),
            ("LASTINDEXOF", "\"abcdeabc\" ; \"abc\" ; 1", "-1"),
            ("LASTINDEXOF", "\"abcdeabc\" ; \"abc\" ; -1", "-1"),
            ("LASTINDEXOF", "\"abcdeabc\" ; \"abc\" ; 99", "5"),
            ("LASTINDEXOF", "\"abcdeabc\" ; \"fg\"", "-1"),
            ("LASTINDEXOF", "\"😀b😀b\" ; \"b\"", "5"),
        ]);
    }
}
