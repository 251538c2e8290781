//! A doc comment makes sense on hover, without its neighbours: it has more than three words, and does not begin with
//! "The same".

use crate::allowance::{self, Offender};
use crate::workspace::CRATES;

const WORDS_MIN: usize = 4;

/// How many doc comments of each crate still break the rule.
const ALLOWED: &[(&str, usize)] = &[];

#[test]
fn doc_comments_stand_alone() {
    let mut offenders = Vec::new();
    for one in CRATES.iter() {
        for file in &one.files {
            for block in file.doc_blocks.iter().filter(|block| !stands_alone(&block.text)) {
                offenders.push(Offender {
                    krate: one.name.clone(),
                    place: format!("{}:{}", file.path, block.line),
                    text: format!("\"{}\"", block.text),
                });
            }
        }
    }
    let rule = "A doc comment says what the thing is, in a sentence that needs no neighbour: at least four words, and not \
                \"The same\".";
    allowance::check(rule, file!(), ALLOWED, &offenders);
}

fn stands_alone(text: &str) -> bool {
    let words = text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count();
    (words >= WORDS_MIN || text.starts_with("```")) && !text.starts_with("The same")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_stands_alone_and_a_fragment_does_not() {
        assert!(stands_alone("Number of items stored."));
        assert!(stands_alone("``` x ```"));
        assert!(!stands_alone("Where."));
        assert!(!stands_alone("The items – stored."));
        assert!(!stands_alone("The same, for all regions that write."));
    }
}
