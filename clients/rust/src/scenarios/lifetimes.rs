//! Time to live.

use std::{sync::Arc, time::Duration};

use azure_data_cosmos::FeedScope;
use serde_json::json;

use crate::harness::{Account, Outcome, equal, fails, item, rows};

pub async fn items_expire(account: Arc<Account>) -> Outcome {
    let container = account.create("/pk".into(), 400, |properties| properties.with_default_ttl(2)).await?;
    container.create_item("a", "short", item("short", "a", 1), None).await?;
    container.create_item("a", "long", json!({"id": "long", "pk": "a", "ttl": 1000}), None).await?;
    container.create_item("a", "forever", json!({"id": "forever", "pk": "a", "ttl": -1}), None).await?;
    tokio::time::sleep(Duration::from_millis(3200)).await;
    fails(404, container.read_item("a", "short", None).await);
    let left: Vec<String> =
        rows(&container, "SELECT VALUE c.id FROM c ORDER BY c.id", FeedScope::partition("a")).await?;
    equal(left, vec!["forever".to_owned(), "long".to_owned()], "items left");
    for (id, ttl) in [("zero", json!(0)), ("less", json!(-10)), ("null", json!(null))] {
        fails(400, container.create_item("a", id, json!({"id": id, "pk": "a", "ttl": ttl}), None).await);
    }
    Ok(())
}
