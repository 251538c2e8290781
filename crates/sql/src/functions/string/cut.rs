//! String functions that return parts of strings.

use smol_str::SmolStr;

use super::super::FunctionContext;
use super::super::argument::{ELEMENTS_MAX, or_undefined, two_strings, whole};
use super::utf16;
use crate::value::Value;

/// `LEFT(s, n)`: the first n characters.
pub(super) fn left(args: &[Value], _: &FunctionContext<'_>) -> Value {
    match args {
        [Value::String(text), count] => or_undefined(whole(count).map(|count| part(text, 0, count))),
        _ => Value::Undefined,
    }
}

/// `RIGHT(s, n)`: the last n characters.
pub(super) fn right(args: &[Value], _: &FunctionContext<'_>) -> Value {
    let [Value::String(text), count] = args else { return Value::Undefined };
    let Some(count) = whole(count) else { return Value::Undefined };
    let length = utf16::length(text);
    let start = length.saturating_sub(usize::try_from(count).unwrap_or(0));
    Value::String(utf16::slice(text, start, length))
}

/// `SUBSTRING(s, start, length)`: empty if either number is negative.
pub(super) fn substring(args: &[Value], _: &FunctionContext<'_>) -> Value {
    match args {
        [Value::String(text), start, length] => {
            or_undefined(whole(start).zip(whole(length)).map(|(start, length)| part(text, start, length)))
        }
        _ => Value::Undefined,
    }
}

fn part(text: &SmolStr, start: i64, length: i64) -> SmolStr {
    match (usize::try_from(start), usize::try_from(length)) {
        (Ok(start), Ok(length)) => utf16::slice(text, start, start.saturating_add(length)),
        _ => SmolStr::default(),
    }
}

/// `SUBSTRINGBEFORE(s, delimiter)`: the part before the first delimiter; empty without one.
pub(super) fn substring_before(args: &[Value], _: &FunctionContext<'_>) -> Value {
    piece(args, |text, delimiter| text.split_once(delimiter).map(|(before, _)| before))
}

/// `SUBSTRINGAFTER(s, delimiter)`: the part after the first delimiter; empty without one.
pub(super) fn substring_after(args: &[Value], _: &FunctionContext<'_>) -> Value {
    piece(args, |text, delimiter| text.split_once(delimiter).map(|(_, after)| after))
}

/// `LASTSUBSTRINGBEFORE(s, delimiter)`: the part before the last delimiter; empty without one.
pub(super) fn last_substring_before(args: &[Value], _: &FunctionContext<'_>) -> Value {
    piece(args, |text, delimiter| text.rsplit_once(delimiter).map(|(before, _)| before))
}

/// `LASTSUBSTRINGAFTER(s, delimiter)`: the part after the last delimiter; empty without one.
pub(super) fn last_substring_after(args: &[Value], _: &FunctionContext<'_>) -> Value {
    piece(args, |text, delimiter| text.rsplit_once(delimiter).map(|(_, after)| after))
}

fn piece(args: &[Value], cut: for<'t> fn(&'t str, &str) -> Option<&'t str>) -> Value {
    or_undefined(two_strings(args).map(|(text, delimiter)| cut(text, delimiter).unwrap_or_default()))
}

/// `LTRIM(s[, characters])`: removes leading characters.
pub(super) fn ltrim(args: &[Value], _: &FunctionContext<'_>) -> Value {
    trimmed(args, |text, drop| text.trim_start_matches(drop))
}

/// `RTRIM(s[, characters])`: removes trailing characters.
pub(super) fn rtrim(args: &[Value], _: &FunctionContext<'_>) -> Value {
    trimmed(args, |text, drop| text.trim_end_matches(drop))
}

/// `TRIM(s[, characters])`: removes leading and trailing characters.
pub(super) fn trim(args: &[Value], _: &FunctionContext<'_>) -> Value {
    trimmed(args, |text, drop| text.trim_matches(drop))
}

/// Removes white space, or the characters of the second argument, which is a set.
fn trimmed(args: &[Value], cut: for<'t> fn(&'t str, &dyn Fn(char) -> bool) -> &'t str) -> Value {
    let (text, rest) = match args {
        [Value::String(text)] => (text, cut(text, &char::is_whitespace)),
        [Value::String(text), Value::String(set)] => (text, cut(text, &|each| set.contains(each))),
        _ => return Value::Undefined,
    };
    Value::String(if rest.len() == text.len() { text.clone() } else { SmolStr::new(rest) })
}

