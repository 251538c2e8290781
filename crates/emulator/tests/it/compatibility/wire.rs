//! Errors, headers, charges and the transport itself.

use std::io::Read as _;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::super::client::TestAccount;
use super::fixture::{CompatibilityFixture, DOCS, KEY};
use super::{LiveResponse, Probe, Probes, refused, supported};

pub(super) fn probes() -> Probes {
    vec![
        ("error-body", supported!(error_body)),
        ("error-codes", supported!(error_codes)),
        ("error-unknown-path", refused!(error_unknown_path, "Not Found")),
        ("error-wrong-verb", supported!(error_wrong_verb)),
        ("no-retry-449", Probe::IgnoredHeader("x-ms-noretry-449", "true")),
        ("service-faults", supported!(service_faults)),
        ("header-activity-id", supported!(header_activity_id)),
        ("header-charge", supported!(header_charge)),
        ("header-duration", supported!(header_duration)),
        ("header-versions", supported!(header_versions)),
        ("header-partition", supported!(header_partition)),
        ("header-content-path", supported!(header_content_path)),
        ("header-content-location", supported!(header_content_location)),
        ("header-quota", supported!(header_quota)),
        ("header-share-throughput", supported!(header_share_throughput)),
        ("header-replicas", supported!(header_replicas)),
        ("header-lsns", supported!(header_lsns)),
        ("header-last-state-change", supported!(header_last_state_change)),
        ("client-id", Probe::IgnoredHeader("x-ms-client-id", "8af85aa5-0000-0000-0000-000000000000")),
        ("client-capabilities", Probe::IgnoredHeader("x-ms-cosmos-sdk-supportedcapabilities", "11")),
        ("client-operation-type", Probe::IgnoredHeader("x-ms-thinclient-proxy-operation-type", "Read")),
        ("client-resource-type", Probe::IgnoredHeader("x-ms-thinclient-proxy-resource-type", "docs")),
        ("client-user-agent", Probe::IgnoredHeader("x-ms-useragent", "azure-cosmos-js/4.10.1")),
        ("client-api-version", supported!(client_api_version)),
        ("charge-read", supported!(charge_read)),
        ("charge-write", supported!(charge_write)),
        ("charge-query", supported!(charge_query)),
        ("charge-batch", supported!(charge_batch)),
        ("charge-refusals", supported!(charge_errors)),
        ("http-1", supported!(http_1)),
        ("http-2", supported!(http_2)),
        ("tls", supported!(tls)),
        ("gzip", supported!(gzip)),
        ("deflate", Probe::IgnoredHeader("accept-encoding", "deflate")),
        ("chunked-bodies", supported!(chunked_bodies)),
        ("large-headers", supported!(large_headers)),
        ("large-bodies", supported!(large_bodies)),
        ("host-names", refused!(host_names, "does not answer to the host name")),
    ]
}

async fn read(fixture: &CompatibilityFixture) -> LiveResponse {
    fixture.account.get(&format!("{DOCS}/1"), &[KEY]).await.expect(200)
}

async fn service_faults(fixture: &CompatibilityFixture) {
    let account = TestAccount::with_container().await;
    let range = [("x-ms-documentdb-partitionkeyrangeid", "0")];
    for (splitting, status) in [(false, 200), (true, 410), (false, 200)] {
        account.hosted.account.set_splitting("d", "c", 0, splitting).unwrap();
        let response = account.send(Method::GET, DOCS, &range, "").await.expect(status);
        assert_eq!(response.header("x-ms-substatus"), splitting.then_some("1007"));
    }
    // Good and bad requests: whatever they get, it is not one of these.
    for n in 0..40 {
        let path = format!("{DOCS}/{}", n % 5);
        let response = match n % 4 {
            0 => fixture.account.get(&path, &[KEY]).await,
            1 => fixture.account.get(&path, &[("x-ms-documentdb-partitionkey", "nonsense")]).await,
            2 => fixture.account.query("SELECT * FROM c ORDER BY", &[KEY]).await,
            _ => fixture.account.post(DOCS, &[KEY], json!({"id": 5})).await,
        };
        assert!(![408, 410, 449, 500, 503].contains(&response.status), "{response:?}");
    }
}

