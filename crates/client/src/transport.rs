//! Gives the driver its HTTP clients: this crate's connections below the driver's rules.

use std::sync::Arc;

use azure_core::http::Url;
use driver::sharding::{ConnectAhead, HttpClientConfig, HttpClientFactory, NewClient};
use futures::FutureExt;
use futures::future::BoxFuture;
use perihelion_http::{BuildError, Client, ClientBuilder};

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
        let client = self.0.sibling();
        NewClient::new(Arc::new(client.clone())).with_connect(Arc::new(Warm(client)))
    }
}

/// Connects a client before the first request that needs it.
#[derive(Debug)]
struct Warm(Client);

impl ConnectAhead for Warm {
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
