//! The account's own endpoint beside those of its regions, regions that are added, and host names.

use std::sync::Arc;

use http::Method;
use perihelion_emulator::faults::DownMode;
use perihelion_emulator::{DataDir, EmulatorConfig, Fsync};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::live::LiveAccount;

const ITEM: &str = "/dbs/d/colls/c/docs/1";
const KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["p"]"#);
const REGIONS: [&str; 3] = ["West US", "East US", "North Europe"];
const MODES: [DownMode; 3] = [DownMode::Refused, DownMode::BlackHole, DownMode::Unavailable];

async fn three_regions() -> LiveAccount {
    let account =
        LiveAccount::with(|config| config.regions = REGIONS.map(str::to_owned).to_vec().into()).await;
    account.create_container(json!({})).await;
    account
}

/// The names and endpoints of the regions that an account resource lists.
fn endpoints(account: &Value) -> Vec<(&str, &str)> {
    account["readableLocations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|location| {
            (location["name"].as_str().unwrap(), location["databaseAccountEndpoint"].as_str().unwrap())
        })
        .collect()
}

#[tokio::test]
async fn the_account_endpoint_is_no_region_and_leads_to_the_write_region() {
    let west = three_regions().await;
    let (account, east) = (west.at_account(), west.in_region(1));
    let listed = account.get("/", &[]).await.expect(200).body;
    assert!(
        endpoints(&listed).iter().all(|(_, url)| !url.ends_with(&format!(":{}/", account.port()))),
        "{listed}"
    );
    account.create(json!({"id": "1", "pk": "p"})).await.expect(201);
    west.running().region("East US").unwrap().fail_over().unwrap();
    west.create(json!({"id": "2", "pk": "p"})).await.expect(403);
    account.create(json!({"id": "2", "pk": "p"})).await.expect(201);
    east.get("/dbs/d/colls/c/docs/2", &[KEY]).await.expect(200);
    assert_eq!(account.get("/", &[]).await.expect(200).body["writableLocations"][0]["name"], "East US");
}

#[tokio::test]
async fn the_account_resource_is_served_while_any_one_region_is_down() {
    let account = three_regions().await.at_account();
    account.create(json!({"id": "1", "pk": "p"})).await.expect(201);
    for region in REGIONS {
        for mode in MODES {
            account.running().region(region).unwrap().down(mode).unwrap();
            let listed = account.get("/", &[]).await.expect(200).body;
            assert_eq!(endpoints(&listed).len(), 3, "{region} {mode:?}");
            account.running().region(region).unwrap().up().unwrap();
        }
    }
    // Everything else follows the write region, also into its outage.
    let west = account.running().region("West US").unwrap();
    west.down(DownMode::Unavailable).unwrap();
    account.get(ITEM, &[KEY]).await.expect(503);
    west.down(DownMode::Refused).unwrap();
    let stream = TcpStream::connect(("127.0.0.1", account.port())).await.unwrap();
    let mut bytes = Vec::new();
    let (mut read, mut write) = stream.into_split();
    tokio::io::AsyncWriteExt::write_all(&mut write, b"GET /dbs HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .unwrap();
    tokio::io::AsyncReadExt::read_to_end(&mut read, &mut bytes).await.ok();
    assert!(bytes.is_empty(), "{}", String::from_utf8_lossy(&bytes));
    west.up().unwrap();
    account.get(ITEM, &[KEY]).await.expect(200);
}

#[tokio::test]
async fn an_only_region_has_the_account_endpoint_until_another_is_added() {
    let account = LiveAccount::with(|_| {}).await;
    account.create_container(json!({})).await;
    account.create(json!({"id": "1", "pk": "p"})).await.expect(201);
    let alone = account.get("/", &[]).await.expect(200).body;
    let own = format!("http://localhost:{}/", account.port());
    assert_eq!(endpoints(&alone), [("South Central US", own.as_str())]);
    account.running().region("South Central US").unwrap().down(DownMode::Refused).unwrap();
    TcpStream::connect(("127.0.0.1", account.port())).await.unwrap_err();

    account.control(Method::POST, "/regions/East%20US/add", "").await.expect(200);
    let listed = account.get("/", &[]).await.expect(200).body;
    let [("South Central US", first), ("East US", second)] = endpoints(&listed)[..] else {
        panic!("{listed}")
    };
    assert!(first != own && second != own && first != second, "{listed}");
    let east = account.in_region(1);
    east.get(ITEM, &[KEY]).await.expect(200);
    account.running().region("South Central US").unwrap().up().unwrap();
    account.create(json!({"id": "2", "pk": "p"})).await.expect(201);
    east.get("/dbs/d/colls/c/docs/2", &[KEY]).await.expect(200);
    east.create(json!({"id": "3", "pk": "p"})).await.expect(403);

    let regions = account.control(Method::POST, "/regions/West%20Europe/add", "").await.expect(200).body;
    assert_eq!(regions["regions"].as_array().unwrap().len(), 3);
    account.in_region(2).get(ITEM, &[KEY]).await.expect(200);
    account.running().region("West Europe").unwrap().fail_over().unwrap();
    account.at_account().create(json!({"id": "4", "pk": "p"})).await.expect(201);
    account.control(Method::POST, "/regions/%20/add", "").await.expect(400);
}

#[tokio::test]
async fn an_added_region_is_there_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let start = || {
        let mut config = EmulatorConfig::default();
        let mut data = DataDir::new(directory.path());
        data.fsync = Fsync::Never;
        config.data = Some(data);
        LiveAccount::start(config)
    };
    let account = start().await;
    account.create_container(json!({})).await;
    account.create(json!({"id": "1", "pk": "p"})).await.expect(201);
    account.control(Method::POST, "/regions/East%20US/add", "").await.expect(200);
    account.stop().await;
    let account = start().await;
    let listed = account.at_account().get("/", &[]).await.expect(200).body;
    assert_eq!(endpoints(&listed).len(), 2, "{listed}");
    account.in_region(1).get(ITEM, &[KEY]).await.expect(200);
}

