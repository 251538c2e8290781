//! The factory of HTTP clients that the driver sends its requests with.

use driver::transport::{HttpClientConfig, Transport, TransportFactory};
use std::sync::Arc;

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

impl TransportFactory for HttpClients {
    fn create(&self, _: &HttpClientConfig) -> Arc<dyn Transport> {
        Arc::new(self.0.with_separate_pool())
    }
}
