//! LIKE patterns.
//!
//! `%` stands for any run of characters, `_` for one, `[a-f]`, `[abc]` and `[^abc]` for one out of a
//! class; a wildcard in brackets is itself, and so is a character after the escape character.
//! Matching is case-sensitive and spans the whole text.

use smol_str::SmolStr;

/// A pattern, compiled. The common shapes need no walk through pieces.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LikePattern {
    /// No wildcard.
    Exact(SmolStr),
    /// `text%`
    Prefix(SmolStr),
    /// `%text`
    Suffix(SmolStr),
    /// `%text%`
    Contains(SmolStr),
    /// Everything else.
    Elements(Vec<PatternElement>),
}

/// One piece of a pattern.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PatternElement {
    /// This character.
    Character(char),
    /// `_`
    AnyOne,
    /// `%`
    AnyRun,
    /// `[…]`
    Class { ranges: Vec<(char, char)>, negated: bool },
}

impl LikePattern {
    /// Compiles `pattern`.
    pub(crate) fn new(pattern: &str, escape: Option<char>) -> LikePattern {
        let pieces = elements(pattern, escape);
        let literal = |pieces: &[PatternElement]| -> Option<SmolStr> {
            pieces
                .iter()
                .map(|piece| if let PatternElement::Character(c) = piece { Some(*c) } else { None })
                .collect()
        };
        if let Some(text) = literal(&pieces) {
            return LikePattern::Exact(text);
        }
        let simple = match &pieces[..] {
            [PatternElement::AnyRun, middle @ .., PatternElement::AnyRun] => {
                literal(middle).map(LikePattern::Contains)
            }
            [PatternElement::AnyRun, rest @ ..] => literal(rest).map(LikePattern::Suffix),
            [start @ .., PatternElement::AnyRun] => literal(start).map(LikePattern::Prefix),
            _ => None,
        };
        simple.unwrap_or(LikePattern::Elements(pieces))
    }

    /// Whether all of `text` matches. Cost grows with text times pattern at worst.
    pub(crate) fn matches(&self, text: &str) -> bool {
        match self {
            LikePattern::Exact(expected) => text == expected.as_str(),
            LikePattern::Prefix(start) => text.starts_with(start.as_str()),
            LikePattern::Suffix(end) => text.ends_with(end.as_str()),
            LikePattern::Contains(middle) => text.contains(middle.as_str()),
            LikePattern::Elements(pieces) => matches_pieces(pieces, text),
        }
    }

    /// How many pieces are tried at each place of a text: none for the shapes that need no walk.
    pub(crate) fn elements_len(&self) -> usize {
        match self {
            LikePattern::Elements(pieces) => pieces.len(),
            _ => 0,
        }
    }

    /// What every match starts with.
    pub(crate) fn literal_prefix(&self) -> SmolStr {
        match self {
            LikePattern::Exact(text) | LikePattern::Prefix(text) => text.clone(),
            LikePattern::Suffix(_) | LikePattern::Contains(_) => SmolStr::default(),
            LikePattern::Elements(pieces) => pieces
                .iter()
                .map_while(|piece| if let PatternElement::Character(c) = piece { Some(*c) } else { None })
                .collect(),
        }
    }
}

fn elements(pattern: &str, escape: Option<char>) -> Vec<PatternElement> {
    let characters: Vec<char> = pattern.chars().collect();
    let mut pieces = Vec::with_capacity(characters.len());
    let mut at = 0;
    while let Some(&character) = characters.get(at) {
        at += 1;
        pieces.push(match character {
            _ if Some(character) == escape && at < characters.len() => {
                at += 1;
                PatternElement::Character(characters[at - 1])
            }
            '_' => PatternElement::AnyOne,
            '%' => {
                // Two runs in a row are one.
                if pieces.last() == Some(&PatternElement::AnyRun) {
                    continue;
                }
                PatternElement::AnyRun
            }
            '[' => match class(&characters[at..], escape) {
                Some((class, length)) => {
                    at += length;
                    class
                }
                // A bracket that is never closed is a character like any other.
                None => PatternElement::Character('['),
            },
            _ => PatternElement::Character(character),
        });
    }
    pieces
}

