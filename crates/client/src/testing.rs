//! An account without a server, for tests of applications. Feature `test-util`.
//!
//! A [`FakeAccount`] answers what the client asks for on its own: the account, its containers and their partition key
//! ranges. A test writes the responses to the rest, and nothing goes over the network.
//!
//! ```
//! use perihelion::testing::{FakeAccount, FakeResponse};
//! use serde_json::{Value, json};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> perihelion::Result<()> {
//! let client = FakeAccount::new()
//!     .container("shop", "orders", "/customer")
//!     .respond(|request| match request.item_id() {
//!         Some("o-1") => FakeResponse::ok(&json!({"id": "o-1", "customer": "ada", "total": 12.5})),
//!         _ => FakeResponse::not_found(),
//!     })
//!     .client()?;
//!
//! let orders = client.database("shop").container("orders");
//! let order = orders.read_item::<Value>("ada", "o-1").await?;
//! assert_eq!(order.value()["total"], 12.5);
//! assert!(orders.read_item::<Value>("ada", "o-2").optional().await?.is_none());
//! # Ok(())
//! # }
//! ```
//!
//! For faults of a real connection, `faults` (feature `fault-injection`) injects them into any client, and the local
//! cloud (`peri up`) is an account that behaves like one.

use std::fmt;
use std::sync::Arc;

use azure_core::http::Url;
use azure_core::http::headers::Headers;
use bytes::Bytes;
use driver::transport::{HttpClientConfig, Transport, TransportFactory, TransportRequest, TransportResponse};
use futures::future::{BoxFuture, ready};
use percent_encoding::percent_decode_str;
use protocol::account::{AccountProperties, ConsistencyLevel, Location};
use protocol::container::{ContainerProperties, PartitionKeyDefinition};
use protocol::headers as names;
use protocol::partition::EpkRange;
use protocol::partition_range::{PartitionKeyRange, RangeId};
use protocol::resource_id::{ContainerRid, DatabaseRid};
use protocol::status::Status;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The HTTP method of a request.
pub use azure_core::http::Method;

use crate::client::CosmosClient;
use crate::client_builder::CosmosClientBuilder;
use crate::serialize::{from_body, to_body};
use crate::{Account, Result};

/// The endpoint of a fake account: a name that no resolver knows (RFC 6761).
const ENDPOINT: &str = "http://fake.invalid/";
const REGION: &str = "Fake Region";
/// The ETag of partition key ranges, which never change.
const RANGES_ETAG: &str = "\"1\"";

/// Responds to a request.
type Respond = dyn Fn(&FakeRequest) -> FakeResponse + Send + Sync;

/// An account whose responses a test writes. See the [module](self).
#[derive(Clone)]
pub struct FakeAccount {
    containers: Vec<(String, ContainerProperties)>,
    respond: Arc<Respond>,
}

impl FakeAccount {
    /// An account without containers, that responds 404 to every request of the application.
    pub fn new() -> FakeAccount {
        FakeAccount { containers: Vec::new(), respond: Arc::new(|_| FakeResponse::not_found()) }
    }

    /// Adds a container with one physical partition. `key` is the path of its partition key; several paths are
    /// separated by commas.
    ///
    /// # Panics
    ///
    /// If `key` is not a partition key path such as `/customer`.
    #[must_use]
    pub fn container(mut self, database: &str, id: &str, key: &str) -> FakeAccount {
        let paths: Vec<&str> = key.split(',').map(str::trim).collect();
        let definition = match paths[..] {
            [path] => PartitionKeyDefinition::hash(path),
            _ => PartitionKeyDefinition::multi_hash(&paths),
        };
        let definition = definition.unwrap_or_else(|error| panic!("`{key}` is not a partition key: {error}"));
        self.containers.push((database.to_owned(), ContainerProperties::new(id, definition)));
        self
    }

