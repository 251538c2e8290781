//! The fixture of the compatibility probes: a running account with a container that has a bit of everything.

use http::Method;
use serde_json::{Value, json};

use super::super::live::{LiveAccount, LiveResponse};

/// The partition key of all items in the fixture's container.
pub(super) const KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["a"]"#);
/// The path of the container's items.
pub(super) const DOCS: &str = "/dbs/d/colls/c/docs";

/// A running account with a prepared container.
pub(super) struct CompatibilityFixture {
    pub(super) account: LiveAccount,
}

impl CompatibilityFixture {
    pub(super) async fn new() -> CompatibilityFixture {
        let account = LiveAccount::with_container(
            1,
            json!({
                "computedProperties": [{"name": "lowerName", "query": "SELECT VALUE LOWER(c.name) FROM c"}],
                "vectorEmbeddingPolicy": {"vectorEmbeddings": [
                    {"path": "/vector", "dataType": "float32", "dimensions": 3, "distanceFunction": "cosine"}]},
                "fullTextPolicy": {"defaultLanguage": "en-US",
                    "fullTextPaths": [{"path": "/text", "language": "en-US"}]},
                "indexingPolicy": {
                    "vectorIndexes": [{"path": "/vector", "type": "flat"}],
                    "fullTextIndexes": [{"path": "/text"}],
                    "compositeIndexes": [[{"path": "/even", "order": "ascending"},
                                          {"path": "/n", "order": "descending"}]]},
            }),
        )
        .await;
        for item in [
            json!({"id": "1", "pk": "a", "n": 1, "even": false, "name": "Alpha", "tags": ["x", "y"],
                "text": "the quick brown fox", "vector": [1, 0, 0], "inner": {"k": "v"}}),
            json!({"id": "2", "pk": "a", "n": 2, "even": true, "name": "beta", "tags": ["y"],
                "text": "swimming in the lake", "vector": [0, 1, 0], "opt": null}),
            json!({"id": "3", "pk": "a", "n": 3, "even": false, "name": "Gamma", "tags": [],
                "text": "a fox swims", "vector": [0, 0.6, 0.8]}),
        ] {
            account.create(item).await.expect(201);
        }
        CompatibilityFixture { account }
    }

    /// The rows of a query over the items with key `a`, all pages.
    pub(super) async fn rows(&self, query: &str) -> Value {
        let (mut rows, mut token) = (Vec::new(), String::new());
        loop {
            let mut headers = vec![KEY];
            if !token.is_empty() {
                headers.push(("x-ms-continuation", &token));
            }
            let page = self.account.query(query, &headers).await;
            assert_eq!(page.status, 200, "{query}: {}", page.message());
            rows.extend_from_slice(page.documents());
            token = page.header("x-ms-continuation").to_owned();
            if token.is_empty() {
                return Value::Array(rows);
            }
        }
    }

    /// The plan of a query, for a client that has `features`.
    pub(super) async fn plan(&self, query: &str, features: &str) -> LiveResponse {
        let headers = [
            ("x-ms-cosmos-is-query-plan-request", "True"),
            ("x-ms-cosmos-supported-query-features", features),
            ("x-ms-cosmos-query-version", "1.4"),
        ];
        self.account.query(query, &headers).await
    }

    /// A new container of its own, and its path.
    pub(super) async fn container(&self, properties: Value) -> String {
        let id = uuid::Uuid::new_v4().to_string();
        let mut body = json!({"id": id, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
        body.as_object_mut().unwrap().extend(properties.as_object().unwrap().clone());
        self.account.post("/dbs/d/colls", &[], body).await.expect(201);
        format!("/dbs/d/colls/{id}")
    }

    /// Tries to create a container with these properties.
    pub(super) async fn try_container(&self, properties: Value) -> LiveResponse {
        let mut body = json!({"id": uuid::Uuid::new_v4().to_string(), "partitionKey": {"paths": ["/pk"]}});
        body.as_object_mut().unwrap().extend(properties.as_object().unwrap().clone());
        self.account.post("/dbs/d/colls", &[], body).await
    }

    /// Reads, writes and queries with and without a header, and compares.
    pub(super) async fn header_changes_nothing(&self, name: &str, value: &str) {
        let header = (name, value);
        let item = json!({"id": "ignored-header", "pk": "ignored", "n": 1});
        let key = ("x-ms-documentdb-partitionkey", r#"["ignored"]"#);
        let upsert = ("x-ms-documentdb-is-upsert", "true");
        let path = "/dbs/d/colls/c/docs/ignored-header";
        self.account.post(DOCS, &[key, upsert], item.clone()).await;
        let pairs = [
            (self.account.get("/", &[]).await, self.account.get("/", &[header]).await),
            (self.account.get(path, &[key]).await, self.account.get(path, &[key, header]).await),
            (
                self.account.post(DOCS, &[key, upsert], item.clone()).await,
                self.account.post(DOCS, &[key, upsert, header], item).await,
            ),
            (
                self.account.query("SELECT * FROM c ORDER BY c.n", &[KEY]).await,
                self.account.query("SELECT * FROM c ORDER BY c.n", &[KEY, header]).await,
            ),
            (
                self.account.get(DOCS, &[KEY, ("a-im", "Incremental Feed")]).await,
                self.account.get(DOCS, &[KEY, ("a-im", "Incremental Feed"), header]).await,
            ),
        ];
        for (without, with) in pairs {
            assert!(without.status < 400, "{without:?}");
            assert_eq!(essence(without), essence(with), "{name}: {value}");
        }
    }

    /// Sends a request signed in another way, or not at all.
    pub(super) async fn get_as(&self, path: &str, authorization: &[(&str, &str)]) -> LiveResponse {
        self.account.send_unsigned(Method::GET, path, authorization, "".into()).await
    }
}

/// The parts of a response that an ignored feature must not change: all but versions and times.
pub(super) fn essence(mut response: LiveResponse) -> (u16, Value, Vec<String>) {
    scrub(&mut response.body);
    let mut names: Vec<String> = response.headers.keys().map(|name| name.as_str().to_owned()).collect();
    names.sort();
    (response.status, response.body, names)
}

fn scrub(value: &mut Value) {
    match value {
        Value::Array(elements) => elements.iter_mut().for_each(scrub),
        Value::Object(members) => {
            for name in ["_etag", "_ts", "_lsn"] {
                members.remove(name);
            }
            members.values_mut().for_each(scrub);
        }
        _ => {}
    }
}
