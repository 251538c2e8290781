//! Compatibility probes of authorization, regions and sessions.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use perihelion_emulator::clock::Clock;
use perihelion_emulator::{Emulator, EmulatorConfig};
use protocol::authorization::{AccountKey, sign};
use serde_json::json;

use super::fixture::{CompatibilityFixture, DOCS, KEY};
use super::{LiveResponse, Probe, Probes, ignored, refused, supported};
use crate::live::LiveAccount;

pub(super) fn probes() -> Probes {
    vec![
        ("master-key", supported!(master_key)),
        ("master-key-rid", supported!(master_key_rid)),
        ("date-header", supported!(date_header)),
        ("clock-skew", supported!(clock_skew)),
        ("no-authorization", supported!(no_authorization)),
        ("aad-token", supported!(aad_token)),
        ("aad-token-expiry", supported!(aad_token_expiry)),
        ("resource-token", supported!(resource_token)),
        ("resource-token-revocation", ignored!(resource_token_revocation)),
        ("sas-key", supported!(sas_key)),
        ("second-key", supported!(second_key)),
        ("account-read", supported!(account_read)),
        ("account-endpoints", supported!(account_endpoints)),
        ("account-query-engine", supported!(account_query_engine)),
        ("thin-client", Probe::IgnoredHeader("x-ms-cosmos-use-thinclient", "true")),
        ("thin-client-probe", refused!(thin_client_probe, "/connectivity-probe")),
        ("direct-mode", refused!(direct_mode, "direct mode")),
        ("tentative-writes", Probe::IgnoredHeader("x-ms-cosmos-allow-tentative-writes", "true")),
        ("hub-region", Probe::IgnoredHeader("x-ms-cosmos-hub-region-processing-only", "true")),
        ("management-surface", supported!(management_surface)),
        ("consistency-level", supported!(consistency_level)),
        ("consistency-stronger", supported!(consistency_stronger)),
        ("read-consistency-strategy", supported!(read_consistency_strategy)),
        ("session-token", supported!(session_token)),
        ("session-not-available", supported!(session_not_available)),
        ("session-legacy-form", supported!(session_legacy_form)),
        ("session-unknown-range", ignored!(session_unknown_range)),
        ("session-on-writes", ignored!(session_on_writes)),
        ("lsn", supported!(lsn)),
    ]
}

fn key() -> AccountKey {
    AccountKey::from_base64(perihelion_emulator::WELL_KNOWN_KEY).unwrap()
}

fn date(fixture: &CompatibilityFixture) -> String {
    httpdate::fmt_http_date(fixture.account.clock.now().to_system_time())
}

async fn master_key(fixture: &CompatibilityFixture) {
    let date = date(fixture);
    let good = sign(&key(), "GET", "dbs", "dbs/d", &date);
    fixture.get_as("/dbs/d", &[("authorization", &good), ("x-ms-date", &date)]).await.expect(200);
    let wrong = sign(&AccountKey::from_base64("d3Jvbmc=").unwrap(), "GET", "dbs", "dbs/d", &date);
    fixture.get_as("/dbs/d", &[("authorization", &wrong), ("x-ms-date", &date)]).await.expect(401);
}

async fn master_key_rid(fixture: &CompatibilityFixture) {
    let database = fixture.account.get("/dbs/d", &[]).await.expect(200);
    let rid = database.body["_rid"].as_str().unwrap();
    let date = date(fixture);
    let signature = sign(&key(), "GET", "dbs", &rid.to_lowercase(), &date);
    fixture
        .get_as(&format!("/dbs/{rid}/"), &[("authorization", &signature), ("x-ms-date", &date)])
        .await
        .expect(200);
}

async fn date_header(fixture: &CompatibilityFixture) {
    let date = date(fixture);
    let text = format!("get\ndbs\n\n\n{}\n", date.to_lowercase());
    let signature = format!("type=master&ver=1.0&sig={}", key().sign_bytes(text.as_bytes()));
    fixture.get_as("/dbs", &[("authorization", &signature), ("date", &date)]).await.expect(200);
}

