//! The functions of the caller: the handler of batches and the dead-letter hook.

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

/// The error type of handlers and dead-letter hooks.
pub type HandlerError = Box<dyn std::error::Error + Send + Sync>;

/// Describes the batch that a handler is called with.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BatchContext {
    /// The feed range that the changes are of.
    pub range: FeedRange,
    /// The id of the lease of that range.
    pub lease: String,
    /// The instance that owns the lease.
    pub instance: String,
    /// The position of the feed after these changes.
    pub continuation: String,
    /// An estimate of how many changes follow; none if the service does not report it.
    pub lag: Option<u64>,
    /// How often this instance called the handler with these changes before.
    pub attempts: u32,
    pub(super) lease_check: LeaseCheck,
}

/// A function that checks whether a lease is still owned and unexpired.
#[derive(Clone)]
pub(super) struct LeaseCheck(pub(super) Arc<dyn Fn() -> bool + Send + Sync>);

impl std::fmt::Debug for LeaseCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LeaseCheck")
    }
}

impl BatchContext {
    /// Whether this instance still owns the lease, as far as it knows. A handler that takes long can check this
    /// repeatedly: once the lease is lost, another instance handles the same changes.
    pub fn is_lease_held(&self) -> bool {
        (self.lease_check.0)()
    }
}

/// A change that the handler could not handle.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeadLetter {
    /// The change as JSON, also if it cannot be deserialized into the handler's type.
    pub change: Bytes,
    /// The message of the handler's last error.
    pub error: String,
    /// How often the handler was called with this change alone.
    pub attempts: u32,
    /// The context of the batch that contained the change.
    pub context: BatchContext,
}

impl DeadLetter {
    /// Deserializes the change into a `T`.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T> {
        from_body(&self.change)
    }
}

/// The error of a handler, and whether a retry may help.
pub(super) struct HandlerFailure {
    pub(super) failure: Failure,
    pub(super) error: HandlerError,
}

type Handle = dyn Fn(&[Bytes], BatchContext) -> BoxFuture<'static, Result<(), HandlerFailure>> + Send + Sync;
type Hook = dyn Fn(DeadLetter) -> BoxFuture<'static, Result<(), HandlerError>> + Send + Sync;

/// A handler with its item type erased.
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
                    let failure = HandlerFailure { failure: Failure::Unreadable, error: error.into() };
                    return futures::future::ready(Err(failure)).boxed();
                }
            };
            let handling = handle(changes, context);
            async move {
                let error = match AssertUnwindSafe(handling).catch_unwind().await {
                    Ok(Ok(())) => return Ok(()),
                    Ok(Err(error)) => error.into(),
                    Err(panic) => format!("the handler panicked: {}", panic_message(&*panic)).into(),
                };
                Err(HandlerFailure { failure: Failure::Handler, error })
            }
            .boxed()
        }))
    }

    pub(super) fn handle(
        &self,
        changes: &[Bytes],
        context: BatchContext,
    ) -> BoxFuture<'static, Result<(), HandlerFailure>> {
        (self.0)(changes, context)
    }
}

/// The hook that receives changes which the handler could not handle.
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
            let call = hook(letter);
            async move {
                match AssertUnwindSafe(call).catch_unwind().await {
                    Ok(result) => result.map_err(Into::into),
                    Err(panic) => {
                        Err(format!("the dead-letter hook panicked: {}", panic_message(&*panic)).into())
                    }
                }
            }
            .boxed()
        }))
    }

    pub(super) fn take(&self, letter: DeadLetter) -> BoxFuture<'static, Result<(), HandlerError>> {
        (self.0)(letter)
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
