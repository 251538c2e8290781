//! Signed requests over pooled connections.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use emulator::clock::Clock;
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use protocol::authorization::sign;
use protocol::container::PartitionKeyDefinition;
use protocol::headers as name;
use protocol::status::{Status, SubStatus};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use thiserror::Error;

use super::retry::{Outcome, Step, WAITING_MAX, next_step};
use super::{ConnectionString, Upsert};
use crate::arguments::ContainerPath;
use crate::control::escaped;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// No single answer takes longer, unless something is broken.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(65);
/// A page has 4 MB; what is much longer is not from an account.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Items asked for at a time.
const PAGE_ITEMS: &str = "1000";

/// One container of one account. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub(crate) struct AccountClient {
    http: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    account: ConnectionString,
    container: ContainerPath,
    clock: Clock,
    /// Where the account writes, if that is not where it was looked for.
    writer: Arc<Mutex<Option<String>>>,
}

/// Why a request failed.
#[derive(Debug, Error)]
pub(crate) enum AccountError {
    /// Nobody answered.
    #[error("{endpoint} does not answer: {reason}")]
    Unreachable { endpoint: String, reason: String },
    /// The account said no.
    #[error("{status}{}: {message}", sub_status_text(*.sub_status))]
    Refused { status: u16, sub_status: SubStatus, message: String },
    /// The account said yes, and then something that makes no sense.
    #[error("{0} answered something an account does not: {1}")]
    Nonsense(String, String),
}

/// Some items, and where the next are.
#[derive(Debug)]
pub(crate) struct Page {
    /// As the account wrote them.
    pub(crate) items: Vec<Box<RawValue>>,
    /// Nothing: these were the last.
    pub(crate) continuation: Option<String>,
}

