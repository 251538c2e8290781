//! Indexing policies and directives on the wire: what is refused, and what a query finds.

use serde_json::{Value, json};

use crate::live::LiveAccount;

const KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["a"]"#);

async fn ids(account: &LiveAccount, text: &str) -> Vec<Value> {
    account.query(text, &[KEY]).await.expect(200).documents().to_vec()
}

#[tokio::test]
async fn an_item_written_with_the_directive_exclude_is_found_by_no_condition() {
    let account = LiveAccount::with_container(1, json!({})).await;
    let directive = |value| [KEY, ("x-ms-indexing-directive", value)];
    let path = "/dbs/d/colls/c/docs";
    for (id, value) in [("in", "Include"), ("out", "Exclude"), ("default", "default")] {
        account.post(path, &directive(value), json!({"id": id, "pk": "a", "n": 1})).await.expect(201);
    }
    // The Python SDK sends numbers: 0 for the default, 1 to exclude, 2 to include.
    for (id, value) in [("zero", "0"), ("one", "1"), ("two", "2")] {
        account.post(path, &directive(value), json!({"id": id, "pk": "a", "m": 1})).await.expect(201);
    }
    assert_eq!(ids(&account, "SELECT VALUE c.id FROM c WHERE c.m = 1").await, [json!("zero"), json!("two")]);
    for id in ["zero", "one", "two"] {
        account.delete(&format!("{path}/{id}"), &[KEY]).await.expect(204);
    }
    let refused = account.post(path, &directive("Never"), json!({"id": "x", "pk": "a"})).await.expect(400);
    assert!(refused.message().contains("x-ms-indexing-directive"), "{}", refused.message());
    for text in [
        "SELECT VALUE c.id FROM c WHERE c.n = 1",
        "SELECT VALUE c.id FROM c WHERE c.n + 1 = 2",
        "SELECT VALUE c.id FROM c ORDER BY c._ts",
        "SELECT VALUE c.id FROM c WHERE c.id IN ('in', 'out', 'default')",
    ] {
        assert_eq!(ids(&account, text).await, [json!("in"), json!("default")], "{text}");
    }
    // It is there, and read by everything that needs no index.
    account.get(&format!("{path}/out"), &[KEY]).await.expect(200);
    assert_eq!(ids(&account, "SELECT VALUE c.id FROM c").await.len(), 3);
    assert_eq!(account.get(path, &[KEY]).await.expect(200).documents().len(), 3);
    // A patch leaves it as it is, and a replace decides anew.
    let patch = json!([{"op": "set", "path": "/n", "value": 2}]);
    account.patch(&format!("{path}/out"), &[KEY], patch).await.expect(200);
    assert!(ids(&account, "SELECT VALUE c.id FROM c WHERE c.n = 2").await.is_empty());
    let item = json!({"id": "out", "pk": "a", "n": 2});
    account.put(&format!("{path}/out"), &[KEY], item).await.expect(200);
    assert_eq!(ids(&account, "SELECT VALUE c.id FROM c WHERE c.n = 2").await, [json!("out")]);
    account.delete(&format!("{path}/out"), &[KEY]).await.expect(204);
}

#[tokio::test]
async fn an_order_that_no_index_has_is_refused_with_the_services_text() {
    let policy = json!({
        "automatic": false,
        "includedPaths": [{"path": "/*"}],
        "excludedPaths": [{"path": "/hidden/*"}],
        "compositeIndexes": [[{"path": "/a"}, {"path": "/b", "order": "descending"}]],
    });
    let account = LiveAccount::with_container(1, json!({"indexingPolicy": policy})).await;
    let kept = account.get("/dbs/d/colls/c", &[]).await.expect(200);
    assert_eq!(kept.body["indexingPolicy"]["automatic"], json!(false));
    account.create(json!({"id": "1", "pk": "a", "a": 1, "b": 2, "hidden": 3})).await.expect(201);
    for order in ["c.a", "c.a, c.b DESC", "c.a DESC, c.b", "c._ts", "c.id", "c.missing"] {
        assert_eq!(ids(&account, &format!("SELECT VALUE c.id FROM c ORDER BY {order}")).await.len(), 1);
    }
    const EXCLUDED: &str = "The index path corresponding to the specified order-by item is excluded.";
    const COMPOSITE: &str =
        "The order by query does not have a corresponding composite index that it can be served from.";
    for (order, text) in [
        ("c.hidden", EXCLUDED),
        ("c.hidden.deep DESC", EXCLUDED),
        ("c._etag", EXCLUDED),
        ("c.a, c.b", COMPOSITE),
        ("c.b DESC, c.a", COMPOSITE),
        ("c.a, c.b DESC, c.id", COMPOSITE),
        ("c.a, c.hidden", COMPOSITE),
    ] {
        let query = format!("SELECT * FROM c ORDER BY {order}");
        let refused = account.query(&query, &[KEY]).await.expect(400);
        assert!(refused.message().contains(text), "{order}: {}", refused.message());
    }
}

