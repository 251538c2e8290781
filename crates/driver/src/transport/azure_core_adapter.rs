//! Any `HttpClient` of `azure_core` as a [`Transport`]: requests and responses are translated.

use std::collections::HashMap;
use std::sync::Arc;

use azure_core::http::headers::{HeaderName, HeaderValue, Headers};
use azure_core::http::{HttpClient, Request};
use futures::future::BoxFuture;
use protocol::status::Status;

use super::body::read_body;
use super::header_list::Value;
use super::{HeaderList, Transport, TransportRequest, TransportResponse};

/// Sends requests through a client of `azure_core`.
///
/// The client connects with its first request, reports nothing of the connection, and knows no deadline: the
/// caller holds a timer.
#[derive(Debug)]
pub struct AzureCoreAdapter(Arc<dyn HttpClient>);

impl AzureCoreAdapter {
    /// A transport over `client`.
    pub fn new(client: Arc<dyn HttpClient>) -> AzureCoreAdapter {
        AzureCoreAdapter(client)
    }
}

impl Transport for AzureCoreAdapter {
    fn send<'a>(
        &'a self,
        request: &'a TransportRequest<'a>,
    ) -> BoxFuture<'a, azure_core::Result<TransportResponse>> {
        Box::pin(async move {
            let request = azure_request(request);
            let (status, headers, body) = self.0.execute_request(&request).await?.deconstruct();
            Ok(TransportResponse::new(Status(u16::from(status)), headers.into(), read_body(body).await?))
        })
    }
}

fn azure_request(request: &TransportRequest<'_>) -> Request {
    let mut url = request.endpoint.clone();
    url.set_path(request.path);
    let mut azure = Request::new(url, request.method);
    *azure.headers_mut() = azure_headers(&request.headers);
    if !request.body.is_empty() {
        azure.set_body(request.body.clone());
    }
    azure
}

/// Values that are known beforehand are not copied.
fn azure_headers(headers: &HeaderList) -> Headers {
    let mut map = headers
        .values()
        .map(|(name, value)| {
            let value = match value {
                Value::Fixed(text) => HeaderValue::from_static(text),
                Value::Text(text) => HeaderValue::from(text.to_owned()),
            };
            (HeaderName::from_static(name), value)
        })
        .collect::<HashMap<_, _>>();
    map.extend(headers.custom().map(|header| {
        (HeaderName::from(header.name().to_owned()), HeaderValue::from(header.value().to_owned()))
    }));
    Headers::from(map)
}
