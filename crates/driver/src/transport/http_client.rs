//! The product's HTTP client as a [`Transport`]: it enforces deadlines itself and reports what happened.

use azure_core::error::ErrorKind;
use azure_core::http::Url;
use futures::FutureExt;
use futures::future::BoxFuture;
use http_body::Body;
use perihelion_http::{Client, RequestParts};
use protocol::status::Status;

use super::body::{BODY_BYTES_MAX, read_body};
use super::{Transport, TransportRequest, TransportResponse};

impl Transport for Client {
    fn send<'a>(
        &'a self,
        request: &'a TransportRequest<'a>,
    ) -> BoxFuture<'a, azure_core::Result<TransportResponse>> {
        async move {
            let parts = RequestParts {
                origin: request.endpoint,
                path: request.path,
                method: request.method,
                headers: request.headers.iter().map(|(name, value)| -> (&str, &str) { (name, value) }),
                body: request.body,
            };
            let (parts, body) = self.send_parts(&parts).await?.into_parts();
            let body = match body.size_hint().upper() {
                Some(length) if length <= BODY_BYTES_MAX as u64 => body.bytes(BODY_BYTES_MAX).await?,
                Some(_) | None => read_body(body).await?,
            };
            Ok(TransportResponse::new(Status(parts.status.as_u16()), parts.headers.into(), body))
        }
        .boxed()
    }

    /// The deadline reaches down to the socket: every wait of the client ends with its call.
    fn enforces_deadlines(&self) -> bool {
        true
    }

    fn connect<'a>(&'a self, endpoint: &'a Url) -> BoxFuture<'a, azure_core::Result<()>> {
        async move {
            let uri = endpoint.as_str().parse();
            let uri = uri.map_err(|error| azure_core::Error::new(ErrorKind::DataConversion, error))?;
            Ok(Client::connect(self, &uri).await?)
        }
        .boxed()
    }
}
