//! Pages of a query with writes in between, over a socket.

use serde_json::{Value, json};

use crate::live::LiveAccount;

/// Items 0 to 11, two of each `n`, in one partition.
async fn filled() -> LiveAccount {
    let account = LiveAccount::with_container(
        1,
        json!({"indexingPolicy": {"compositeIndexes": [[{"path": "/kind"}, {"path": "/n"}]]}}),
    )
    .await;
    for id in 0..12 {
        account.create(item(id, id / 2)).await.expect(201);
    }
    account
}

fn item(id: usize, n: usize) -> Value {
    json!({"id": id.to_string(), "pk": "p", "n": n, "tags": [1, 2], "kind": "thing"})
}

const ONE_KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["p"]"#);

async fn page(account: &LiveAccount, text: &str, token: &str) -> (Vec<Value>, String) {
    let mut headers = vec![ONE_KEY, ("x-ms-max-item-count", "3")];
    if !token.is_empty() {
        headers.push(("x-ms-continuation", token));
    }
    let page = account.query(text, &headers).await.expect(200);
    (page.documents().to_vec(), page.header("x-ms-continuation").to_owned())
}

/// Every page; between the first two, items that were returned leave and others come before them.
async fn pages_with_writes(text: &str) -> Vec<Value> {
    let account = filled().await;
    let (mut rows, mut token) = page(&account, text, "").await;
    for id in [0, 1, 10] {
        account.delete(&format!("/dbs/d/colls/c/docs/{id}"), &[ONE_KEY]).await.expect(204);
    }
    for (id, n) in [(20, 0), (21, 0), (22, 0), (23, 0), (24, 9)] {
        account.create(item(id, n)).await.expect(201);
    }
    while !token.is_empty() {
        let (more, next) = page(&account, text, &token).await;
        rows.extend(more);
        assert!(rows.len() < 100, "{text}: the pages never end");
        token = next;
    }
    rows
}

#[tokio::test]
async fn rows_that_stay_are_returned_once_whatever_is_written_between_pages() {
    let ids = |ids: &[u32]| -> Vec<Value> { ids.iter().map(|id| json!(id.to_string())).collect() };
    let numbers = |numbers: &[u32]| -> Vec<Value> { numbers.iter().map(|n| json!(n)).collect() };
    let groups = [(0, 2), (1, 2), (2, 2), (3, 2), (4, 2), (5, 1), (9, 1)];
    // The number of rows of item 1 is unknown, because it is deleted.
    let twice = [0, 0, 1]
        .into_iter()
        .chain([20, 21, 22, 23, 2, 3, 4, 5, 6, 7, 8, 9, 11, 24].into_iter().flat_map(|id| [id, id]));
    let twice: Vec<u32> = twice.collect();
    let all = ids(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 24]);
    for (text, expected) in [
        ("SELECT VALUE c.id FROM c", ids(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 20, 21, 22, 23, 24])),
        ("SELECT VALUE c.id FROM c ORDER BY c.n", all.clone()),
        ("SELECT VALUE c.id FROM c WHERE c.kind = 'thing' ORDER BY c.n", all.clone()),
        ("SELECT VALUE c.id FROM c ORDER BY c.kind, c.n", all),
        (
            "SELECT VALUE c.id FROM c ORDER BY c.n DESC",
            ids(&[11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 23, 22, 21, 20]),
        ),
        ("SELECT VALUE c.id FROM c JOIN t IN c.tags ORDER BY c.n", ids(&twice)),
        ("SELECT DISTINCT VALUE c.n FROM c", numbers(&[0, 1, 2, 3, 4, 5, 9])),
        ("SELECT DISTINCT VALUE c.n FROM c ORDER BY c.n DESC", numbers(&[5, 4, 3, 2, 1, 0])),
        (
            "SELECT c.n, COUNT(1) AS k FROM c GROUP BY c.n",
            groups.iter().map(|(n, k)| json!({"n": n, "k": k})).collect(),
        ),
        ("SELECT TOP 4 VALUE c.id FROM c", ids(&[0, 1, 2, 3])),
        ("SELECT TOP 5 VALUE c.id FROM c ORDER BY c.n", ids(&[0, 1, 2, 3, 4])),
        ("SELECT VALUE c.id FROM c OFFSET 1 LIMIT 6", ids(&[1, 2, 3, 4, 5, 6])),
        ("SELECT VALUE c.id FROM c ORDER BY c.n OFFSET 2 LIMIT 5", ids(&[2, 3, 4, 5, 6])),
    ] {
        assert_eq!(pages_with_writes(text).await, expected, "{text}");
    }
}

#[tokio::test]
async fn a_row_count_token_continues_and_one_of_another_query_is_rejected() {
    const ORDERED: &str = "SELECT VALUE c.id FROM c ORDER BY c.n";
    let account = filled().await;
    let (_, token) = page(&account, ORDERED, "").await;
    // As tokens of sorted results once were.
    let parts: Vec<&str> = token.split(':').collect();
    let counting = [parts[0], parts[1], parts[2], "R3", "0"].join(":");
    let (rows, next) = page(&account, ORDERED, &counting).await;
    assert_eq!(rows, ["3", "4", "5"]);
    assert!(next.contains(":R6:"), "{next}");
    for text in ["SELECT VALUE c.id FROM c", "SELECT TOP 5 VALUE c.id FROM c"] {
        let headers = [ONE_KEY, ("x-ms-continuation", token.as_str())];
        let rejected = account.query(text, &headers).await.expect(400);
        assert!(rejected.message().contains("Invalid Continuation Token"), "{}", rejected.message());
    }
    let (_, unordered) = page(&account, "SELECT VALUE c.id FROM c", "").await;
    account.query(ORDERED, &[ONE_KEY, ("x-ms-continuation", &unordered)]).await.expect(400);
}
