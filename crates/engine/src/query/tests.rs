//! Queries over every access method, page by page, compared with a plain evaluation of every document.

use std::time::Duration;

use proptest::prelude::*;
use protocol::container::ContainerProperties;
use protocol::partition::EpkRange;
use protocol::resource_id::{ContainerRid, DatabaseRid};
use sql::{QueryContext, Statement, Value, run_reference};

use super::*;
use crate::regions::{ReadContext, RegionId, Regions};
use crate::store::{Container, Document, Partitioning, Precondition, WriteContext};

const PROPERTIES: &str = r#"{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"indexingPolicy":{
    "includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/hidden/?"}],
    "compositeIndexes":[[{"path":"/a"},{"path":"/b","order":"descending"}]]}}"#;

/// Queries whose rows come in a defined order have it checked; the others as a bag.
const QUERIES: &[&str] = &[
    "SELECT * FROM c",
    "SELECT VALUE c.id FROM c WHERE c.a = 3",
    "SELECT VALUE c.id FROM c WHERE c.a > 2 AND c.a <= 6",
    "SELECT VALUE c.id FROM c WHERE c.a IN (1, 3, 'x') OR c.b = 2",
    "SELECT VALUE c.id FROM c WHERE c.s >= 'b' AND c.a = 1",
    "SELECT * FROM c WHERE (c.id = '1' AND c.pk = 0) OR (c.id = '2' AND c.pk = 1) OR (c.id = '9' AND c.pk = 2) OR c.a = 1",
    "SELECT VALUE c.id FROM c WHERE c.pk = 1 AND c.id IN ('1', '2', '3', '5', '8', '13', '21', '34', 'x', null)",
    "SELECT VALUE c.id FROM c WHERE c.b = 2 AND (c.id = '1' OR c.id = '3' OR c.id = '5' OR c.id = '7' OR c.id = '9' \
     OR c.id = '11' OR c.id = '13' OR c.id = '15' OR c.a < 4 OR (c.hidden = 1 AND c.id = '4'))",
    "SELECT VALUE c.id FROM c WHERE STARTSWITH(c.s, 'ab')",
    "SELECT VALUE c.id FROM c WHERE c.hidden = 1 AND c.a < 5",
    "SELECT VALUE c.id FROM c WHERE NOT IS_DEFINED(c.a) OR c.a = null",
    "SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.tags, 2)",
    "SELECT VALUE t FROM c JOIN t IN c.tags WHERE t > 1",
    "SELECT VALUE c.id FROM c WHERE c.pk = 1 AND c.b != 3",
    "SELECT VALUE c.id FROM c WHERE c.a BETWEEN 2 AND 4 AND c.b < 3",
    "SELECT VALUE COUNT(1) FROM c WHERE c.a = 3",
    "SELECT VALUE COUNT(1) FROM c",
    "SELECT DISTINCT VALUE c.a FROM c",
    "SELECT c.a, COUNT(1) AS n FROM c GROUP BY c.a",
    "SELECT VALUE SUM(c.b) FROM c WHERE c.a >= 3",
    "SELECT VALUE c.id FROM c ORDER BY c.a",
    "SELECT VALUE c.id FROM c ORDER BY c.a DESC",
    "SELECT VALUE c.id FROM c WHERE c.a > 1 ORDER BY c.a",
    "SELECT VALUE c.id FROM c WHERE c.b = 1 ORDER BY c.s DESC",
    "SELECT VALUE c.id FROM c ORDER BY c.a, c.b DESC",
    "SELECT VALUE c.id FROM c ORDER BY c.a DESC, c.b",
    "SELECT VALUE c.id FROM c ORDER BY c.b, c.a",
    "SELECT VALUE c.id FROM c WHERE c.a = 3 ORDER BY c.a, c.b DESC",
    "SELECT VALUE c.id FROM c WHERE c.a = 3 AND c.b = 2 ORDER BY c.a, c.b DESC",
    "SELECT VALUE c.id FROM c WHERE c.a = 3 AND c.b >= 2 ORDER BY c.a, c.b DESC",
    "SELECT VALUE c.id FROM c WHERE c.a = 3 AND c.b < 3 ORDER BY c.a DESC, c.b",
    "SELECT VALUE c.id FROM c WHERE c.a > 1 AND c.a <= 3 ORDER BY c.a, c.b DESC",
    "SELECT VALUE c.id FROM c WHERE c.a >= 2 AND c.s = 'ab' ORDER BY c.a DESC, c.b",
    "SELECT VALUE c.id FROM c WHERE c.a = 'x' AND c.b = 1 ORDER BY c.a, c.b DESC",
    "SELECT TOP 3 VALUE c.id FROM c WHERE c.a = 1 AND c.b <= 4 ORDER BY c.a, c.b DESC",
    "SELECT TOP 5 VALUE c.id FROM c ORDER BY c.a",
    "SELECT VALUE c.id FROM c ORDER BY c._ts OFFSET 2 LIMIT 5",
    "SELECT VALUE c.id FROM c ORDER BY c.s DESC OFFSET 1 LIMIT 9",
    "SELECT DISTINCT VALUE c.s FROM c",
    "SELECT DISTINCT c.a, c.tags FROM c",
    "SELECT c.a, c.b, COUNT(1) AS n FROM c GROUP BY c.a, c.b",
    "SELECT VALUE x FROM (SELECT DISTINCT VALUE c.a FROM c) x",
    "SELECT VALUE x.n FROM (SELECT c.a, COUNT(1) AS n FROM c GROUP BY c.a) x",
    "SELECT DISTINCT VALUE x.n FROM (SELECT c.a, COUNT(1) AS n FROM c GROUP BY c.a) x",
    "SELECT VALUE t FROM (SELECT DISTINCT c.tags FROM c) x JOIN t IN x.tags",
    "SELECT x.b, COUNT(1) AS n FROM (SELECT DISTINCT c.a, c.b FROM c) x GROUP BY x.b",
];

