//! LIKE patterns and their matching.
//!
//! `%` stands for any run of characters, `_` for one, `[a-f]`, `[abc]` and `[^abc]` for one out of a
//! class; a wildcard in brackets is itself, and so is a character after the escape character.
//! Matching is case-sensitive and spans the whole text.

use smol_str::SmolStr;

/// A compiled pattern. The common forms need no element-wise matching.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LikePattern {
    /// A pattern without a wildcard.
    Exact(SmolStr),
    /// A prefix pattern, `text%`.
    Prefix(SmolStr),
    /// A suffix pattern, `%text`.
    Suffix(SmolStr),
    /// A substring pattern, `%text%`.
    Contains(SmolStr),
    /// Any other pattern, as a list of elements.
    Elements(Vec<PatternElement>),
}

/// One element of a pattern.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PatternElement {
    /// Matches this character only.
    Character(char),
    /// Matches any character, written `_`.
    AnyOne,
    /// Matches any number of characters, written `%`.
    AnyRun,
    /// Matches one character of a class, written `[…]`.
    Class { ranges: Vec<(char, char)>, negated: bool },
}

impl LikePattern {
    /// Compiles `pattern` with an optional escape character.
    pub(crate) fn new(pattern: &str, escape: Option<char>) -> LikePattern {
        let elements = elements(pattern, escape);
        let literal = |elements: &[PatternElement]| -> Option<SmolStr> {
            elements
                .iter()
                .map(|element| if let PatternElement::Character(c) = element { Some(*c) } else { None })
                .collect()
        };
        if let Some(text) = literal(&elements) {
            return LikePattern::Exact(text);
        }
        let simple = match &elements[..] {
            [PatternElement::AnyRun, middle @ .., PatternElement::AnyRun] => {
                literal(middle).map(LikePattern::Contains)
            }
            [PatternElement::AnyRun, rest @ ..] => literal(rest).map(LikePattern::Suffix),
            [start @ .., PatternElement::AnyRun] => literal(start).map(LikePattern::Prefix),
            _ => None,
        };
        simple.unwrap_or(LikePattern::Elements(elements))
    }

    /// Whether all of `text` matches. Cost: at worst the length of the text times that of the pattern.
    pub(crate) fn matches(&self, text: &str) -> bool {
        match self {
            LikePattern::Exact(expected) => text == expected.as_str(),
            LikePattern::Prefix(start) => text.starts_with(start.as_str()),
            LikePattern::Suffix(end) => text.ends_with(end.as_str()),
            LikePattern::Contains(middle) => text.contains(middle.as_str()),
            LikePattern::Elements(elements) => matches_elements(elements, text),
        }
    }

    /// How many elements are tried at each position of a text: none for the common forms.
    pub(crate) fn elements_len(&self) -> usize {
        match self {
            LikePattern::Elements(elements) => elements.len(),
            _ => 0,
        }
    }

    /// The literal text with which every match starts.
    pub(crate) fn literal_prefix(&self) -> SmolStr {
        match self {
            LikePattern::Exact(text) | LikePattern::Prefix(text) => text.clone(),
            LikePattern::Suffix(_) | LikePattern::Contains(_) => SmolStr::default(),
            LikePattern::Elements(elements) => elements
                .iter()
                .map_while(|element| if let PatternElement::Character(c) = element { Some(*c) } else { None })
                .collect(),
        }
    }
}

fn elements(pattern: &str, escape: Option<char>) -> Vec<PatternElement> {
    let characters: Vec<char> = pattern.chars().collect();
    let mut elements = Vec::with_capacity(characters.len());
    let mut at = 0;
    while let Some(&character) = characters.get(at) {
        at += 1;
        elements.push(match character {
            _ if Some(character) == escape && at < characters.len() => {
                at += 1;
                PatternElement::Character(characters[at - 1])
            }
            '_' => PatternElement::AnyOne,
            '%' => {
                // Two adjacent `%` are one.
                if elements.last() == Some(&PatternElement::AnyRun) {
                    continue;
                }
                PatternElement::AnyRun
            }
            '[' => match class(&characters[at..], escape) {
                Some((class, length)) => {
                    at += length;
                    class
                }
                // A bracket that is never closed is a literal character.
                None => PatternElement::Character('['),
            },
            _ => PatternElement::Character(character),
        });
    }
    elements
}

/// The class after an opening bracket, and the number of its characters, closing bracket included.
fn class(characters: &[char], escape: Option<char>) -> Option<(PatternElement, usize)> {
    let negated = characters.first() == Some(&'^');
    let mut at = usize::from(negated);
    let first = at;
    let mut ranges = Vec::new();
    loop {
        let mut low = *characters.get(at)?;
        // A closing bracket at the start is a member, since an empty class would match nothing.
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

fn matches_one(element: &PatternElement, character: char) -> bool {
    match element {
        PatternElement::Character(expected) => *expected == character,
        PatternElement::AnyOne => true,
        PatternElement::AnyRun => false,
        PatternElement::Class { ranges, negated } => {
            ranges.iter().any(|(low, high)| (*low..=*high).contains(&character)) != *negated
        }
    }
}

/// Tries the shortest run for each `%` and lengthens only the last one: lengthening earlier ones cannot
/// help.
fn matches_elements(elements: &[PatternElement], text: &str) -> bool {
    let mut rest = text.chars();
    let mut at = 0;
    let mut retry: Option<(usize, std::str::Chars<'_>)> = None;
    loop {
        if elements.get(at) == Some(&PatternElement::AnyRun) {
            at += 1;
            retry = Some((at, rest.clone()));
            continue;
        }
        let mut ahead = rest.clone();
        match (elements.get(at), ahead.next()) {
            (None, None) => return true,
            (Some(element), Some(character)) if matches_one(element, character) => {
                rest = ahead;
                at += 1;
                continue;
            }
            (Some(_), None) => return false,
            _ => {}
        }
        // Let the last `%` match one more character.
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
    fn the_literal_prefix_is_found() {
        for (pattern, prefix) in [("abc", "abc"), ("ab%", "ab"), ("ab_d%", "ab"), ("%a", ""), ("a[b]c", "a")]
        {
            assert_eq!(LikePattern::new(pattern, None).literal_prefix(), prefix);
        }
    }

    proptest! {
        /// Compares with the equivalent regular expression.
        #[test]
        fn a_pattern_matches_what_its_regular_expression_matches(pattern in "[ab_%]{0,8}", text in "[abc]{0,10}") {
            let regex: String = pattern.chars().map(|c| match c { '%' => ".*".into(), '_' => ".".into(), c => c.to_string() }).collect();
            let expected = regex::Regex::new(&format!("^{regex}$")).unwrap().is_match(&text);
            prop_assert_eq!(LikePattern::new(&pattern, None).matches(&text), expected);
        }
    }
}
