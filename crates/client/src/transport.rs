//! The factory of HTTP clients that the driver sends its requests with.

use std::sync::{Arc, Mutex, PoisonError};

use driver::transport::{HttpClientConfig, Transport, TransportFactory};
use perihelion_http::{BuildError, Client, ClientBuilder};

/// Creates HTTP clients that share one TLS configuration; each has its own connections.
#[derive(Debug)]
pub(crate) struct HttpClients {
    /// What the application has set. The rest follows from the configuration of the driver.
    settings: ClientBuilder,
    /// The client that others are made from, and the configuration that it follows.
    model: Mutex<(HttpClientConfig, Client)>,
}

impl HttpClients {
    /// A factory of clients with these settings, and with those of the driver where they have none.
    pub(crate) fn new(settings: ClientBuilder) -> Result<HttpClients, BuildError> {
        let config = HttpClientConfig::default();
        let client = settings.clone().or(&config.client_builder()).build()?;
        Ok(HttpClients { settings, model: Mutex::new((config, client)) })
    }
}

impl TransportFactory for HttpClients {
    fn create(&self, config: &HttpClientConfig) -> Arc<dyn Transport> {
        // Both are valid after each step, whichever thread panics.
        let mut model = self.model.lock().unwrap_or_else(PoisonError::into_inner);
        if model.0 != *config {
            let client = self.settings.clone().or(&config.client_builder()).build();
            *model = (
                config.clone(),
                client.expect("nothing of a configuration can fail, and `new` built the settings"),
            );
        }
        Arc::new(model.1.with_separate_pool())
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, SocketAddr};
    use std::time::Duration;

    use azure_core::http::{Method, Url};
    use bytes::Bytes;
    use driver::transport::{HeaderList, ProxyConfig, TransportRequest, TransportResponse};
    use futures::future::join_all;
    use perihelion_http::pool::PoolConfig;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::{Barrier, mpsc};

    use super::*;

    /// What the server got: the address of the client, and the first line of its request.
    type Received = (SocketAddr, String);

    /// The requests of a wave, which are all in progress at the same time.
    const WAVE: usize = 20;

    /// Reads one request after the other, and responds with 200, as a proxy to its own tunnels does: not at all to `/silent`, and to `/wave` when all requests
    /// of the wave have arrived.
    async fn serve(
        mut stream: TcpStream,
        from: SocketAddr,
        received: mpsc::UnboundedSender<Received>,
        wave: Arc<Barrier>,
    ) {
        let mut head = Vec::new();
        while let Ok(byte) = stream.read_u8().await {
            head.push(byte);
            if head.ends_with(b"\r\n\r\n") {
                let text = String::from_utf8(std::mem::take(&mut head)).expect("our requests are text");
                let line = text.lines().next().expect("it has a line").to_owned();
                let (silent, tunnel) = (line.contains("/silent"), line.starts_with("CONNECT"));
                let in_wave = line.contains("/wave");
                // Fails if the test is over.
                let _ = received.send((from, line));
                if in_wave {
                    wave.wait().await;
                }
                let response = match tunnel {
                    true => "HTTP/1.1 200 OK\r\n\r\n",
                    false => "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
                };
                if !silent {
                    stream.write_all(response.as_bytes()).await.expect("the client reads");
                }
            }
        }
    }