async fn clock_skew(fixture: &CompatibilityFixture) {
    let date = "Sun, 15 Nov 2026 12:30:00 GMT";
    let signature = sign(&key(), "GET", "dbs", "", date);
    let rejected =
        fixture.get_as("/dbs", &[("authorization", &signature), ("x-ms-date", date)]).await.expect(403);
    assert!(rejected.message().contains("not valid at the current time"));
}

async fn no_authorization(fixture: &CompatibilityFixture) {
    let missing = fixture.get_as("/dbs", &[]).await.expect(401);
    assert_eq!(missing.sub_status(), "5000");
    let malformed =
        fixture.get_as("/dbs", &[("authorization", "nonsense"), ("x-ms-date", &date(fixture))]).await;
    assert_eq!(malformed.expect(401).sub_status(), "5001");
}

async fn aad_token(fixture: &CompatibilityFixture) {
    let token = "type%3Daad%26ver%3D1.0%26sig%3DeyJhbGciOiJub25lIn0.eyJvaWQiOiIxIn0.c2ln";
    let headers = [("authorization", token), KEY];
    fixture.get_as("/dbs/d", &headers).await.expect(200);
    fixture.get_as(&format!("{DOCS}/1"), &headers).await.expect(200);
    assert_eq!(fixture.get_as("/offers", &headers).await.expect(403).sub_status(), "5300");
}

async fn aad_token_expiry(fixture: &CompatibilityFixture) {
    // {"exp":1000000000}
    let token = "type%3Daad%26ver%3D1.0%26sig%3DeyJhbGciOiJub25lIn0.eyJleHAiOjEwMDAwMDAwMDB9.c2ln";
    let late = fixture.get_as("/dbs/d", &[("authorization", token), ("x-ms-date", &date(fixture))]).await;
    assert_eq!(late.expect(401).sub_status(), "5006");
}

/// A token to read the fixture's container, as a client sends it.
async fn token(fixture: &CompatibilityFixture, user: &str) -> String {
    fixture.account.post("/dbs/d/users", &[], json!({"id": user})).await.expect(201);
    let terms = json!({"id": "p", "permissionMode": "Read", "resource": "dbs/d/colls/c"});
    let permission =
        fixture.account.post(&format!("/dbs/d/users/{user}/permissions"), &[], terms).await.expect(201);
    utf8_percent_encode(permission.body["_token"].as_str().unwrap(), NON_ALPHANUMERIC).to_string()
}

async fn resource_token(fixture: &CompatibilityFixture) {
    let token = token(fixture, "token-user").await;
    let headers = [("authorization", token.as_str()), KEY];
    fixture.get_as(&format!("{DOCS}/1"), &headers).await.expect(200);
    fixture
        .account
        .send_unsigned(http::Method::DELETE, &format!("{DOCS}/1"), &headers, "".into())
        .await
        .expect(403);
}

async fn resource_token_revocation(fixture: &CompatibilityFixture) -> (LiveResponse, LiveResponse) {
    let token = token(fixture, "revoked-user").await;
    let headers = [("authorization", token.as_str()), KEY];
    let before = fixture.get_as(&format!("{DOCS}/1"), &headers).await.expect(200);
    fixture.account.delete("/dbs/d/users/revoked-user/permissions/p", &[]).await.expect(204);
    (before, fixture.get_as(&format!("{DOCS}/1"), &headers).await)
}

async fn sas_key(fixture: &CompatibilityFixture) {
    let now = fixture.account.clock.now().seconds();
    let (start, end) = (now - 60, now + 60);
    let payload = format!("user\n\n/dbs/d/colls/c\n\n{start:x}\n{end:x}\n1\n40\n0\n40\n0\n");
    let payload = STANDARD.encode(payload);
    let token = format!("type=sas&ver=1.0&sig={};{payload}", key().sign_bytes(payload.as_bytes()));
    let token = utf8_percent_encode(&token, NON_ALPHANUMERIC).to_string();
    let headers = [("authorization", token.as_str()), KEY];
    fixture.get_as(&format!("{DOCS}/1"), &headers).await.expect(200);
    fixture.get_as(DOCS, &headers).await.expect(403);
}

