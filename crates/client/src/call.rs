//! An operation until it is awaited.

use std::fmt;
use std::future::IntoFuture;

use driver::operation::{Operation, Precondition};
use driver::options::OperationOptions;
use driver::{CosmosDriver, Error, ErrorKind, Response};
use futures::future::BoxFuture;

use crate::Result;

/// An operation that begins when it is awaited and gives an `R`.
#[must_use = "nothing is sent before it is awaited"]
pub struct Call<R> {
    driver: CosmosDriver,
    /// Or why it cannot be sent.
    operation: Result<Operation>,
    options: OperationOptions,
    read: fn(Response) -> Result<R>,
    /// What becomes of an error.
    rescue: fn(Error) -> Result<R>,
}

impl<R> Call<R> {
    pub(crate) fn new(
        driver: &CosmosDriver,
        operation: Result<Operation>,
        read: fn(Response) -> Result<R>,
    ) -> Call<R> {
        Call { driver: driver.clone(), operation, options: OperationOptions::new(), read, rescue: Err }
    }

    /// Options of this call alone: deadline, regions, retries, hedging, consistency.
    pub fn options(mut self, options: OperationOptions) -> Call<R> {
        self.options = options;
        self
    }

    /// Writes only if what is there still has this version; otherwise the error is
    /// [`PreconditionFailed`](crate::ErrorKind::PreconditionFailed). For containers and databases; items have a
    /// call of their own.
    pub fn if_match(self, etag: impl Into<String>) -> Call<R> {
        let etag = etag.into();
        self.change(|operation| operation.with_precondition(Precondition::IfMatch(etag)))
    }

    /// Sees at least what this session token has seen, instead of what this client has.
    pub fn session_token(self, token: &str) -> Call<R> {
        self.change(|operation| operation.with_session_token(token))
    }

    pub(crate) fn change(mut self, change: impl FnOnce(Operation) -> Operation) -> Call<R> {
        self.operation = self.operation.map(change);
        self
    }

    /// The same, read in another way.
    pub(crate) fn reading<S>(self, read: fn(Response) -> Result<S>) -> Call<S> {
        Call { driver: self.driver, operation: self.operation, options: self.options, read, rescue: Err }
    }

    /// The same, with an error of the driver taken for something else.
    pub(crate) fn or_else(mut self, rescue: fn(Error) -> Result<R>) -> Call<R> {
        self.rescue = rescue;
        self
    }

    async fn send(self) -> Result<R> {
        match self.driver.execute_operation(&self.operation?, &self.options).await {
            Ok(response) => (self.read)(response),
            Err(error) => (self.rescue)(error),
        }
    }
}

impl<R: Send + 'static> IntoFuture for Call<R> {
    type Output = Result<R>;
    type IntoFuture = BoxFuture<'static, Result<R>>;

    fn into_future(self) -> BoxFuture<'static, Result<R>> {
        Box::pin(self.send())
    }
}

impl<R> fmt::Debug for Call<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("operation", &self.operation).finish_non_exhaustive()
    }
}

/// Reads what is there, or makes it. When somebody else makes it in between, it is read again.
pub(crate) async fn if_missing<R: Send + 'static>(
    read: impl Fn() -> Call<R>,
    create: impl FnOnce() -> Call<R>,
) -> Result<R> {
    match read().await {
        Err(error) if error.kind() == ErrorKind::NotFound => match create().await {
            Err(error) if error.kind() == ErrorKind::Conflict => read().await,
            made => made,
        },
        found => found,
    }
}