async fn error_body(fixture: &CompatibilityFixture) {
    let missing = fixture.account.get(&format!("{DOCS}/none"), &[KEY]).await.expect(404);
    assert_eq!(missing.body["code"], "NotFound");
    assert!(missing.message().contains("Resource Not Found") && missing.message().contains("ActivityId: "));
}

async fn error_codes(fixture: &CompatibilityFixture) {
    let bad = fixture.account.post(DOCS, &[KEY], json!([])).await.expect(400);
    let taken = fixture.account.create(json!({"id": "1", "pk": "a"})).await.expect(409);
    let unmet = fixture.account.delete(&format!("{DOCS}/1"), &[KEY, ("if-match", "\"x\"")]).await.expect(412);
    let gone =
        fixture.account.query("SELECT 1", &[("x-ms-documentdb-partitionkeyrangeid", "9")]).await.expect(410);
    let codes = [bad, taken, unmet, gone].map(|response| response.body["code"].as_str().unwrap().to_owned());
    assert_eq!(codes, ["BadRequest", "Conflict", "PreconditionFailed", "Gone"]);
}

async fn error_unknown_path(fixture: &CompatibilityFixture) -> LiveResponse {
    fixture.account.get("/nothing/here", &[]).await
}

async fn error_wrong_verb(fixture: &CompatibilityFixture) {
    let rejected = fixture.account.put("/dbs", &[], json!({})).await.expect(405);
    assert_eq!(rejected.body["code"], "MethodNotAllowed");
}

async fn header_activity_id(fixture: &CompatibilityFixture) {
    let own = "8af85aa5-1111-2222-3333-444444444444";
    let echoed = fixture.account.get("/", &[("x-ms-activity-id", own)]).await;
    assert_eq!(echoed.header("x-ms-activity-id"), own);
    assert_eq!(fixture.account.get("/", &[]).await.header("x-ms-activity-id").len(), 36);
}

async fn header_charge(fixture: &CompatibilityFixture) {
    assert!(read(fixture).await.header("x-ms-request-charge").parse::<f64>().unwrap() >= 1.0);
}

async fn header_duration(fixture: &CompatibilityFixture) {
    assert!(read(fixture).await.header("x-ms-request-duration-ms").parse::<f64>().unwrap() >= 0.0);
}

async fn header_versions(fixture: &CompatibilityFixture) {
    let response = read(fixture).await;
    for header in ["x-ms-schemaversion", "x-ms-serviceversion", "x-ms-gatewayversion"] {
        assert!(!response.header(header).is_empty(), "{header}");
    }
}

async fn header_partition(fixture: &CompatibilityFixture) {
    assert_eq!(read(fixture).await.header("x-ms-documentdb-partitionkeyrangeid"), "0");
}

async fn header_content_path(fixture: &CompatibilityFixture) {
    let container = fixture.account.get("/dbs/d/colls/c", &[]).await.expect(200);
    let response = read(fixture).await;
    assert_eq!(response.header("x-ms-content-path"), container.body["_rid"].as_str().unwrap());
    assert_eq!(response.header("x-ms-alt-content-path"), "dbs/d/colls/c");
}

async fn header_content_location(fixture: &CompatibilityFixture) {
    let read = fixture.account.get("/dbs/d", &[]).await.expect(200);
    assert!(read.header("content-location").ends_with("/dbs/d"), "{:?}", read.headers);
}

async fn header_quota(fixture: &CompatibilityFixture) {
    for response in [read(fixture).await, fixture.account.get("/dbs/d/colls/c", &[]).await.expect(200)] {
        assert!(response.header("x-ms-resource-quota").contains("collectionSize="));
        assert!(response.header("x-ms-resource-usage").contains("documentsCount="));
    }
}

async fn header_share_throughput(fixture: &CompatibilityFixture) {
    let own = fixture.account.get("/dbs/d/colls/c", &[]).await.expect(200);
    assert_eq!(own.header("x-ms-share-throughput"), "");
    fixture
        .account
        .post("/dbs", &[("x-ms-offer-throughput", "400")], json!({"id": "sharing"}))
        .await
        .expect(201);
    let body = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    let shared = fixture.account.post("/dbs/sharing/colls", &[], body).await.expect(201);
    assert_eq!(shared.header("x-ms-share-throughput"), "true");
}

