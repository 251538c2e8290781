//! Random queries as text.

use proptest::prelude::*;
use proptest::strategy::BoxedStrategy;

use crate::documents::{common_scalar_text, scalar_text};

/// The parts of a query: its selection, its sources and filter, and its other clauses.
#[derive(Clone, Debug)]
pub(crate) struct QueryParts {
    /// The selection, such as `DISTINCT TOP 3 VALUE c.a`.
    pub(crate) selection: String,
    /// Sources and filter, such as `FROM c JOIN t IN c.t WHERE …`.
    pub(crate) source: String,
    /// The other clauses, such as `GROUP BY … ORDER BY … OFFSET … LIMIT …`.
    pub(crate) clauses: String,
}

impl QueryParts {
    pub(crate) fn text(&self) -> String {
        format!("SELECT {} {} {}", self.selection, self.source, self.clauses)
    }

    /// A query with one row for each combination that WHERE accepts.
    pub(crate) fn accepted_rows(&self) -> String {
        format!("SELECT VALUE 1 {}", self.source)
    }
}

fn literal() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => scalar_text().prop_map(str::to_owned),
        1 => Just("undefined".to_owned()),
        1 => scalar_text().prop_map(|value| format!("[{value}]")),
        1 => scalar_text().prop_map(|value| format!("{{\"x\": {value}}}")),
    ]
}

/// Paths below the visible names.
fn path(names: &'static [&'static str]) -> impl Strategy<Value = String> {
    let document =
        vec!["c.a", "c.b", "c[\"a\"]", "c.s.x", "c.s", "c.t", "c.t[0]", "c.t[1].x", "c.missing", "c.a.x"];
    let below = names.iter().flat_map(|name| [(*name).to_owned(), format!("{name}.x"), format!("{name}.y")]);
    prop::sample::select(document.into_iter().map(str::to_owned).chain(below).collect::<Vec<_>>())
}

fn operator() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["=", "!=", "<>", "<", "<=", ">", ">="])
}

fn pattern() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "'a'",
        "'a%'",
        "'%b'",
        "'%b%'",
        "'a_'",
        "'[ab]%'",
        "''",
        "'%'",
        "'a!%' ESCAPE '!'",
    ])
}

/// Conditions over the visible names; `nested` allows subqueries.
fn condition(names: &'static [&'static str], nested: bool) -> BoxedStrategy<String> {
    let negation = || prop::sample::select(vec!["", "NOT "]);
    let leaf = prop_oneof![
        4 => (path(names), operator(), literal()).prop_map(|(p, o, l)| format!("{p} {o} {l}")),
        1 => (literal(), operator(), path(names)).prop_map(|(l, o, p)| format!("{l} {o} {p}")),
        1 => (path(names), operator(), path(names)).prop_map(|(l, o, r)| format!("{l} {o} {r}")),
        1 => (path(names), negation(), prop::collection::vec(literal(), 1..4))
            .prop_map(|(p, n, l)| format!("{p} {n}IN ({})", l.join(", "))),
        1 => (path(names), path(names), literal()).prop_map(|(p, q, l)| format!("{p} IN ({q}, {l})")),
        1 => (path(names), negation(), literal(), literal())
            .prop_map(|(p, n, low, high)| format!("{p} {n}BETWEEN {low} AND {high}")),
        1 => (path(names), negation(), pattern()).prop_map(|(p, n, pattern)| format!("{p} {n}LIKE {pattern}")),
        1 => (prop::sample::select(vec!["DEFINED", "NULL", "BOOL", "NUMBER", "STRING", "ARRAY", "OBJECT", "PRIMITIVE"]), path(names))
            .prop_map(|(kind, p)| format!("IS_{kind}({p})")),
        1 => (prop::sample::select(vec!["STARTSWITH", "CONTAINS", "ENDSWITH", "STRINGEQUALS"]), path(names), literal(), prop::sample::select(vec!["", ", true", ", false", ", c.a"]))
            .prop_map(|(f, p, l, case)| format!("{f}({p}, {l}{case})")),
        1 => (path(names), literal(), prop::sample::select(vec!["", ", true", ", false"]))
            .prop_map(|(p, l, partial)| format!("ARRAY_CONTAINS({p}, {l}{partial})")),
        1 => (prop::collection::vec(literal(), 0..3), path(names))
            .prop_map(|(l, p)| format!("ARRAY_CONTAINS([{}], {p})", l.join(", "))),
        1 => (prop::sample::select(vec!["ANY", "ALL"]), path(names), prop::collection::vec(literal(), 1..3))
            .prop_map(|(which, p, l)| format!("ARRAY_CONTAINS_{which}({p}, {})", l.join(", "))),
        1 => path(names),
        1 => literal(),
        1 => (path(names), literal()).prop_map(|(p, l)| format!("({p} ?? {l}) = {l}")),
        1 => (path(names), literal(), literal()).prop_map(|(p, l, m)| format!("({p} = {l} ? true : {p} = {m})")),
    ];
    let leaf = if nested {
        let exists = (prop::sample::select(vec!["u", "1", "u.x", "{\"x\": u.x}"]), condition(&["u"], false))
            .prop_map(|(value, condition)| {
                format!("EXISTS(SELECT VALUE {value} FROM u IN c.t WHERE {condition})")
            });
        prop_oneof![8 => leaf, 1 => exists, 1 => Just("EXISTS(SELECT VALUE u FROM u IN c.t)".to_owned())]
            .boxed()
    } else {
        leaf.boxed()
    };
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| format!("({})", parts.join(" AND "))),
            prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| format!("({})", parts.join(" OR "))),
            inner.prop_map(|part| format!("NOT ({part})")),
        ]
    })
    .boxed()
}

