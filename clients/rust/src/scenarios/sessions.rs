//! Session tokens.

use std::sync::Arc;

use azure_data_cosmos::options::ItemReadOptions;
use serde_json::json;

use crate::harness::{Account, Outcome, body, equal, item};

pub async fn one_reads_ones_own_writes(account: Arc<Account>) -> Outcome {
    let container = account.several_partitions().await?;
    for n in 0..20 {
        let (key, id) = (format!("k{n}"), n.to_string());
        container.create_item(key.clone(), &id, item(n, key.clone(), 0), None).await?;
        container.upsert_item(key.clone(), &id, item(n, key.clone(), n), None).await?;
        equal(&body(container.read_item(key, &id, None).await?)?["n"], &json!(n), "n");
    }
    Ok(())
}

pub async fn a_token_may_be_handed_to_another_client(account: Arc<Account>) -> Outcome {
    let container = account.container().await?;
    let created = container.create_item("a", "1", item(1, "a", 1), None).await?;
    let token = created.headers().session_token().expect("a session token").clone();
    let read = container.read_item("a", "1", None).await?;
    equal(read.headers().session_token(), Some(&token), "a read does not move the token");
    let id = container.read(None).await?.into_model()?.id.into_owned();
    let other = account.other_client().await?;
    let theirs = other.database_client(account.database.id().clone()).container_client(id, None).await?;
    let options = ItemReadOptions::default().with_session_token(token);
    theirs.read_item("a", "1", Some(options)).await?;
    Ok(())
}

pub async fn a_token_from_the_future_is_not_served(account: Arc<Account>) -> Outcome {
    let container = account.container().await?;
    let created = container.create_item("a", "1", item(1, "a", 1), None).await?;
    let token = created.headers().session_token().expect("a session token").to_string();
    let mut parts: Vec<String> = token.split('#').map(str::to_owned).collect();
    parts[1] = (parts[1].parse::<u64>()? + 1_000_000).to_string();
    let options = ItemReadOptions::default().with_session_token(parts.join("#"));
    let Err(error) = container.read_item("a", "1", Some(options)).await else {
        panic!("a session from the future was served");
    };
    // The SDK asks every region it knows and then says that none can serve the session.
    let status = u16::from(error.status().status_code());
    assert!(status == 404 || status == 503, "{error}");
    container.read_item("a", "1", None).await?;
    Ok(())
}
