//! The product's HTTP client as a carrier: nothing is translated on the way.

use azure_core::error::ErrorKind;
use azure_core::http::Url;
use futures::FutureExt;
use futures::future::BoxFuture;
use perihelion_http::{Client, RequestParts};
use protocol::status::Status;

use super::carrier::{Carrier, whole};
use super::outcome::Answer;
use super::request::Outgoing;
use crate::sharding::ConnectAhead;

impl Carrier for Client {
    fn carry<'a>(&'a self, request: &'a Outgoing<'a>) -> BoxFuture<'a, azure_core::Result<Answer>> {
        async move {
            let pieces = RequestParts {
                origin: request.endpoint,
                path: request.path,
                method: request.method,
                headers: request.headers.iter().map(|(name, value)| -> (&str, &str) { (name, value) }),
                body: request.body,
            };
            let (parts, body) = self.send_parts(&pieces).await?.into_parts();
            let body = whole(body).await?;
            Ok(Answer::new(Status(parts.status.as_u16()), parts.headers.into(), body))
        }
        .boxed()
    }

    /// Down to the socket: every wait of the client ends with its call.
    fn keeps_deadlines(&self) -> bool {
        true
    }
}

impl ConnectAhead for Client {
    fn connect<'a>(&'a self, endpoint: &'a Url) -> BoxFuture<'a, azure_core::Result<()>> {
        async move {
            let uri = endpoint.as_str().parse();
            let uri = uri.map_err(|error| azure_core::Error::new(ErrorKind::DataConversion, error))?;
            Ok(Client::connect(self, &uri).await?)
        }
        .boxed()
    }
}
