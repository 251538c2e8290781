//! Looking at the account and changing its shape: topology, regions, partitions, snapshots.

use http::Method;
use perihelion_emulator::EmulatorConfig;
use serde_json::{Value, json};

use crate::live::LiveAccount;

pub(super) const KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["p"]"#);

/// Two regions, and one item in one container.
pub(super) async fn two_regions() -> LiveAccount {
    let mut config = EmulatorConfig::default();
    config.regions = vec!["West US".to_owned(), "East US".to_owned()].into();
    let account = LiveAccount::start(config).await;
    account.create_container(json!({})).await;
    account.create(json!({ "id": "1", "pk": "p" })).await.expect(201);
    account
}

fn only<'a>(list: &'a Value, what: &str) -> &'a Value {
    let [one] = list.as_array().unwrap().as_slice() else { panic!("one {what}: {list}") };
    one
}

#[tokio::test]
async fn the_topology_goes_from_the_account_down_to_the_partitions() {
    let account = two_regions().await;
    let topology = account.control_get("/topology").await.expect(200).body;
    assert_eq!((&topology["consistency"], &topology["multiWrite"]), (&json!("Session"), &json!(false)));
    assert_eq!(topology["regions"][0]["name"], "West US");
    assert_eq!(topology["regions"][0]["endpoint"], format!("http://localhost:{}/", account.port()));
    assert_eq!(
        (&topology["regions"][0]["writes"], &topology["regions"][1]["writes"]),
        (&json!(true), &json!(false))
    );
    let database = only(&topology["databases"], "database");
    let container = only(&database["containers"], "container");
    assert_eq!(
        (&database["id"], &container["id"], &container["items"]),
        (&json!("d"), &json!("c"), &json!(1))
    );
    assert_eq!(container["partitionKey"], json!(["/pk"]));
    let partition = only(&container["partitions"], "partition");
    assert_eq!((&partition["range"], &partition["items"]), (&json!(0), &json!(1)));
    assert_eq!((&partition["minInclusive"], &partition["maxExclusive"]), (&json!(""), &json!("FF")));
    assert_eq!(partition["lsn"], json!({ "West US": 2, "East US": 2 }));
}

#[tokio::test]
async fn the_topology_can_be_filtered_by_existing_names() {
    let account = two_regions().await;
    for path in ["/topology", "/partitions"] {
        account.control_get(&format!("{path}?database=d&container=c")).await.expect(200);
        for query in ["database=other", "container=other", "database=d&container=other"] {
            let response = account.control_get(&format!("{path}?{query}")).await.expect(404);
            assert!(response.message().contains("'other'"), "{}", response.message());
        }
        account.control_get(&format!("{path}?colour=red")).await.expect(400);
    }
}

#[tokio::test]
async fn a_paused_region_stays_behind_until_it_is_resumed() {
    let account = two_regions().await;
    let lsn = || async {
        let listed = account.control_get("/partitions").await.expect(200).body;
        listed["partitions"][0]["lsn"].clone()
    };
    let paused = account.control_post("/regions/eastus/replication/pause", json!({})).await.expect(200).body;
    assert_eq!(paused["regions"][1]["paused"], true);
    account.create(json!({ "id": "2", "pk": "p" })).await.expect(201);
    assert_eq!(lsn().await, json!({ "West US": 3, "East US": 2 }));
    account.control_post("/regions/East%20US/replication/resume", json!({})).await.expect(200);
    assert_eq!(lsn().await, json!({ "West US": 3, "East US": 3 }));
    let missing = account.control_post("/regions/Mars/replication/pause", json!({})).await.expect(404);
    assert!(missing.message().contains("'East US'"), "{}", missing.message());
}

#[tokio::test]
async fn lag_is_set_between_all_regions_or_one_way() {
    let account = two_regions().await;
    account.control_post("/regions/lag", json!({ "lag": "10ms..20ms" })).await.expect(200);
    let one_way = json!({ "lag": "2s", "from": "West US", "to": "East US" });
    account.control_post("/regions/lag", one_way).await.expect(200);
    let regions = account.control_get("/regions").await.expect(200).body["regions"].clone();
    assert_eq!(regions[0]["lagFrom"], json!({ "East US": "10ms..20ms" }));
    assert_eq!(regions[1]["lagFrom"], json!({ "West US": "2s" }));
    for (body, status) in [
        (json!({ "lag": "soon" }), 400),
        (json!({}), 400),
        (json!({ "lag": "1s", "to": "Mars" }), 404),
        (json!({ "lag": "1s", "too": "East US" }), 400),
    ] {
        account.control_post("/regions/lag", body).await.expect(status);
    }
}

#[tokio::test]
async fn snapshots_are_saved_listed_restored_and_removed() {
    let account = two_regions().await;
    let saved = account.control_post("/snapshots/before%20the%20test", json!({})).await.expect(200).body;
    let snapshot = only(&saved["snapshots"], "snapshot");
    assert_eq!((&snapshot["name"], &snapshot["items"]), (&json!("before the test"), &json!(1)));
    account.delete("/dbs/d/colls/c/docs/1", &[KEY]).await.expect(204);
    account.control_post("/snapshots/before%20the%20test/restore", json!({})).await.expect(200);
    account.get("/dbs/d/colls/c/docs/1", &[KEY]).await.expect(200);
    let removed = account.control(Method::DELETE, "/snapshots/before%20the%20test", "").await.expect(200);
    assert_eq!(removed.body["snapshots"], json!([]));
    account.control_post("/snapshots/before%20the%20test/restore", json!({})).await.expect(404);
    account.control(Method::DELETE, "/snapshots/none", "").await.expect(404);
    account.control_post("/snapshots/a%2Fb", json!({})).await.expect(400);
}
