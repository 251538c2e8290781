//! Cross-partition ORDER BY that is resumed from a token of the .NET SDK: by values, not by continuations.
//!
//! The merge below is what the SDK does with the pages of each range. It forgets everything after a few rows but
//! what its token holds: the values of the last row, its item and the range that served it.

use serde_json::{Value, json};
use sql::value::{distinct_hash, parse, total_order};

use crate::live::LiveAccount;

const QUERY: [(&str, &str); 3] = [
    ("x-ms-documentdb-isquery", "true"),
    ("content-type", "application/query+json"),
    ("x-ms-max-item-count", "7"),
];

/// What a token of the SDK holds.
struct ResumeToken {
    values: Vec<Value>,
    rid: String,
    range: usize,
    /// Rows of the item with this rid that were returned: a JOIN makes several of one.
    rows_of_item: usize,
}

struct OrderedRow {
    /// The values of ORDER BY; `null` in the outer option stands for undefined.
    values: Vec<Option<Value>>,
    rid: String,
    payload: Value,
}

/// A query with ORDER BY as the plan rewrites it.
struct OrderedQuery<'a> {
    from: &'a str,
    columns: &'a [(&'a str, bool)],
    payload: &'a str,
}

impl OrderedQuery<'_> {
    fn text(&self) -> String {
        let items: Vec<String> =
            self.columns.iter().map(|(path, _)| format!("{{\"item\": {path}}}")).collect();
        let order: Vec<String> = self
            .columns
            .iter()
            .map(|(path, descending)| format!("{path}{}", if *descending { " DESC" } else { "" }))
            .collect();
        format!(
            "SELECT c._rid, [{}] AS orderByItems, {} AS payload FROM {} WHERE (true) ORDER BY {}",
            items.join(", "),
            self.payload,
            self.from,
            order.join(", ")
        )
    }

    fn compare(&self, left: &[Option<Value>], right: &[Option<Value>]) -> std::cmp::Ordering {
        let value = |item: &Option<Value>| match item {
            Some(item) => parse(item.to_string().as_bytes()).unwrap(),
            None => sql::Value::Undefined,
        };
        let orders = left.iter().zip(right).zip(self.columns).map(|((left, right), (_, descending))| {
            let order = total_order(&value(left), &value(right));
            if *descending { order.reverse() } else { order }
        });
        orders.into_iter().find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    }

    /// All rows of one range from the token on, with every page asked for by its continuation.
    async fn rows(
        &self,
        account: &LiveAccount,
        ranges: usize,
        range: usize,
        token: Option<&ResumeToken>,
    ) -> Vec<OrderedRow> {
        let mut body = json!({"query": self.text(), "parameters": []});
        if let Some(token) = token {
            let mut filter = json!({"value": token.values, "exclude": range < token.range});
            if range == token.range {
                filter["rid"] = json!(token.rid);
            }
            body["resumeFilter"] = filter;
        }
        assert!(range < ranges);
        let id = range.to_string();
        let mut rows = Vec::new();
        let mut continuation = String::new();
        let mut rid_descending = self.columns[0].1;
        loop {
            let mut headers = QUERY.to_vec();
            headers.push(("x-ms-documentdb-partitionkeyrangeid", &id));
            if !continuation.is_empty() {
                headers.push(("x-ms-continuation", &continuation));
            }
            let page = account.post("/dbs/d/colls/c/docs", &headers, body.clone()).await.expect(200);
            if let Ok(info) = serde_json::from_str::<Value>(page.header("x-ms-cosmos-query-execution-info")) {
                assert_eq!(info["reverseRidEnabled"], false);
                rid_descending = info["reverseIndexScan"].as_bool().unwrap();
            }
            rows.extend(page.documents().iter().map(|row| {
                OrderedRow {
                    values: row["orderByItems"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .map(|item| item.get("item").cloned())
                        .collect(),
                    rid: row["_rid"].as_str().unwrap().to_owned(),
                    payload: row["payload"].clone(),
                }
            }));
            continuation = page.header("x-ms-continuation").to_owned();
            if continuation.is_empty() {
                break;
            }
        }
        // Within one range, rows are in order, and equals in the order of their rid.
        for pair in rows.windows(2) {
            let order = self.compare(&pair[0].values, &pair[1].values);
            assert!(order.is_le(), "{:?} {:?}", pair[0].values, pair[1].values);
            if order.is_eq() {
                let (left, right) = (number(&pair[0].rid), number(&pair[1].rid));
                assert!(if rid_descending { left >= right } else { left <= right }, "equals by rid");
            }
        }
        match token {
            Some(token) if token.range == range => {
                // The SDK drops what it has returned of the equals.
                let is_token =
                    |row: &OrderedRow| row.values.iter().map(resume_value).eq(token.values.clone());
                let rid = number(&token.rid);
                let mut of_item = 0;
                rows.retain(|row| {
                    if !is_token(row) {
                        return true;
                    }
                    let row_rid = number(&row.rid);
                    of_item += usize::from(row_rid == rid);
                    match row_rid == rid {
                        true => of_item > token.rows_of_item,
                        false => (row_rid > rid) != rid_descending,
                    }
                });
                rows
            }
            _ => rows,
        }
    }

    /// The payloads of the whole result, a few rows at a time.
    async fn run(&self, account: &LiveAccount, ranges: usize, rows_per_page: usize) -> Vec<Value> {
        let mut token: Option<ResumeToken> = None;
        let mut payloads = Vec::new();
        loop {
            let mut streams = Vec::new();
            for range in 0..ranges {
                let rows = self.rows(account, ranges, range, token.as_ref()).await;
                streams.push(std::collections::VecDeque::from(rows));
            }
            for _ in 0..rows_per_page {
                let first = streams
                    .iter()
                    .enumerate()
                    .filter_map(|(range, rows)| Some((range, rows.front()?)))
                    .min_by(|left, right| {
                        self.compare(&left.1.values, &right.1.values).then(left.0.cmp(&right.0))
                    })
                    .map(|(range, _)| range);
                let Some(range) = first else { return payloads };
                let row = streams[range].pop_front().unwrap();
                let values: Vec<Value> = row.values.iter().map(resume_value).collect();
                let rows_of_item = match &token {
                    Some(last) if last.rid == row.rid && last.values == values => last.rows_of_item + 1,
                    _ => 1,
                };
                token = Some(ResumeToken { values, rid: row.rid, range, rows_of_item });
                payloads.push(row.payload);
                assert!(payloads.len() <= 1_000, "the query never ends");
            }
        }
    }
}

