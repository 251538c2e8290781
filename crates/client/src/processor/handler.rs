//! What the caller brings: a handler of batches, and somebody for what the handler cannot handle.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::de::DeserializeOwned;

use super::delivery::Failure;
use crate::serialize::from_body;
use crate::{FeedRange, Result};

/// Whatever a handler fails with.
pub type HandlerError = Box<dyn std::error::Error + Send + Sync>;

/// Where a batch comes from.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BatchContext {
    /// The feed range that the changes are of.
    pub range: FeedRange,
    /// The lease over it.
    pub lease: String,
    /// The instance that has the lease.
    pub instance: String,
    /// Where the feed goes on after these changes.
    pub continuation: String,
    /// How many changes are waiting behind them, about; none where the service does not say.
    pub lag: Option<u64>,
    /// How often these changes were handed out before, as far as this instance knows.
    pub attempts: u32,
    pub(super) held: Held,
}

/// Asks whether a lease is still held.
#[derive(Clone)]
pub(super) struct Held(pub(super) Arc<dyn Fn() -> bool + Send + Sync>);

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Held")
    }
}

impl BatchContext {
    /// Whether this instance still has the lease, as far as it knows. A handler that takes long can ask in
    /// between: once the lease is lost, another instance handles the same changes.
    pub fn is_lease_held(&self) -> bool {
        (self.held.0)()
    }
}

/// A change that the handler could not handle.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeadLetter {
    /// The change as JSON, whether or not it can be read as what the handler takes.
    pub change: Bytes,
    /// What the handler failed with.
    pub error: String,
    /// How often it was handed to the handler on its own.
    pub attempts: u32,
    /// Where it comes from.
    pub context: BatchContext,
}

impl DeadLetter {
    /// The change as a `T`.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T> {
        from_body(&self.change)
    }
}

/// Why a batch was not handled.
pub(super) struct Refusal {
    pub(super) failure: Failure,
    pub(super) error: HandlerError,
}

type Handle = dyn Fn(&[Bytes], BatchContext) -> BoxFuture<'static, Result<(), Refusal>> + Send + Sync;
type Hook = dyn Fn(DeadLetter) -> BoxFuture<'static, Result<(), HandlerError>> + Send + Sync;

/// A handler, whatever it takes.
#[derive(Clone)]
pub(super) struct Handler(Arc<Handle>);

impl Handler {
    pub(super) fn new<T, F, R, E>(handle: F) -> Handler
    where
        T: DeserializeOwned,
        F: Fn(Vec<T>, BatchContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<HandlerError>,
    {
        Handler(Arc::new(move |changes, context| {
            let changes = match changes.iter().map(|change| from_body(change)).collect::<Result<Vec<T>>>() {
                Ok(changes) => changes,
                Err(error) => {
                    let refusal = Refusal { failure: Failure::Unreadable, error: error.into() };
                    return futures::future::ready(Err(refusal)).boxed();
                }
            };
            let handling = handle(changes, context);
            async move {
                let error = match AssertUnwindSafe(handling).catch_unwind().await {
                    Ok(Ok(())) => return Ok(()),
                    Ok(Err(error)) => error.into(),
                    Err(panic) => format!("the handler panicked: {}", words_of(&*panic)).into(),
                };
                Err(Refusal { failure: Failure::Handler, error })
            }
            .boxed()
        }))
    }

    pub(super) fn handle(
        &self,
        changes: &[Bytes],
        context: BatchContext,
    ) -> BoxFuture<'static, Result<(), Refusal>> {
        (self.0)(changes, context)
    }
}

/// Somebody who takes what was given up.
#[derive(Clone)]
pub(super) struct DeadLetterHook(Arc<Hook>);

impl DeadLetterHook {
    pub(super) fn new<F, R, E>(hook: F) -> DeadLetterHook
    where
        F: Fn(DeadLetter) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<HandlerError>,
    {
        DeadLetterHook(Arc::new(move |letter| {
            let taking = hook(letter);
            async move {
                match AssertUnwindSafe(taking).catch_unwind().await {
                    Ok(taken) => taken.map_err(Into::into),
                    Err(panic) => Err(format!("the dead-letter hook panicked: {}", words_of(&*panic)).into()),
                }
            }
            .boxed()
        }))
    }

    pub(super) fn take(&self, letter: DeadLetter) -> BoxFuture<'static, Result<(), HandlerError>> {
        (self.0)(letter)
    }
}

fn words_of(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no words")
}
