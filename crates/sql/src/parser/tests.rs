//! Tests of the grammar, of precedence and of syntax errors.

use super::*;
use crate::ast::{print_expression, print_query};

#[track_caller]
fn printed(text: &str) -> String {
    match parse_query(text) {
        Ok(query) => print_query(&query),
        Err(error) => panic!("{text}: {error}"),
    }
}

/// Checks the canonical text of an expression, which must also parse to itself.
#[track_caller]
fn check(expression: &str, expected: &str) {
    let query = parse_query(&format!("SELECT VALUE {expression}")).unwrap_or_else(|error| panic!("{error}"));
    let crate::ast::Selection::Value(found) = &query.selection else { panic!("not a value") };
    assert_eq!(print_expression(found), expected, "expression: {expression}");
    assert_eq!(parse_query(&print_query(&query)).unwrap(), query, "expression: {expression}");
}

#[test]
fn precedence_from_tight_to_loose() {
    for (expression, expected) in [
        ("-a.b[0].c", "(-a.b[0].c)"),
        ("~-a * b", "((~(-a)) * b)"),
        ("a + b * c - d", "((a + (b * c)) - d)"),
        ("a || b + c", "(a || (b + c))"),
        ("a << b || c", "(a << (b || c))"),
        ("a & b << c", "(a & (b << c))"),
        ("a ^ b & c", "(a ^ (b & c))"),
        ("a | b ^ c", "(a | (b ^ c))"),
        ("a & 4 != 0", "((a & 4) != 0)"),
        ("a = b | c", "(a = (b | c))"),
        ("a < b = c", "((a < b) = c)"),
        ("a = 1 IN (true)", "((a = 1) IN (true))"),
        ("NOT a = 1", "(NOT (a = 1))"),
        ("NOT a IN (1)", "(NOT (a IN (1)))"),
        ("NOT NOT a", "(NOT (NOT a))"),
        ("NOT a AND b", "((NOT a) AND b)"),
        ("a = NOT b AND c", "((a = (NOT b)) AND c)"),
        ("a OR b AND c", "(a OR (b AND c))"),
        ("a ?? b OR c", "(a ?? (b OR c))"),
        ("a ?? b ?? c", "((a ?? b) ?? c)"),
        ("a ?? b ? c : d", "((a ?? b) ? c : d)"),
        ("a ? b : c ? d : e", "(a ? b : (c ? d : e))"),
        ("a ? b ? c : d : e OR f", "(a ? (b ? c : d) : (e OR f))"),
        ("(a ? b : c) ? d : e", "((a ? b : c) ? d : e)"),
        ("a BETWEEN (b AND c) AND d", "(a BETWEEN (b AND c) AND d)"),
        ("(a BETWEEN b AND c) AND d", "((a BETWEEN b AND c) AND d)"),
        ("((a)).b[(0)]", "a.b[0]"),
        ("-(a + b).c", "(-(a + b).c)"),
        ("a >>> b >> c", "((a >>> b) >> c)"),
        ("a % b / c", "((a % b) / c)"),
        ("(a + b) * c", "((a + b) * c)"),
    ] {
        check(expression, expected);
    }
}

