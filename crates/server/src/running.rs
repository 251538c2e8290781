//! A running server: accepts connections within limits, and stops.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use clock::Stopwatch;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

use crate::connection::{self, Shared};
use crate::entrance::Entrance;
use crate::handler::Handler;
use crate::limits::Limits;
use crate::listen::Listeners;
use crate::registry::Registry;
use crate::request_body::BodyReader;
use crate::tls::Tls;
use crate::watch::Order;

/// How long to wait after the system had no resources left for another connection.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// A running server. Dropping it closes everything at once; [`stop`](Server::stop) lets requests in
/// flight finish first.
#[derive(Debug)]
pub struct Server {
    entrance: Entrance,
    registry: Arc<Registry>,
    stop_grace: Duration,
    tasks: Vec<AbortHandle>,
}

impl Server {
    /// Starts answering on `listeners`. Must be called inside a Tokio runtime.
    ///
    /// Without `tls` the port speaks plain HTTP only.
    pub fn start<H: Handler>(
        listeners: Listeners,
        handler: Arc<H>,
        tls: Option<Tls>,
        limits: Limits,
    ) -> Server {
        let registry = Arc::new(Registry::default());
        let stop_grace = limits.stop_grace;
        let room = Arc::new(Semaphore::new(limits.connections_max.clamp(1, Semaphore::MAX_PERMITS)));
        let bodies = Arc::new(BodyReader::new(&limits));
        let shared = Arc::new(Shared { handler, tls, limits: limits.clone(), bodies });
        let mut tasks = vec![tokio::spawn(sweep(Arc::clone(&registry), limits)).abort_handle()];
        let entrance = Entrance::new(listeners, Arc::clone(&registry));
        for slot in 0..entrance.slots() {
            let door = Doorman { room: Arc::clone(&room), registry: Arc::clone(&registry) };
            let accepting = door.accept_all(entrance.clone(), slot, Arc::clone(&shared));
            tasks.push(tokio::spawn(accepting).abort_handle());
        }
        Server { entrance, registry, stop_grace, tasks }
    }

    /// The port it answers on.
    pub fn port(&self) -> u16 {
        self.entrance.port()
    }

    /// Its port, which can be closed and opened while the server runs.
    pub fn entrance(&self) -> Entrance {
        self.entrance.clone()
    }

    /// Stops accepting, lets requests in flight finish within the grace, then closes what is left.
    pub async fn stop(self) {
        self.close_doors();
        self.registry.give_all(Order::Drain);
        if tokio::time::timeout(self.stop_grace, self.registry.empty()).await.is_err() {
            tracing::debug!("closing connections that did not finish in time");
        }
        // Dropping it aborts the rest.
    }

    fn close_doors(&self) {
        self.entrance.retire();
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.close_doors();
        self.registry.give_all(Order::Abort);
    }
}

/// Lets connections in, one listener's worth.
struct Doorman {
    room: Arc<Semaphore>,
    registry: Arc<Registry>,
}

impl Doorman {
    async fn accept_all<H: Handler>(self, entrance: Entrance, slot: usize, shared: Arc<Shared<H>>) {
        let mut exhausted = false;
        loop {
            let stream = match entrance.accept(slot).await {
                Ok(stream) => stream,
                Err(error) if is_the_clients(&error) => continue,
                Err(error) => {
                    // Out of file handles, most likely; said once, not twenty times a second.
                    if !std::mem::replace(&mut exhausted, true) {
                        tracing::warn!(%error, "cannot accept connections for the moment");
                    }
                    self.registry.make_room(&shared.limits);
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                    continue;
                }
            };
            exhausted = false;
            // Accepted first: a door that waited for a client with the last place in its hand would
            // keep the clients at the other door out.
            let place = self.wait_for_room(&shared.limits).await;
            let serving = connection::serve(Arc::clone(&shared), stream, self.registry.register());
            tokio::spawn(async move {
                serving.await;
                drop(place);
            });
        }
    }

    /// Waits until one more connection fits. While it does not, connections nobody will miss go.
    async fn wait_for_room(&self, limits: &Limits) -> OwnedSemaphorePermit {
        loop {
            let place = Arc::clone(&self.room).acquire_owned();
            match tokio::time::timeout(limits.sweep_interval(), place).await {
                Ok(place) => return place.expect("the semaphore of connections is never closed"),
                Err(_) => self.registry.make_room(limits),
            }
        }
    }
}

/// A client that left before it was accepted is no reason to wait.
fn is_the_clients(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}

/// Moves the server's coarse time and looks at every connection's deadlines.
async fn sweep(registry: Arc<Registry>, limits: Limits) {
    let uptime = Stopwatch::start();
    let mut tick = tokio::time::interval(limits.sweep_interval());
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        registry.sweep(uptime.elapsed(), &limits);
    }
}
