//! The factory of HTTP clients that the driver sends its requests with.

use std::sync::Arc;

use driver::sharding::{HttpClientConfig, HttpClientFactory, NewClient};
use perihelion_http::{BuildError, Client, ClientBuilder};

/// Creates HTTP clients that share one TLS configuration; each has its own connections.
#[derive(Debug)]
pub(crate) struct HttpClients(Client);

impl HttpClients {
    /// A factory of clients with these settings, which already include the limits of the driver.
    pub(crate) fn new(builder: ClientBuilder) -> Result<HttpClients, BuildError> {
        Ok(HttpClients(builder.build()?))
    }
}

impl HttpClientFactory for HttpClients {
    fn create(&self, _: &HttpClientConfig) -> NewClient {
        let client = Arc::new(self.0.sibling());
        NewClient::carrying(Arc::clone(&client) as _).with_connect(client)
    }
}
