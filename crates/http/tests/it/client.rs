//! The one place where the tests call the client.

use std::time::Duration;

use http::{Request, StatusCode};
use perihelion_http::authority::Authority;
use perihelion_http::exchange::{Exchange, observe};
use perihelion_http::pool::HostMetrics;
use perihelion_http::{Client, ClientBuilder, Error};

use crate::server::FOREVER;

/// More than any body here.
const BODY_MAX: usize = 1024 * 1024;

/// No deadline comes into play unless a test asks for one.
pub(crate) fn builder() -> ClientBuilder {
    Client::builder()
        .no_proxy()
        .trust_only([])
        .connect_timeout(FOREVER)
        .first_byte_timeout(FOREVER)
        .silence_timeout(FOREVER)
}

/// For peers that say nothing: long enough to come as far as they let one, short enough to wait for.
pub(crate) const SOON: Duration = Duration::from_millis(200);

pub(crate) fn client() -> Client {
    builder().build().expect("nothing can be wrong with it")
}

/// A GET, its body included.
pub(crate) async fn get(client: &Client, url: &str) -> Result<(StatusCode, Vec<u8>), Error> {
    let request = Request::get(url).body(()).expect("the URL is one");
    let response = client.send(request).await?;
    let status = response.status();
    let body = response.into_body().bytes(BODY_MAX).await?;
    Ok((status, body.to_vec()))
}

/// A GET and what happened to it. Fails the test if it does not end.
pub(crate) async fn observed(client: &Client, url: &str) -> (Exchange, Result<(StatusCode, Vec<u8>), Error>) {
    let ended = tokio::time::timeout(FOREVER, observe(get(client, url))).await;
    ended.unwrap_or_else(|_| panic!("{url}: never ended"))
}

/// What happened to the connections of the host this URL names.
pub(crate) fn of_host(client: &Client, url: &str) -> HostMetrics {
    let authority = Authority::of(&url.parse().expect("it is a URL")).expect("it names a host");
    client.pool_metrics().host(&authority).copied().unwrap_or_default()
}

pub(crate) fn totals(client: &Client) -> HostMetrics {
    client.pool_metrics().total
}