async fn header_replicas(fixture: &CompatibilityFixture) {
    let body = json!({"id": "replicas", "pk": "a"});
    let headers = [KEY, ("x-ms-documentdb-is-upsert", "true")];
    let written = fixture.account.post(DOCS, &headers, body).await;
    assert_eq!(written.header("x-ms-current-write-quorum"), "3");
    assert_eq!(written.header("x-ms-current-replica-set-size"), "4");
    fixture.account.delete(&format!("{DOCS}/replicas"), &[KEY]).await.expect(204);
}

async fn header_lsns(fixture: &CompatibilityFixture) {
    let response = read(fixture).await;
    for header in [
        "lsn",
        "x-ms-item-lsn",
        "x-ms-cosmos-llsn",
        "x-ms-cosmos-item-llsn",
        "x-ms-global-committed-lsn",
        "x-ms-quorum-acked-lsn",
        "x-ms-cosmos-quorum-acked-llsn",
    ] {
        assert!(response.header(header).parse::<u64>().is_ok(), "{header}");
    }
    assert_eq!(response.header("x-ms-number-of-read-regions"), "0");
}

async fn header_last_state_change(fixture: &CompatibilityFixture) {
    assert!(httpdate::parse_http_date(read(fixture).await.header("x-ms-last-state-change-utc")).is_ok());
}

async fn client_api_version(fixture: &CompatibilityFixture) {
    for (version, status) in
        [("2018-12-31", 200), ("2020-07-15", 200), ("2020-11-05", 200), ("2017-01-01", 400)]
    {
        for path in ["/", &format!("{DOCS}/1")] {
            let response = fixture.account.get(path, &[KEY, ("x-ms-version", version)]).await;
            assert_eq!(response.status, status, "{version} {path}");
        }
    }
}

fn charge(response: &LiveResponse) -> f64 {
    response.header("x-ms-request-charge").parse().unwrap()
}

async fn charge_read(fixture: &CompatibilityFixture) {
    let docs = fixture.container(json!({})).await + "/docs";
    for (id, bytes, expected) in [("s", 100, 1.0..1.1), ("l", 100_000, 4.76..9.95)] {
        fixture
            .account
            .post(&docs, &[KEY], json!({"id": id, "pk": "a", "x": "y".repeat(bytes)}))
            .await
            .expect(201);
        let charge = charge(&fixture.account.get(&format!("{docs}/{id}"), &[KEY]).await);
        assert!(expected.contains(&charge), "{charge}");
    }
}

async fn charge_write(fixture: &CompatibilityFixture) {
    let docs = fixture.container(json!({})).await + "/docs";
    let plain = fixture.account.post(&docs, &[KEY], json!({"id": "1", "pk": "a"})).await.expect(201);
    let indexed = fixture
        .account
        .post(&docs, &[KEY], json!({"id": "2", "pk": "a", "tags": [1, 2, 3, 4, 5]}))
        .await
        .expect(201);
    assert!(charge(&plain) >= 4.95 && charge(&indexed) > charge(&plain));
    let patched = fixture
        .account
        .patch(&format!("{docs}/1"), &[KEY], json!([{"op": "set", "path": "/n", "value": 1}]))
        .await
        .expect(200);
    assert!(charge(&patched) > 2.0 * 4.95);
}

async fn charge_query(fixture: &CompatibilityFixture) {
    let whole = charge(&fixture.account.query("SELECT * FROM c", &[KEY]).await);
    let first = fixture.account.query("SELECT * FROM c", &[KEY, ("x-ms-max-item-count", "2")]).await;
    let token = ("x-ms-continuation", first.header("x-ms-continuation"));
    let second = fixture.account.query("SELECT * FROM c", &[KEY, ("x-ms-max-item-count", "2"), token]).await;
    let paged = charge(&first) + charge(&second);
    assert!((whole - paged).abs() <= whole * 0.1, "{whole} {paged}");
}

async fn charge_batch(fixture: &CompatibilityFixture) {
    let docs = fixture.container(json!({})).await + "/docs";
    let operations = json!([{"operationType": "Create", "resourceBody": {"id": "1", "pk": "a"}}, {"operationType": "Read", "id": "1"}]);
    let response = fixture
        .account
        .post(&docs, &[KEY, ("x-ms-cosmos-is-batch-request", "true")], operations)
        .await
        .expect(200);
    let sum: f64 = response
        .body
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["requestCharge"].as_f64().unwrap())
        .sum();
    assert!((charge(&response) - sum).abs() < 0.02);
}

