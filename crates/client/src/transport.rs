//! Gives the driver its HTTP clients: this crate's connections below the driver's rules.

use std::sync::Arc;

use azure_core::http::Url;
use driver::sharding::{ConnectAhead, HttpClientConfig, HttpClientFactory, NewClient};
use driver::transport::carrier::{BODY_BYTES_MAX, Carrier};
use driver::transport::outcome::Answer;
use driver::transport::request::Outgoing;
use futures::FutureExt;
use futures::future::BoxFuture;
use perihelion_http::{BuildError, Client, ClientBuilder, Pieces};
use protocol::status::Status;

/// Makes clients that share one TLS configuration and have connections of their own.
#[derive(Debug)]
pub(crate) struct Clients(Client);

impl Clients {
    /// Clients with these settings. What the driver says about them was said to `builder` already.
    pub(crate) fn new(builder: ClientBuilder) -> Result<Clients, BuildError> {
        Ok(Clients(builder.build()?))
    }
}

impl HttpClientFactory for Clients {
    fn create(&self, _: &HttpClientConfig) -> NewClient {
        let client = Arc::new(Connections(self.0.sibling()));
        NewClient::carrying(Arc::clone(&client) as _).with_connect(client)
    }
}

/// One client and the connections it has.
#[derive(Debug)]
struct Connections(Client);

impl Carrier for Connections {
    fn carry<'a>(&'a self, request: &'a Outgoing<'a>) -> BoxFuture<'a, azure_core::Result<Answer>> {
        async move {
            let pieces = Pieces {
                origin: request.endpoint,
                path: request.path,
                method: request.method,
                headers: request.headers.iter().map(|(name, value)| -> (&str, &str) { (name, value) }),
                body: request.body,
            };
            let (parts, body) = self.0.send_pieces(&pieces).await?.into_parts();
            let body = body.bytes(BODY_BYTES_MAX).await?;
            Ok(Answer::new(Status(parts.status.as_u16()), parts.headers.into(), body))
        }
        .boxed()
    }

    /// Down to the socket: every wait of the client ends with its call.
    fn keeps_deadlines(&self) -> bool {
        true
    }
}

impl ConnectAhead for Connections {
    fn connect<'a>(&'a self, endpoint: &'a Url) -> BoxFuture<'a, azure_core::Result<()>> {
        async move {
            let uri = endpoint.as_str().parse().map_err(|error| {
                azure_core::Error::new(azure_core::error::ErrorKind::DataConversion, error)
            })?;
            self.0.connect(&uri).await?;
            Ok(())
        }
        .boxed()
    }
}
