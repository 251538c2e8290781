//! REGEXMATCH.

use regex::{Regex, RegexBuilder};

use super::super::Environment;
use super::super::argument::or_undefined;
use crate::value::Value;

/// How large a compiled expression may become. A pattern that needs more is undefined.
const COMPILED_BYTES_MAX: usize = 1024 * 1024;

/// `REGEXMATCH(s, pattern[, modifiers])`: undefined for a pattern or a modifier that is not known.
pub(super) fn regex_match(args: &[Value], environment: &Environment<'_>) -> Value {
    let (text, pattern, modifiers) = match args {
        [Value::String(text), Value::String(pattern)] => (text, pattern, ""),
        [Value::String(text), Value::String(pattern), Value::String(modifiers)] => {
            (text, pattern, modifiers.as_str())
        }
        _ => return Value::Undefined,
    };
    or_undefined(environment.matches_regex(text, (pattern, modifiers), compile))
}

fn compile(pattern: &str, modifiers: &str) -> Option<Regex> {
    let mut builder = RegexBuilder::new(pattern);
    builder.size_limit(COMPILED_BYTES_MAX);
    for modifier in modifiers.chars() {
        match modifier {
            'm' => builder.multi_line(true),
            's' => builder.dot_matches_new_line(true),
            'i' => builder.case_insensitive(true),
            'x' => builder.ignore_whitespace(true),
            _ => return None,
        };
    }
    builder.build().ok()
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::check;

    #[test]
    fn patterns_match_anywhere_under_their_modifiers() {
        check(&[
            ("REGEXMATCH", "\"abcd\" ; \"ABC\"", "false"),
            ("REGEXMATCH", "\"abcd\" ; \"ABC\" ; \"i\"", "true"),
            ("REGEXMATCH", "\"abcd\" ; \"ab.\" ; \"\"", "true"),
            ("REGEXMATCH", "\"abcd\" ; \"aB c\" ; \"ix\"", "true"),
            ("REGEXMATCH", "\"a\\nb\" ; \"^b\"", "false"),
            ("REGEXMATCH", "\"a\\nb\" ; \"^b\" ; \"m\"", "true"),
            ("REGEXMATCH", "\"a\\nb\" ; \"a.b\"", "false"),
            ("REGEXMATCH", "\"a\\nb\" ; \"a.b\" ; \"s\"", "true"),
            ("REGEXMATCH", "\"abcd\" ; \"(\"", "u"),
            ("REGEXMATCH", "\"abcd\" ; \"a\" ; \"q\"", "u"),
            ("REGEXMATCH", "\"abcd\" ; \"(((a{100}){100}){100})\"", "u"),
            ("REGEXMATCH", "1 ; \"a\"", "u"),
            ("REGEXMATCH", "\"a\" ; \"a\" ; 1", "u"),
        ]);
    }
}