/// The item's number, by which the SDK compares rids.
fn number(rid: &str) -> u64 {
    rid.parse::<protocol::resource_id::ItemRid>().unwrap().ordinal
}

/// A value as a resume filter states it.
fn resume_value(value: &Option<Value>) -> Value {
    match value {
        None => json!([]),
        Some(complex @ (Value::Array(_) | Value::Object(_))) => {
            let hash = distinct_hash(&parse(complex.to_string().as_bytes()).unwrap());
            let kind = if complex.is_array() { "array" } else { "object" };
            json!({"type": kind, "low": hash as u64, "high": (hash >> 64) as u64})
        }
        Some(scalar) => scalar.clone(),
    }
}

/// Stores items whose `v` takes each of these values in turn, spread over many keys; `null` in the outer option
/// leaves it out.
async fn store(account: &LiveAccount, count: usize, values: &[Option<Value>]) {
    for number in 0..count {
        let mut item = json!({"id": number.to_string(), "pk": format!("k{}", number % 23), "w": number % 5});
        if let Some(value) = &values[number % values.len()] {
            item["v"] = value.clone();
        }
        item["tags"] = json!(["a", "b", "c"]);
        account.create(item).await.expect(201);
    }
}

/// Runs a query in pages of several sizes and compares each with the rows that a single page returns.
async fn assert_resumes(account: &LiveAccount, ranges: usize, query: &OrderedQuery<'_>, count: usize) {
    let at_once = query.run(account, ranges, usize::MAX).await;
    assert_eq!(at_once.len(), count, "{}", query.text());
    let mut distinct: Vec<String> = at_once.iter().map(Value::to_string).collect();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), count, "no row twice: {}", query.text());
    for rows_per_page in [1, 4, 29] {
        if rows_per_page == 1 && count > 100 {
            continue;
        }
        let resumed = query.run(account, ranges, rows_per_page).await;
        assert_eq!(resumed, at_once, "{rows_per_page} rows at a time: {}", query.text());
    }
}

#[tokio::test]
async fn equal_numbers_and_missing_values_resume_along_an_index() {
    let account = LiveAccount::with_container(3, json!({})).await;
    let values = [Some(json!(1)), Some(json!(2)), None, Some(json!("x")), Some(json!(null)), Some(json!(2))];
    store(&account, 80, &values).await;
    for descending in [false, true] {
        let query = OrderedQuery { from: "c", columns: &[("c.v", descending)], payload: "c.id" };
        assert_resumes(&account, 3, &query, 80).await;
    }
}

#[tokio::test]
async fn arrays_and_objects_resume_by_their_hash() {
    let account = LiveAccount::with_container(3, json!({})).await;
    let long = "long ".repeat(100);
    let values = [
        Some(json!([1, 2])),
        Some(json!({"a": 1})),
        Some(json!([])),
        Some(json!({"b": [true, 2.5]})),
        Some(json!({})),
        Some(json!(["z"])),
        None,
        Some(json!(true)),
        Some(json!(-3.5)),
        Some(json!(long.clone() + "1")),
        Some(json!(long + "2")),
        Some(json!([1, 2])),
    ];
    store(&account, 72, &values).await;
    for descending in [false, true] {
        let query = OrderedQuery { from: "c", columns: &[("c.v", descending)], payload: "c.id" };
        assert_resumes(&account, 3, &query, 72).await;
    }
}

