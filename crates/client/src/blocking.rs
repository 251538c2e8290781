//! Calls without `async`. Feature `blocking`.
//!
//! Everything of the client stays as it is: [`Wait::wait`] sends a call and blocks the thread until its result is there,
//! in place of `.await`, and [`WaitEach::wait_each`] makes an iterator of a stream.
//!
//! ```no_run
//! use perihelion::CosmosClient;
//! use perihelion::blocking::{Wait, WaitEach};
//! use serde_json::{Value, json};
//!
//! fn main() -> perihelion::Result<()> {
//!     let client = CosmosClient::from_connection_string("AccountEndpoint=http://localhost:8081/;AccountKey=…")?;
//!     let orders = client.database("shop").container("orders");
//!     orders.upsert_item("ada", &json!({"id": "o-1", "customer": "ada"})).wait()?;
//!     for order in orders.query_items::<Value>("SELECT * FROM o").stream().wait_each() {
//!         println!("{}", order?);
//!     }
//!     Ok(())
//! }
//! ```
//!
//! The calls, connections and background work of all blocking clients run on one runtime of the process, with one thread
//! that starts with the first call. A program with a runtime of its own has no use for this module: inside a runtime
//! waiting is refused, because it would block the tasks of its thread.

use std::future::IntoFuture;
use std::iter::FusedIterator;
use std::pin::{Pin, pin};
use std::sync::OnceLock;

use driver::{Error, ErrorKind};
use futures::{Stream, StreamExt};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::Result;

/// Waits for a call, in place of `.await`.
pub trait Wait<T>: IntoFuture<Output = Result<T>> + Sized {
    /// Sends the call and blocks the thread until its result is there.
    ///
    /// Inside a runtime, also on its threads for blocking work, the error is
    /// [`Configuration`](crate::ErrorKind::Configuration) and nothing is sent.
    fn wait(self) -> Result<T> {
        let runtime = runtime()?;
        // Polled on this thread; the runtime's own thread drives connections and background work.
        runtime.block_on(async { pin!(self.into_future()).await })
    }
}

impl<T, C: IntoFuture<Output = Result<T>>> Wait<T> for C {}

/// Iterates over a stream, in place of `StreamExt::next`.
pub trait WaitEach<T>: Stream<Item = Result<T>> + Sized {
    /// An iterator that blocks the thread until the next value is there. It ends after the first error.
    fn wait_each<'a>(self) -> Values<'a, T>
    where
        Self: Send + 'a,
    {
        Values(Some(Box::pin(self)))
    }
}

impl<T, S: Stream<Item = Result<T>>> WaitEach<T> for S {}

/// The values of a stream, as an iterator that blocks.
#[must_use = "nothing is sent before it is iterated over"]
pub struct Values<'a, T>(Option<Pin<Box<dyn Stream<Item = Result<T>> + Send + 'a>>>);

impl<T> Iterator for Values<'_, T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        let stream = self.0.as_mut()?;
        let next = match runtime() {
            Ok(runtime) => runtime.block_on(stream.next()),
            Err(error) => Some(Err(error)),
        };
        if !matches!(next, Some(Ok(_))) {
            self.0 = None;
        }
        next
    }
}

impl<T> FusedIterator for Values<'_, T> {}

impl<T> std::fmt::Debug for Values<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Values").field("ended", &self.0.is_none()).finish_non_exhaustive()
    }
}

/// The runtime of all blocking calls of the process.
fn runtime() -> Result<&'static Runtime> {
    static RUNTIME: OnceLock<std::io::Result<Runtime>> = OnceLock::new();
    let refuse = |message: String| Error::new(ErrorKind::Configuration, message);
    if Handle::try_current().is_ok() {
        return Err(refuse(
            "`wait` blocks the thread, which runs an async runtime: use `.await` instead".into(),
        ));
    }
    let start = || {
        Builder::new_multi_thread().worker_threads(1).thread_name("perihelion-blocking").enable_all().build()
    };
    RUNTIME
        .get_or_init(start)
        .as_ref()
        .map_err(|error| refuse(format!("no thread could be started: {error}")))
}
