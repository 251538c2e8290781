//! Tests of removed regions, stepwise failovers and the routes for scripted test suites.

use http::Method;
use perihelion_emulator::EmulatorConfig;
use serde_json::{Value, json};

use super::account::KEY;
use crate::live::{LiveAccount, LiveResponse};

/// Three regions, and one item in one container that all of them have.
async fn three_regions() -> LiveAccount {
    let mut config = EmulatorConfig::default();
    config.regions = ["East US", "West US", "North Europe"].map(str::to_owned).to_vec().into();
    config.lag = perihelion_emulator::regions::Lag::NONE;
    let account = LiveAccount::start(config).await;
    account.create_container(json!({})).await;
    account.create(json!({ "id": "1", "pk": "p" })).await.expect(201);
    account
}

async fn read(account: &LiveAccount) -> LiveResponse {
    account.get("/dbs/d/colls/c/docs/1", &[KEY]).await
}

/// The names that the account document lists as readable and as writable.
async fn listed(account: &LiveAccount) -> (Vec<String>, Vec<String>) {
    let document = account.get("/", &[]).await.expect(200).body;
    let names = |locations: &Value| {
        let locations = locations.as_array().unwrap().iter();
        locations.map(|location| location["name"].as_str().unwrap().to_owned()).collect()
    };
    (names(&document["readableLocations"]), names(&document["writableLocations"]))
}

/// The write region and the writable regions, from `/account`.
async fn writers(account: &LiveAccount) -> (String, Vec<String>) {
    let reported = account.control_get("/account").await.expect(200).body;
    let regions = reported["regions"].as_array().unwrap().iter().filter(|region| region["writable"] == true);
    let writable = regions.map(|region| region["name"].as_str().unwrap().to_owned()).collect();
    (reported["writeRegion"].as_str().unwrap().to_owned(), writable)
}

#[tokio::test]
async fn the_capabilities_route_lists_the_features() {
    let account = three_regions().await;
    let capabilities = account.control_get("/capabilities").await.expect(200).body;
    assert_eq!(capabilities["apiVersion"], 1);
    assert_eq!(capabilities["protocols"], json!({ "gatewayV1": true, "gatewayV2": false }));
    for (member, name) in [
        ("dataPlane", "transactionalBatch"),
        ("dataPlane", "changeFeed"),
        ("managementActions", "regionLifecycle"),
        ("managementActions", "writeRegionFailover"),
        ("managementActions", "replicationPauseResume"),
        ("managementActions", "partitionSplit"),
        ("managementActions", "partitionMerge"),
    ] {
        assert!(capabilities[member].as_array().unwrap().contains(&json!(name)), "{member} has {name}");
    }
    let health = account.control_get("/health").await.expect(200).body;
    assert_eq!((&health["status"], &health["gateway20Enabled"]), (&json!("ready"), &json!(false)));
    assert_eq!(writers(&account).await, ("East US".to_owned(), vec!["East US".to_owned()]));
}

#[tokio::test]
async fn a_region_is_removed_and_added_again() {
    let account = three_regions().await;
    let europe = account.in_region(2);
    account.control_post("/regions/North%20Europe/removal/begin", json!({})).await.expect(200);
    assert_eq!(read(&europe).await.expect(403).sub_status(), "1008");
    assert!(listed(&account).await.0.contains(&"North Europe".to_owned()), "still listed");
    account.control_post("/regions/North%20Europe/removal/cancel", json!({})).await.expect(200);
    read(&europe).await.expect(200);

    let removed = account.control_post("/regions/North%20Europe/remove", json!({})).await.expect(200).body;
    assert_eq!(removed["regions"][2]["removed"], true);
    assert_eq!(listed(&account).await.0, ["East US", "West US"]);
    assert_eq!(read(&europe).await.expect(403).sub_status(), "1008");
    assert_eq!(europe.get("/", &[]).await.expect(403).sub_status(), "1008");
    for step in ["online", "offline", "removal/begin", "removal/cancel"] {
        let rejected =
            account.control_post(&format!("/regions/northeurope/{step}"), json!({})).await.expect(409);
        assert!(rejected.message().contains("add it again"), "{step}: {}", rejected.message());
    }
    account.control_post("/failover/northeurope/begin", json!({})).await.expect(409);

    account.control_post("/regions/North%20Europe/add", json!({})).await.expect(200);
    assert_eq!(listed(&account).await.0, ["East US", "West US", "North Europe"]);
    read(&europe).await.expect(200);
    for step in ["removal/begin", "remove"] {
        let rejected = account.control_post(&format!("/regions/eastus/{step}"), json!({})).await.expect(409);
        assert!(rejected.message().contains("fail over"), "{step}: {}", rejected.message());
    }
    account.control_post("/regions/Mars/remove", json!({})).await.expect(404);
}

