//! Full-text functions: text is split into words, lower-cased and stemmed; stop words are removed.
//!
//! A term of several words is a phrase, whose words must be adjacent once stop words are removed. A term of
//! stop words alone occurs nowhere. Scores are BM25; the statistics over all items are arguments, since the
//! client collects them from every partition first. FULLTEXTSCORE and RRF are only allowed in ORDER BY
//! RANK, which the planner rewrites to `_FULLTEXTSCORE`.

mod stop_words;
mod words;

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

use snowball_stemmers_rs::{Algorithm, Stemmer};

use self::stop_words::is_stop_word;
use self::words::words;
use super::argument::or_undefined;
use super::{Family, Function, FunctionContext, at_least, exactly};
use crate::context::FullTextLanguage;
use crate::value::Value;

/// The functions over texts in the default language of the container.
pub(super) const FUNCTIONS: &[Function] = &functions::<{ usize::MAX }>();

/// The functions over texts in each language, in the order of [`FullTextLanguage::ALL`].
static BY_LANGUAGE: [[Function; 7]; FullTextLanguage::ALL.len()] = [
    functions::<0>(),
    functions::<1>(),
    functions::<2>(),
    functions::<3>(),
    functions::<4>(),
    functions::<5>(),
];

/// The function that does the same as `function`, over texts in `language`.
pub(crate) fn in_language(function: &'static Function, language: FullTextLanguage) -> &'static Function {
    let at = FullTextLanguage::ALL.iter().position(|known| *known == language);
    at.and_then(|at| BY_LANGUAGE[at].iter().find(|known| known.name == function.name)).unwrap_or(function)
}

/// The functions over texts in the language at `LANGUAGE` in [`FullTextLanguage::ALL`], in the default
/// language of the container if there is none. The language is part of a function, because a call has it
/// from the path of its first argument, of which the values say nothing.
const fn functions<const LANGUAGE: usize>() -> [Function; 7] {
    [
        exactly("FULLTEXTCONTAINS", 2, Family::FullText, contains::<LANGUAGE, true>),
        at_least("FULLTEXTCONTAINSALL", 2, Family::FullText, contains::<LANGUAGE, true>),
        at_least("FULLTEXTCONTAINSANY", 2, Family::FullText, contains::<LANGUAGE, false>),
        at_least("FULLTEXTSCORE", 2, Family::Rank, |_, _| Value::Undefined),
        at_least("RRF", 2, Family::Rank, |_, _| Value::Undefined),
        exactly("_FULLTEXTSCORE", 5, Family::FullText, score::<LANGUAGE>),
        exactly("_FULLTEXTWORDCOUNT", 1, Family::FullText, word_count::<LANGUAGE>),
    ]
}

fn language<const LANGUAGE: usize>(context: &FunctionContext<'_>) -> FullTextLanguage {
    FullTextLanguage::ALL.get(LANGUAGE).copied().unwrap_or(context.schema.full_text_language)
}

/// The BM25 parameter k1: how soon further occurrences of a term stop counting.
const BM25_K1: f64 = 1.2;
/// The BM25 parameter b: how much the score of long texts is reduced.
const BM25_B: f64 = 0.75;

/// A search term: one word, or a phrase.
#[derive(Debug)]
pub(super) struct Term {
    stems: Vec<String>,
}

impl Term {
    /// Splits `text` into stemmed words.
    pub(super) fn new(text: &str, language: FullTextLanguage) -> Term {
        let mut stems = Vec::new();
        let _ = for_each_stem(text, language, |stem| {
            stems.push(stem.to_owned());
            ControlFlow::Continue(())
        });
        Term { stems }
    }
}

/// `FULLTEXTCONTAINSALL(text, t1, …)`, or `FULLTEXTCONTAINSANY` unless `ALL`.
fn contains<const LANGUAGE: usize, const ALL: bool>(args: &[Value], context: &FunctionContext<'_>) -> Value {
    let language = language::<LANGUAGE>(context);
    let Some((Value::String(text), terms)) = args.split_first() else { return Value::Undefined };
    let Some(terms) = terms_of(terms, language, context) else { return Value::Undefined };
    let mut found = vec![false; terms.len()];
    let mut missing = terms.len();
    let decided = for_each_hit(text, &terms, language, |at| {
        if !std::mem::replace(&mut found[at], true) {
            missing -= 1;
        }
        if !ALL || missing == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    Value::Bool(decided.is_break())
}

fn terms_of(
    values: &[Value],
    language: FullTextLanguage,
    context: &FunctionContext<'_>,
) -> Option<Vec<Arc<Term>>> {
    values
        .iter()
        .map(|value| match value {
            Value::String(text) => Some(context.term(text, language)),
            _ => None,
        })
        .collect()
}

/// `_FULLTEXTWORDCOUNT(text)`: the number of words that are not stop words.
fn word_count<const LANGUAGE: usize>(args: &[Value], context: &FunctionContext<'_>) -> Value {
    match args {
        [Value::String(text)] => {
            or_undefined(i64::try_from(searched_words(text, language::<LANGUAGE>(context))).ok())
        }
        _ => Value::Undefined,
    }
}

/// `_FULLTEXTSCORE(text, [t1, …], items, words, [itemsWith1, …])`: the BM25 score of the text, given the
/// number of items, their number of words, and how many items have each term.
fn score<const LANGUAGE: usize>(args: &[Value], context: &FunctionContext<'_>) -> Value {
    let language = language::<LANGUAGE>(context);
    let [Value::String(text), Value::Array(terms), items, words_total, Value::Array(items_with)] = args
    else {
        return Value::Undefined;
    };
    let (Some(items), Some(words_total), Some(terms)) =
        (items.as_f64(), words_total.as_f64(), terms_of(terms, language, context))
    else {
        return Value::Undefined;
    };
    let Some(items_with) = items_with.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>() else {
        return Value::Undefined;
    };
    if items_with.len() != terms.len() {
        return Value::Undefined;
    }
    let mut hits = vec![0_u32; terms.len()];
    let _ = for_each_hit(text, &terms, language, |at| {
        hits[at] += 1;
        ControlFlow::Continue(())
    });
    let length = searched_words(text, language) as f64;
    let relative_length = if words_total > 0.0 { length * items / words_total } else { 1.0 };
    let score = hits
        .into_iter()
        .zip(items_with)
        .filter(|(hits, _)| *hits > 0)
        .map(|(hits, with)| {
            let rarity = (1.0 + (items - with + 0.5) / (with + 0.5)).ln();
            let hits = f64::from(hits);
            let held_back = BM25_K1 * (1.0 - BM25_B + BM25_B * relative_length);
            rarity * hits * (BM25_K1 + 1.0) / (hits + held_back)
        })
        // Not `sum`, which gives minus zero for no terms.
        .fold(0.0, |total, part| total + part);
    Value::from(score)
}

/// The number of words of `text` that are not stop words.
fn searched_words(text: &str, language: FullTextLanguage) -> usize {
    let mut count = 0;
    let _ = for_each_word(text, language, |_| {
        count += 1;
        ControlFlow::Continue(())
    });
    count
}

/// Calls `visit` with every word in lower case that is not a stop word, in order, until it breaks off.
fn for_each_word(
    text: &str,
    language: FullTextLanguage,
    mut visit: impl FnMut(&str) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut lower = String::new();
    for word in words(text, language) {
        lower.clear();
        // Stop words and the stemmer know one apostrophe only.
        let letters = word.chars().map(|letter| if letter == '\u{2019}' { '\'' } else { letter });
        lower.extend(letters.flat_map(char::to_lowercase));
        if !is_stop_word(&lower, language) {
            visit(&lower)?;
        }
    }
    ControlFlow::Continue(())
}

/// Calls `visit` with the stem of every word that is not a stop word, in order, until it breaks off.
fn for_each_stem(
    text: &str,
    language: FullTextLanguage,
    mut visit: impl FnMut(&str) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let stemmer = Stemmer::create(match language {
        FullTextLanguage::English => Algorithm::English,
        FullTextLanguage::French => Algorithm::French,
        FullTextLanguage::German => Algorithm::German,
        FullTextLanguage::Italian => Algorithm::Italian,
        FullTextLanguage::Portuguese => Algorithm::Portuguese,
        FullTextLanguage::Spanish => Algorithm::Spanish,
    });
    for_each_word(text, language, |word| visit(&stemmer.stem(word)))
}

/// Calls `visit` with the index of a term each time it occurs, until it breaks off.
fn for_each_hit(
    text: &str,
    terms: &[Arc<Term>],
    language: FullTextLanguage,
    mut report: impl FnMut(usize) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let longest = terms.iter().map(|term| term.stems.len()).max().unwrap_or(0);
    // The words before the current one, if a phrase may begin with them.
    let mut before: VecDeque<String> = VecDeque::new();
    for_each_stem(text, language, |stem| {
        for (at, term) in terms.iter().enumerate() {
            let Some((last, leading)) = term.stems.split_last() else { continue };
            let follows = last == stem
                && leading.len() <= before.len()
                && leading.iter().eq(before.range(before.len() - leading.len()..));
            if follows {
                report(at)?;
            }
        }
        if longest > 1 {
            if before.len() == longest - 1 {
                before.pop_front();
            }
            before.push_back(stem.to_owned());
        }
        ControlFlow::Continue(())
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{call, check, value};
    use super::super::{FunctionContext, find};
    use crate::context::{FullTextLanguage, QueryContext, QuerySchema};

    const TEXT: &str = r#""The runner was running; two mountain bikes, and a red bicycle stood by.""#;

    #[test]
    fn words_are_found_in_any_case_and_with_any_ending() {
        for (terms, all, any) in [
            (r#""run""#, "true", "true"),
            (r#""RUNS""#, "true", "true"),
            (r#""bike""#, "true", "true"),
            (r#""bik""#, "false", "false"),
            (r#""mountain bike""#, "true", "true"),
            (r#""bike mountain""#, "false", "false"),
            (r#""red bicycles stood""#, "true", "true"),
            (r#""bike" ; "boat""#, "false", "true"),
            (r#""boat" ; "car""#, "false", "false"),
            (r#""bike" ; "runner" ; "red bicycle""#, "true", "true"),
            (r#""!?""#, "false", "false"),
            (r#""bike" ; 1"#, "u", "u"),
            (r#""bike" ; u"#, "u", "u"),
        ] {
            let args = format!("{TEXT} ; {terms}");
            check(&[("FULLTEXTCONTAINSALL", &args, all), ("FULLTEXTCONTAINSANY", &args, any)]);
            if !terms.contains(';') {
                check(&[("FULLTEXTCONTAINS", &args, all)]);
            }
        }
        check(&[
            ("FULLTEXTCONTAINS", r#"1 ; "run""#, "u"),
            ("FULLTEXTCONTAINS", r#"u ; "run""#, "u"),
            ("FULLTEXTCONTAINS", r#""" ; "run""#, "false"),
            ("_FULLTEXTWORDCOUNT", TEXT, "7"),
            ("_FULLTEXTWORDCOUNT", r#""""#, "0"),
            ("_FULLTEXTWORDCOUNT", "1", "u"),
        ]);
    }

    #[test]
    fn stop_words_neither_match_nor_count() {
        check(&[
            ("FULLTEXTCONTAINS", r#""to be or not to be" ; "be""#, "false"),
            ("FULLTEXTCONTAINSALL", r#""the fox" ; "fox" ; "the""#, "false"),
            ("FULLTEXTCONTAINSANY", r#""the fox" ; "fox" ; "the""#, "true"),
            ("FULLTEXTCONTAINS", r#""the king of hearts" ; "king of the hearts""#, "true"),
            ("FULLTEXTCONTAINS", r#""I don’t know, can't say" ; "don't""#, "false"),
            ("FULLTEXTCONTAINS", r#""the runner's shoes" ; "runner""#, "true"),
            ("_FULLTEXTWORDCOUNT", r#""To be, or not to be: that is the question.""#, "1"),
        ]);
    }

    #[test]
    fn a_number_with_separators_is_one_word() {
        check(&[
            ("FULLTEXTCONTAINS", r#""paid 1,000.50 in cash" ; "1,000.50""#, "true"),
            ("FULLTEXTCONTAINS", r#""paid 1,000.50 in cash" ; "000""#, "false"),
            ("FULLTEXTCONTAINS", r#""paid 1,000.50 in cash" ; "50""#, "false"),
            ("_FULLTEXTWORDCOUNT", r#""paid 1,000.50 cash""#, "3"),
        ]);
    }

    #[test]
    fn every_language_has_its_functions() {
        for (language, functions) in FullTextLanguage::ALL.into_iter().zip(&super::BY_LANGUAGE) {
            for function in functions {
                let found = super::in_language(find(function.name).unwrap(), language);
                assert!(std::ptr::eq(found, function), "{}", function.name);
            }
        }
        assert_eq!(super::in_language(find("ABS").unwrap(), FullTextLanguage::German).name, "ABS");
    }

    #[test]
    fn endings_are_those_of_the_containers_language() {
        let search = |language, text: &str, term: &str| {
            let schema = QuerySchema { full_text_language: language, ..QuerySchema::default() };
            let context = FunctionContext::new(QueryContext::default(), &schema);
            (find("FULLTEXTCONTAINS").unwrap().call)(&[value(text), value(term)], &context).is_true()
        };
        assert!(search(FullTextLanguage::German, r#""Die Häuser""#, r#""haus""#));
        assert!(!search(FullTextLanguage::English, r#""Die Häuser""#, r#""haus""#));
        assert!(search(FullTextLanguage::French, r#""continuellement""#, r#""continuel""#));
    }

    #[test]
    fn scores_follow_bm25() {
        let score = |text: &str, rest: &str| -> f64 {
            let args = format!("\"{text}\" ; {rest}");
            call("_FULLTEXTSCORE", &args.split(" ; ").collect::<Vec<_>>()).parse().unwrap()
        };
        // 10 items of 4 words on average, 3 of which have the term. Stop words do not count.
        let statistics = r#"["swim"] ; 10 ; 40 ; [3]"#;
        let rarity = (1.0_f64 + 7.5 / 3.5).ln();
        let expected = rarity * 1.0 * 2.2 / (1.0 + 1.2);
        assert!((score("They swim day after day, winter", statistics) - expected).abs() < 1e-12);
        assert!(score("swim swim swim day", statistics) > expected);
        assert!(score("swim day night winter summer cold sea", statistics) < expected);
        assert_eq!(score("nothing of the kind", statistics), 0.0);
        assert_eq!(
            score("swimming in the sea", r#"["swim","sea"] ; 10 ; 40 ; [3,1]"#),
            score("swimming in the sea", r#"["swim"] ; 10 ; 40 ; [3]"#)
                + score("swimming in the sea", r#"["sea"] ; 10 ; 40 ; [1]"#)
        );
        assert_eq!(score("swim", r#"["swim"] ; 0 ; 0 ; [0]"#), 2.0_f64.ln());
    }

    #[test]
    fn scores_without_statistics_are_undefined() {
        check(&[
            ("_FULLTEXTSCORE", r#"1 ; ["a"] ; 1 ; 1 ; [1]"#, "u"),
            ("_FULLTEXTSCORE", r#""a" ; ["a"] ; "1" ; 1 ; [1]"#, "u"),
            ("_FULLTEXTSCORE", r#""a" ; ["a"] ; 1 ; 1 ; []"#, "u"),
            ("_FULLTEXTSCORE", r#""a" ; [1] ; 1 ; 1 ; [1]"#, "u"),
            ("_FULLTEXTSCORE", r#""a" ; "a" ; 1 ; 1 ; [1]"#, "u"),
            ("FULLTEXTSCORE", r#""a" ; "a""#, "u"),
            ("RRF", "1 ; 2", "u"),
        ]);
    }
}
