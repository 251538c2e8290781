//! One connection, from its first byte to its last.
//!
//! Recognises the protocol, unwraps TLS, and lets hyper speak HTTP/1.1 or HTTP/2 until the client
//! leaves or the server's sweep gives another order.

use std::error::Error;
use std::pin::pin;
use std::sync::Arc;

use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::graceful::GracefulConnection;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use crate::exchange::Exchange;
use crate::handler::Handler;
use crate::limits::Limits;
use crate::registry::Registration;
use crate::request_body::BodyReader;
use crate::sniff::Spoken;
use crate::stream::{Noted, Replayed};
use crate::tls::Tls;
use crate::watch::{Order, Watch};
use crate::wire::Wire;

/// Why a connection ended early; only ever logged.
type Failure = Box<dyn Error + Send + Sync>;

/// What all connections of one server share.
pub(crate) struct Shared<H> {
    pub(crate) handler: Arc<H>,
    pub(crate) tls: Option<Tls>,
    pub(crate) limits: Limits,
    pub(crate) bodies: Arc<BodyReader>,
}

/// Serves `stream` until it ends. The registration, and with it the connection's place among all
/// others, is given back on return.
pub(crate) async fn serve<H: Handler>(shared: Arc<Shared<H>>, stream: TcpStream, registration: Registration) {
    // Answers are written in one piece; waiting for more to send only adds latency.
    let _ = stream.set_nodelay(true);
    if let Err(error) = speak(&shared, stream, &registration.watch).await {
        tracing::debug!(error, "a connection ended early");
    }
}

async fn speak<H: Handler>(
    shared: &Arc<Shared<H>>,
    stream: TcpStream,
    watch: &Arc<Watch>,
) -> Result<(), Failure> {
    let stream = Wire::new(stream, Arc::clone(watch));
    let Some((spoken, stream)) = while_serving(watch, Replayed::recognise(stream)).await.transpose()? else {
        return Ok(());
    };
    match (spoken, &shared.tls) {
        (Spoken::Http2, _) => speak_http2(shared, stream, watch, false).await,
        (Spoken::Tls, Some(tls)) => Box::pin(speak_tls(shared, tls, stream, watch)).await,
        _ => speak_http1(shared, stream, watch, false).await,
    }
}

async fn speak_tls<H: Handler>(
    shared: &Arc<Shared<H>>,
    tls: &Tls,
    stream: Replayed<Wire>,
    watch: &Arc<Watch>,
) -> Result<(), Failure> {
    let handshake = async {
        let acceptor = TlsAcceptor::from(tls.config().await?);
        Ok::<_, Failure>(acceptor.accept(stream).await?)
    };
    let Some(stream) = while_serving(watch, handshake).await.transpose()? else { return Ok(()) };
    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        return speak_http2(shared, stream, watch, true).await;
    }
    // A client that negotiated nothing may still know what it wants.
    let Some((spoken, stream)) = while_serving(watch, Replayed::recognise(stream)).await.transpose()? else {
        return Ok(());
    };
    match spoken {
        Spoken::Http2 => speak_http2(shared, stream, watch, true).await,
        Spoken::Http1 | Spoken::NeedMore | Spoken::Tls => speak_http1(shared, stream, watch, true).await,
    }
}

async fn speak_http1<H, S>(
    shared: &Arc<Shared<H>>,
    stream: S,
    watch: &Arc<Watch>,
    encrypted: bool,
) -> Result<(), Failure>
where
    H: Handler,
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let exchange = Arc::new(shared.exchange(watch, encrypted));
    let service = service_fn(move |request| exchange.answer(request));
    let io = TokioIo::new(Noted::new(stream, Arc::clone(watch)));
    let connection = http1::Builder::new()
        .max_header_size(shared.limits.head_bytes_max)
        .max_buf_size(shared.limits.head_bytes_max * 2)
        // The server's sweep does this without a timer per request.
        .header_read_timeout(None)
        .serve_connection(io, service);
    run(connection, watch).await
}

async fn speak_http2<H, S>(
    shared: &Arc<Shared<H>>,
    stream: S,
    watch: &Arc<Watch>,
    encrypted: bool,
) -> Result<(), Failure>
where
    H: Handler,
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    watch.is_multiplexed();
    let exchange = Arc::new(shared.exchange(watch, encrypted));
    // Each stream has a task of its own, and the work belongs there: one stream's long query must not
    // keep the connection from the others.
    let service = service_fn(move |request| {
        let exchange = Arc::clone(&exchange);
        async move { exchange.answer(request).await }
    });
    let io = TokioIo::new(Noted::new(stream, Arc::clone(watch)));
    let head_bytes_max = u32::try_from(shared.limits.head_bytes_max).unwrap_or(u32::MAX);
    let connection = http2::Builder::new(TokioExecutor::new())
        .max_concurrent_streams(shared.limits.streams_max)
        .max_header_list_size(head_bytes_max)
        .serve_connection(io, service);
    run(connection, watch).await
}

/// Drives a connection and carries out the orders it is given.
async fn run<C>(connection: C, watch: &Watch) -> Result<(), Failure>
where
    C: GracefulConnection,
    C::Error: Into<Failure>,
{
    let mut connection = pin!(connection);
    let mut order = Order::Serve;
    loop {
        tokio::select! {
            biased;
            result = connection.as_mut() => return result.map_err(Into::into),
            next = watch.order_after(order) => order = next,
        }
        match order {
            Order::Serve => {}
            Order::Drain => connection.as_mut().graceful_shutdown(),
            Order::Abort => return Ok(()),
        }
    }
}

/// `work`, or nothing if the connection is told to close before it is done.
async fn while_serving<T>(watch: &Watch, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        done = work => Some(done),
        _ = watch.order_after(Order::Serve) => None,
    }
}

impl<H> Shared<H> {
    fn exchange(&self, watch: &Arc<Watch>, encrypted: bool) -> Exchange<H> {
        Exchange {
            handler: Arc::clone(&self.handler),
            bodies: Arc::clone(&self.bodies),
            gzip_bytes_min: self.limits.gzip_bytes_min,
            encrypted,
            watch: Arc::clone(watch),
        }
    }
}