/// The class after an opening bracket, and how many characters it takes, closing bracket included.
fn class(characters: &[char], escape: Option<char>) -> Option<(PatternElement, usize)> {
    let negated = characters.first() == Some(&'^');
    let mut at = usize::from(negated);
    let first = at;
    let mut ranges = Vec::new();
    loop {
        let mut low = *characters.get(at)?;
        // A closing bracket right at the start is a member: an empty class would be useless.
        if low == ']' && at > first {
            return Some((PatternElement::Class { ranges, negated }, at + 1));
        }
        if Some(low) == escape {
            at += 1;
            low = *characters.get(at)?;
        }
        at += 1;
        let range = characters.get(at) == Some(&'-') && characters.get(at + 1).is_some_and(|end| *end != ']');
        if range {
            ranges.push((low, characters[at + 1]));
            at += 2;
        } else {
            ranges.push((low, low));
        }
    }
}

fn matches_one(piece: &PatternElement, character: char) -> bool {
    match piece {
        PatternElement::Character(expected) => *expected == character,
        PatternElement::AnyOne => true,
        PatternElement::AnyRun => false,
        PatternElement::Class { ranges, negated } => {
            ranges.iter().any(|(low, high)| (*low..=*high).contains(&character)) != *negated
        }
    }
}

/// Tries the shortest run for each `%` and lengthens only the last one met: earlier ones cannot help.
fn matches_pieces(pieces: &[PatternElement], text: &str) -> bool {
    let mut rest = text.chars();
    let mut at = 0;
    let mut retry: Option<(usize, std::str::Chars<'_>)> = None;
    loop {
        if pieces.get(at) == Some(&PatternElement::AnyRun) {
            at += 1;
            retry = Some((at, rest.clone()));
            continue;
        }
        let mut ahead = rest.clone();
        match (pieces.get(at), ahead.next()) {
            (None, None) => return true,
            (Some(piece), Some(character)) if matches_one(piece, character) => {
                rest = ahead;
                at += 1;
                continue;
            }
            (Some(_), None) => return false,
            _ => {}
        }
        // Let the last run swallow one more character.
        let Some((after_run, from)) = &mut retry else { return false };
        if from.next().is_none() {
            return false;
        }
        at = *after_run;
        rest = from.clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(pattern: &str, escape: Option<char>, matching: &[&str], others: &[&str]) {
        let compiled = LikePattern::new(pattern, escape);
        for text in matching {
            assert!(compiled.matches(text), "{pattern} should match {text}");
        }
        for text in others {
            assert!(!compiled.matches(text), "{pattern} should not match {text}");
        }
    }

    #[test]
    fn wildcards_classes_and_escapes() {
        check("abc", None, &["abc"], &["ABC", "abcd", "ab", ""]);
        check("", None, &[""], &["a"]);
        check("ab%", None, &["ab", "abc"], &["a", "xab"]);
        check("%ab", None, &["ab", "xab"], &["abx"]);
        check("%ab%", None, &["ab", "xaby"], &["ba"]);
        check("%", None, &["", "anything"], &[]);
        check("a_c", None, &["abc", "a😀c"], &["ac", "abbc"]);
        check("a%b%c", None, &["abc", "axxbyyc", "abbc"], &["acb"]);
        check("[a-f]at", None, &["bat", "fat"], &["gat", "at"]);
        check("[abc]", None, &["a", "c"], &["d", ""]);
        check("[^abc]%", None, &["dog"], &["apple"]);
        check("[%]", None, &["%"], &["x"]);
        check("100[%]", None, &["100%"], &["1000"]);
        check("a[_]b", None, &["a_b"], &["axb"]);
        check("[", None, &["["], &[""]);
        check("[]]", None, &["]"], &["["]);
        check("20!%", Some('!'), &["20%"], &["20x", "20!"]);
        check("!!%", Some('!'), &["!", "!x"], &["x"]);
        check("%!", Some('!'), &["x!"], &["x"]);
        check("[!]a]", Some('!'), &["]", "a"], &["!"]);
    }

    #[test]
    fn the_fixed_beginning_is_known() {
        for (pattern, prefix) in [("abc", "abc"), ("ab%", "ab"), ("ab_d%", "ab"), ("%a", ""), ("a[b]c", "a")]
        {
            assert_eq!(LikePattern::new(pattern, None).literal_prefix(), prefix);
        }
    }

    proptest! {
        /// Against the same language written as a regular expression.
        #[test]
        fn a_pattern_matches_what_its_regular_expression_matches(pattern in "[ab_%]{0,8}", text in "[abc]{0,10}") {
            let regex: String = pattern.chars().map(|c| match c { '%' => ".*".into(), '_' => ".".into(), c => c.to_string() }).collect();
            let expected = regex::Regex::new(&format!("^{regex}$")).unwrap().is_match(&text);
            prop_assert_eq!(LikePattern::new(&pattern, None).matches(&text), expected);
        }
    }
}