/// Queries whose rows are ids, to be read while others write.
const QUERIES_FOR_IDS: &[&str] = &[
    "SELECT VALUE c.id FROM c",
    "SELECT VALUE c.id FROM c WHERE c.a >= 2",
    "SELECT VALUE c.id FROM c WHERE c.s > 'a'",
    "SELECT VALUE c.id FROM c ORDER BY c.a",
    "SELECT VALUE c.id FROM c ORDER BY c.a DESC",
    "SELECT VALUE c.id FROM c WHERE c.b = 1 ORDER BY c.a",
    "SELECT VALUE c.id FROM c WHERE c.b < 4 ORDER BY c.a DESC",
    "SELECT VALUE c.id FROM c WHERE c.a > 1 ORDER BY c.a DESC",
    "SELECT VALUE c.id FROM c ORDER BY c.a, c.b DESC",
    "SELECT VALUE c.id FROM c ORDER BY c.a DESC, c.b",
    "SELECT VALUE c.id FROM c ORDER BY c.b, c.a",
    "SELECT VALUE c.id FROM c ORDER BY c.s DESC",
    "SELECT VALUE c.id FROM c ORDER BY c.hidden, c.tags",
    "SELECT DISTINCT VALUE c.id FROM c",
    "SELECT DISTINCT VALUE c.id FROM c ORDER BY c.a",
    "SELECT VALUE c.id FROM c GROUP BY c.id",
    "SELECT VALUE c.id FROM c JOIN t IN c.tags",
    "SELECT VALUE c.id FROM c JOIN t IN c.tags ORDER BY c.a DESC",
    "SELECT VALUE x.id FROM (SELECT c.id, c.a FROM c) x ORDER BY x.a",
    "SELECT VALUE x FROM (SELECT DISTINCT VALUE c.id FROM c) x",
    "SELECT VALUE x.id FROM (SELECT DISTINCT c.id, c.a FROM c) x ORDER BY x.a DESC",
    "SELECT VALUE x.id FROM (SELECT c.id, COUNT(1) AS n FROM c GROUP BY c.id) x ORDER BY x.n",
    "SELECT DISTINCT VALUE x.id FROM (SELECT DISTINCT c.id, c.b FROM c) x",
];

/// Queries whose rows are ids, with a limit on their number.
const QUERIES_FOR_SOME: &[(&str, usize)] = &[
    ("SELECT TOP 7 VALUE c.id FROM c", 7),
    ("SELECT TOP 7 VALUE c.id FROM c ORDER BY c.a", 7),
    ("SELECT VALUE c.id FROM c OFFSET 3 LIMIT 6", 6),
    ("SELECT VALUE c.id FROM c ORDER BY c.a DESC OFFSET 3 LIMIT 6", 6),
    ("SELECT VALUE c.id FROM c WHERE c.b = 1 ORDER BY c.s OFFSET 1 LIMIT 6", 6),
    ("SELECT DISTINCT TOP 7 VALUE c.id FROM c", 7),
];

