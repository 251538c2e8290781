//! The port of a running server, which fault injection can close, reopen or silence.
//!
//! Input: the sockets that [`Listeners`] opened. Output: accepted connections, for as long as the port is
//! open. Closing takes effect before [`ServerPort::close`] returns; opening binds the same port again,
//! unless another process has it by then.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

use parking_lot::{Mutex, MutexGuard};
use tokio::net::{TcpListener, TcpStream};

use crate::connection_registry::ConnectionRegistry;
use crate::listeners::{Listeners, listen};

/// The port of a running server. Cheap to clone; clones are the same port.
#[derive(Clone, Debug)]
pub struct ServerPort(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    port: u16,
    listeners: Vec<AddressListener>,
    registry: Arc<ConnectionRegistry>,
    /// Whether the server has stopped, so that the port must not be opened again.
    is_shut_down: AtomicBool,
    on_swallowed: OnceLock<SwallowedObserver>,
}

/// Called for each connection that is accepted while the port is silent.
struct SwallowedObserver(Box<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for SwallowedObserver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SwallowedObserver").finish_non_exhaustive()
    }
}

/// The listening socket of one address of the port.
#[derive(Debug)]
struct AddressListener {
    address: SocketAddr,
    state: Mutex<ListenerState>,
}

#[derive(Debug, Default)]
struct ListenerState {
    socket: Option<TcpListener>,
    /// The task that waits for a connection.
    waker: Option<Waker>,
}

impl ServerPort {
    pub(crate) fn new(listeners: Listeners, registry: Arc<ConnectionRegistry>) -> ServerPort {
        let port = listeners.port();
        let listener = |socket: TcpListener| {
            let address = socket.local_addr().ok()?;
            Some(AddressListener {
                address,
                state: Mutex::new(ListenerState { socket: Some(socket), waker: None }),
            })
        };
        let listeners = listeners.sockets.into_iter().filter_map(listener).collect();
        let (is_shut_down, on_swallowed) = (AtomicBool::new(false), OnceLock::new());
        ServerPort(Arc::new(Inner { port, listeners, registry, is_shut_down, on_swallowed }))
    }

    /// Calls `observer` for each connection that is accepted while the port is silent. The first observer counts.
    pub fn observe_swallowed(&self, observer: impl Fn() + Send + Sync + 'static) {
        // Fails only if there is one already.
        let _ = self.0.on_swallowed.set(SwallowedObserver(Box::new(observer)));
    }

    /// The port number, whether or not the port is open.
    pub fn port(&self) -> u16 {
        self.0.port
    }

    /// How many addresses the port listens on.
    pub(crate) fn listener_count(&self) -> usize {
        self.0.listeners.len()
    }

    /// Refuses new connections from now on, and resets those that are open. Returns how many were open.
    pub fn close(&self) -> usize {
        for listener in &self.0.listeners {
            // Dropping the socket closes it, so the next connection attempt is refused.
            drop(listener.lock().socket.take());
        }
        self.0.registry.reset_open()
    }

    /// Accepts connections again, on the same port. Does nothing for an address that is open, or when the
    /// server has stopped.
    ///
    /// Fails if the first address cannot be bound; a failure of the second one is logged.
    pub fn open(&self) -> io::Result<()> {
        for (index, listener) in self.0.listeners.iter().enumerate() {
            let mut state = listener.lock();
            // Acquire pairs with the Release of `shut_down`.
            if state.socket.is_some() || self.0.is_shut_down.load(Ordering::Acquire) {
                continue;
            }
            match listen(listener.address) {
                Ok(socket) => state.socket = Some(socket),
                Err(error) if index == 0 => return Err(error),
                Err(error) => {
                    tracing::warn!(%error, address = %listener.address, "listening on one address only")
                }
            }
            state.wake();
        }
        Ok(())
    }

    /// Silences the port or ends the silence. While it is silent, connections are accepted, but nothing is read
    /// or written; afterwards every connection continues where it stopped. Returns how many were open.
    pub fn set_silent(&self, silent: bool) -> usize {
        self.0.registry.set_silent(silent);
        self.0.registry.open_count()
    }

    /// Closes the port for good and leaves open connections alone.
    pub(crate) fn shut_down(&self) {
        // Before the sockets close: an `open` that runs at the same time either sees the flag or has its
        // socket closed below.
        self.0.is_shut_down.store(true, Ordering::Release);
        for listener in &self.0.listeners {
            drop(listener.lock().socket.take());
        }
    }

    /// Accepts the next connection at one of the addresses. Waits while the port is closed.
    pub(crate) async fn accept(&self, listener: usize) -> io::Result<TcpStream> {
        let accepted = poll_fn(|cx| self.poll_accept(listener, cx)).await?;
        if let Some(observer) = self.0.on_swallowed.get().filter(|_| self.0.registry.is_silent()) {
            (observer.0)();
        }
        Ok(accepted)
    }

    fn poll_accept(&self, listener: usize, cx: &mut Context<'_>) -> Poll<io::Result<TcpStream>> {
        let mut state = self.0.listeners[listener].lock();
        // Stored even when the socket is ready: `open` wakes it after a change.
        if !state.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            state.waker = Some(cx.waker().clone());
        }
        match &state.socket {
            Some(socket) => socket.poll_accept(cx).map_ok(|(stream, _)| stream),
            None => Poll::Pending,
        }
    }
}

impl AddressListener {
    fn lock(&self) -> MutexGuard<'_, ListenerState> {
        self.state.lock()
    }
}

impl ListenerState {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}
