//! A running server: accepts connections up to a limit, serves them, and stops gracefully.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use clock::Stopwatch;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

use crate::connection::{self, ServerContext};
use crate::connection_activity::ConnectionCommand;
use crate::connection_registry::ConnectionRegistry;
use crate::handler::Handler;
use crate::limits::Limits;
use crate::listeners::Listeners;
use crate::request_body::BodyReader;
use crate::server_port::ServerPort;
use crate::tls::Tls;

/// How long to wait before accepting again after the system ran out of resources.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// A running server. Dropping it closes everything at once; [`stop`](Server::stop) lets requests in
/// flight finish first.
#[derive(Debug)]
pub struct Server {
    port: ServerPort,
    registry: Arc<ConnectionRegistry>,
    stop_grace: Duration,
    tasks: Vec<AbortHandle>,
}

impl Server {
    /// Starts serving on `listeners`. Must be called inside a Tokio runtime.
    ///
    /// Without `tls` the port speaks plain HTTP only.
    pub fn start<H: Handler>(
        listeners: Listeners,
        handler: Arc<H>,
        tls: Option<Tls>,
        limits: Limits,
    ) -> Server {
        let registry = Arc::new(ConnectionRegistry::default());
        let stop_grace = limits.stop_grace;
        let connection_permits =
            Arc::new(Semaphore::new(limits.connections_max.clamp(1, Semaphore::MAX_PERMITS)));
        let bodies = Arc::new(BodyReader::new(&limits));
        let context = Arc::new(ServerContext {
            handler,
            tls,
            limits: limits.clone(),
            bodies,
            registry: Arc::clone(&registry),
        });
        let mut tasks = vec![tokio::spawn(sweep(Arc::clone(&registry), limits)).abort_handle()];
        let port = ServerPort::new(listeners, Arc::clone(&registry));
        for listener in 0..port.listener_count() {
            let acceptor = Acceptor {
                connection_permits: Arc::clone(&connection_permits),
                registry: Arc::clone(&registry),
            };
            let accepting = acceptor.accept_all(port.clone(), listener, Arc::clone(&context));
            tasks.push(tokio::spawn(accepting).abort_handle());
        }
        Server { port, registry, stop_grace, tasks }
    }

    /// The port number that the server listens on.
    pub fn port(&self) -> u16 {
        self.port.port()
    }

    /// A handle with which the port can be closed, silenced and opened while the server runs.
    pub fn server_port(&self) -> ServerPort {
        self.port.clone()
    }

    /// Stops accepting, lets requests in flight finish within the grace, then closes what is left.
    pub async fn stop(self) {
        self.stop_accepting();
        self.registry.command_all(ConnectionCommand::Drain);
        if tokio::time::timeout(self.stop_grace, self.registry.wait_until_empty()).await.is_err() {
            tracing::debug!("closing connections that did not finish in time");
        }
        // Dropping the server aborts the connections that are left.
    }

    fn stop_accepting(&self) {
        self.port.shut_down();
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop_accepting();
        self.registry.command_all(ConnectionCommand::Abort);
    }
}

/// Accepts the connections of one listener.
struct Acceptor {
    connection_permits: Arc<Semaphore>,
    registry: Arc<ConnectionRegistry>,
}

impl Acceptor {
    async fn accept_all<H: Handler>(self, port: ServerPort, listener: usize, context: Arc<ServerContext<H>>) {
        let mut exhausted = false;
        loop {
            let stream = match port.accept(listener).await {
                Ok(stream) => stream,
                Err(error) if is_client_abort(&error) => continue,
                Err(error) => {
                    // Out of file handles, most likely. Logged once, not with every attempt.
                    if !std::mem::replace(&mut exhausted, true) {
                        tracing::warn!(%error, "cannot accept connections at the moment");
                    }
                    self.registry.evict_idle(&context.limits);
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                    continue;
                }
            };
            exhausted = false;
            // The permit comes after the connection: an acceptor that held the last permit while it waited
            // for a client would keep the clients of the other listener out.
            let permit = self.acquire_permit(&context.limits).await;
            let serving = connection::serve(Arc::clone(&context), stream, self.registry.register());
            tokio::spawn(async move {
                serving.await;
                drop(permit);
            });
        }
    }

    /// Waits until another connection is allowed. Meanwhile it evicts idle connections.
    async fn acquire_permit(&self, limits: &Limits) -> OwnedSemaphorePermit {
        loop {
            let permit = Arc::clone(&self.connection_permits).acquire_owned();
            match tokio::time::timeout(limits.sweep_interval(), permit).await {
                Ok(permit) => return permit.expect("the semaphore of connections is never closed"),
                Err(_) => self.registry.evict_idle(limits),
            }
        }
    }
}

/// Whether the client disconnected before it was accepted, which is no reason to pause accepting.
fn is_client_abort(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}

/// Advances the server's coarse time and applies the timeouts to every connection.
async fn sweep(registry: Arc<ConnectionRegistry>, limits: Limits) {
    let uptime = Stopwatch::start();
    let mut tick = tokio::time::interval(limits.sweep_interval());
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        registry.sweep(uptime.elapsed(), &limits);
    }
}