fn document(longest: usize) -> impl Strategy<Value = String> {
    let number = prop_oneof![4 => (0..8i64).prop_map(|n| n.to_string()), 1 => Just("null".to_owned()), 1 => Just("\"x\"".to_owned())];
    let text = prop_oneof![
        Just(String::new()),
        "[abc]{1,3}",
        Just("ab".repeat(longest / 2)),
        Just("ab".repeat(longest / 2 - 1) + "c")
    ];
    let member = |name: &'static str, value: String| format!(",\"{name}\":{value}");
    (
        0..3i64,
        prop::option::weighted(0.8, number.clone()),
        prop::option::weighted(0.8, number),
        prop::option::weighted(0.7, text),
        prop::collection::vec(0..4i64, 0..3),
        0..2i64,
    )
        .prop_map(move |(pk, a, b, s, tags, hidden)| {
            let mut text = format!("\"pk\":{pk},\"hidden\":{hidden}");
            text += &a.map(|a| member("a", a)).unwrap_or_default();
            text += &b.map(|b| member("b", b)).unwrap_or_default();
            text += &s.map(|s| member("s", format!("\"{s}\""))).unwrap_or_default();
            text + &member("tags", format!("{tags:?}"))
        })
}

fn filled(documents: &[String]) -> Container {
    let properties = ContainerProperties::parse(PROPERTIES.as_bytes()).unwrap();
    let rid = ContainerRid { database: DatabaseRid(1), container: 1 };
    let container = Container::new(rid, &properties, Partitioning::of(1), Regions::single_region(), None);
    for (at, members) in documents.iter().enumerate() {
        write(&container, at, members);
    }
    container
}

fn write(container: &Container, at: usize, members: &str) {
    let body = format!("{{\"id\":\"{at}\",{members}}}");
    let document = Document::parse(body.as_bytes(), &container.schema(), at as u64 / 2).unwrap();
    let write = WriteContext { region: RegionId(0), now: at as u64 / 2, uptime: Duration::ZERO };
    let (_, commit) =
        container.write(&document.epk, write, |t| t.upsert(&document, Precondition::None)).unwrap();
    commit.result.unwrap();
}

fn delete(container: &Container, at: usize) {
    let id = at.to_string();
    let state = container.partitions()[0].latest_state();
    let all: Vec<_> =
        state.items_from(crate::items::Ordinal(0)).filter(|item| item.id == *id).cloned().collect();
    for item in all {
        let write = WriteContext { region: RegionId(0), now: 0, uptime: Duration::ZERO };
        let (_, commit) =
            container.write(&item.epk, write, |t| t.delete(&item.epk, &id, Precondition::None)).unwrap();
        commit.result.unwrap();
    }
}

/// An edit of an item: a new body, or its deletion.
type Edit = (usize, Option<String>);

fn pages(container: &Container, statement: &Statement, scope: &Scope, page_size: usize) -> Vec<Value> {
    pages_while(container, statement, scope, page_size, || {})
}

/// All pages, with `between_pages` called before each but the first.
fn pages_while(
    container: &Container,
    statement: &Statement,
    scope: &Scope,
    page_size: usize,
    mut between_pages: impl FnMut(),
) -> Vec<Value> {
    let mut rows = Vec::new();
    let mut from = None;
    for _ in 0..10_000 {
        let mut page = PageBody::new("rid", page_size);
        let request = QueryRequest {
            statement,
            scope: scope.clone(),
            context: QueryContext::default(),
            now: 0,
            from,
            resume: None,
            backwards: false,
            limit: RunLimit::none(),
        };
        let outcome = request.run(&mut page).unwrap();
        assert!(page.count() <= page_size);
        let body = sql::value::parse(&page.finish()).unwrap();
        rows.extend(body.member("Documents").as_array().unwrap().iter().cloned());
        match outcome.continuation {
            Some(next) => {
                let text = next.to_text();
                assert!(text.len() <= 1024, "{text}");
                from = Some(Continuation::parse(&text).unwrap());
                between_pages();
            }
            None => return rows,
        }
    }
    panic!("the pages of {} partitions never end", container.partitions().len());
}

