//! The words of a text.
//!
//! A word is a run of letters and digits. A number with its separators is one word (`1,000.50`), and so is
//! an English word with an apostrophe (`can't`), since the stop words of English contain such words.

use crate::context::FullTextLanguage;

/// The words of `text`, in order, stop words included.
pub(super) fn words(text: &str, language: FullTextLanguage) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let start = rest.find(char::is_alphanumeric)?;
        let (word, after) = rest[start..].split_at(word_length(&rest[start..], language));
        rest = after;
        Some(word)
    })
}

/// The number of bytes of the word with which `text` begins.
fn word_length(text: &str, language: FullTextLanguage) -> usize {
    let mut characters = text.char_indices().peekable();
    let mut previous = None;
    while let Some((at, character)) = characters.next() {
        let next = characters.peek().map(|(_, next)| *next);
        if !character.is_alphanumeric() && !joins(previous, character, next, language) {
            return at;
        }
        previous = Some(character);
    }
    text.len()
}

/// Whether `character` between two others does not end a word.
fn joins(previous: Option<char>, character: char, next: Option<char>, language: FullTextLanguage) -> bool {
    let both = |is: fn(char) -> bool| previous.is_some_and(is) && next.is_some_and(is);
    match character {
        '.' | ',' => both(char::is_numeric),
        '\'' | '\u{2019}' => {
            both(char::is_numeric) || language == FullTextLanguage::English && both(char::is_alphabetic)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str, language: FullTextLanguage) -> Vec<&str> {
        words(text, language).collect()
    }

    #[test]
    fn characters_other_than_letters_and_digits_end_a_word() {
        let english = |text| split(text, FullTextLanguage::English);
        assert_eq!(english(" The quick, brown-fox! "), ["The", "quick", "brown", "fox"]);
        assert_eq!(english("naïve 日本 v2"), ["naïve", "日本", "v2"]);
        assert_eq!(english("example.com"), ["example", "com"]);
        assert!(english("!? …").is_empty() && english("").is_empty());
    }

    #[test]
    fn a_number_keeps_its_separators() {
        let english = |text| split(text, FullTextLanguage::English);
        assert_eq!(english("costs 1,000.50, or 3.14."), ["costs", "1,000.50", "or", "3.14"]);
        assert_eq!(
            english("1.000,50 1'000 10. .5 1,,2 v1.2"),
            ["1.000,50", "1'000", "10", "5", "1", "2", "v1.2"]
        );
        assert_eq!(split("1.000,50 €", FullTextLanguage::German), ["1.000,50"]);
        assert_eq!(english("12:30 2024-01-31"), ["12", "30", "2024", "01", "31"]);
    }

    #[test]
    fn an_apostrophe_is_part_of_an_english_word() {
        assert_eq!(
            split("can't 'quote' dogs' it’s", FullTextLanguage::English),
            ["can't", "quote", "dogs", "it’s"]
        );
        assert_eq!(split("l'avion", FullTextLanguage::French), ["l", "avion"]);
    }
}
