//! One connection, from its first byte to its last.
//!
//! Detects the protocol, performs the TLS handshake, and lets hyper speak HTTP/1.1 or HTTP/2 until the client
//! disconnects or the server sends another command.

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

use crate::client_socket::ClientSocket;
use crate::connection_activity::{ConnectionActivity, ConnectionCommand};
use crate::connection_registry::{ConnectionRegistry, Registration};
use crate::exchange::Exchange;
use crate::handler::Handler;
use crate::limits::Limits;
use crate::peeked_stream::{MonitoredStream, PeekedStream};
use crate::protocol_detection::Protocol;
use crate::request_body::BodyReader;
use crate::tls::Tls;

/// Why a connection ended early; only ever logged.
type BoxError = Box<dyn Error + Send + Sync>;

/// The state that all connections of one server share.
pub(crate) struct ServerContext<H> {
    pub(crate) handler: Arc<H>,
    pub(crate) tls: Option<Tls>,
    pub(crate) limits: Limits,
    pub(crate) bodies: Arc<BodyReader>,
    pub(crate) registry: Arc<ConnectionRegistry>,
}

/// Serves `stream` until it ends, and removes it from the registry on return.
pub(crate) async fn serve<H: Handler>(
    context: Arc<ServerContext<H>>,
    stream: TcpStream,
    registration: Registration,
) {
    // Responses are written in one piece, so waiting for more to send only adds latency. A socket that
    // refuses the option still works.
    let _ = stream.set_nodelay(true);
    if let Err(error) = serve_detected_protocol(&context, stream, &registration.activity).await {
        tracing::debug!(error, "a connection ended early");
    }
}

async fn serve_detected_protocol<H: Handler>(
    context: &Arc<ServerContext<H>>,
    stream: TcpStream,
    activity: &Arc<ConnectionActivity>,
) -> Result<(), BoxError> {
    let stream = ClientSocket::new(stream, Arc::clone(activity));
    let Some((protocol, stream)) =
        while_serving(activity, PeekedStream::detect_protocol(stream)).await.transpose()?
    else {
        return Ok(());
    };
    match (protocol, &context.tls) {
        (Protocol::Http2, _) => serve_http2(context, stream, activity, false).await,
        (Protocol::Tls, Some(tls)) => Box::pin(serve_tls(context, tls, stream, activity)).await,
        _ => serve_http1(context, stream, activity, false).await,
    }
}

async fn serve_tls<H: Handler>(
    context: &Arc<ServerContext<H>>,
    tls: &Tls,
    stream: PeekedStream<ClientSocket>,
    activity: &Arc<ConnectionActivity>,
) -> Result<(), BoxError> {
    let handshake = async {
        let acceptor = TlsAcceptor::from(tls.config().await?);
        Ok::<_, BoxError>(acceptor.accept(stream).await?)
    };
    let Some(stream) = while_serving(activity, handshake).await.transpose()? else { return Ok(()) };
    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        return serve_http2(context, stream, activity, true).await;
    }
    // A client that negotiated no protocol may still send an HTTP/2 preface.
    let Some((protocol, stream)) =
        while_serving(activity, PeekedStream::detect_protocol(stream)).await.transpose()?
    else {
        return Ok(());
    };
    match protocol {
        Protocol::Http2 => serve_http2(context, stream, activity, true).await,
        Protocol::Http1 | Protocol::Undetermined | Protocol::Tls => {
            serve_http1(context, stream, activity, true).await
        }
    }
}

async fn serve_http1<H, S>(
    context: &Arc<ServerContext<H>>,
    stream: S,
    activity: &Arc<ConnectionActivity>,
    encrypted: bool,
) -> Result<(), BoxError>
where
    H: Handler,
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let exchange = Arc::new(context.exchange(activity, encrypted));
    let service = service_fn(move |request| exchange.respond_in_turn(request));
    let io = TokioIo::new(MonitoredStream::new(stream, Arc::clone(activity)));
    let connection = http1::Builder::new()
        .max_header_size(context.limits.head_bytes_max)
        .max_buf_size(context.limits.head_bytes_max * 2)
        // The server's sweep does this without a timer per request.
        .header_read_timeout(None)
        // A response stays where it is, and is counted, until it is written: hyper would copy it otherwise.
        .writev(true)
        .serve_connection(io, service);
    drive(connection, activity).await
}

async fn serve_http2<H, S>(
    context: &Arc<ServerContext<H>>,
    stream: S,
    activity: &Arc<ConnectionActivity>,
    encrypted: bool,
) -> Result<(), BoxError>
where
    H: Handler,
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    activity.set_multiplexed();
    let exchange = Arc::new(context.exchange(activity, encrypted));
    // Each HTTP/2 stream has a task of its own, and the work happens there: a long query must not block the
    // other streams of its connection.
    let service = service_fn(move |request| {
        let exchange = Arc::clone(&exchange);
        async move { exchange.respond_with_room(request).await }
    });
    let io = TokioIo::new(MonitoredStream::new(stream, Arc::clone(activity)));
    let head_bytes_max = u32::try_from(context.limits.head_bytes_max).unwrap_or(u32::MAX);
    let connection = http2::Builder::new(TokioExecutor::new())
        .max_concurrent_streams(context.limits.streams_max)
        .max_header_list_size(head_bytes_max)
        .serve_connection(io, service);
    drive(connection, activity).await
}

/// Drives a connection until it ends and carries out the commands that it receives.
async fn drive<C>(connection: C, activity: &ConnectionActivity) -> Result<(), BoxError>
where
    C: GracefulConnection,
    C::Error: Into<BoxError>,
{
    let mut connection = pin!(connection);
    let mut command = ConnectionCommand::Serve;
    loop {
        tokio::select! {
            biased;
            result = connection.as_mut() => return result.map_err(Into::into),
            next = activity.command_after(command) => command = next,
        }
        match command {
            ConnectionCommand::Serve => {}
            ConnectionCommand::Drain => connection.as_mut().graceful_shutdown(),
            ConnectionCommand::Abort => return Ok(()),
        }
    }
}

/// The result of `work`, or `None` if the connection has to close before that.
async fn while_serving<T>(activity: &ConnectionActivity, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        done = work => Some(done),
        _ = activity.command_after(ConnectionCommand::Serve) => None,
    }
}

impl<H> ServerContext<H> {
    fn exchange(&self, activity: &Arc<ConnectionActivity>, encrypted: bool) -> Exchange<H> {
        Exchange {
            handler: Arc::clone(&self.handler),
            bodies: Arc::clone(&self.bodies),
            gzip_bytes_min: self.limits.gzip_bytes_min,
            unread_bytes_max: self.limits.unread_bytes_max,
            drain_time_max: self.limits.body_timeout,
            encrypted,
            activity: Arc::clone(activity),
            registry: Arc::clone(&self.registry),
        }
    }
}
