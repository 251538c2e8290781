//! Any `HttpClient` of `azure_core` as a [`Transport`]: requests and responses are translated.

use std::collections::HashMap;
use std::sync::Arc;

use azure_core::http::headers::{HeaderName, HeaderValue, Headers};
use azure_core::http::{HttpClient, Request};
use futures::future::BoxFuture;
use protocol::headers as names;
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
    let mut expected = USUAL_NAMES.iter();
    let mut map = headers
        .values()
        .map(|(name, value)| {
            let value = match value {
                Value::Fixed(text) => HeaderValue::from_static(text),
                Value::Text(text) => HeaderValue::from(text.to_owned()),
            };
            (header_name(name, &mut expected), value)
        })
        .collect::<HashMap<_, _>>();
    map.extend(headers.custom().map(|header| {
        (HeaderName::from(header.name().to_owned()), HeaderValue::from(header.value().to_owned()))
    }));
    Headers::from(map)
}

/// The names that most requests have, in the order in which the driver sets them. `azure_core` looks at every character
/// of a name: of these when the program is compiled, not for every request.
static USUAL_NAMES: [HeaderName; 16] = [
    HeaderName::from_static(names::PARTITION_KEY),
    HeaderName::from_static(names::INTENDED_COLLECTION_RID),
    HeaderName::from_static(names::SESSION_TOKEN),
    HeaderName::from_static(names::IS_UPSERT),
    HeaderName::from_static(names::CONTENT_TYPE),
    HeaderName::from_static(names::PREFER),
    HeaderName::from_static(names::ACCEPT),
    HeaderName::from_static(names::CACHE_CONTROL),
    HeaderName::from_static(names::VERSION),
    HeaderName::from_static(names::SDK_SUPPORTED_CAPABILITIES),
    HeaderName::from_static(names::NO_RETRY_449),
    HeaderName::from_static(names::USER_AGENT),
    HeaderName::from_static(names::CLIENT_ID),
    HeaderName::from_static(names::ACTIVITY_ID),
    HeaderName::from_static(names::AUTHORIZATION),
    HeaderName::from_static(names::X_DATE),
];

/// A header name, copied from the `expected` ones if it is the next of them or follows soon.
fn header_name(name: &'static str, expected: &mut std::slice::Iter<'static, HeaderName>) -> HeaderName {
    let mut ahead = expected.clone();
    match ahead.find(|known| known.as_str() == name) {
        Some(known) => {
            *expected = ahead;
            known.clone()
        }
        // It is unusual, or set out of order: those that are expected after it are not skipped.
        None => HeaderName::from_static(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_header_has_its_name_and_value_whatever_the_order() {
        let mut list = HeaderList::new();
        let pairs = [
            ("x-ms-date", "Tue, 14 Nov 2023 22:13:20 GMT"),
            ("x-unusual", "1"),
            (names::PARTITION_KEY, r#"["k"]"#),
            (names::ACCEPT, "application/json"),
            (names::SESSION_TOKEN, "0:-1#2"),
            (names::AUTHORIZATION, "signature"),
        ];
        pairs.iter().for_each(|(name, value)| list.set(name, value));
        list.set_fixed(names::CACHE_CONTROL, "no-cache");
        let headers = azure_headers(&list);
        assert_eq!(headers.iter().count(), pairs.len() + 1);
        for (name, value) in pairs.iter().chain(&[(names::CACHE_CONTROL, "no-cache")]) {
            assert_eq!(headers.get_optional_str(&HeaderName::from_static(name)), Some(*value), "{name}");
        }
    }
}