fn naive(container: &Container, statement: &Statement, within: &EpkRange) -> Vec<Value> {
    let state = container.partitions()[0].latest_state();
    let documents: Vec<Value> = state
        .items_from(crate::items::Ordinal(0))
        .filter(|item| within.contains(&item.epk))
        .map(|item| item.value())
        .collect();
    run_reference(statement, &documents, QueryContext::default()).unwrap()
}

/// Items with equal sort keys may come in either order, so only the sort keys of ordered rows are compared.
fn sort_keys(container: &Container, query: &str, rows: &[Value]) -> Vec<String> {
    let state = container.partitions()[0].latest_state();
    let order = query.split("ORDER BY").nth(1).unwrap().split("OFFSET").next().unwrap();
    let paths: Vec<&str> =
        order.split(',').map(|key| key.trim().split(' ').next().unwrap().trim_start_matches("c.")).collect();
    let by_id = |id: &str| state.items_from(crate::items::Ordinal(0)).find(|item| item.id == id).cloned();
    rows.iter()
        .map(|row| {
            let value = by_id(row.as_str().unwrap()).unwrap().value();
            paths.iter().map(|path| format!("{}|", value.member(path))).collect()
        })
        .collect()
}

fn sorted(rows: &[Value]) -> Vec<String> {
    let mut texts: Vec<String> = rows.iter().map(Value::to_string).collect();
    texts.sort();
    texts
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn pages_by_any_access_method_equal_a_plain_evaluation(
        documents in prop::collection::vec(document(600), 0..40),
        page_size in 1..7usize,
        whole in any::<bool>(),
    ) {
        let container = filled(&documents);
        let schema = container.schema();
        let within = if whole {
            EpkRange::FULL
        } else {
            let key = schema.extract_key(&sql::value::parse(br#"{"pk":1}"#).unwrap());
            EpkRange::point(protocol::partition::effective_key(&schema.partition_key, &key))
        };
        let scope = Scope::of_range(&container, within.clone(), ReadContext::NEWEST);
        for query in QUERIES {
            let statement = Statement::prepare(query, &[], &schema.sql).unwrap();
            let (paged, expected) = (pages(&container, &statement, &scope, page_size), naive(&container, &statement, &within));
            if query.contains("ORDER BY") {
                prop_assert_eq!(sort_keys(&container, query, &paged), sort_keys(&container, query, &expected), "{}", query);
                if !query.contains("TOP") && !query.contains("OFFSET") {
                    prop_assert_eq!(sorted(&paged), sorted(&expected), "{}", query);
                }
            } else {
                prop_assert_eq!(sorted(&paged), sorted(&expected), "{}", query);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn an_unchanged_row_is_returned_once_whatever_is_written_between_pages(
        documents in prop::collection::vec(document(300), 1..40),
        // Between two pages, one by one: often of the items that come first, which moves all others.
        edits in prop::collection::vec((0..40usize, prop::option::weighted(0.6, edited())), 1..20),
        page_size in 1..7usize,
    ) {
        for (query, most) in
            QUERIES_FOR_IDS.iter().map(|query| (*query, None)).chain(QUERIES_FOR_SOME.iter().map(|(query, most)| (*query, Some(*most))))
        {
            let container = filled(&documents);
            let scope = Scope::of_range(&container, EpkRange::FULL, ReadContext::NEWEST);
            let statement = Statement::prepare(query, &[], &container.schema().sql).unwrap();
            let mut left = edits.iter();
            let mut touched: Vec<String> = Vec::new();
            let rows = pages_while(&container, &statement, &scope, page_size, || {
                let Some((at, body)): Option<&Edit> = left.next() else { return };
                touched.push(at.to_string());
                // Another partition key makes it another item.
                delete(&container, *at);
                if let Some(body) = body {
                    write(&container, *at, body);
                }
            });
            let untouched = |rows: &[Value]| -> Vec<Value> {
                let stayed = |row: &&Value| !touched.iter().any(|id| row.as_str() == Some(id));
                rows.iter().filter(stayed).cloned().collect()
            };
            let found = untouched(&rows);
            match most {
                None => {
                    let expected = untouched(&naive(&container, &statement, &EpkRange::FULL));
                    prop_assert_eq!(sorted(&found), sorted(&expected), "{} after {:?}", query, touched);
                    if query.contains("ORDER BY c.") {
                        let keys = |rows: &[Value]| sort_keys(&container, query, rows);
                        prop_assert_eq!(keys(&found), keys(&expected), "{} after {:?}", query, touched);
                    }
                }
                Some(most) => {
                    let ids = sorted(&found);
                    prop_assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "{query}: {ids:?}");
                    prop_assert!(rows.len() <= most, "{query}: {rows:?}");
                }
            }
        }
    }
}

/// The bodies of edited items, with values that no index has the order of.
fn edited() -> impl Strategy<Value = String> {
    prop_oneof![4 => document(300), 1 => Just(r#""pk":1,"hidden":1,"a":[1],"b":2,"tags":[1,2]"#.to_owned())]
}

/// Runs a query over all partitions of a container, from its start.
fn run_all(
    container: &Container,
    query: &str,
    limit: RunLimit,
    page: &mut PageBody,
) -> Result<QueryOutcome, RunError> {
    let statement = Statement::prepare(query, &[], &container.schema().sql).unwrap();
    QueryRequest {
        statement: &statement,
        scope: Scope::of_range(container, EpkRange::FULL, ReadContext::NEWEST),
        context: QueryContext::default(),
        now: 0,
        from: None,
        resume: None,
        backwards: false,
        limit,
    }
    .run(page)
}

/// The look-ups in the index and the documents read by a query.
fn lookups(container: &Container, query: &str) -> (usize, usize) {
    let before = super::ordinal_stream::LOOKUPS.get();
    let mut page = PageBody::new("rid", 2_000);
    let outcome = run_all(container, query, RunLimit::none(), &mut page).unwrap();
    let documents = outcome.metrics.retrieved_count;
    assert_eq!(page.count(), documents, "only items of the list are read");
    (super::ordinal_stream::LOOKUPS.get() - before, documents)
}

#[test]
fn a_long_list_of_ids_is_looked_up_once_per_id() {
    let documents: Vec<String> = (0..2_000).map(|at| format!("\"pk\":{}", at % 3)).collect();
    let container = filled(&documents);
    let joined = |count: usize, each: &dyn Fn(usize) -> String, separator: &str| {
        (0..count).map(each).collect::<Vec<_>>().join(separator)
    };
    let pair = |at: usize| format!("(c.id = '{at}' AND c.pk = {})", at % 3);
    let reversed = |at: usize| format!("(c.pk = {} AND c.id = '{at}')", at % 3);
    for count in [250, 1_000] {
        let ids = joined(count, &|at| format!("'{at}'"), ",");
        for (query, most) in [
            (format!("SELECT * FROM c WHERE {}", joined(count, &pair, " OR ")), 8),
            (format!("SELECT c.id FROM c WHERE {}", joined(count, &reversed, " OR ")), 8),
            (format!("SELECT * FROM c WHERE c.id IN ({ids})"), 2),
            (format!("SELECT c.id FROM c WHERE c.id IN ({ids}) AND c.pk >= 0"), 2),
        ] {
            let (lookups, documents) = lookups(&container, &query);
            assert_eq!(documents, count);
            assert!(lookups <= most * count, "{lookups} look-ups for {count}: {}", &query[..60]);
        }
    }
}

#[test]
fn a_run_that_reaches_its_limit_is_interrupted_and_makes_no_page() {
    let documents: Vec<String> = (0..50).map(|at| format!("\"pk\":{},\"a\":{at}", at % 3)).collect();
    let container = filled(&documents);
    let run =
        |query: &str, limit: RunLimit| run_all(&container, query, limit, &mut PageBody::new("rid", 100));
    for query in [
        "SELECT * FROM c",
        "SELECT * FROM c ORDER BY c.a",
        "SELECT * FROM c ORDER BY c.missing",
        "SELECT VALUE COUNT(1) FROM c WHERE c.a >= 0",
        "SELECT DISTINCT VALUE c.a FROM c",
        "SELECT c.a + 1 AS b FROM c WHERE c.a != 77",
    ] {
        assert!(run(query, RunLimit::new(100_000, 1_000, 1 << 20)).is_ok(), "{query}");
        assert!(
            matches!(run(query, RunLimit::new(100_000, 20, 1 << 20)), Err(RunError::Interrupted)),
            "{query}"
        );
        assert!(
            matches!(run(query, RunLimit::new(100_000, 99, 1000)), Err(RunError::Interrupted)),
            "{query}"
        );
    }
    let sums = "SELECT VALUE SUM(c.a + 1) FROM c";
    assert!(matches!(run(sums, RunLimit::new(10, 99, 1 << 20)), Err(RunError::Interrupted)));
}
