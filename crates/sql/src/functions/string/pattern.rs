//! The function REGEXMATCH for regular expressions.

use regex::{Regex, RegexBuilder, bytes};

use super::super::FunctionContext;
use super::super::argument::or_undefined;
use crate::value::Value;

/// The largest compiled regular expression. A pattern that needs more is undefined.
const COMPILED_BYTES_MAX: usize = 1024 * 1024;

/// `REGEXMATCH(s, pattern[, modifiers])`: undefined for an invalid pattern or an unknown modifier.
pub(super) fn regex_match(args: &[Value], context: &FunctionContext<'_>) -> Value {
    let (text, pattern, modifiers) = match args {
        [Value::String(text), Value::String(pattern)] => (text, pattern, ""),
        [Value::String(text), Value::String(pattern), Value::String(modifiers)] => {
            (text, pattern, modifiers.as_str())
        }
        _ => return Value::Undefined,
    };
    or_undefined(context.matches_regex(text, (pattern, modifiers), compile))
}

/// A compiled regular expression and its size.
#[derive(Debug)]
pub(in crate::functions) struct Pattern {
    pub(in crate::functions) regex: Regex,
    /// The size of the expression in kilobytes if letters are only those of ASCII: a measure of how many
    /// states can be active at once. Counted repetitions make many, classes such as `\w` do not.
    kilobytes: usize,
}

impl Pattern {
    fn new(pattern: &str, regex: Regex) -> Pattern {
        let fits = |kilobytes: &usize| {
            let mut builder = bytes::RegexBuilder::new(pattern);
            builder.unicode(false).size_limit(*kilobytes * 1024).build().is_ok()
        };
        // An expression that needs other letters, such as `\p{L}`, counts as one of the largest.
        let kilobytes = (0..10).map(|doublings| 1 << doublings).find(fits);
        Pattern { regex, kilobytes: kilobytes.unwrap_or(1024) }
    }

    /// The work units of having compiled the expression, besides those of reading it.
    pub(in crate::functions) fn compile_units(&self) -> u64 {
        (self.kilobytes as u64).saturating_mul(400)
    }

    /// The work units of matching `text`: small expressions scan it once, large ones may visit each state
    /// for each byte.
    pub(in crate::functions) fn units(&self, text: &str) -> u64 {
        let bytes = text.len() as u64;
        if self.kilobytes <= 4 { bytes / 8 } else { bytes.saturating_mul(self.kilobytes as u64) / 2 }
    }
}

/// The work units of reading an expression in order to compile it.
pub(in crate::functions) fn uncompiled_units(pattern: &str) -> u64 {
    2_000 + 50 * pattern.len() as u64
}

fn compile(pattern: &str, modifiers: &str) -> Option<Pattern> {
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
    builder.build().ok().map(|regex| Pattern::new(pattern, regex))
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::check;

    #[test]
    fn only_expressions_with_many_active_states_cost_more_than_the_text() {
        for (pattern, small) in [
            ("abc", true),
            (r"^\w+@\w+\.com$", true),
            (r"^\d{4}-\d{2}-\d{2}T", true),
            ("[01]*1[01]{1000}$", false),
            ("(a?){500}a{500}", false),
        ] {
            let compiled = super::compile(pattern, "").unwrap();
            assert_eq!(compiled.units(&"x".repeat(800)) == 100, small, "{pattern}: {}", compiled.kilobytes);
        }
    }

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
