//! Any text parses or is an error, without a panic; and a printed query parses to the same AST.

use perihelion_sql::ast::print_query;
use perihelion_sql::{QuerySchema, Statement, parse_query};
use proptest::prelude::*;

use crate::queries::query;

/// Tokens of the language in any order.
fn token_sequence() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "SELECT",
        "VALUE",
        "DISTINCT",
        "TOP",
        "FROM",
        "JOIN",
        "IN",
        "WHERE",
        "GROUP BY",
        "ORDER BY",
        "RANK",
        "OFFSET",
        "LIMIT",
        "AND",
        "OR",
        "NOT",
        "BETWEEN",
        "LIKE",
        "ESCAPE",
        "EXISTS",
        "ARRAY",
        "ALL",
        "FIRST",
        "LAST",
        "AS",
        "ASC",
        "DESC",
        "udf",
        "null",
        "true",
        "undefined",
        "c",
        "c.a",
        "@p",
        "1",
        "0x1F",
        ".5",
        "'s'",
        "\"d\"",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ".",
        ":",
        "?",
        "??",
        "=",
        "!=",
        "<",
        ">=",
        "+",
        "-",
        "*",
        "/",
        "%",
        "&",
        "|",
        "||",
        "^",
        "~",
        "<<",
        ">>>",
        "COUNT(",
        "LOWER(",
        "RRF(",
        "FullTextScore(",
        "VectorDistance(",
        "--",
        "/*",
        "*/",
        "\\",
        "é",
        "😀",
    ]);
    prop::collection::vec(word, 0..25).prop_map(|words| words.join(" "))
}

/// A query with a few characters dropped, doubled, exchanged or replaced.
fn mutated() -> impl Strategy<Value = String> {
    let change = (
        any::<prop::sample::Index>(),
        0..4u8,
        prop::sample::select(vec!['(', ')', '\'', '"', '.', ',', ' ', '-', '@', '\u{0}', 'é', '9']),
    );
    (query(), prop::collection::vec(change, 1..6)).prop_map(|(parts, changes)| {
        let mut characters: Vec<char> = parts.text().chars().collect();
        for (position, kind, replacement) in changes {
            if characters.is_empty() {
                break;
            }
            let at = position.index(characters.len());
            match kind {
                0 => {
                    characters.remove(at);
                }
                1 => characters.insert(at, characters[at]),
                2 => characters[at] = replacement,
                _ => characters.truncate(at),
            }
        }
        characters.into_iter().collect()
    })
}

fn check(text: &str) -> Result<(), TestCaseError> {
    match parse_query(text) {
        Ok(query) => {
            let printed = print_query(&query);
            match parse_query(&printed) {
                Ok(again) => prop_assert_eq!(again, query, "{}", printed),
                Err(error) => prop_assert!(false, "{error}\n{text}\n{printed}"),
            }
            // Binding may fail but must not panic; the plan or its error is dropped because only a panic matters.
            if let Ok(statement) = Statement::prepare_plan(text, &[], &QuerySchema::default()) {
                let definition = protocol::container::PartitionKeyDefinition::hash("/a").expect("a path");
                let _ = statement.gateway_plan(&definition, &perihelion_sql::SupportedFeatures::all());
            }
        }
        Err(error) => {
            let length = text.encode_utf16().count();
            prop_assert!(error.start <= error.end && error.end <= length, "{error} outside of 0..{length}");
            prop_assert!(!error.message.is_empty());
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_text_parses_or_is_an_error(text in "\\PC{0,120}") {
        check(&text)?;
    }

    #[test]
    fn any_token_sequence_parses_or_is_an_error(text in token_sequence()) {
        check(&text)?;
    }

    #[test]
    fn a_damaged_query_parses_or_is_an_error(text in mutated()) {
        check(&text)?;
    }

    #[test]
    fn a_printed_query_parses_to_the_same_ast(parts in query()) {
        check(&parts.text())?;
    }
}