/// Conditions that an index can evaluate, over so few paths and values that they often concern the same
/// ones.
fn indexable(names: &'static [&'static str], nested: bool) -> BoxedStrategy<String> {
    let paths: Vec<String> = ["c.a", "c.b"]
        .iter()
        .map(|path| (*path).to_owned())
        .chain(names.iter().flat_map(|name| [(*name).to_owned(), format!("{name}.x"), format!("{name}.y")]))
        .collect();
    let path = move || prop::sample::select(paths.clone());
    let value = common_scalar_text;
    let negation = || prop::sample::select(vec!["", "NOT "]);
    let leaf = prop_oneof![
        4 => (path(), operator(), value()).prop_map(|(p, o, v)| format!("{p} {o} {v}")),
        1 => (path(), negation(), value(), value()).prop_map(|(p, n, v, w)| format!("{p} {n}IN ({v}, {w})")),
        1 => (path(), negation(), value(), value()).prop_map(|(p, n, v, w)| format!("{p} {n}BETWEEN {v} AND {w}")),
        1 => (path(), prop::sample::select(vec!["'a'", "'a%'", "'%b'"])).prop_map(|(p, pattern)| format!("{p} LIKE {pattern}")),
        1 => (prop::sample::select(vec!["DEFINED", "NULL", "STRING", "NUMBER", "BOOL"]), path()).prop_map(|(kind, p)| format!("IS_{kind}({p})")),
        1 => (path(), prop::sample::select(vec!["'a'", "'ab'"])).prop_map(|(p, v)| format!("STARTSWITH({p}, {v})")),
        1 => value().prop_map(|v| format!("ARRAY_CONTAINS(c.t, {v})")),
        1 => (value(), value(), path()).prop_map(|(v, w, p)| format!("ARRAY_CONTAINS([{v}, {w}], {p})")),
        1 => path(),
    ];
    let leaf = if nested {
        let exists = (prop::sample::select(vec!["u", "1"]), indexable(&["u"], false)).prop_map(
            |(value, condition)| format!("EXISTS(SELECT VALUE {value} FROM u IN c.t WHERE {condition})"),
        );
        prop_oneof![5 => leaf, 1 => exists].boxed()
    } else {
        leaf.boxed()
    };
    leaf.prop_recursive(2, 4, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(left, right)| format!("({left} AND {right})")),
            (inner.clone(), inner.clone()).prop_map(|(left, right)| format!("({left} OR {right})")),
            inner.prop_map(|part| format!("NOT ({part})")),
        ]
    })
    .boxed()
}

/// Two conditions on the elements of one array, which one element or two may satisfy.
fn on_elements() -> impl Strategy<Value = String> {
    let operator = || prop::sample::select(vec!["=", "<", ">"]);
    let value = || prop::sample::select(vec!["1", "2", "\"a\""]);
    let exists = |condition: String| format!("EXISTS(SELECT VALUE u FROM u IN c.t WHERE {condition})");
    let both = (
        prop::sample::select(vec![("u", "u"), ("u.x", "u.y"), ("u.x", "u.x")]),
        operator(),
        value(),
        operator(),
        value(),
    );
    prop_oneof![
        both.clone().prop_map(move |((l, r), o, v, p, w)| exists(format!("{l} {o} {v} AND {r} {p} {w}"))),
        both.prop_map(move |((l, r), o, v, p, w)| {
            format!("{} AND {}", exists(format!("{l} {o} {v}")), exists(format!("{r} {p} {w}")))
        }),
        (value(), value())
            .prop_map(|(v, w)| format!("ARRAY_CONTAINS(c.t, {v}) AND ARRAY_CONTAINS(c.t, {w})")),
    ]
}

fn filter(names: &'static [&'static str]) -> BoxedStrategy<String> {
    prop_oneof![
        1 => Just(String::new()),
        4 => condition(names, true).prop_map(|condition| format!("WHERE {condition}")),
        8 => indexable(names, true).prop_map(|condition| format!("WHERE {condition}")),
        2 => on_elements().prop_map(|condition| format!("WHERE {condition}")),
    ]
    .boxed()
}