#[tokio::test]
async fn unique_keys_stay_as_they_are_and_compare_numbers_as_doubles() {
    let keys = json!({"uniqueKeys": [{"paths": ["/u"]}]});
    let account = LiveAccount::with_container(1, json!({"uniqueKeyPolicy": keys})).await;
    account
        .post("/dbs/d/colls/c/docs", &[KEY], json!({"id": "1", "pk": "a", "u": 9_007_199_254_740_993_u64}))
        .await
        .expect(201);
    account
        .post("/dbs/d/colls/c/docs", &[KEY], json!({"id": "2", "pk": "a", "u": 9_007_199_254_740_992_u64}))
        .await
        .expect(409);
    account
        .post("/dbs/d/colls/c/docs", &[KEY], json!({"id": "3", "pk": "a", "u": 9_007_199_254_740_994_u64}))
        .await
        .expect(201);
    let key = json!({"paths": ["/pk"], "kind": "Hash", "version": 2});
    for changed in [
        json!({"id": "c", "partitionKey": key}),
        json!({"id": "c", "partitionKey": key, "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/v"]}]}}),
    ] {
        let refused = account.put("/dbs/d/colls/c", &[], changed).await.expect(403);
        assert!(refused.message().contains("The unique index cannot be modified."), "{}", refused.message());
    }
    let same = json!({"id": "c", "partitionKey": key, "uniqueKeyPolicy": keys, "defaultTtl": 60});
    account.put("/dbs/d/colls/c", &[], same).await.expect(200);
}

#[tokio::test]
async fn spatial_indexes_and_vector_embeddings_fit_their_container() {
    let account = LiveAccount::with_container(1, json!({})).await;
    let bounds = json!({"xmin": 0, "ymin": 0, "xmax": 10, "ymax": 10});
    let create = async |id: &str, surface: &str, bounds: Option<&Value>| {
        let mut index = json!({"path": "/p/*", "types": ["Point"]});
        if let Some(bounds) = bounds {
            index["boundingBox"] = bounds.clone();
        }
        let body = json!({
            "id": id,
            "partitionKey": {"paths": ["/pk"]},
            "geospatialConfig": {"type": surface},
            "indexingPolicy": {"spatialIndexes": [index]},
        });
        account.post("/dbs/d/colls", &[], body).await.status
    };
    assert_eq!(create("g1", "Geometry", None).await, 400);
    assert_eq!(create("g2", "Geometry", Some(&bounds)).await, 201);
    assert_eq!(create("g3", "Geography", Some(&bounds)).await, 400);
    assert_eq!(create("g4", "Geography", None).await, 201);

    let vector = |dimensions: u32| {
        let embedding = json!({"path": "/v", "dataType": "float32", "dimensions": dimensions, "distanceFunction": "cosine"});
        json!({
            "id": "v",
            "partitionKey": {"paths": ["/pk"]},
            "vectorEmbeddingPolicy": {"vectorEmbeddings": [embedding]},
        })
    };
    account.post("/dbs/d/colls", &[], vector(3)).await.expect(201);
    account.put("/dbs/d/colls/v", &[], vector(3)).await.expect(200);
    let refused = account.put("/dbs/d/colls/v", &[], vector(4)).await.expect(400);
    let text = "Paths in existing embedding policy cannot be modified in Collection Replace";
    assert!(refused.message().contains(text), "{}", refused.message());
}
