//! One live connection: what it is, and how a request goes over it.

pub(crate) mod http1;
pub(crate) mod http2;
mod relay;
mod wire;

use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};

use http::Request;

use crate::call::Failure;
use crate::exchange::{ConnectionId, Exchange, Protocol, Reuse};
use crate::request::RequestBody;

pub(crate) use wire::{Socket, Stream, Wire};

/// What is known of a connection from its first moment to its last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Info {
    id: ConnectionId,
    local: Option<SocketAddr>,
    remote: Option<SocketAddr>,
}

impl Info {
    /// A connection with the next number.
    pub(crate) fn new(socket: &Socket) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NonZeroU64::new(NEXT.fetch_add(1, Ordering::Relaxed));
        Info {
            // 2^64 connections are not made in the life of a process.
            id: ConnectionId::new(number.unwrap_or(NonZeroU64::MAX)),
            local: socket.tcp().local_addr().ok(),
            remote: socket.tcp().peer_addr().ok(),
        }
    }

    /// Writes it into the record of an exchange.
    pub(crate) fn describe(&self, protocol: Protocol, reuse: Reuse, record: &mut Exchange) {
        record.connection = Some(self.id);
        record.protocol = Some(protocol);
        record.reuse = Some(reuse);
        record.local = self.local;
        record.remote = self.remote;
    }
}

/// A request that failed before its response began.
#[derive(Debug)]
pub(crate) struct Unsent {
    /// The request itself, if not one byte of it left and it can be sent again.
    pub(crate) request: Option<Request<RequestBody>>,
    pub(crate) failure: Failure,
}

impl From<Failure> for Unsent {
    fn from(failure: Failure) -> Self {
        Unsent { request: None, failure }
    }
}