fn order() -> impl Strategy<Value = String> {
    let key = (
        prop::sample::select(vec!["c.a", "c.b", "c.s.x", "c.missing"]),
        prop::sample::select(vec!["", " ASC", " DESC"]),
    )
        .prop_map(|(path, direction)| format!("{path}{direction}"));
    prop_oneof![
        Just(String::new()),
        prop::collection::vec(key, 1..3).prop_map(|keys| format!("ORDER BY {}", keys.join(", "))),
    ]
}

fn window() -> impl Strategy<Value = (String, String)> {
    prop_oneof![
        3 => Just((String::new(), String::new())),
        1 => (0..5).prop_map(|n| (format!("TOP {n} "), String::new())),
        1 => (0..4, 0..5).prop_map(|(offset, limit)| (String::new(), format!("OFFSET {offset} LIMIT {limit}"))),
    ]
}

fn plain() -> impl Strategy<Value = QueryParts> {
    let shapes: [(&str, &'static [&'static str], Vec<&'static str>); 3] = [
        (
            "FROM c",
            &[],
            vec![
                "*",
                "VALUE c",
                "VALUE c.a",
                "c.a, c.s.x",
                "VALUE {\"k\": c.b, \"l\": [c.a]}",
                "VALUE c.a ?? c.b",
            ],
        ),
        ("FROM c JOIN e IN c.t", &["e"], vec!["VALUE e", "c.id, e", "VALUE [c.id, e.x]", "VALUE e.x"]),
        (
            "FROM c JOIN e IN c.t JOIN (SELECT VALUE v FROM v IN c.t WHERE v != 1) f",
            &["e", "f"],
            vec!["VALUE [e, f]", "c.id, f"],
        ),
    ];
    prop::sample::select(shapes.to_vec()).prop_flat_map(|(from, names, selections)| {
        let distinct = prop::sample::select(vec!["", "", "", "DISTINCT "]);
        (prop::sample::select(selections), filter(names), order(), window(), distinct).prop_map(
            move |(selection, filter, order, (top, window), distinct)| QueryParts {
                selection: format!("{distinct}{top}{selection}"),
                source: format!("{from} {filter}"),
                clauses: format!("{order} {window}"),
            },
        )
    })
}

fn grouped() -> impl Strategy<Value = QueryParts> {
    let aggregate = prop::sample::select(vec![
        "COUNT(1)",
        "COUNT(c.a)",
        "SUM(c.a)",
        "AVG(c.b)",
        "MIN(c.a)",
        "MAX(c.s.x)",
        "COUNTIF(c.a = 1)",
        "MAKELIST(c.b)",
        "MAKESET(c.a)",
    ]);
    let group = prop::sample::select(vec!["", "c.a", "c.s.x", "c.a, c.b", "c.a = 1"]);
    let order = prop::sample::select(vec!["", "ORDER BY COUNT(1) DESC", "ORDER BY COUNT(1), MIN(c.a) DESC"]);
    (prop::collection::vec(aggregate, 1..3), group, filter(&[]), order, window()).prop_map(
        |(aggregates, group, filter, order, (top, window))| {
            let keys = if group.is_empty() { String::new() } else { format!("[{group}] AS k, ") };
            let names: Vec<String> =
                aggregates.iter().enumerate().map(|(at, text)| format!("{text} AS v{at}")).collect();
            let group = if group.is_empty() { String::new() } else { format!("GROUP BY {group} ") };
            QueryParts {
                selection: format!("{top}{keys}{}", names.join(", ")),
                source: format!("FROM c {filter}"),
                clauses: format!("{group}{order} {window}"),
            }
        },
    )
}

fn stacked() -> impl Strategy<Value = QueryParts> {
    let inner = prop::sample::select(vec![
        "VALUE c.a",
        "DISTINCT VALUE c.a",
        "c.a, c.b",
        "VALUE c.t",
        "c.a, COUNT(1) AS n",
    ]);
    (inner, filter(&[]), window()).prop_map(|(inner, filter, (top, window))| {
        let group = if inner.contains("COUNT") { "GROUP BY c.a" } else { "" };
        QueryParts {
            selection: format!("{top}VALUE d"),
            source: format!("FROM (SELECT {inner} FROM c {filter} {group}) AS d"),
            clauses: window,
        }
    })
}

/// A query over whole documents, for which a filter can be exact.
pub(crate) fn simple_query() -> impl Strategy<Value = QueryParts> {
    filter(&[]).prop_map(over_documents)
}

/// A query with two conditions on the elements of one array.
pub(crate) fn element_query() -> impl Strategy<Value = QueryParts> {
    on_elements().prop_map(|condition| over_documents(format!("WHERE {condition}")))
}

fn over_documents(filter: String) -> QueryParts {
    QueryParts { selection: "*".to_owned(), source: format!("FROM c {filter}"), clauses: String::new() }
}

/// Any query of the generators above.
pub(crate) fn query() -> impl Strategy<Value = QueryParts> {
    prop_oneof![6 => plain(), 2 => grouped(), 1 => stacked()]
}
