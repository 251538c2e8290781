//! Every kind of partition key, and every kind of value in one.

use std::sync::Arc;

use azure_data_cosmos::{
    FeedScope, PartitionKey,
    clients::ContainerClient,
    models::{PartitionKeyDefinition, PartitionKeyVersion},
};
use serde_json::{Value, json};

use crate::harness::{Account, Failure, Outcome, body, equal, fails, rows, sorted};

fn keys() -> Result<Vec<(PartitionKey, Value)>, Failure> {
    Ok(vec![
        (PartitionKey::from(""), json!("")),
        (PartitionKey::from("plain"), json!("plain")),
        (PartitionKey::from("ünïcödé 中文 😀"), json!("ünïcödé 中文 😀")),
        (PartitionKey::from("x".repeat(300)), json!("x".repeat(300))),
        (PartitionKey::from(0), json!(0)),
        (PartitionKey::from(-1), json!(-1)),
        (PartitionKey::from(2147483647_i64), json!(2147483647_i64)),
        (PartitionKey::try_from(1.5)?, json!(1.5)),
        (PartitionKey::from(true), json!(true)),
        (PartitionKey::from(false), json!(false)),
        (PartitionKey::from(PartitionKey::NULL), Value::Null),
    ])
}

async fn round_trips(container: &ContainerClient) -> Outcome {
    for (number, (key, value)) in keys()?.into_iter().enumerate() {
        let id = number.to_string();
        container.create_item(key.clone(), &id, json!({"id": id, "pk": value}), None).await?;
        let read = body(container.read_item(key.clone(), &id, None).await?)?;
        equal(&read["pk"], &value, "pk");
        let found: Vec<String> =
            rows(container, "SELECT VALUE c.id FROM c", FeedScope::partition(key)).await?;
        equal(found, vec![id], &format!("items under {value}"));
    }
    container.create_item(PartitionKey::UNDEFINED, "missing", json!({"id": "missing"}), None).await?;
    container.read_item(PartitionKey::UNDEFINED, "missing", None).await?;
    fails(404, container.read_item(PartitionKey::NULL, "missing", None).await);
    let all: Vec<String> = rows(container, "SELECT VALUE c.id FROM c", FeedScope::full_container()).await?;
    equal(all.len(), keys()?.len() + 1, "items in all");
    Ok(())
}

pub async fn every_type_of_value_is_a_key(account: Arc<Account>) -> Outcome {
    round_trips(&account.several_partitions().await?).await
}

pub async fn version_one_keys(account: Arc<Account>) -> Outcome {
    let definition = PartitionKeyDefinition::from("/pk").with_version(PartitionKeyVersion::V1);
    let container = account.create(definition, 30_000, |properties| properties).await?;
    round_trips(&container).await
}

pub async fn hierarchical_keys_and_their_prefixes(account: Arc<Account>) -> Outcome {
    let definition = PartitionKeyDefinition::from(("/tenant", "/user", "/session"));
    let container = account.create(definition, 30_000, |properties| properties).await?;
    for tenant in ["t1", "t2"] {
        for user in ["u1", "u2"] {
            for session in [1, 2] {
                let id = format!("{tenant}{user}{session}");
                let value = json!({"id": id, "tenant": tenant, "user": user, "session": session});
                container.create_item((tenant, user, session), &id, value, None).await?;
            }
        }
    }
    container.read_item(("t1", "u2", 1), "t1u21", None).await?;
    let ids = async |scope: FeedScope| rows::<String>(&container, "SELECT VALUE c.id FROM c", scope).await;
    equal(ids(FeedScope::partition("t1")).await?.len(), 4, "items of a tenant");
    equal(
        sorted(ids(FeedScope::partition(("t1", "u1"))).await?),
        vec!["t1u11".into(), "t1u12".into()],
        "user",
    );
    equal(ids(FeedScope::partition(("t1", "u1", 1))).await?, vec!["t1u11".to_owned()], "session");
    let ordered: Vec<String> =
        rows(&container, "SELECT VALUE c.id FROM c ORDER BY c.id DESC", FeedScope::partition("t2")).await?;
    equal(ordered, ["t2u22", "t2u21", "t2u12", "t2u11"].map(String::from).to_vec(), "ordered prefix");
    fails(400, container.read_item(("t1", "u2"), "t1u21", None).await);
    Ok(())
}
