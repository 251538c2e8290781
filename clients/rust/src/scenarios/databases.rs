//! Databases, and what is refused at the door.

use std::sync::Arc;

use azure_data_cosmos::Query;
use futures::TryStreamExt;

use crate::harness::{Account, Outcome, connect, equal, fails, name};

pub async fn databases_are_created_read_queried_and_deleted(account: Arc<Account>) -> Outcome {
    let id = name("db");
    let created = account.client.create_database(&id, None).await?;
    equal(u16::from(created.status().status_code()), 201, "status of a create");
    let created = created.into_model()?;
    assert!(created.system_properties.resource_id.is_some(), "no _rid");

    let database = account.client.database_client(id.clone());
    let read = database.read(None).await?.into_model()?;
    equal(read.system_properties.resource_id, created.system_properties.resource_id, "_rid");
    fails(409, account.client.create_database(&id, None).await);

    let query = Query::from("SELECT * FROM root r WHERE r.id = @id").with_parameter("@id", &id)?;
    let found: Vec<_> = account.client.query_databases(query, None).await?.try_collect().await?;
    equal(found.len(), 1, "databases of that name");
    equal(database.read_throughput(None).await?.is_none(), true, "a database without throughput");

    database.delete(None).await?;
    fails(404, database.read(None).await);
    fails(404, database.delete(None).await);
    Ok(())
}

pub async fn a_wrong_key_is_refused(account: Arc<Account>) -> Outcome {
    let wrong = "d3Jvbmcga2V5IHdyb25nIGtleSB3cm9uZyBrZXkgd3Jvbmcga2V5IQ==";
    let refused = match connect(&account.endpoint, wrong).await {
        Err(error) => error,
        Ok(client) => fails(401, client.create_database(&name("db"), None).await),
    };
    assert!(refused.to_string().contains("401"), "{refused}");
    Ok(())
}

pub async fn what_is_missing_is_said_to_be(account: Arc<Account>) -> Outcome {
    fails(404, account.database.container_client("none", None).await);
    let container = account.container().await?;
    let error = fails(404, container.read_item("a", "none", None).await);
    assert!(error.is_from_wire(), "{error}");
    fails(404, container.delete_item("a", "none", None).await);
    Ok(())
}
