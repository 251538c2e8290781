//! Gives the driver its HTTP clients: this crate's connections below the driver's rules.

use driver::transport::{HttpClientConfig, Transport, TransportFactory};
use std::sync::Arc;

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

impl TransportFactory for Clients {
    fn create(&self, _: &HttpClientConfig) -> Arc<dyn Transport> {
        Arc::new(self.0.with_separate_pool())
    }
}
