//! Items: the verbs, what responses carry, preconditions, limits.

use std::sync::Arc;

use azure_core::http::Etag;
use azure_data_cosmos::{
    CosmosClient, FeedScope,
    models::{UniqueKey, UniqueKeyPolicy},
    options::{BinaryEncodingOptions, ItemReadOptions, ItemWriteOptions, Precondition},
};
use serde_json::{Value, json};

use crate::harness::{Account, Outcome, body, equal, fails, item, rows, with_content};

fn only_if(etag: &str) -> Option<ItemWriteOptions> {
    Some(ItemWriteOptions::default().with_precondition(Precondition::IfMatch(Etag::from(etag))))
}

pub async fn items_are_created_read_replaced_upserted_and_deleted(account: Arc<Account>) -> Outcome {
    let container = account.container().await?;
    let created = container.create_item("a", "1", item(1, "a", 1), None).await?;
    equal(u16::from(created.status().status_code()), 201, "create");
    assert!(created.into_body().is_empty(), "the SDK asks for no body by default");

    let read = body(container.read_item("a", "1", None).await?)?;
    equal(&read["n"], &json!(1), "n");
    for member in ["_rid", "_self", "_etag", "_ts"] {
        assert!(read.get(member).is_some(), "no {member} in {read}");
    }
    assert!(read.get("_lsn").is_none(), "_lsn must not be shown");

    let replaced = body(container.replace_item("a", "1", item(1, "a", 2), with_content()).await?)?;
    equal(&replaced["_rid"], &read["_rid"], "_rid");
    assert_ne!(replaced["_etag"], read["_etag"]);

    let upserted = container.upsert_item("a", "1", item(1, "a", 3), None).await?;
    equal(u16::from(upserted.status().status_code()), 200, "upsert of an old item");
    let upserted = container.upsert_item("a", "2", item(2, "a", 4), None).await?;
    equal(u16::from(upserted.status().status_code()), 201, "upsert of a new item");

    fails(409, container.create_item("a", "1", item(1, "a", 1), None).await);
    let deleted = container.delete_item("a", "1", None).await?;
    equal(u16::from(deleted.status().status_code()), 204, "delete");
    fails(404, container.read_item("a", "1", None).await);
    fails(404, container.replace_item("a", "1", item(1, "a", 1), None).await);
    Ok(())
}

pub async fn responses_carry_charge_session_and_lsn(account: Arc<Account>) -> Outcome {
    let container = account.container().await?;
    let created = container.create_item("a", "1", item(1, "a", 1), None).await?;
    let headers = created.headers();
    assert!(headers.request_charge().is_some_and(|charge| charge.value() > 0.0), "no charge");
    assert!(headers.session_token().is_some(), "no session token");
    assert!(headers.activity_id().is_some(), "no activity id");
    assert!(headers.etag().is_some(), "no etag");
    assert!(headers.server_duration().is_some(), "no duration");
    let lsn = headers.lsn().expect("no lsn");
    let read = container.read_item("a", "1", None).await?;
    equal(read.headers().item_lsn(), Some(lsn), "lsn of the item");
    equal(read.headers().partition_key_range_id(), Some("0"), "range");
    let next = container.upsert_item("a", "1", item(1, "a", 2), None).await?;
    equal(next.headers().lsn(), Some(lsn + 1), "lsn of the next write");

    let error = fails(404, container.read_item("a", "none", None).await);
    let response = error.response().expect("a 404 is a response");
    assert!(response.headers().session_token.is_some(), "a 404 carries the session token");
    assert!(response.headers().lsn.is_some(), "a 404 carries the lsn");
    Ok(())
}

fn all_types(id: &str) -> Value {
    json!({
        "id": id, "pk": "a", "zero": 0, "small": 31, "byte": 200, "negative": -5, "long": i64::MAX,
        "least": i64::MIN, "float": 0.1, "tiny": 5e-324, "huge": 1.7976931348623157e308,
        "text": "tab\t newline\n quote\" back\\ é 中 😀", "long text": "x".repeat(70_000), "empty": "",
        "object": {}, "list": [], "null": null, "yes": true, "no": false, "bytes": [1, 2, 255],
        "deep": {"a": [{"b": [[1, [2, {"c": null}]]]}]},
    })
}

pub async fn values_keep_their_type(account: Arc<Account>) -> Outcome {
    let container = account.container().await?;
    let written = all_types("1");
    container.create_item("a", "1", &written, None).await?;
    let read = body(container.read_item("a", "1", None).await?)?;
    for (member, value) in written.as_object().expect("an object") {
        equal(&read[member], value, member);
    }
    Ok(())
}

