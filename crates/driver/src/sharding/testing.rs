//! Clients whose responses a test decides, one by one or by the number of the client.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use azure_core::error::ErrorKind;
use azure_core::http::headers::Headers;
use azure_core::http::{AsyncRawResponse, HttpClient, Request, StatusCode};
use perihelion_http::trace::{self, Protocol, RequestTrace, Sent};

use super::clients::SharedClients;
use super::config::ShardingConfig;
use super::in_flight::Shard;
use super::shards::Common;
use super::sweep::WakeSignal;
use crate::transport::{AzureCoreAdapter, HttpClientConfig, Transport, TransportFactory};

/// What a client does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// Answers with this status, these headers and this body.
    Respond(u16, Vec<(&'static str, String)>, &'static str),
    /// Fails, having sent this much.
    Fail(Sent),
    /// Fails without a word about what was sent, as a azure_core client would.
    FailSilently(ErrorKind),
    /// Says that the request left, and no more.
    Never,
}

impl Reply {
    pub(crate) fn ok() -> Reply {
        Reply::Respond(200, Vec::new(), "{}")
    }
}

type Script = dyn Fn(usize, &Request) -> Reply + Send + Sync;

/// Makes scripted clients and counts them.
#[derive(Clone)]
pub(crate) struct Factory {
    script: Arc<Script>,
    protocol: Option<Protocol>,
    created: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<(usize, Request)>>>,
}

impl Default for Factory {
    fn default() -> Factory {
        Factory::new(|_, _| Reply::ok())
    }
}

impl Factory {
    /// Clients that ask `script`, which gets the number of the client.
    pub(crate) fn new(script: impl Fn(usize, &Request) -> Reply + Send + Sync + 'static) -> Factory {
        Factory {
            script: Arc::new(script),
            protocol: Some(Protocol::Http2),
            created: Arc::default(),
            requests: Arc::default(),
        }
    }

    /// Makes the clients report this protocol, or none.
    pub(crate) fn speaking(self, protocol: Option<Protocol>) -> Factory {
        Factory { protocol, ..self }
    }

    /// How many clients were made.
    pub(crate) fn created(&self) -> usize {
        self.created.load(Ordering::Relaxed)
    }

    /// Every request so far, with the number of the client that got it.
    pub(crate) fn requests(&self) -> Vec<(usize, Request)> {
        self.requests.lock().expect("no panic").clone()
    }
}

impl fmt::Debug for Factory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Factory")
    }
}

impl TransportFactory for Factory {
    fn create(&self, _: &HttpClientConfig) -> Arc<dyn Transport> {
        let number = self.created.fetch_add(1, Ordering::Relaxed);
        Arc::new(AzureCoreAdapter::new(Arc::new(Scripted { number, factory: self.clone() })))
    }
}

#[derive(Debug)]
struct Scripted {
    number: usize,
    factory: Factory,
}

impl HttpClient for Scripted {
    fn execute_request<'a, 'b, 'c>(
        &'a self,
        request: &'b Request,
    ) -> Pin<Box<dyn Future<Output = azure_core::Result<AsyncRawResponse>> + Send + 'c>>
    where
        'a: 'c,
        'b: 'c,
        Self: 'c,
    {
        Box::pin(async move {
            self.factory.requests.lock().expect("no panic").push((self.number, request.clone()));
            let reply = (self.factory.script)(self.number, request);
            if let Reply::FailSilently(kind) = reply {
                return Err(azure_core::Error::with_message(kind, "as the test wants"));
            }
            let reporter = trace::start_trace();
            let mut record = RequestTrace::started();
            record.protocol = self.factory.protocol;
            record.sent = Sent::Sent;
            match reply {
                Reply::Respond(status, fields, body) => {
                    reporter.report(&record);
                    let mut headers = Headers::new();
                    fields.into_iter().for_each(|(name, value)| headers.insert(name, value));
                    Ok(AsyncRawResponse::from_bytes(StatusCode::from(status), headers, body))
                }
                Reply::Fail(sent) => {
                    record.sent = sent;
                    reporter.report(&record);
                    let error = perihelion_http::Error::new(
                        perihelion_http::ErrorKind::Closed,
                        "https://test",
                        record,
                    );
                    Err(error.into())
                }
                Reply::FailSilently(_) => unreachable!("answered above"),
                Reply::Never => {
                    reporter.report(&record);
                    futures::future::pending().await
                }
            }
        })
    }
}

/// What shards share, with scripted clients.
pub(super) fn common(config: ShardingConfig, factory: &Factory) -> Arc<Common> {
    let clients = SharedClients::new(Arc::new(factory.clone()), HttpClientConfig::default());
    Arc::new(Common { config, clients, wake: WakeSignal::default(), next_shard: AtomicU64::new(0) })
}

/// A shard of its own.
pub(super) fn shard(id: u64, now: Duration) -> Arc<Shard> {
    let clients = SharedClients::new(Arc::new(Factory::default()), HttpClientConfig::default());
    Shard::new(id, clients.take(|_| false), now)
}
