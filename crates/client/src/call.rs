//! An operation that is sent when it is awaited.

use std::fmt;
use std::future::IntoFuture;

use driver::operation::{Operation, Precondition};
use driver::options::OperationOptions;
use driver::{CosmosDriver, Error, ErrorKind, Response};
use futures::future::BoxFuture;

use crate::Result;

/// An operation that is sent when it is awaited, and returns an `R`.
#[must_use = "nothing is sent before it is awaited"]
pub struct Call<R> {
    driver: CosmosDriver,
    /// The operation, or the error that awaiting the call returns.
    operation: Result<Operation>,
    options: OperationOptions,
    read: fn(Response) -> Result<R>,
    /// Turns an error of the driver into the result of the call.
    on_error: fn(Error) -> Result<R>,
}

impl<R> Call<R> {
    pub(crate) fn new(
        driver: &CosmosDriver,
        operation: Result<Operation>,
        read: fn(Response) -> Result<R>,
    ) -> Call<R> {
        Call { driver: driver.clone(), operation, options: OperationOptions::new(), read, on_error: Err }
    }

    /// Sets the options of this call alone: deadline, regions, retries, hedging, consistency.
    pub fn options(mut self, options: OperationOptions) -> Call<R> {
        self.options = options;
        self
    }

    /// Writes only if the resource still has this ETag; otherwise the error is
    /// [`PreconditionFailed`](crate::ErrorKind::PreconditionFailed). This is for containers and databases; for items see
    /// [`WriteItem::if_match`](crate::WriteItem::if_match).
    pub fn if_match(self, etag: impl Into<String>) -> Call<R> {
        let etag = etag.into();
        self.map_operation(|operation| operation.with_precondition(Precondition::IfMatch(etag)))
    }

    /// Uses this session token instead of the client's own: the operation sees at least what the token has seen.
    pub fn session_token(self, token: &str) -> Call<R> {
        self.map_operation(|operation| operation.with_session_token(token))
    }

    pub(crate) fn map_operation(mut self, change: impl FnOnce(Operation) -> Operation) -> Call<R> {
        self.operation = self.operation.map(change);
        self
    }

    /// This call with another function that reads the response.
    pub(crate) fn with_reader<S>(self, read: fn(Response) -> Result<S>) -> Call<S> {
        Call { driver: self.driver, operation: self.operation, options: self.options, read, on_error: Err }
    }

    /// This call with another function that handles errors of the driver.
    pub(crate) fn or_else(mut self, rescue: fn(Error) -> Result<R>) -> Call<R> {
        self.on_error = rescue;
        self
    }

    async fn send(self) -> Result<R> {
        match self.driver.execute_operation(&self.operation?, &self.options).await {
            Ok(response) => (self.read)(response),
            Err(error) => (self.on_error)(error),
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

/// Reads a resource and creates it if it is missing. If another client creates it in between, it is read again.
pub(crate) async fn read_or_create<R: Send + 'static>(
    read: impl Fn() -> Call<R>,
    create: impl FnOnce() -> Call<R>,
) -> Result<R> {
    match read().await {
        Err(error) if error.kind() == ErrorKind::NotFound => match create().await {
            Err(error) if error.kind() == ErrorKind::Conflict => read().await,
            created => created,
        },
        read => read,
    }
}