    async fn server() -> (Url, mpsc::UnboundedReceiver<Received>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let address = listener.local_addr().expect("it is bound");
        let (sender, received) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let wave = Arc::new(Barrier::new(WAVE));
            while let Ok((stream, from)) = listener.accept().await {
                tokio::spawn(serve(stream, from, sender.clone(), Arc::clone(&wave)));
            }
        });
        (Url::parse(&format!("http://{address}/")).expect("it is a URL"), received)
    }

    async fn get(
        transport: &dyn Transport,
        endpoint: &Url,
        path: &str,
    ) -> azure_core::Result<TransportResponse> {
        let (headers, body) = (HeaderList::new(), Bytes::new());
        let request = TransportRequest { endpoint, path, method: Method::Get, headers, body: &body };
        transport.send(&request).await
    }

    fn direct() -> ClientBuilder {
        Client::builder().no_proxy()
    }

    fn factory(settings: ClientBuilder) -> HttpClients {
        HttpClients::new(settings).expect("the settings are valid")
    }

    #[tokio::test]
    async fn every_field_of_the_configuration_has_an_effect() {
        let (url, mut received) = server().await;
        let mut config = HttpClientConfig::default();
        config.local_address = Some(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)));
        let transport = factory(direct()).create(&config);
        get(&*transport, &url, "a").await.expect("it is served");
        let (from, line) = received.recv().await.expect("it was received");
        assert_eq!((Some(from.ip()), line.as_str()), (config.local_address, "GET /a HTTP/1.1"));

        let mut config = HttpClientConfig::default();
        config.request_timeout = Duration::from_millis(50);
        let error = get(&*factory(direct()).create(&config), &url, "silent").await.expect_err("in time");
        assert!(error.to_string().contains("deadline"), "{error}");

        let mut config = HttpClientConfig::default();
        config.proxy = Some(ProxyConfig { url: url.clone() });
        let transport = factory(Client::builder()).create(&config);
        let target = Url::parse("http://account.example:81/").expect("it is a URL");
        get(&*transport, &target, "a").await.expect("it is served");
        received.recv().await.expect("the silent request was received");
        let (_, line) = received.recv().await.expect("it was received");
        assert_eq!(line, "CONNECT account.example:81 HTTP/1.1");

        config.proxy = Some(ProxyConfig { url: Url::parse("ftp://proxy.example/").expect("it is a URL") });
        let transport = factory(Client::builder()).create(&config);
        let error = get(&*transport, &url, "a").await.expect_err("it is not a proxy");
        let error = perihelion_http::Error::find_in(&error).expect("it is one of the HTTP client");
        let source = std::error::Error::source(error).expect("it has a source").to_string();
        assert!(source.contains("ftp://proxy.example"), "{source}");

        let mut config = HttpClientConfig::default();
        config.connect_timeout = Duration::from_secs(77);
        config.tcp_keepalive = Some(Duration::from_secs(78));
        let shown = format!("{:?}", factory(direct()).create(&config));
        assert!(shown.contains("connect_timeout: Some(77s)"), "{shown}");
        assert!(shown.contains("keepalive: Some(78s)"), "{shown}");
    }

    /// How many connections two waves of requests open, each wave at once.
    async fn connections_of_two_waves(settings: ClientBuilder, config: &HttpClientConfig) -> usize {
        let (url, mut received) = server().await;
        let transport = factory(settings).create(config);
        let wave = || join_all((0..WAVE).map(|_| get(&*transport, &url, "wave")));
        for response in [wave().await, wave().await].into_iter().flatten() {
            response.expect("it is served");
        }
        drop(transport);
        let mut connections = std::collections::HashSet::new();
        for _ in 0..2 * WAVE {
            connections.insert(received.recv().await.expect("all were received").0);
        }
        connections.len()
    }

    #[tokio::test]
    async fn settings_of_the_application_replace_only_what_they_set() {
        let config = HttpClientConfig::default();
        assert_eq!(connections_of_two_waves(direct(), &config).await, WAVE, "the pool of the driver is kept");
        let hosts = PoolConfig::builder().max_hosts(3).build().expect("it is valid");
        assert_eq!(
            connections_of_two_waves(direct().pool(hosts), &config).await,
            WAVE,
            "and so is its limit"
        );
        let pool = PoolConfig::builder().max_per_host(2).build().expect("it is valid");
        assert_eq!(connections_of_two_waves(direct().pool(pool), &config).await, 2 * WAVE - 2);
        let mut small = HttpClientConfig::default();
        small.pool_max_idle_per_host = 2;
        assert_eq!(connections_of_two_waves(direct(), &small).await, 2 * WAVE - 2);

        let shown = format!("{:?}", factory(direct().call_timeout(None)).create(&config));
        assert!(shown.contains("connect_timeout: Some(5s)"), "{shown}");
        assert!(shown.contains("call_timeout: None"), "{shown}");
        let mut config = config;
        config.pool_idle_timeout = Duration::from_secs(79);
        let shown = format!("{:?}", direct().or(&config.client_builder()));
        assert!(shown.contains("max_idle_time: Some(79s)"), "{shown}");
    }
}