    /// Sets the function that responds to everything but the account's own metadata: items, queries, writes. It is
    /// called for every attempt, so a response that the client retries is asked for again.
    #[must_use]
    pub fn respond(
        mut self,
        respond: impl Fn(&FakeRequest) -> FakeResponse + Send + Sync + 'static,
    ) -> FakeAccount {
        self.respond = Arc::new(respond);
        self
    }

    /// A client of the account, with default options.
    pub fn client(self) -> Result<CosmosClient> {
        self.builder()?.build()
    }

    /// A builder of a client of the account, for options.
    pub fn builder(self) -> Result<CosmosClientBuilder> {
        let account = Account::with_key(ENDPOINT, "ZmFrZQ==")?;
        Ok(CosmosClient::builder(account).transport(Arc::new(self)))
    }

    fn response_to(&self, request: &FakeRequest) -> FakeResponse {
        let parts: Vec<&str> = request.path.split('/').filter(|part| !part.is_empty()).collect();
        match (request.method, &parts[..]) {
            (Method::Get, []) => FakeResponse::ok(&account_properties()),
            (Method::Get, ["dbs", id]) if self.containers.iter().any(|(database, _)| database == id) => {
                FakeResponse::ok(&json!({"id": id, "_rid": DatabaseRid(1).to_string()}))
            }
            (Method::Get, ["dbs", database, "colls", id, below @ ..]) => {
                match (self.container_body(database, id), below) {
                    (Some(body), []) => FakeResponse::ok(&body),
                    (Some(_), ["pkranges"]) => partition_key_ranges(request),
                    _ => (self.respond)(request),
                }
            }
            _ => (self.respond)(request),
        }
    }

    fn container_body(&self, database: &str, id: &str) -> Option<Value> {
        let is_meant =
            |(known, container): &&(String, ContainerProperties)| known == database && container.id == id;
        let (_, properties) = self.containers.iter().find(is_meant)?;
        let mut body = serde_json::to_value(properties).expect("properties have a JSON form");
        body["_rid"] = Value::from(container_rid().to_string());
        Some(body)
    }
}

fn container_rid() -> ContainerRid {
    ContainerRid { database: DatabaseRid(1), container: 1 }
}

fn account_properties() -> AccountProperties {
    let region = Location { name: REGION.to_owned(), database_account_endpoint: ENDPOINT.to_owned() };
    AccountProperties::new("fake", vec![region], ConsistencyLevel::Session)
}

fn partition_key_ranges(request: &FakeRequest) -> FakeResponse {
    if request.header(names::IF_NONE_MATCH) == Some(RANGES_ETAG) {
        return FakeResponse::status(Status::NOT_MODIFIED.0);
    }
    let range = PartitionKeyRange::new(container_rid(), RangeId(0), EpkRange::FULL);
    let body = json!({"_rid": container_rid().to_string(), "PartitionKeyRanges": [range], "_count": 1});
    FakeResponse::ok(&body).header(names::ETAG, RANGES_ETAG)
}

impl Default for FakeAccount {
    fn default() -> FakeAccount {
        FakeAccount::new()
    }
}

impl fmt::Debug for FakeAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeAccount").field("containers", &self.containers).finish_non_exhaustive()
    }
}

impl TransportFactory for FakeAccount {
    fn create(&self, _: &HttpClientConfig) -> Arc<dyn Transport> {
        Arc::new(self.clone())
    }
}

impl Transport for FakeAccount {
    fn send<'a>(
        &'a self,
        request: &'a TransportRequest<'a>,
    ) -> BoxFuture<'a, azure_core::Result<TransportResponse>> {
        let FakeResponse { status, headers, body } = self.response_to(&FakeRequest::of(request));
        Box::pin(ready(Ok(TransportResponse::new(status, headers.into(), body))))
    }

    fn enforces_deadlines(&self) -> bool {
        true
    }

    fn connect<'a>(&'a self, _: &'a Url) -> BoxFuture<'a, azure_core::Result<()>> {
        Box::pin(ready(Ok(())))
    }
}