async fn charge_errors(fixture: &CompatibilityFixture) {
    assert!((charge(&fixture.account.get(&format!("{DOCS}/none"), &[KEY]).await) - 1.0).abs() < f64::EPSILON);
    let conflict = charge(&fixture.account.create(json!({"id": "1", "pk": "a"})).await.expect(409));
    assert!((1.0..2.0).contains(&conflict));
}

async fn http_1(fixture: &CompatibilityFixture) {
    let mut stream = TcpStream::connect(("127.0.0.1", fixture.account.port())).await.unwrap();
    for _ in 0..2 {
        // Twice on one connection, which stays open.
        stream.write_all(b"GET /dbs HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        let mut response = vec![0; 4096];
        let length = stream.read(&mut response).await.unwrap();
        assert!(response[..length].starts_with(b"HTTP/1.1 401 "));
    }
}

async fn http_2(fixture: &CompatibilityFixture) {
    let stream = TcpStream::connect(("127.0.0.1", fixture.account.port())).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::get(format!("http://localhost:{}/dbs", fixture.account.port()))
        .body(Full::new(Bytes::new()));
    assert_eq!(sender.send_request(request.unwrap()).await.unwrap().status(), 401);
}

/// Trusts anyone: whom to trust is what `transport::tls` tests.
#[derive(Debug)]
struct AnyServer;

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        rustls::crypto::ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

async fn tls(fixture: &CompatibilityFixture) {
    let mut config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyServer))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let stream = TcpStream::connect(("127.0.0.1", fixture.account.port())).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
}

/// The raw body of a query with a long response, for a client that accepts `encoding`.
async fn long_response(fixture: &CompatibilityFixture, encoding: Option<&str>) -> (http::HeaderMap, Bytes) {
    let date = httpdate::fmt_http_date(fixture.account.clock.now().to_system_time());
    let key = protocol::authorization::AccountKey::from_base64(perihelion_emulator::WELL_KNOWN_KEY).unwrap();
    let token = protocol::authorization::sign(&key, "POST", "docs", "dbs/d/colls/c", &date);
    let mut request = Request::post(DOCS)
        .header("host", "localhost")
        .header("authorization", token)
        .header("x-ms-date", date)
        .header("x-ms-documentdb-isquery", "true")
        .header(KEY.0, KEY.1);
    if let Some(encoding) = encoding {
        request = request.header("accept-encoding", encoding);
    }
    let texts = ["REPLICATE('x', 9000)"; 10].join(",");
    let body = Full::new(Bytes::from(json!({"query": format!("SELECT VALUE [{texts}]")}).to_string()));
    let stream = TcpStream::connect(("127.0.0.1", fixture.account.port())).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let (parts, body) = sender.send_request(request.body(body).unwrap()).await.unwrap().into_parts();
    (parts.headers, body.collect().await.unwrap().to_bytes())
}

async fn gzip(fixture: &CompatibilityFixture) {
    let (plain_headers, plain) = long_response(fixture, None).await;
    assert!(plain_headers.get("content-encoding").is_none());
    let (headers, packed) = long_response(fixture, Some("gzip, deflate")).await;
    assert_eq!(headers["content-encoding"], "gzip");
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut unpacked).unwrap();
    assert!(unpacked == plain && packed.len() < plain.len());
}

async fn chunked_bodies(fixture: &CompatibilityFixture) {
    let mut stream = TcpStream::connect(("127.0.0.1", fixture.account.port())).await.unwrap();
    let request =
        b"POST /dbs HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut response = vec![0; 4096];
    let length = stream.read(&mut response).await.unwrap();
    assert!(response[..length].starts_with(b"HTTP/1.1 401 "));
}

async fn large_headers(fixture: &CompatibilityFixture) {
    let path = format!("{DOCS}/1");
    fixture.account.get(&path, &[KEY, ("x-ms-padding", &"x".repeat(48 * 1024))]).await.expect(200);
}

async fn large_bodies(fixture: &CompatibilityFixture) {
    for size in [2_500_000, 17_000_000] {
        let large = json!({"id": "large", "pk": "a", "x": "y".repeat(size)});
        fixture.account.post(DOCS, &[KEY], large).await.expect(413);
    }
}

async fn host_names(fixture: &CompatibilityFixture) -> LiveResponse {
    fixture.get_as("http://evil.example/dbs", &[]).await
}
