//! The product's HTTP client as a [`Transport`]: it enforces deadlines itself and reports what happened.

use std::time::Duration;

use azure_core::error::ErrorKind;
use azure_core::http::Url;
use futures::FutureExt;
use futures::future::BoxFuture;
use http_body::Body;
use perihelion_http::pool::PoolConfig;
use perihelion_http::pool::config::MAX_PER_HOST_LIMIT;
use perihelion_http::{Client, ClientBuilder, RequestParts};
use protocol::status::Status;

use super::body::{BODY_BYTES_MAX, read_body};
use super::{HttpClientConfig, Transport, TransportRequest, TransportResponse};

impl HttpClientConfig {
    /// A builder of the product's HTTP client with these settings. A factory whose own settings take precedence lays them
    /// over it ([`ClientBuilder::or`]).
    ///
    /// ```
    /// use perihelion_driver::transport::HttpClientConfig;
    /// use perihelion_http::Client;
    ///
    /// let config = HttpClientConfig::default();
    /// let client = Client::builder().no_proxy().or(&config.client_builder()).build()?;
    /// # Ok::<(), perihelion_http::BuildError>(())
    /// ```
    pub fn client_builder(&self) -> ClientBuilder {
        // The pool allows as many connections as there are requests in flight, which the driver limits.
        let pool = PoolConfig::builder()
            .max_per_host(self.pool_max_idle_per_host.clamp(1, MAX_PER_HOST_LIMIT))
            .max_idle_time(self.pool_idle_timeout.max(Duration::from_millis(1)))
            .build()
            .expect("both limits are in range");
        let mut builder = Client::builder()
            .connect_timeout(self.connect_timeout)
            .call_timeout(Some(self.request_timeout))
            .tcp_keepalive(self.tcp_keepalive)
            .pool(pool);
        if let Some(proxy) = &self.proxy {
            builder = builder.proxy_url(proxy.url.as_str());
        }
        if let Some(address) = self.local_address {
            builder = builder.local_address(address);
        }
        builder
    }
}

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