/// A request of the client, as it would be sent.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FakeRequest {
    /// The HTTP method of the request.
    pub method: Method,
    /// The path below the endpoint, without escapes: `dbs/shop/colls/orders/docs/o-1`.
    pub path: String,
    /// The body; empty for none.
    pub body: Bytes,
    headers: Vec<(String, String)>,
}

impl FakeRequest {
    fn of(request: &TransportRequest<'_>) -> FakeRequest {
        let headers = request.headers.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        FakeRequest {
            method: request.method,
            path: percent_decode_str(request.path).decode_utf8_lossy().into_owned(),
            body: request.body.clone(),
            headers: headers.collect(),
        }
    }

    /// The value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The id of the item that the request is about; none for creates, upserts, queries and feeds.
    pub fn item_id(&self) -> Option<&str> {
        self.path.split_once("/docs/").map(|(_, id)| id)
    }

    /// Whether the request is a page of a query.
    pub fn is_query(&self) -> bool {
        self.header(names::IS_QUERY).is_some()
    }

    /// The body as a value of the test.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T> {
        from_body(&self.body)
    }
}

/// A response that a test writes.
#[derive(Clone, Debug)]
pub struct FakeResponse {
    status: Status,
    headers: Headers,
    body: Bytes,
}

impl FakeResponse {
    /// A response with this status and no body.
    pub fn status(status: u16) -> FakeResponse {
        let mut headers = Headers::new();
        headers.insert(names::REQUEST_CHARGE, "1");
        FakeResponse { status: Status(status), headers, body: Bytes::new() }
    }

    /// 200 with this value: a read, a replace, an upsert.
    ///
    /// # Panics
    ///
    /// If the value has no JSON form.
    pub fn ok(value: &(impl Serialize + ?Sized)) -> FakeResponse {
        FakeResponse::status(Status::OK.0).body(value)
    }

    /// 200 with an item as the service returns it: with this ETag and the other system properties, so that it can be
    /// read as an [`Item`](crate::Item) and written back under a condition.
    ///
    /// # Panics
    ///
    /// If the value has no JSON form, or is no object.
    pub fn item(value: &(impl Serialize + ?Sized), etag: &str) -> FakeResponse {
        let mut item = serde_json::to_value(value).expect("the value has a JSON form");
        let properties = item.as_object_mut().expect("an item is an object");
        properties.insert("_rid".to_owned(), container_rid().to_string().into());
        properties.insert("_etag".to_owned(), etag.into());
        properties.insert("_ts".to_owned(), 1_700_000_000.into());
        FakeResponse::ok(&item).header("etag", etag)
    }

    /// 200 with the rows of a query. Queries with ORDER BY, GROUP BY, DISTINCT or aggregates arrive rewritten, for the
    /// client to merge partitions: their rows have another form. Test those against `peri up`.
    pub fn rows<T: Serialize>(rows: impl IntoIterator<Item = T>) -> FakeResponse {
        let rows: Vec<T> = rows.into_iter().collect();
        FakeResponse::ok(
            &json!({"_rid": container_rid().to_string(), "Documents": rows, "_count": rows.len()}),
        )
    }

    /// 201 without a body: a create, unless the application asks for the item.
    pub fn created() -> FakeResponse {
        FakeResponse::status(Status::CREATED.0)
    }

    /// 404, as for an item that does not exist.
    pub fn not_found() -> FakeResponse {
        FakeResponse::status(Status::NOT_FOUND.0)
            .body(&json!({"code": "NotFound", "message": "it does not exist"}))
    }

    /// Sets the body of the response.
    ///
    /// # Panics
    ///
    /// If the value has no JSON form.
    #[must_use]
    pub fn body(mut self, value: &(impl Serialize + ?Sized)) -> FakeResponse {
        self.body = to_body(value).expect("a test's value has a JSON form");
        self
    }

    /// Sets a header of the response, by its name in lower case.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> FakeResponse {
        self.headers.insert(name, value.into());
        self
    }

    /// Sets the sub-status of the response.
    #[must_use]
    pub fn sub_status(self, sub_status: u32) -> FakeResponse {
        self.header(names::SUB_STATUS, sub_status.to_string())
    }
}
