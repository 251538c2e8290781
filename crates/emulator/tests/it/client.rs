//! A test client without sockets: signs requests and calls the gateway directly.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use perihelion_emulator::HostedAccount;
use perihelion_emulator::RequestUnitMode;
use perihelion_emulator::access::AccessControl;
use perihelion_emulator::clock::{Clock, Ticks};
use perihelion_emulator::engine::account::{Account, AccountSettings};
use perihelion_emulator::gateway::Gateway;
use perihelion_emulator::regions::{Lag, Region, RegionId, Topology};
use perihelion_emulator::server::{ConnectionFault, Handler};
use protocol::account::ConsistencyLevel;
use protocol::authorization::{AccountKey, EMULATOR_KEY, sign};
use protocol::resource_path::ResourcePath;
use serde_json::Value;

/// When the tests happen: Sun, 15 Nov 2026 19:23:36 GMT.
pub(crate) const NOW_SECONDS: i64 = 1_794_770_616;

/// Regions in failover order, with their ports, and no lag between them.
pub(crate) fn topology(regions: &[(&str, u16)]) -> Topology {
    let regions = regions.iter().map(|(name, port)| Region::new(*name, *port)).collect();
    Topology::new(regions, false, ConsistencyLevel::Session, Lag::NONE).unwrap()
}

/// An account and the key to it.
pub(crate) struct TestAccount {
    /// The gateway of each region.
    gateways: Vec<Arc<Gateway>>,
    pub(crate) hosted: HostedAccount,
    key: AccountKey,
    pub(crate) clock: Clock,
}

/// The response to a test request.
pub(crate) struct TestResponse {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// The connection fault that the gateway requests, if any.
    #[allow(dead_code, reason = "the simulation, which shares this file, loses responses")]
    pub(crate) connection_fault: Option<ConnectionFault>,
}