#[tokio::test]
async fn several_columns_resume_whichever_way_the_composite_index_runs() {
    for first in ["ascending", "descending"] {
        let second = if first == "ascending" { "descending" } else { "ascending" };
        let policy = json!({"indexingPolicy": {
            "includedPaths": [{"path": "/*"}],
            "compositeIndexes": [[{"path": "/v", "order": first}, {"path": "/w", "order": second}]],
        }});
        let account = LiveAccount::with_container(3, policy).await;
        store(&account, 60, &[Some(json!(1)), Some(json!("s")), None]).await;
        for (v, w) in [(false, true), (true, false)] {
            let query = OrderedQuery { from: "c", columns: &[("c.v", v), ("c.w", w)], payload: "c.id" };
            assert_resumes(&account, 3, &query, 60).await;
        }
    }
}

#[tokio::test]
async fn rows_of_a_join_resume_within_their_item() {
    let account = LiveAccount::with_container(2, json!({})).await;
    store(&account, 30, &[Some(json!(1)), Some(json!(2))]).await;
    for descending in [false, true] {
        let query = OrderedQuery {
            from: "c JOIN t IN c.tags",
            columns: &[("c.v", descending)],
            payload: "CONCAT(c.id, t)",
        };
        assert_resumes(&account, 2, &query, 90).await;
    }
}

#[tokio::test]
async fn a_resume_filter_survives_a_split() {
    let account = LiveAccount::with_container(1, json!({})).await;
    store(&account, 40, &[Some(json!(1)), Some(json!(2)), None]).await;
    let query = OrderedQuery { from: "c", columns: &[("c.v", true)], payload: "c.id" };
    let rows = query.rows(&account, 1, 0, None).await;
    let last = &rows[16];
    let values: Vec<Value> = last.values.iter().map(resume_value).collect();
    account.control(http::Method::POST, "/databases/d/containers/c/partitions/0/split", "").await;
    while account.get("/dbs/d/colls/c/pkranges", &[]).await.body["_count"] == 1 {}
    let ranges = account.get("/dbs/d/colls/c/pkranges", &[]).await.expect(200);
    let mut left = Vec::new();
    for range in ranges.body["PartitionKeyRanges"].as_array().unwrap() {
        let id = range["id"].as_str().unwrap();
        let headers = [QUERY[0], QUERY[1], ("x-ms-documentdb-partitionkeyrangeid", id)];
        let filter = json!({"value": values, "rid": last.rid, "exclude": false});
        let body = json!({"query": query.text(), "resumeFilter": filter});
        let page = account.post("/dbs/d/colls/c/docs", &headers, body).await.expect(200);
        left.extend(page.documents().iter().map(|row| row["payload"].clone()));
    }
    let mut expected: Vec<Value> = rows[16..].iter().map(|row| row.payload.clone()).collect();
    let key = |value: &Value| value.as_str().unwrap().parse::<u32>().unwrap();
    left.sort_by_key(key);
    expected.sort_by_key(key);
    assert_eq!(left, expected);
}

#[tokio::test]
async fn a_query_body_that_is_not_understood_is_refused() {
    let account = LiveAccount::with_container(1, json!({})).await;
    store(&account, 3, &[Some(json!(1))]).await;
    let rid =
        account.query("SELECT VALUE c._rid FROM c", &[("x-ms-documentdb-partitionkeyrangeid", "0")]).await;
    let rid = rid.expect(200).documents()[0].clone();
    let range = ("x-ms-documentdb-partitionkeyrangeid", "0");
    let ordered = "SELECT * FROM c ORDER BY c.v";
    for (body, part) in [
        (json!({"query": ordered, "resumeFrom": 1}), "'resumeFrom' is not supported"),
        (
            json!({"query": ordered, "resumeFilter": {"value": [1], "after": true}}),
            "'after' is not supported",
        ),
        (json!({"query": ordered, "resumeFilter": {"value": [1, 2]}}), "as many values"),
        (json!({"query": ordered, "resumeFilter": {}}), "needs a 'value'"),
        (json!({"query": ordered, "resumeFilter": {"value": [[1]]}}), "unknown form"),
        (json!({"query": ordered, "resumeFilter": {"value": [{"type": "array"}]}}), "unknown form"),
        (json!({"query": ordered, "resumeFilter": {"value": [1], "rid": "xyz"}}), "not of this container"),
        (json!({"query": ordered, "resumeFilter": {"value": [1], "exclude": 1}}), "not a boolean"),
        (json!({"query": "SELECT * FROM c", "resumeFilter": {"value": []}}), "ORDER BY"),
    ] {
        let refused =
            account.post("/dbs/d/colls/c/docs", &[QUERY[0], QUERY[1], range], body).await.expect(400);
        assert!(refused.message().contains(part), "{}", refused.message());
    }
    let databases = account.post("/dbs", &QUERY[..2], json!({"query": "SELECT * FROM c", "more": 1})).await;
    databases.expect(400);
    let known = json!({"query": ordered, "parameters": null, "resumeFilter": {"value": [1], "rid": rid}});
    account.post("/dbs/d/colls/c/docs", &[QUERY[0], QUERY[1], range], known).await.expect(200);
}
