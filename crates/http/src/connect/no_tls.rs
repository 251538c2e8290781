//! TLS in a build without it: an https URL is an error that names the features to enable.

use crate::call::StepError;
use crate::error::ErrorKind;
use crate::stream::{BaseStream, Socket, Stream};
use crate::trace::{Protocol, Step};

/// What a client trusts, which nothing asks for without TLS.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trust {}

impl Trust {
    /// Adds what `defaults` trusts, which is nothing in a build without TLS.
    pub(crate) fn or(self, _defaults: Trust) -> Self {
        self
    }
}

/// TLS that refuses every handshake.
#[derive(Clone, Debug)]
pub(crate) struct Tls;

impl Tls {
    pub(crate) fn new(_: Trust) -> Self {
        Tls
    }

    /// Fails, before anything is sent.
    #[expect(clippy::unused_async, reason = "the handshake of a build with TLS waits")]
    pub(crate) async fn handshake(
        &self,
        _name: &str,
        _base: BaseStream,
        _protocol: Option<Protocol>,
    ) -> Result<(Stream, Protocol), StepError> {
        Err(no_tls(Step::Tls))
    }

    /// Fails, before anything is sent.
    #[expect(clippy::unused_async, reason = "the handshake of a build with TLS waits")]
    pub(crate) async fn handshake_with_proxy(
        &self,
        _name: &str,
        _socket: Socket,
    ) -> Result<BaseStream, StepError> {
        Err(no_tls(Step::Proxy))
    }
}

fn no_tls(step: Step) -> StepError {
    let advice =
        "this build has no TLS: enable the feature `rustls-ring` or `rustls-aws-lc`, or use an http URL";
    StepError::new(ErrorKind::Invalid, step).with_source(advice)
}