async fn second_key(_: &CompatibilityFixture) {
    let mut config = EmulatorConfig::default();
    config.secondary_key = Some("c2Vjb25kYXJ5".to_owned());
    config.read_only_keys = vec!["cmVhZC1vbmx5".to_owned()];
    let running = Emulator::start(config).await.unwrap();
    let date = httpdate::fmt_http_date(Clock::system().now().to_system_time());
    for (key, expected) in [("c2Vjb25kYXJ5", 200), ("cmVhZC1vbmx5", 200), ("d3Jvbmc=", 401)] {
        let signature = sign(&AccountKey::from_base64(key).unwrap(), "GET", "dbs", "", &date);
        let headers = [("authorization", signature.as_str()), ("x-ms-date", &date)];
        assert_eq!(LiveAccount::get_unsigned(running.port(), "/dbs", &headers).await, expected, "{key}");
    }
}

async fn account_read(fixture: &CompatibilityFixture) {
    let account = fixture.account.get("/", &[]).await.expect(200).body;
    for text in ["_self", "id", "_rid"] {
        assert!(account[text].is_string(), "{text}");
    }
    assert_eq!(account["userConsistencyPolicy"]["defaultConsistencyLevel"], "Session");
    assert_eq!(account["enableMultipleWriteLocations"], false);
}

async fn account_endpoints(fixture: &CompatibilityFixture) {
    let account = fixture.account.get("/", &[]).await.expect(200).body;
    for list in ["writableLocations", "readableLocations"] {
        let endpoint = account[list][0]["databaseAccountEndpoint"].as_str().unwrap();
        assert_eq!(endpoint, format!("http://localhost:{}/", fixture.account.port()));
    }
}

async fn account_query_engine(fixture: &CompatibilityFixture) {
    let account = fixture.account.get("/", &[]).await.expect(200).body;
    let text = account["queryEngineConfiguration"].as_str().expect("a text");
    assert!(serde_json::from_str::<serde_json::Value>(text).unwrap()["maxSqlQueryInputLength"].is_u64());
}

async fn thin_client_probe(fixture: &CompatibilityFixture) -> LiveResponse {
    fixture.account.post("/connectivity-probe", &[], json!({})).await
}

async fn direct_mode(fixture: &CompatibilityFixture) -> LiveResponse {
    // Java's path; .NET's begins with two slashes. Neither is signed as other requests are.
    for path in ["/addresses/?$resolveFor=dbs&$filter=protocol%20eq%20rntbd", "//addresses/?$resolveFor=dbs"]
    {
        let refused = fixture.account.send_unsigned(Method::GET, path, &[], Bytes::new()).await.expect(400);
        for setting in ["gatewayMode()", "ConnectionMode.Gateway"] {
            assert!(refused.message().contains(setting), "{}", refused.message());
        }
    }
    fixture.account.get("/addresses", &[]).await
}

