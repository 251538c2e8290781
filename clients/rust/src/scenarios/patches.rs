//! Partial updates, by the server and by the SDK's own read-modify-write.

use std::sync::Arc;

use azure_core::http::Etag;
use azure_data_cosmos::{
    clients::ContainerClient,
    models::{PatchInstructions, PatchOperation},
    options::{PatchItemOptions, PatchStrategy, Precondition},
};
use serde_json::{Value, json};

use crate::harness::{Account, Failure, Outcome, equal, fails};

async fn patch(container: &ContainerClient, operations: Vec<PatchOperation>) -> Result<Value, Failure> {
    let options = PatchItemOptions::default().with_strategy(PatchStrategy::ServerSide);
    let response = container.patch_item("a", "1", PatchInstructions::from(operations), Some(options)).await?;
    Ok(response.into_model()?)
}

async fn start(account: &Account, body: Value) -> Result<ContainerClient, Failure> {
    let container = account.container().await?;
    container.create_item("a", "1", body, None).await?;
    Ok(container)
}

pub async fn patch_every_operation(account: Arc<Account>) -> Outcome {
    let start_with = json!({"id": "1", "pk": "a", "n": 1, "tags": ["x", "y"], "nested": {"a": 1}});
    let container = start(&account, start_with).await?;
    let cases = [
        (PatchOperation::add("/new", json!({"k": [1]})), "/new", json!({"k": [1]})),
        (PatchOperation::add("/tags/1", json!("mid")), "/tags", json!(["x", "mid", "y"])),
        (PatchOperation::add("/tags/-", json!("end")), "/tags", json!(["x", "mid", "y", "end"])),
        (PatchOperation::set("/tags/0", json!("first")), "/tags", json!(["first", "mid", "y", "end"])),
        (PatchOperation::replace("/nested/a", Value::Null), "/nested", json!({"a": null})),
        (PatchOperation::remove("/tags/1"), "/tags", json!(["first", "y", "end"])),
        (PatchOperation::increment("/n", 5), "/n", json!(6)),
        (PatchOperation::move_value("/n", "/moved"), "/moved", json!(6)),
    ];
    for (operation, pointer, expected) in cases {
        let found = patch(&container, vec![operation]).await?;
        equal(found.pointer(pointer), Some(&expected), pointer);
    }
    // More than the server takes at once: the SDK reads, changes and replaces by itself.
    let many = vec![PatchOperation::increment("/moved", 1); 12];
    let found: Value =
        container.patch_item("a", "1", PatchInstructions::from(many), None).await?.into_model()?;
    equal(&found["moved"], &json!(18), "moved");
    Ok(())
}

pub async fn patch_is_all_or_nothing(account: Arc<Account>) -> Outcome {
    let container = start(&account, json!({"id": "1", "pk": "a", "n": 1, "s": "text"})).await?;
    let set = || PatchOperation::set("/n", json!(2));
    for operations in [
        vec![set(), PatchOperation::replace("/missing", json!(1))],
        vec![set(), PatchOperation::increment("/s", 1)],
        vec![set(), PatchOperation::set("/pk", json!("b"))],
        vec![set(), PatchOperation::set("/id", json!("2"))],
    ] {
        let options = PatchItemOptions::default().with_strategy(PatchStrategy::ServerSide);
        let instructions = PatchInstructions::from(operations);
        fails(400, container.patch_item("a", "1", instructions, Some(options)).await);
    }
    let options = PatchItemOptions::default()
        .with_strategy(PatchStrategy::ServerSide)
        .with_precondition(Precondition::IfMatch(Etag::from("\"stale\"")));
    let instructions = PatchInstructions::from(vec![set()]);
    fails(412, container.patch_item("a", "1", instructions, Some(options)).await);
    let found: Value = container.read_item("a", "1", None).await?.into_model()?;
    equal(&found["n"], &json!(1), "n");
    Ok(())
}