/// What is asked, apart from where.
pub(super) struct Ask<'a> {
    method: Method,
    /// Of the signature: the kind of resource, and the link to it or its parent.
    target: (&'a str, String),
    path: String,
    pub(super) headers: Vec<(&'static str, String)>,
    body: Bytes,
    /// Whether 410 says something that trying again does not change.
    pub(super) gone_is_final: bool,
}

pub(super) struct Answer {
    pub(super) status: Status,
    headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Answer {
    /// Whether another region writes.
    fn is_write_forbidden(&self) -> bool {
        self.status == Status::FORBIDDEN && self.sub_status() == SubStatus::WRITE_FORBIDDEN
    }

    fn sub_status(&self) -> SubStatus {
        let text = self.headers.get(name::SUB_STATUS).and_then(|value| value.to_str().ok());
        text.and_then(|text| text.parse().ok()).map_or(SubStatus::NONE, SubStatus)
    }

    /// Where the next page is; nothing after the last one.
    pub(super) fn continuation(&self) -> Option<String> {
        let text = self.headers.get(name::CONTINUATION)?.to_str().ok()?;
        Some(text).filter(|text| !text.is_empty()).map(str::to_owned)
    }
}

impl AccountClient {
    /// Nothing is sent yet. https trusts what the system trusts.
    pub(crate) fn new(account: ConnectionString, container: ContainerPath) -> Result<AccountClient, String> {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        connector.set_nodelay(true);
        connector.enforce_http(false);
        let builder = hyper_rustls::HttpsConnectorBuilder::new();
        let provider = rustls::crypto::ring::default_provider();
        let builder = if account.endpoint.starts_with("https:") {
            builder
                .with_provider_and_native_roots(provider)
                .map_err(|error| format!("the system's certificates cannot be read: {error}"))?
        } else {
            // A system without certificates is no reason not to speak http.
            let tls = rustls::ClientConfig::builder_with_provider(provider.into())
                .with_safe_default_protocol_versions()
                .map_err(|error| error.to_string())?
                .with_root_certificates(rustls::RootCertStore::empty());
            builder.with_tls_config(tls.with_no_client_auth())
        };
        let connector = builder.https_or_http().enable_http1().wrap_connector(connector);
        let http = Client::builder(TokioExecutor::new()).build(connector);
        Ok(AccountClient { http, account, container, clock: Clock::system(), writer: Arc::default() })
    }

    /// The container's partition key, or nothing if there is no such container.
    pub(crate) async fn partition_key(&self) -> Result<Option<PartitionKeyDefinition>, AccountError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Container {
            partition_key: PartitionKeyDefinition,
        }

        let answer = self.send(self.ask(Method::GET, "colls", Bytes::new())).await?;
        if answer.status == Status::NOT_FOUND {
            return Ok(None);
        }
        let container: Container = self.read(&self.accept(answer)?.body)?;
        Ok(Some(container.partition_key))
    }

    /// Makes the container, and its database, unless they are there.
    pub(crate) async fn create(&self, key: &PartitionKeyDefinition) -> Result<(), AccountError> {
        let ContainerPath { database, container } = &self.container;
        let database_ask = Ask {
            method: Method::POST,
            target: ("dbs", String::new()),
            path: "/dbs".to_owned(),
            headers: Vec::new(),
            body: json!({ "id": database }).to_string().into(),
            gone_is_final: false,
        };
        let container_ask = Ask {
            method: Method::POST,
            target: ("colls", format!("dbs/{database}")),
            path: format!("/dbs/{}/colls", escaped(database)),
            headers: Vec::new(),
            body: json!({ "id": container, "partitionKey": key }).to_string().into(),
            gone_is_final: false,
        };
        for ask in [database_ask, container_ask] {
            let answer = self.send(ask).await?;
            if answer.status != Status::CONFLICT {
                self.accept(answer)?;
            }
        }
        Ok(())
    }

    /// Stores an item, whether or not there is one of its id.
    pub(crate) async fn upsert(&self, item: &Upsert) -> Result<(), AccountError> {
        let mut ask = self.ask(Method::POST, "docs", item.text.clone().into());
        ask.headers = vec![
            (name::PARTITION_KEY, item.key.clone()),
            (name::IS_UPSERT, "true".to_owned()),
            (name::PREFER, "return=minimal".to_owned()),
        ];
        let answer = self.send(ask).await?;
        self.accept(answer).map(|_| ())
    }

    /// The next rows of a query that every partition can answer by itself.
    pub(crate) async fn page(&self, query: &str, from: Option<&str>) -> Result<Page, AccountError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Rows {
            documents: Vec<Box<RawValue>>,
        }

        let body = json!({ "query": query, "parameters": [] }).to_string();
        let mut ask = self.ask(Method::POST, "docs", body.into());
        ask.headers = vec![
            ("content-type", "application/query+json".to_owned()),
            (name::IS_QUERY, "true".to_owned()),
            (name::ENABLE_CROSS_PARTITION, "true".to_owned()),
            (name::MAX_ITEM_COUNT, PAGE_ITEMS.to_owned()),
        ];
        ask.headers.extend(from.map(|from| (name::CONTINUATION, from.to_owned())));
        let answer = self.send(ask).await?;
        let answer = self.accept(answer)?;
        let rows: Rows = self.read(&answer.body)?;
        Ok(Page { items: rows.documents, continuation: answer.continuation() })
    }

    /// A request about the container or, by its kind, what is in it.
    pub(super) fn ask(&self, method: Method, kind: &'static str, body: Bytes) -> Ask<'static> {
        let ContainerPath { database, container } = &self.container;
        let mut path = format!("/dbs/{}/colls/{}", escaped(database), escaped(container));
        if kind != "colls" {
            path = format!("{path}/{kind}");
        }
        let target = (kind, format!("dbs/{database}/colls/{container}"));
        Ask { method, target, path, headers: Vec::new(), body, gone_is_final: false }
    }

    pub(super) async fn send(&self, ask: Ask<'_>) -> Result<Answer, AccountError> {
        let (mut attempt, mut waited) = (1, Duration::ZERO);
        let mut followed = false;
        loop {
            let result = self.attempt(&ask).await;
            if let Ok(answer) = &result
                && !followed
                && answer.is_write_forbidden()
            {
                followed = true;
                if self.follow_writer().await {
                    continue;
                }
            }
            let outcome = match &result {
                Ok(answer) => {
                    Outcome::Answered { status: answer.status, retry_after: retry_after(&answer.headers) }
                }
                Err(_) => Outcome::Lost,
            };
            if ask.gone_is_final && matches!(outcome, Outcome::Answered { status: Status::GONE, .. }) {
                return result.map_err(|reason| self.unreachable(reason));
            }
            match next_step(outcome, attempt, waited) {
                Step::Finish => return result.map_err(|reason| self.unreachable(reason)),
                Step::RetryAfter(delay) => {
                    tracing::debug!(attempt, ?outcome, ?delay, "trying again");
                    tokio::time::sleep(delay).await;
                    waited += delay;
                    attempt += 1;
                }
            }
        }
    }

    async fn attempt(&self, ask: &Ask<'_>) -> Result<Answer, String> {
        let date = httpdate::fmt_http_date(self.clock.machine().to_system_time());
        let (kind, link) = &ask.target;
        let authorization = sign(&self.account.key, ask.method.as_str(), kind, link, &date);
        let mut request = Request::builder()
            .method(ask.method.clone())
            .uri(format!("{}{}", self.place(), ask.path))
            .header("authorization", authorization)
            .header(name::X_DATE, date)
            .header(name::VERSION, "2020-07-15")
            .header("accept", "application/json");
        for (name, value) in &ask.headers {
            // A key may hold any text; header values are bytes.
            request = request.header(*name, value.as_bytes());
        }
        let request = request.body(Full::new(ask.body.clone())).map_err(|error| error.to_string())?;
        let exchange = async {
            let response = self.http.request(request).await.map_err(|error| reason_of(&error))?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
            let body = body.map_err(|error| error.to_string())?.to_bytes();
            Ok(Answer { status: Status(head.status.as_u16()), headers: head.headers, body })
        };
        match tokio::time::timeout(ANSWER_TIMEOUT, exchange).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("no answer within {} s", ANSWER_TIMEOUT.as_secs())),
        }
    }

    /// Asks the account which region writes, after another one refused to. Whether it said.
    async fn follow_writer(&self) -> bool {
        let ask = Ask {
            method: Method::GET,
            target: ("", String::new()),
            path: "/".to_owned(),
            headers: Vec::new(),
            body: Bytes::new(),
            gone_is_final: false,
        };
        let Ok(answer) = self.attempt(&ask).await else { return false };
        let account: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let endpoint = account["writableLocations"][0]["databaseAccountEndpoint"].as_str();
        let Some(endpoint) = endpoint.map(|endpoint| endpoint.trim_end_matches('/').to_owned()) else {
            return false;
        };
        tracing::debug!(endpoint, "another region writes");
        *self.writer.lock().unwrap_or_else(PoisonError::into_inner) = Some(endpoint);
        true
    }

    /// Where requests go.
    fn place(&self) -> String {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.clone().unwrap_or_else(|| self.account.endpoint.clone())
    }

    pub(super) fn accept(&self, answer: Answer) -> Result<Answer, AccountError> {
        if answer.status.is_success() {
            return Ok(answer);
        }
        let text = |body: &[u8]| -> Option<String> {
            let body: serde_json::Value = serde_json::from_slice(body).ok()?;
            body["message"].as_str().and_then(reason_in)
        };
        let mut message = text(&answer.body).unwrap_or_else(|| "without a reason".to_owned());
        if answer.status == Status::TOO_MANY_REQUESTS {
            message = format!("the account had no request units to spare for {} s", WAITING_MAX.as_secs());
        }
        let sub_status = answer.sub_status();
        Err(AccountError::Refused { status: answer.status.0, sub_status, message })
    }

    pub(super) fn read<'a, T: Deserialize<'a>>(&self, body: &'a [u8]) -> Result<T, AccountError> {
        serde_json::from_slice(body)
            .map_err(|error| AccountError::Nonsense(self.account.endpoint.clone(), error.to_string()))
    }

    /// Where the account is.
    pub(super) fn endpoint(&self) -> &str {
        &self.account.endpoint
    }

    fn unreachable(&self, reason: String) -> AccountError {
        AccountError::Unreachable { endpoint: self.account.endpoint.clone(), reason }
    }
}

/// What went wrong, out of a message whose rest is for support: `Message: {"Errors":["…"]}`, or a line.
pub(super) fn reason_in(message: &str) -> Option<String> {
    let line = message.lines().next()?;
    let errors = line.strip_prefix("Message: ").and_then(|json| serde_json::from_str(json).ok());
    let errors: serde_json::Value = errors.unwrap_or_default();
    Some(errors["Errors"][0].as_str().unwrap_or(line).to_owned())
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(name::RETRY_AFTER_MS)?.to_str().ok()?;
    text.parse::<f64>().ok().and_then(|ms| Duration::try_from_secs_f64(ms / 1000.0).ok())
}

/// The innermost reason: what surrounds it says only that something failed.
fn reason_of(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

fn sub_status_text(sub_status: SubStatus) -> String {
    if sub_status.is_none() { String::new() } else { format!("/{sub_status}") }
}
