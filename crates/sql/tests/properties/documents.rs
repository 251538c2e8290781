//! Random documents with few names and few values, so that random queries match some of them.

use perihelion_sql::Value;
use perihelion_sql::value::parse;
use proptest::prelude::*;

/// Values that often equal each other, and some that only look similar.
pub(crate) fn scalar_text() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        5 => common_scalar_text(),
        1 => prop::sample::select(vec!["false", "0", "-1", "1.5", "\"\"", "\"abc\"", "\"1\""]),
    ]
}

/// So few values that most conditions hold for some documents and not for others.
pub(crate) fn common_scalar_text() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["null", "true", "1", "2", "\"a\"", "\"ab\""])
}

fn member_text() -> impl Strategy<Value = String> {
    let scalar = || scalar_text().prop_map(str::to_owned);
    prop_oneof![
        6 => scalar(),
        1 => prop::collection::vec(scalar(), 0..3).prop_map(|elements| format!("[{}]", elements.join(","))),
        1 => scalar().prop_map(|value| format!("{{\"x\":{value}}}")),
    ]
}

fn element_text() -> impl Strategy<Value = String> {
    let number = || prop::option::weighted(0.7, prop::sample::select(vec!["1", "2", "\"a\""]));
    prop_oneof![
        1 => scalar_text().prop_map(str::to_owned),
        2 => common_scalar_text().prop_map(str::to_owned),
        3 => (number(), number()).prop_map(|(x, y)| {
            let members: Vec<String> = [("x", x), ("y", y)]
                .iter()
                .filter_map(|(name, value)| value.map(|value| format!("\"{name}\":{value}")))
                .collect();
            format!("{{{}}}", members.join(","))
        }),
    ]
}

fn document_text() -> impl Strategy<Value = String> {
    let optional = || prop::option::weighted(0.8, member_text());
    let array = prop::option::weighted(0.8, prop::collection::vec(element_text(), 0..4));
    (optional(), optional(), optional(), array).prop_map(|(a, b, x, t)| {
        let mut members = Vec::new();
        members.extend(a.map(|value| format!("\"a\":{value}")));
        members.extend(b.map(|value| format!("\"b\":{value}")));
        members.extend(x.map(|value| format!("\"s\":{{\"x\":{value}}}")));
        members.extend(t.map(|elements| format!("\"t\":[{}]", elements.join(","))));
        format!("{{{}}}", members.join(","))
    })
}

/// Documents with ids in ascending order.
pub(crate) fn documents() -> impl Strategy<Value = Vec<Value>> {
    prop::collection::vec(document_text(), 0..12).prop_map(|texts| {
        texts
            .iter()
            .enumerate()
            .map(|(at, text)| {
                let text = if text == "{}" {
                    format!("{{\"id\":\"{at}\"}}")
                } else {
                    format!("{{\"id\":\"{at}\",{}", &text[1..])
                };
                parse(text.as_bytes()).expect("generated documents are JSON")
            })
            .collect()
    })
}