impl TestAccount {
    pub(crate) fn new() -> TestAccount {
        TestAccount::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut AccountSettings)) -> TestAccount {
        let mut settings = TestAccount::settings();
        change(&mut settings);
        TestAccount::over(Account::new(settings), Clock::manual(Ticks(NOW_SECONDS * 10_000_000)))
    }

    /// The default settings of a test account.
    pub(crate) fn settings() -> AccountSettings {
        AccountSettings {
            key: AccountKey::from_base64(EMULATOR_KEY).unwrap(),
            topology: topology(&[("West US", 8081)]),
            partitions: None,
            partition_bytes_max: u64::MAX,
            request_units: RequestUnitMode::Account,
            seed: 1,
        }
    }

    /// Makes a test client of an account with this clock.
    pub(crate) fn over(account: Account, clock: Clock) -> TestAccount {
        TestAccount::over_hosted(HostedAccount::new(account, 1), clock)
    }

    /// Makes a test client of an account with these access rules, with database `d` and container `c` in it.
    #[allow(dead_code, reason = "the simulation, which shares this file, uses the default rules")]
    pub(crate) async fn with_access(access: AccessControl) -> TestAccount {
        let hosted = HostedAccount::new(Account::new(TestAccount::settings()), 1).with_access(access);
        let account = TestAccount::over_hosted(hosted, Clock::manual(Ticks(NOW_SECONDS * 10_000_000)));
        account.create_container("d", r#"{"id":"c","partitionKey":{"paths":["/pk"]}}"#).await;
        account
    }

    fn over_hosted(hosted: HostedAccount, clock: Clock) -> TestAccount {
        let key = AccountKey::from_base64(EMULATOR_KEY).unwrap();
        let gateways = (0..hosted.account.region_count() as u8)
            .map(|region| Arc::new(Gateway::new(&hosted, RegionId(region), clock.clone())))
            .collect();
        TestAccount { gateways, hosted, key, clock }
    }

    /// An account with database `d` and container `c` in it, keyed by `/pk`.
    pub(crate) async fn with_container() -> TestAccount {
        let account = TestAccount::new();
        account
            .create_container("d", r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#)
            .await;
        account
    }

    /// Creates a container, and its database when it is not there.
    pub(crate) async fn create_container(&self, database: &str, body: &str) -> TestResponse {
        let status = self.post("/dbs", &format!(r#"{{"id":"{database}"}}"#)).await.status;
        assert!([201, 409].contains(&status), "creating the database: {status}");
        self.post(&format!("/dbs/{database}/colls"), body).await.expect(201)
    }

    pub(crate) async fn get(&self, path: &str) -> TestResponse {
        self.send(Method::GET, path, &[], "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &str) -> TestResponse {
        self.send(Method::POST, path, &[], body).await
    }

    pub(crate) async fn put(&self, path: &str, body: &str) -> TestResponse {
        self.send(Method::PUT, path, &[], body).await
    }

    pub(crate) async fn delete(&self, path: &str) -> TestResponse {
        self.send(Method::DELETE, path, &[], "").await
    }

    /// A query over metadata or items.
    pub(crate) async fn query(&self, path: &str, text: &str, parameters: Value) -> TestResponse {
        let body = serde_json::json!({ "query": text, "parameters": parameters }).to_string();
        let headers = [("x-ms-documentdb-isquery", "true"), ("content-type", "application/query+json")];
        self.send(Method::POST, path, &headers, &body).await
    }

    /// Sends a request signed as an SDK signs it, to the first region.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> TestResponse {
        self.send_in(RegionId(0), method, path, headers, body).await
    }

    /// Sends a signed request to a region.
    pub(crate) async fn send_in(
        &self,
        region: RegionId,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> TestResponse {
        let date = httpdate::fmt_http_date(self.clock.now().to_system_time());
        let parsed = ResourcePath::parse(path).expect("tests ask for paths that exist");
        let target = protocol::authorization::signed_targets(&parsed).next().unwrap();
        let authorization = sign(&self.key, method.as_str(), target.resource_type, &target.link, &date);
        let mut all = vec![("authorization", authorization.as_str()), ("x-ms-date", date.as_str())];
        all.extend_from_slice(headers);
        let request = request(method, path, &all, body);
        self.gateways[usize::from(region.0)].handle(request).into_response().await.into()
    }

    /// Signs a request, if its path can be signed, and sends it with everything else as it is.
    pub(crate) async fn send_signed(&self, mut request: Request<Bytes>) -> TestResponse {
        let date = httpdate::fmt_http_date(self.clock.now().to_system_time());
        let authorization = ResourcePath::parse(request.uri().path()).ok().and_then(|path| {
            let target = protocol::authorization::signed_targets(&path).next()?;
            Some(sign(&self.key, request.method().as_str(), target.resource_type, &target.link, &date))
        });
        if let Some(authorization) = authorization {
            request.headers_mut().insert("authorization", authorization.parse().unwrap());
        }
        request.headers_mut().insert("x-ms-date", date.parse().unwrap());
        self.gateways[0].handle(request).into_response().await.into()
    }

    /// Sends a request without signing it.
    pub(crate) async fn send_unsigned(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> TestResponse {
        self.gateways[0].handle(request(method, path, headers, body)).into_response().await.into()
    }
}

fn request(method: Method, path: &str, headers: &[(&str, &str)], body: &str) -> Request<Bytes> {
    let mut request = Request::builder().method(method).uri(path).header("host", "localhost:8081");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Bytes::copy_from_slice(body.as_bytes())).unwrap()
}

impl From<Response<Bytes>> for TestResponse {
    fn from(response: Response<Bytes>) -> TestResponse {
        let (parts, body) = response.into_parts();
        let connection_fault = parts.extensions.get().copied();
        TestResponse { status: parts.status.as_u16(), headers: parts.headers, body, connection_fault }
    }
}

impl TestResponse {
    /// Fails unless the status is `status`.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> TestResponse {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        self
    }

    /// Fails unless the status is one of `statuses`.
    #[track_caller]
    pub(crate) fn expect_status(self, statuses: &[u16]) -> TestResponse {
        assert!(statuses.contains(&self.status), "{} {}", self.status, String::from_utf8_lossy(&self.body));
        self
    }

    /// Fails unless this is an error with this status, sub-status and a message that contains `part`.
    #[track_caller]
    pub(crate) fn expect_error(self, status: u16, sub_status: u32, part: &str) -> TestResponse {
        let response = self.expect(status);
        assert_eq!(response.header("x-ms-substatus").unwrap_or("0"), sub_status.to_string());
        let json = response.json();
        assert_eq!(json["code"], protocol::status::Status(status).code_name());
        let message = json["message"].as_str().expect("a message");
        assert!(message.contains(part), "{message}");
        response
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The text member of the body.
    #[track_caller]
    pub(crate) fn text(&self, member: &str) -> String {
        self.json()[member].as_str().unwrap_or_else(|| panic!("no text {member}")).to_owned()
    }
}