#[tokio::test]
async fn a_region_that_goes_offline_hands_its_writes_to_the_next_one_that_is_up() {
    let account = three_regions().await;
    let europe = account.in_region(2);
    account.control_post("/regions/westus/offline", json!({})).await.expect(200);
    assert_eq!(writers(&account).await.0, "East US", "it did not write");
    account.control_post("/regions/eastus/offline", json!({})).await.expect(200);
    assert_eq!(writers(&account).await.0, "North Europe", "West US is down");
    europe.create(json!({ "id": "2", "pk": "p" })).await.expect(201);
    let alone = account.control_post("/regions/northeurope/offline", json!({})).await.expect(409);
    assert!(alone.message().contains("no other region"), "{}", alone.message());
    account.control_post("/regions/eastus/online", json!({})).await.expect(200);
    account.get("/dbs/d/colls/c/docs/2", &[KEY]).await.expect(200);
}

#[tokio::test]
async fn a_failover_is_announced_begun_and_completed() {
    let account = three_regions().await;
    let west = account.in_region(1);
    let write = |id: &str| json!({ "id": id, "pk": "p" });

    account.control_post("/failover/West%20US/announce", json!({})).await.expect(200);
    let both = vec!["East US".to_owned(), "West US".to_owned()];
    assert_eq!(writers(&account).await, ("East US".to_owned(), both.clone()));
    assert_eq!(listed(&account).await.1, both);
    account.create(write("announced")).await.expect(201);
    assert_eq!(west.create(write("early")).await.expect(403).sub_status(), "3");

    account.control_post("/failover/West%20US/begin", json!({})).await.expect(200);
    assert_eq!(listed(&account).await.1, ["West US", "East US"]);
    assert_eq!(account.create(write("late")).await.expect(403).sub_status(), "3");
    west.create(write("begun")).await.expect(201);

    account.control_post("/failover/complete", json!({})).await.expect(200);
    assert_eq!(writers(&account).await, ("West US".to_owned(), vec!["West US".to_owned()]));
    assert_eq!(listed(&account).await.1, ["West US"]);
    account.control_post("/failover/complete", json!({})).await.expect(200);
}

#[tokio::test]
async fn failover_priorities_set_the_order_and_the_write_region() {
    let account = three_regions().await;
    let put = |regions: Value| {
        let body = json!({ "regions": regions }).to_string();
        let account = &account;
        async move { account.control(Method::PUT, "/failover/priorities", &body).await }
    };
    put(json!(["North Europe", "East US", "West US"])).await.expect(200);
    assert_eq!(writers(&account).await.0, "North Europe");
    assert_eq!(listed(&account).await.0, ["North Europe", "East US", "West US"]);
    for (order, status) in [
        (json!(["North Europe", "East US"]), 400),
        (json!(["North Europe", "East US", "East US"]), 400),
        (json!([]), 400),
        (json!(["North Europe", "East US", "Mars"]), 404),
        (json!("East US"), 400),
    ] {
        put(order).await.expect(status);
    }
    assert_eq!(writers(&account).await.0, "North Europe", "nothing changed");
}

#[tokio::test]
async fn a_multi_write_account_has_no_failover() {
    let mut config = EmulatorConfig::default();
    config.regions = ["East US", "West US"].map(str::to_owned).to_vec().into();
    config.multi_write = true;
    let account = LiveAccount::start(config).await;
    let reported = account.control_get("/account").await.expect(200).body;
    assert_eq!(reported["writeMode"], "multi");
    for path in ["/failover/eastus/announce", "/failover/eastus/begin"] {
        account.control_post(path, json!({})).await.expect(409);
    }
    account.control_post("/regions/westus/offline", json!({})).await.expect(200);
}
