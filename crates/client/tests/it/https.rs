//! https endpoints of the local cloud, whose certificate authority is a file of this user.

use std::path::Path;
use std::time::Duration;

use emulator::{AuthoritySource, Emulator, EmulatorConfig, RunningEmulator};
use perihelion::{Account, CosmosClient, CosmosClientBuilder, ErrorKind};

/// An account in two regions, whose certificates an authority in `folder` signs.
async fn start(folder: &Path) -> RunningEmulator {
    let mut config = EmulatorConfig::default();
    config.regions = ["West US", "East US"].map(str::to_owned).to_vec().into();
    config.authority = AuthoritySource::StoredIn(folder.to_owned());
    Emulator::start(config).await.expect("the emulator starts")
}

fn builder(running: &RunningEmulator, folder: &Path) -> CosmosClientBuilder {
    let account = Account::from_connection_string(&running.https_connection_string()).expect("valid");
    CosmosClient::builder(account)
        .loopback_authority(folder.join("authority.pem"))
        .timeout(Duration::from_secs(30))
}

#[tokio::test]
async fn a_local_account_is_trusted_over_https_in_all_its_regions() {
    let folder = tempfile::tempdir().expect("a folder");
    let running = start(folder.path()).await;
    for region in ["West US", "East US"] {
        let client = builder(&running, folder.path()).preferred_regions([region]).build().expect("valid");
        client.create_database_if_missing("shop").await.expect("trusted");
        let read = client.database("shop").read().await.expect("trusted");
        let endpoint = read.diagnostics().attempts().last().expect("an attempt").endpoint.clone();
        assert_eq!((endpoint.region().as_str(), endpoint.url().scheme()), (region, "https"));
    }
}

#[tokio::test]
async fn a_client_that_was_built_before_the_authority_existed_trusts_it_later() {
    let folder = tempfile::tempdir().expect("a folder");
    let elsewhere = tempfile::tempdir().expect("a folder");
    let running = start(elsewhere.path()).await;
    let client = builder(&running, folder.path()).timeout(Duration::from_secs(5)).build().expect("valid");
    let error = client.create_database("shop").await.expect_err("not trusted");
    assert_eq!(error.kind(), ErrorKind::Configuration, "{error}");
    let text = error.to_string();
    assert!(text.contains("authority.pem does not exist"), "{text}");
    assert!(text.contains("`peri cert`") && text.contains("`trust_pem`"), "{text}");

    std::fs::copy(elsewhere.path().join("authority.pem"), folder.path().join("authority.pem"))
        .expect("copied");
    client.create_database("shop").await.expect("trusted");
}