async fn management_surface(fixture: &CompatibilityFixture) {
    fixture.account.post("/regions/West%20US/offline", &[], json!({})).await.expect(404);
    let capabilities = fixture.account.control(Method::GET, "/capabilities", "").await.expect(200).body;
    assert_eq!(capabilities["apiVersion"], 1);
    let reported = fixture.account.control(Method::GET, "/account", "").await.expect(200).body;
    assert_eq!(reported["writeRegion"], reported["regions"][0]["name"]);
    let account = LiveAccount::with_container(1, json!({})).await;
    let split = "/databases/d/containers/c/partitions/0/split";
    let begun = account.control(Method::POST, split, r#"{"progressionMode":"manual"}"#).await.expect(202);
    assert_eq!(begun.body["phase"], "Preparing");
    let advance = format!("/operations/{}/advance", begun.body["operationId"].as_str().unwrap());
    assert_eq!(account.control(Method::POST, &advance, "").await.expect(200).body["phase"], "Swapping");
    let range = ("x-ms-documentdb-partitionkeyrangeid", "0");
    assert_eq!(account.get(DOCS, &[range]).await.expect(410).sub_status(), "1007");
}

async fn consistency_level(fixture: &CompatibilityFixture) {
    for level in ["Session", "ConsistentPrefix", "Eventual"] {
        let header = ("x-ms-consistency-level", level);
        fixture.account.get(&format!("{DOCS}/1"), &[KEY, header]).await.expect(200);
    }
}

async fn consistency_stronger(fixture: &CompatibilityFixture) {
    for level in ["Strong", "BoundedStaleness"] {
        let header = ("x-ms-consistency-level", level);
        let rejected = fixture.account.get(&format!("{DOCS}/1"), &[KEY, header]).await.expect(400);
        assert!(rejected.message().contains("stronger"));
    }
}

async fn read_consistency_strategy(fixture: &CompatibilityFixture) {
    for (strategy, status) in
        [("Eventual", 200), ("Session", 200), ("LatestCommitted", 200), ("GlobalStrong", 400)]
    {
        let header = ("x-ms-cosmos-read-consistency-strategy", strategy);
        fixture.account.get(&format!("{DOCS}/1"), &[KEY, header]).await.expect(status);
    }
}

async fn session_token(fixture: &CompatibilityFixture) {
    let created = fixture.account.create(json!({"id": "session", "pk": "s"})).await.expect(201);
    let token = created.header("x-ms-session-token").to_owned();
    assert!(token.starts_with("0:"), "{token}");
    let key = ("x-ms-documentdb-partitionkey", r#"["s"]"#);
    let read = fixture.account.get(&format!("{DOCS}/session"), &[key, ("x-ms-session-token", &token)]).await;
    assert_eq!(read.expect(200).header("x-ms-session-token"), token);
}

/// The fixture's session token, advanced by a thousand writes that did not happen.
async fn ahead(fixture: &CompatibilityFixture) -> String {
    let read = fixture.account.get(&format!("{DOCS}/1"), &[KEY]).await.expect(200);
    let token = read.header("x-ms-session-token");
    let lsn: u64 = read.header("lsn").parse().unwrap();
    token.replacen(&format!("#{lsn}"), &format!("#{}", lsn + 1000), 1)
}

async fn session_not_available(fixture: &CompatibilityFixture) {
    let token = ahead(fixture).await;
    let rejected =
        fixture.account.get(&format!("{DOCS}/1"), &[KEY, ("x-ms-session-token", &token)]).await.expect(404);
    assert_eq!(rejected.sub_status(), "1002");
}

async fn session_legacy_form(fixture: &CompatibilityFixture) {
    let path = format!("{DOCS}/1");
    fixture.account.get(&path, &[KEY, ("x-ms-session-token", "0:1")]).await.expect(200);
    let rejected = fixture.account.get(&path, &[KEY, ("x-ms-session-token", "0:999999")]).await.expect(404);
    assert_eq!(rejected.sub_status(), "1002");
}

async fn session_unknown_range(fixture: &CompatibilityFixture) -> (LiveResponse, LiveResponse) {
    let path = format!("{DOCS}/1");
    let header = ("x-ms-session-token", "77:-1#999999");
    (fixture.account.get(&path, &[KEY]).await, fixture.account.get(&path, &[KEY, header]).await)
}

async fn session_on_writes(fixture: &CompatibilityFixture) -> (LiveResponse, LiveResponse) {
    let token = ahead(fixture).await;
    let item = json!({"id": "session-write", "pk": "a-write"});
    let key = ("x-ms-documentdb-partitionkey", r#"["a-write"]"#);
    let upsert = ("x-ms-documentdb-is-upsert", "true");
    fixture.account.post(DOCS, &[key, upsert], item.clone()).await.expect(201);
    let without = fixture.account.post(DOCS, &[key, upsert], item.clone()).await;
    (without, fixture.account.post(DOCS, &[key, upsert, ("x-ms-session-token", &token)], item).await)
}

async fn lsn(fixture: &CompatibilityFixture) {
    let path = fixture.container(json!({})).await;
    let key = ("x-ms-documentdb-partitionkey", r#"["a"]"#);
    let mut last = None;
    for n in 0..3 {
        let item = json!({"id": n.to_string(), "pk": "a"});
        let created = fixture.account.post(&format!("{path}/docs"), &[key], item).await.expect(201);
        let lsn: u64 = created.header("lsn").parse().unwrap();
        assert!(last.is_none_or(|last| lsn == last + 1));
        last = Some(lsn);
    }
    let read = fixture.account.get(&format!("{path}/docs/2"), &[key]).await.expect(200);
    assert_eq!(read.header("x-ms-item-lsn"), last.unwrap().to_string());
}