/// `STRINGSPLIT(s, separator)`: an empty separator does not split.
pub(super) fn string_split(args: &[Value], _: &FunctionContext<'_>) -> Value {
    match two_strings(args) {
        None => Value::Undefined,
        Some((text, "")) => Value::array([Value::from(text)]),
        Some((text, separator)) => {
            let mut parts = text.split(separator);
            let elements: Vec<Value> = parts.by_ref().take(ELEMENTS_MAX).map(Value::from).collect();
            if parts.next().is_some() { Value::Undefined } else { Value::array(elements) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::check;

    #[test]
    fn parts_are_cut_at_utf16_positions() {
        check(&[
            ("LEFT", "\"abc\" ; 2", "\"ab\""),
            ("LEFT", "\"abc\" ; 0", "\"\""),
            ("LEFT", "\"abc\" ; -1", "\"\""),
            ("LEFT", "\"abc\" ; 1e300", "\"abc\""),
            ("LEFT", "\"abc\" ; 1.5", "u"),
            ("LEFT", "\"a😀b\" ; 3", "\"a😀\""),
            ("LEFT", "1 ; 1", "u"),
            ("RIGHT", "\"abc\" ; 2", "\"bc\""),
            ("RIGHT", "\"abc\" ; 100", "\"abc\""),
            ("RIGHT", "\"abc\" ; -2", "\"\""),
            ("RIGHT", "\"a😀b\" ; 3", "\"😀b\""),
            ("SUBSTRING", "\"abc\" ; 1 ; 1", "\"b\""),
            ("SUBSTRING", "\"abc\" ; 1 ; 100", "\"bc\""),
            ("SUBSTRING", "\"abc\" ; 5 ; 1", "\"\""),
            ("SUBSTRING", "\"abc\" ; -1 ; 2", "\"\""),
            ("SUBSTRING", "\"abc\" ; 0 ; -1", "\"\""),
            ("SUBSTRING", "\"abc\" ; 0.5 ; 1", "u"),
            ("SUBSTRING", "\"abc\" ; 0 ; u", "u"),
        ]);
    }

    #[test]
    fn delimiters_cut_at_the_first_or_the_last() {
        check(&[
            ("SUBSTRINGBEFORE", "\"a/b/c\" ; \"/\"", "\"a\""),
            ("SUBSTRINGAFTER", "\"a/b/c\" ; \"/\"", "\"b/c\""),
            ("LASTSUBSTRINGBEFORE", "\"bike::touring::frame\" ; \"::\"", "\"bike::touring\""),
            ("LASTSUBSTRINGAFTER", "\"bike::touring::frame\" ; \"::\"", "\"frame\""),
            ("SUBSTRINGBEFORE", "\"abc\" ; \"/\"", "\"\""),
            ("SUBSTRINGAFTER", "\"abc\" ; 1", "u"),
        ]);
    }

    #[test]
    fn trimming_takes_a_set_of_characters() {
        check(&[
            ("TRIM", "\"  a b  \"", "\"a b\""),
            ("LTRIM", "\"  a  \"", "\"a  \""),
            ("RTRIM", "\"  a  \"", "\"  a\""),
            ("LTRIM", "\"AdventureWorks\" ; \"Adventure\"", "\"Works\""),
            ("LTRIM", "\"AdventureWorks\" ; \"Works\"", "\"AdventureWorks\""),
            ("LTRIM", "\"AdventureWorks\" ; \"\"", "\"AdventureWorks\""),
            ("TRIM", "\"-_-AdventureWorks-_-\" ; \"-_\"", "\"AdventureWorks\""),
            ("TRIM", "\"abc\" ; 1", "u"),
            ("TRIM", "1", "u"),
        ]);
    }

    #[test]
    fn splitting_keeps_empty_parts() {
        check(&[
            ("STRINGSPLIT", "\"a,b,,c\" ; \",\"", r#"["a","b","","c"]"#),
            ("STRINGSPLIT", "\"Helmet\" ; \"\"", r#"["Helmet"]"#),
            ("STRINGSPLIT", "\"\" ; \"\"", r#"[""]"#),
            ("STRINGSPLIT", "\"\" ; \",\"", r#"[""]"#),
            ("STRINGSPLIT", "\"a\" ; u", "u"),
        ]);
    }
}
