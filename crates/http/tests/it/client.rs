//! Helpers that call the client, for all tests.

use std::time::Duration;

use http::{Request, StatusCode};
use perihelion_http::origin::Origin;
use perihelion_http::pool::HostMetrics;
use perihelion_http::trace::{RequestTrace, observe};
use perihelion_http::{Client, ClientBuilder, Error};

use crate::server::TEST_TIMEOUT;

/// More than any body here.
const BODY_MAX: usize = 1024 * 1024;

/// A builder whose timeouts are longer than any test, unless the test sets one.
pub(crate) fn builder() -> ClientBuilder {
    Client::builder()
        .no_proxy()
        .trust_only([])
        .connect_timeout(TEST_TIMEOUT)
        .first_byte_timeout(TEST_TIMEOUT)
        .read_timeout(TEST_TIMEOUT)
}

/// For servers that do not respond: long enough to reach the step under test, short enough to wait for.
pub(crate) const SHORT_TIMEOUT: Duration = Duration::from_millis(200);

pub(crate) fn client() -> Client {
    builder().build().expect("nothing can be wrong with it")
}

/// Sends a GET and reads the body of its response.
pub(crate) async fn get(client: &Client, url: &str) -> Result<(StatusCode, Vec<u8>), Error> {
    let request = Request::get(url).body(()).expect("the URL is one");
    let response = client.send(request).await?;
    let status = response.status();
    let body = response.into_body().bytes(BODY_MAX).await?;
    Ok((status, body.to_vec()))
}

/// Sends a GET, and returns its trace as well. Fails the test if it does not end.
pub(crate) async fn get_traced(
    client: &Client,
    url: &str,
) -> (RequestTrace, Result<(StatusCode, Vec<u8>), Error>) {
    let ended = tokio::time::timeout(TEST_TIMEOUT, observe(get(client, url))).await;
    ended.unwrap_or_else(|_| panic!("{url}: never ended"))
}

/// The pool counters of the host of this URL.
pub(crate) fn host_metrics(client: &Client, url: &str) -> HostMetrics {
    let origin = Origin::from_uri(&url.parse().expect("it is a URL")).expect("it has a host");
    client.pool_metrics().host(&origin).copied().unwrap_or_default()
}

pub(crate) fn totals(client: &Client) -> HostMetrics {
    client.pool_metrics().total
}
