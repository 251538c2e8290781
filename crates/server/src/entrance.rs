//! A server's port while the server runs: open, closed, or silent.
//!
//! In: the sockets a [`Listeners`] opened. Out: connections, one at a time, for as long as the port
//! is open. Closing takes effect before [`Entrance::close`] returns; opening takes the same port
//! again, if nobody else has it by then.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::net::{TcpListener, TcpStream};

use crate::listen::{Listeners, listen};
use crate::registry::Registry;

/// A server's port. Cheap to clone; clones are the same port.
#[derive(Clone, Debug)]
pub struct Entrance(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    port: u16,
    slots: Vec<Slot>,
    registry: Arc<Registry>,
    /// Whether the server is gone: nobody would answer.
    retired: AtomicBool,
}

/// One address of the port.
#[derive(Debug)]
struct Slot {
    address: SocketAddr,
    state: Mutex<SlotState>,
}

#[derive(Debug, Default)]
struct SlotState {
    socket: Option<TcpListener>,
    /// Who waits for a connection.
    waiting: Option<Waker>,
}

impl Entrance {
    pub(crate) fn new(listeners: Listeners, registry: Arc<Registry>) -> Entrance {
        let port = listeners.port();
        let slot = |socket: TcpListener| {
            let address = socket.local_addr().ok()?;
            Some(Slot { address, state: Mutex::new(SlotState { socket: Some(socket), waiting: None }) })
        };
        let slots = listeners.sockets.into_iter().filter_map(slot).collect();
        Entrance(Arc::new(Inner { port, slots, registry, retired: AtomicBool::new(false) }))
    }

    /// The port, open or not.
    pub fn port(&self) -> u16 {
        self.0.port
    }

    /// How many addresses it has.
    pub(crate) fn slots(&self) -> usize {
        self.0.slots.len()
    }

    /// Refuses new connections from now on, and resets those that are open.
    pub fn close(&self) {
        for slot in &self.0.slots {
            // Dropping the socket closes it: whoever knocks next is refused.
            drop(slot.lock().socket.take());
        }
        self.0.registry.reset_present();
    }

    /// Takes connections again, on the same port. Does nothing where it is open, or when the server is
    /// gone.
    ///
    /// The first address is a must, as it was in the beginning.
    pub fn open(&self) -> io::Result<()> {
        for (index, slot) in self.0.slots.iter().enumerate() {
            let mut state = slot.lock();
            if state.socket.is_some() || self.0.retired.load(Ordering::Acquire) {
                continue;
            }
            match listen(slot.address) {
                Ok(socket) => state.socket = Some(socket),
                Err(error) if index == 0 => return Err(error),
                Err(error) => {
                    tracing::warn!(%error, address = %slot.address, "listening on one address only")
                }
            }
            state.wake();
        }
        Ok(())
    }

    /// While silent, the kernel takes connections and nobody answers; open ones stop in their tracks.
    /// Afterwards everything goes on where it stopped.
    pub fn set_silent(&self, silent: bool) {
        self.0.registry.set_silent(silent);
        for slot in &self.0.slots {
            slot.lock().wake();
        }
    }

    /// Closes it for good, and leaves open connections alone.
    pub(crate) fn retire(&self) {
        self.0.retired.store(true, Ordering::Release);
        for slot in &self.0.slots {
            drop(slot.lock().socket.take());
        }
    }

    /// The next connection at one of the addresses. Waits while the port is closed or silent.
    pub(crate) async fn accept(&self, slot: usize) -> io::Result<TcpStream> {
        poll_fn(|cx| self.poll_accept(slot, cx)).await
    }

    fn poll_accept(&self, slot: usize, cx: &mut Context<'_>) -> Poll<io::Result<TcpStream>> {
        let mut state = self.0.slots[slot].lock();
        if !state.waiting.as_ref().is_some_and(|waiting| waiting.will_wake(cx.waker())) {
            state.waiting = Some(cx.waker().clone());
        }
        match &state.socket {
            Some(socket) if !self.0.registry.is_silent() => {
                socket.poll_accept(cx).map_ok(|(stream, _)| stream)
            }
            _ => Poll::Pending,
        }
    }
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, SlotState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlotState {
    fn wake(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            waiting.wake();
        }
    }
}
