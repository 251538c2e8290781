//! Identifiers use the terms of the field: Cosmos DB's, those of databases and of HTTP.
//!
//! Every struct, enum, variant, trait, function, module, constant, field and type of the workspace is split into its
//! words, and none of them may be a coined word. [`coined`] lists these with the term to use instead;
//! `docs/glossary.md` explains the terms.

mod coined;

use coined::{COINED, Coined, Scope};

use crate::allowance::{self, Offender};
use crate::workspace::CRATES;

/// How many identifiers of each crate still have a coined word.
const ALLOWED: &[(&str, usize)] = &[];

#[test]
fn identifiers_use_the_terms_of_the_field() {
    let mut offenders = Vec::new();
    for one in CRATES.iter() {
        for file in &one.files {
            for definition in &file.definitions {
                if let Some((word, coined)) = coined_word(&definition.name) {
                    offenders.push(Offender {
                        krate: one.name.clone(),
                        place: format!("{}:{}", file.path, definition.line),
                        text: format!(
                            "{} {}: not `{word}`, but {}",
                            definition.kind, definition.name, coined.term
                        ),
                    });
                }
            }
        }
    }
    allowance::check("An identifier uses the term of the field.", file!(), ALLOWED, &offenders);
}

/// The first coined word in an identifier.
fn coined_word(identifier: &str) -> Option<(&'static str, &'static Coined)> {
    let words = words(identifier);
    COINED.iter().find_map(|coined| {
        let fits = match coined.scope {
            Scope::Anywhere | Scope::WholeName => true,
            Scope::ShortNames => words.len() <= coined::SHORT_WORDS_MAX,
        };
        let found = coined.forms.iter().find(|form| {
            let form = form.split('_').collect::<Vec<_>>();
            let at = words.windows(form.len()).position(|part| part == form);
            let whole = coined.scope != Scope::WholeName || words.len() == form.len();
            at.is_some_and(|at| whole && !(at > 0 && coined.except_after.contains(&words[at - 1].as_str())))
        });
        found.filter(|_| fits).map(|form| (*form, coined))
    })
}

/// The words of an identifier, in lower case: `KeptItem`, `kept_item` and `KEPT_ITEM` are `["kept", "item"]`.
fn words(identifier: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before_lower = false;
    let characters = identifier.trim_start_matches("r#").chars().collect::<Vec<_>>();
    for (at, c) in characters.iter().enumerate() {
        let next_lower = characters.get(at + 1).is_some_and(|next| next.is_lowercase());
        let after_upper = at > 0 && characters[at - 1].is_uppercase();
        // A capital begins a word after a small letter, and before one: `HTTPClient` is `http`, `client`.
        let begins = *c == '_' || (c.is_uppercase() && (before_lower || (after_upper && next_lower)));
        if begins {
            words.push(String::new());
        }
        before_lower = c.is_lowercase() || c.is_ascii_digit();
        if let Some(word) = words.last_mut().filter(|_| *c != '_') {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_split_into_words() {
        assert_eq!(words("KeptItem"), ["kept", "item"]);
        assert_eq!(words("kept_item"), ["kept", "item"]);
        assert_eq!(words("KEPT_ITEM2"), ["kept", "item2"]);
        assert_eq!(words("HTTPClient"), ["http", "client"]);
        assert_eq!(words("_x"), ["x"]);
    }

    fn found(identifier: &str) -> Option<&'static str> {
        coined_word(identifier).map(|(word, _)| word)
    }

    #[test]
    fn a_coined_word_is_found_as_a_word_and_not_inside_of_one() {
        assert_eq!(found("Vantage"), Some("vantage"));
        assert_eq!(found("charge_purse"), Some("purse"));
        assert_eq!(found("oversight"), None);
        assert_eq!(found("billing"), None);
        assert_eq!(found("tell_all"), Some("tell_all"));
        assert_eq!(found("tell_one"), None);
    }

    #[test]
    fn an_ordinary_use_of_a_coined_word_is_let_through() {
        assert_eq!(found("put_letter"), Some("letter"));
        assert_eq!(found("DeadLetterHook"), None);
        assert_eq!(found("on_dead_letter"), None);
        assert_eq!(found("kept_items"), Some("kept"));
        assert_eq!(found("the_order_is_kept_after_a_merge"), None);
        assert_eq!(found("Scratch"), Some("scratch"));
        assert_eq!(found("SCRATCH_USUAL"), None);
    }

    #[test]
    fn no_form_is_listed_twice() {
        let mut forms = COINED.iter().flat_map(|coined| coined.forms).collect::<Vec<_>>();
        let all = forms.len();
        forms.sort();
        forms.dedup();
        assert_eq!(forms.len(), all);
    }
}