#[tokio::test]
async fn the_account_names_the_advertised_host() {
    let account = LiveAccount::with(|config| config.advertise = Some("cosmos.test".to_owned())).await;
    let port = account.port();
    let endpoint = format!("http://cosmos.test:{port}/");
    assert_eq!(account.running().endpoint(), endpoint);
    let listed = account.get("/", &[]).await.expect(200).body;
    assert_eq!(endpoints(&listed), [("South Central US", endpoint.as_str())]);
    assert!(presents_certificate_for(&account, port, "cosmos.test").await);
}

#[tokio::test]
async fn a_domain_gives_the_account_and_each_region_a_host_name_of_its_own() {
    let account = LiveAccount::with(|config| {
        config.regions = REGIONS.map(str::to_owned).to_vec().into();
        config.domain = Some("documents.example.test".to_owned());
    })
    .await;
    let running = account.running();
    assert_eq!(running.endpoint(), format!("http://perihelion.documents.example.test:{}/", running.port()));
    let listed = account.at_account().get("/", &[]).await.expect(200).body;
    let hosts = ["perihelion-westus", "perihelion-eastus", "perihelion-northeurope"];
    for ((_, url), host) in endpoints(&listed).into_iter().zip(hosts) {
        let (name, port) = url.trim_start_matches("http://").trim_end_matches('/').rsplit_once(':').unwrap();
        assert_eq!(name, format!("{host}.documents.example.test"));
        assert!(presents_certificate_for(&account, port.parse().unwrap(), name).await, "{name}");
    }
    for (name, expected) in [
        ("perihelion.documents.example.test", true),
        ("perihelion-added.documents.example.test", true),
        ("documents.example.test", false),
        ("other.test", false),
    ] {
        assert_eq!(presents_certificate_for(&account, running.port(), name).await, expected, "{name}");
    }
}

/// Whether a TLS client that connects to `port` accepts its certificate for `name`.
async fn presents_certificate_for(account: &LiveAccount, port: u16, name: &str) -> bool {
    let pem = account.running().authority_pem().await.unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.is_ok()
}