#[test]
fn membership_operators_take_their_operands() {
    for (expression, expected) in [
        ("a BETWEEN 1 AND 2", "(a BETWEEN 1 AND 2)"),
        ("a BETWEEN 1 AND 2 AND b", "((a BETWEEN 1 AND 2) AND b)"),
        ("a NOT BETWEEN 1 + 1 AND 2 * 2 OR b", "((a NOT BETWEEN (1 + 1) AND (2 * 2)) OR b)"),
        ("a BETWEEN b BETWEEN 1 AND 2 AND 3", "((a BETWEEN b AND 1) AND 2 AND 3)"),
        ("a IN (1, 2) AND b NOT IN ('x')", r#"((a IN (1, 2)) AND (b NOT IN ("x")))"#),
        ("a LIKE 'x%'", r#"(a LIKE "x%")"#),
        ("a NOT LIKE 'x!%' ESCAPE '!' AND b", r#"((a NOT LIKE "x!%" ESCAPE "!") AND b)"#),
        ("a LIKE b || '%'", r#"(a LIKE (b || "%"))"#),
    ] {
        // Nested BETWEEN is not valid SQL; it must only not be misparsed.
        if expression.matches("BETWEEN").count() > 1 {
            assert!(parse_query(&format!("SELECT VALUE {expression}")).is_err());
            continue;
        }
        check(expression, expected);
    }
}

#[test]
fn literals_and_constructors() {
    for (expression, expected) in [
        ("-5", "-5"),
        ("- -5", "5"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("+5", "(+5)"),
        ("0x10", "16"),
        ("1.50", "1.5"),
        ("TRUE", "true"),
        ("Null", "null"),
        ("undefined", "undefined"),
        ("'it''s'", "ERROR"),
        (r#"'say "hi"\n'"#, r#""say \"hi\"\n""#),
        ("[]", "[]"),
        ("[1, [2]]", "[1, [2]]"),
        ("{}", "{}"),
        ("{a: 1, 'b c': {order: 2}}", r#"{"a": 1, "b c": {"order": 2}}"#),
        ("c['na me'].x", r#"c["na me"].x"#),
        (r#"c["value"]"#, r#"c["value"]"#),
        ("c[c.i + 1]", "c[(c.i + 1)]"),
        ("@p.x", "@p.x"),
        ("(5).x", "(5).x"),
        ("left(a, 1)", "left(a, 1)"),
        ("udf.tax(c.x)", "udf.tax(c.x)"),
    ] {
        if expected == "ERROR" {
            assert!(parse_query(&format!("SELECT VALUE {expression}")).is_err(), "{expression}");
            continue;
        }
        check(expression, expected);
    }
}

#[test]
fn clauses_print_in_canonical_form() {
    for (text, expected) in [
        ("select * from c", "SELECT *\nFROM c"),
        (
            "SELECT DISTINCT TOP 5 c.a, c.b x FROM products c JOIN t IN c.tags JOIN (SELECT VALUE 1) one WHERE true",
            "SELECT DISTINCT TOP 5 c.a, c.b AS x\nFROM products AS c\nJOIN t IN c.tags\nJOIN (SELECT VALUE 1) AS one\nWHERE true",
        ),
        (
            "SELECT VALUE c FROM c.children[0] AS c GROUP BY c.a, c.b ORDER BY c.a ASC, c.b DESC, c.c OFFSET 1 LIMIT @n",
            "SELECT VALUE c\nFROM c.children[0] AS c\nGROUP BY c.a, c.b\nORDER BY c.a ASC, c.b DESC, c.c\nOFFSET 1 LIMIT @n",
        ),
        (
            "SELECT * FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c['tags'] WHERE t = 1) AND 1 = (SELECT VALUE 1)",
            "SELECT *\nFROM c\nWHERE (EXISTS(SELECT VALUE t FROM t IN c[\"tags\"] WHERE (t = 1)) AND (1 = (SELECT VALUE 1)))",
        ),
        (
            "SELECT ARRAY(SELECT 1), ALL(SELECT VALUE 1), FIRST(SELECT VALUE 1), LAST(SELECT VALUE 1)",
            "SELECT ARRAY(SELECT 1), ALL(SELECT VALUE 1), FIRST(SELECT VALUE 1), LAST(SELECT VALUE 1)",
        ),
        (
            "SELECT TOP 10 * FROM c ORDER BY RANK RRF(FullTextScore(c.t, 'a'), VectorDistance(c.v, [1]))",
            "SELECT TOP 10 *\nFROM c\nORDER BY RANK RRF(FullTextScore(c.t, \"a\"), VectorDistance(c.v, [1]))",
        ),
        ("SELECT * FROM rank ORDER BY rank.x", "SELECT *\nFROM rank\nORDER BY rank.x"),
        (
            "SELECT VALUE {\"_rid\": c._rid, \"payload\": c} FROM c WHERE true ORDER BY c.id",
            "SELECT VALUE {\"_rid\": c._rid, \"payload\": c}\nFROM c\nWHERE true\nORDER BY c.id",
        ),
    ] {
        assert_eq!(printed(text), expected);
        assert_eq!(parse_query(expected).unwrap(), parse_query(text).unwrap(), "{text}");
    }
}

#[test]
fn syntax_errors_name_the_position_what_was_found_and_what_was_expected() {
    for (text, start, message) in [
        (
            "SELECT * frm c",
            9,
            "Syntax error, incorrect syntax near 'frm'. Expected FROM, WHERE, GROUP, ORDER, OFFSET or the end of the query.",
        ),
        (
            "SELECT * FROM ",
            14,
            "Syntax error, incorrect syntax near the end of the query. Expected '(' or a container or alias.",
        ),
        ("SELEC * FROM c", 0, "Syntax error, incorrect syntax near 'SELEC'. Expected SELECT."),
        ("SELECT VALUE * FROM c", 13, "Syntax error, incorrect syntax near '*'. Expected an expression."),
        (
            "SELECT * FROM c WHERE c.a = ",
            28,
            "Syntax error, incorrect syntax near the end of the query. Expected an expression.",
        ),
        (
            "SELECT TOP x * FROM c",
            11,
            "Syntax error, incorrect syntax near 'x'. Expected a number or a parameter.",
        ),
        (
            "SELECT * FROM c WHERE c.a BETWEEN 1",
            35,
            "Syntax error, incorrect syntax near the end of the query. Expected '.', '[', an operator or AND.",
        ),
    ] {
        let error = parse_query(text).unwrap_err();
        assert_eq!((error.code, error.start, error.message.as_str()), ("SC1001", start, message), "{text}");
    }
}

#[test]
fn unsupported_syntax_is_an_error() {
    for text in [
        "",
        "SELECT",
        "SELECT *, c.a FROM c",
        "SELECT * FROM c WHERE c.a IS NULL",
        "SELECT * FROM c WHERE c.a IS NOT NULL",
        "SELECT * FROM c WHERE",
        "SELECT * FROM c ORDER c.a",
        "SELECT * FROM c OFFSET 1",
        "SELECT * FROM c LIMIT 1",
        "SELECT * FROM c WHERE c.a IN ()",
        "SELECT * FROM c WHERE c.order = = 1",
        "SELECT * FROM c WHERE c.a LIKE 'a' ESCAPE 'ab'",
        "SELECT * FROM c WHERE c.a ESCAPE 'a'",
        "SELECT * FROM c WHERE c.a LIKE 'a' ESCAPE 'a' ESCAPE 'b'",
        "SELECT VALUE order FROM c",
        "SELECT VALUE [1,] FROM c",
        "SELECT VALUE {a} FROM c",
        "SELECT VALUE {1: 2} FROM c",
        "SELECT VALUE (1 FROM c",
        "SELECT VALUE 1) FROM c",
        "SELECT VALUE (1 ? 2) FROM c",
        "SELECT VALUE 1 ? 2 FROM c",
        "SELECT VALUE 1 : 2 FROM c",
        "SELECT VALUE (a BETWEEN 1) AND 2 FROM c",
        "SELECT VALUE () FROM c",
        "SELECT VALUE c.f(1) FROM c",
        "SELECT * FROM c; DROP TABLE c",
        "SELECT VALUE a b FROM c",
        "SELECT * FROM c /* open",
        "SELECT * FROM c JOIN a IN c.a JOIN b IN c.a JOIN d IN c.a JOIN e IN c.a JOIN f IN c.a JOIN g IN c.a \
         JOIN h IN c.a JOIN i IN c.a JOIN j IN c.a JOIN k IN c.a JOIN l IN c.a",
    ] {
        assert!(parse_query(text).is_err(), "accepted: {text}");
    }
}

#[test]
fn deep_nesting_is_an_error_and_not_a_stack_overflow() {
    let deep = 100_000;
    for text in [
        format!("SELECT VALUE {}1", "NOT ".repeat(deep)),
        format!("SELECT VALUE {}c", "- ".repeat(deep)),
        format!("SELECT VALUE {}1{}", "[".repeat(deep), "]".repeat(deep)),
        format!("SELECT VALUE {}", "{a:".repeat(deep)),
        format!("SELECT VALUE {}", "(SELECT VALUE ".repeat(deep / 4)),
        format!("SELECT VALUE {}", "f(".repeat(deep)),
        format!("SELECT VALUE 1{}", " + 1".repeat(deep)),
        format!("SELECT VALUE c{}", ".a".repeat(deep)),
        format!("SELECT VALUE c{}", "[0]".repeat(deep)),
        format!("SELECT VALUE {}1", "1 ? 1 : ".repeat(deep / 2)),
        format!("SELECT VALUE 1{}", " IN (1)".repeat(deep / 2)),
        format!("SELECT * FROM {}", "(SELECT * FROM ".repeat(deep / 4)),
    ] {
        let error = parse_query(&text).unwrap_err();
        assert!(error.message.contains("too deeply"), "{}: {error}", &text[..40]);
    }
}

#[test]
fn parentheses_do_not_count_as_nesting() {
    let deep = 100_000;
    for text in [
        format!("SELECT VALUE {}1{}", "(".repeat(deep), ")".repeat(deep)),
        format!(
            "SELECT VALUE {}c.a{}",
            "(".repeat(deep),
            " OR c.b)".repeat(deep / 10) + &")".repeat(deep - deep / 10)
        ),
    ] {
        let query = parse_query(&text).unwrap();
        assert_eq!(parse_query(&print_query(&query)).unwrap(), query);
    }
}

#[test]
fn a_long_chain_of_or_does_not_count_as_nesting() {
    let text = format!("SELECT * FROM c WHERE c.a = 0{}", " OR c.a = 1".repeat(10_000));
    let query = parse_query(&text).unwrap();
    assert!(query.filter.as_ref().unwrap().depth() < 10);
    assert_eq!(parse_query(&print_query(&query)).unwrap(), query);
}

#[test]
fn a_condition_is_a_source_and_a_filter() {
    let condition = parse_condition("from c where c.a = 1").unwrap();
    assert_eq!(condition, parse_query("SELECT * FROM c WHERE c.a = 1").unwrap());
    assert!(parse_condition("c.a = 1").is_err());
    assert!(parse_condition("from c").is_err());
}