pub async fn ids_may_hold_any_allowed_character(account: Arc<Account>) -> Outcome {
    let container = account.container().await?;
    let ids = ["with space", "中文😀", "a+b", "per%20cent", "x=1&y=2", ":colon;", "quote'\"", "(1)[2]{3}"];
    for id in ids {
        container.create_item("a", id, item(id, "a", 1), None).await?;
        equal(&body(container.read_item("a", id, None).await?)?["id"], &json!(id), "id");
        container.delete_item("a", id, None).await?;
    }
    Ok(())
}

pub async fn preconditions_decide(account: Arc<Account>) -> Outcome {
    let container = account.container().await?;
    let first = body(container.create_item("a", "1", item(1, "a", 1), with_content()).await?)?;
    let first = first["_etag"].as_str().expect("an etag").to_owned();
    let second = container.replace_item("a", "1", item(1, "a", 2), only_if(&first)).await?;
    let second = second.headers().etag().expect("an etag").to_string();
    fails(412, container.replace_item("a", "1", item(1, "a", 9), only_if(&first)).await);
    fails(412, container.upsert_item("a", "1", item(1, "a", 9), only_if(&first)).await);
    fails(412, container.delete_item("a", "1", only_if(&first)).await);

    let unless =
        ItemReadOptions::default().with_precondition(Precondition::IfNoneMatch(Etag::from(second.as_str())));
    match container.read_item("a", "1", Some(unless)).await {
        Ok(response) => equal(u16::from(response.status().status_code()), 304, "read of an unchanged item"),
        Err(error) => equal(u16::from(error.status().status_code()), 304, "read of an unchanged item"),
    }
    container.delete_item("a", "1", only_if(&second)).await?;
    Ok(())
}

pub async fn items_travel_as_text_too(account: Arc<Account>) -> Outcome {
    let binary = account.container().await?;
    let id = binary.read(None).await?.into_model()?.id;
    let endpoint = account.endpoint.parse()?;
    let reference = azure_data_cosmos::AccountReference::with_authentication_key(
        endpoint,
        azure_core::credentials::Secret::from(account.key.clone()),
    );
    let text = CosmosClient::builder()
        .with_binary_encoding_options(BinaryEncodingOptions::new().with_enabled(false))
        .build(reference, azure_data_cosmos::RoutingStrategy::ProximityTo("West US".into()))
        .await?
        .database_client(account.database.id().clone())
        .container_client(id.into_owned(), None)
        .await?;
    text.create_item("a", "text", all_types("text"), None).await?;
    binary.create_item("a", "binary", all_types("binary"), None).await?;
    let mut one = body(binary.read_item("a", "text", None).await?)?;
    let mut two = body(text.read_item("a", "binary", None).await?)?;
    for member in ["id", "_rid", "_self", "_etag", "_ts"] {
        one[member].take();
        two[member].take();
    }
    equal(one, two, "the same item through both encodings");
    Ok(())
}

pub async fn an_item_may_be_two_megabytes_and_no_more(account: Arc<Account>) -> Outcome {
    let container = account.container().await?;
    let sized = |id: &str, bytes: usize| json!({"id": id, "pk": "a", "text": "x".repeat(bytes)});
    container.create_item("a", "big", sized("big", 2 * 1024 * 1024 - 1000), None).await?;
    fails(413, container.create_item("a", "bigger", sized("bigger", 2 * 1024 * 1024), None).await);
    Ok(())
}

pub async fn unique_keys_hold_within_a_logical_partition(account: Arc<Account>) -> Outcome {
    let keys = UniqueKeyPolicy::default().with_unique_key(UniqueKey::default().with_path("/n"));
    let container =
        account.create("/pk".into(), 400, |properties| properties.with_unique_key_policy(keys)).await?;
    container.create_item("a", "1", item(1, "a", 1), None).await?;
    fails(409, container.create_item("a", "2", item(2, "a", 1), None).await);
    let equal_number = json!({"id": "2", "pk": "a", "n": 1.0});
    fails(409, container.create_item("a", "2", equal_number, None).await);
    container.create_item("b", "2", item(2, "b", 1), None).await?;
    container.create_item("a", "2", item(2, "a", 2), None).await?;
    let count: Vec<i64> = rows(&container, "SELECT VALUE COUNT(1) FROM c", FeedScope::partition("a")).await?;
    equal(count, vec![2], "items");
    Ok(())
}
