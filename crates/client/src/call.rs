//! Operations that are sent when they are awaited.

use std::fmt;
use std::future::IntoFuture;

use driver::operation::{Operation, Precondition};
use driver::options::OperationOptions;
use driver::{CallDeadline, CosmosDriver, Error, ErrorKind, Response};
use futures::future::BoxFuture;

use crate::Result;
use crate::call_options::call_options;

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

call_options!(impl[R] Call<R>, "Sets how long the call may take, with every attempt and wait.");

impl<R> Call<R> {
    pub(crate) fn new(
        driver: &CosmosDriver,
        operation: Result<Operation>,
        read: fn(Response) -> Result<R>,
    ) -> Call<R> {
        Call { driver: driver.clone(), operation, options: OperationOptions::new(), read, on_error: Err }
    }

    pub(crate) fn options_mut(&mut self) -> &mut OperationOptions {
        &mut self.options
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

/// The requests of a [`CompoundCall`], once its options are known.
type Requests<R> = Box<dyn FnOnce(CallDeadline) -> BoxFuture<'static, Result<R>> + Send>;

/// A call of several requests, which are sent when it is awaited and share one deadline. It returns an `R`.
///
/// Metadata that all calls of the client share, such as the partitions of a container, is looked up by the rules of the
/// client: of the options of the call only the timeout applies to it.
#[must_use = "nothing is sent before it is awaited"]
pub struct CompoundCall<R> {
    driver: CosmosDriver,
    options: OperationOptions,
    requests: Requests<R>,
}

call_options!(impl[R] CompoundCall<R>, "Sets how long the call may take, with all its requests.");

impl<R> CompoundCall<R> {
    /// A call that makes these requests. Each takes its options from the deadline.
    pub(crate) fn new<F>(
        driver: &CosmosDriver,
        requests: impl FnOnce(CallDeadline) -> F + Send + 'static,
    ) -> CompoundCall<R>
    where
        F: Future<Output = Result<R>> + Send + 'static,
    {
        let requests =
            Box::new(move |deadline| -> BoxFuture<'static, Result<R>> { Box::pin(requests(deadline)) });
        CompoundCall { driver: driver.clone(), options: OperationOptions::new(), requests }
    }

    fn options_mut(&mut self) -> &mut OperationOptions {
        &mut self.options
    }

    async fn send(self) -> Result<R> {
        let deadline = self.driver.call_deadline(&self.options)?;
        deadline.within((self.requests)(deadline.clone())).await
    }
}

impl<R: Send + 'static> IntoFuture for CompoundCall<R> {
    type Output = Result<R>;
    type IntoFuture = BoxFuture<'static, Result<R>>;

    fn into_future(self) -> BoxFuture<'static, Result<R>> {
        Box::pin(self.send())
    }
}

impl<R> fmt::Debug for CompoundCall<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompoundCall").field("options", &self.options).finish_non_exhaustive()
    }
}

/// A call that reads a resource and creates it if it is missing. If another client creates it in between, it is read
/// again.
pub(crate) fn read_or_create<R: Send + 'static>(
    read: impl Fn() -> Call<R> + Send + Sync + 'static,
    create: Call<R>,
) -> CompoundCall<R> {
    let driver = create.driver.clone();
    CompoundCall::new(&driver, async move |deadline| match read().options(deadline.options()?).await {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            match create.options(deadline.options()?).await {
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    read().options(deadline.options()?).await
                }
                created => created,
            }
        }
        read => read,
    })
}
