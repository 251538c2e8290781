//! What the product's driver sends, kept: the bare loop sends the same again.

use perihelion_driver::transport::{AzureCoreAdapter, HttpClientConfig, Transport, TransportFactory};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use azure_core::http::{AsyncRawResponse, HttpClient, Request};
use http::HeaderMap;
use perihelion::{DriverOptions, OperationOptions};
use perihelion_driver::{CosmosRuntime, Operation};

use crate::peri::Peri;

/// One request, as it was sent.
#[derive(Clone, Debug)]
pub(super) struct Recorded {
    /// Its path.
    pub(super) path: String,
    /// Its headers, the signature among them.
    pub(super) headers: HeaderMap,
}

/// Carries out operations and gives what was sent for them, in the same order.
pub(super) async fn record(
    peri: &Peri,
    operations: impl Iterator<Item = Operation>,
) -> Result<Vec<Recorded>, String> {
    let client = perihelion_http::Client::builder()
        .no_proxy()
        .trust_pem(peri.certificate.as_bytes())
        .and_then(|builder| builder.build())
        .map_err(|error| error.to_string())?;
    let recorder = Arc::new(Recorder { client, last: Mutex::new(None) });
    let account = peri.account()?;
    let runtime = CosmosRuntime::builder(Arc::new(Factory(Arc::clone(&recorder)))).build();
    let driver = runtime.and_then(|runtime| runtime.driver(&account, DriverOptions::new()));
    let driver = driver.map_err(|error| error.to_string())?;
    let mut all = Vec::new();
    for operation in operations {
        let result = driver.execute_operation(&operation, &OperationOptions::new()).await;
        result.map_err(|error| error.to_string())?;
        let last = recorder.last.lock().unwrap_or_else(PoisonError::into_inner).take();
        all.push(last.ok_or("nothing was sent")?);
    }
    Ok(all)
}

#[derive(Debug)]
struct Factory(Arc<Recorder>);

impl TransportFactory for Factory {
    fn create(&self, _: &HttpClientConfig) -> Arc<dyn Transport> {
        let client: Arc<dyn HttpClient> = Arc::clone(&self.0) as _;
        Arc::new(AzureCoreAdapter::new(client))
    }
}

#[derive(Debug)]
struct Recorder {
    client: perihelion_http::Client,
    last: Mutex<Option<Recorded>>,
}

impl HttpClient for Recorder {
    fn execute_request<'a, 'b, 'c>(
        &'a self,
        request: &'b Request,
    ) -> Pin<Box<dyn Future<Output = azure_core::Result<AsyncRawResponse>> + Send + 'c>>
    where
        'a: 'c,
        'b: 'c,
        Self: 'c,
    {
        let headers = request.headers().iter().filter_map(|(name, value)| {
            Some((name.as_str().parse::<http::HeaderName>().ok()?, value.as_str().parse().ok()?))
        });
        let recorded = Recorded { path: request.url().path().to_owned(), headers: headers.collect() };
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(recorded);
        self.client.execute_request(request)
    }
}
