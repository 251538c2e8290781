//! Operations in a task of their own: they go on while nobody polls the call that needs them.
//!
//! A query asks for pages ahead of need, and a bulk has many requests in flight. Both are polled only while their
//! caller waits for a result. A request that stood still with its caller would look slow, or its region silent, and
//! its deadline would pass unnoticed: what is measured has to be the service.

use std::sync::Arc;

use azure_core::async_runtime::get_async_runtime;
use futures::channel::oneshot;
use futures::future::{AbortHandle, abortable};
use tracing::Instrument;

use super::CosmosDriver;
use crate::error::{Error, ErrorKind, Result};
use crate::operation::Operation;
use crate::options::OperationOptions;
use crate::response::Response;

impl CosmosDriver {
    /// Carries out an operation in a task of its own. Dropping the call ends the task at its next step.
    pub(crate) async fn execute_in_task(
        &self,
        operation: Operation,
        options: OperationOptions,
    ) -> Result<Response> {
        let request = Arc::new((operation, options));
        let (sender, response) = oneshot::channel();
        let work = {
            let (driver, request) = (self.clone(), Arc::clone(&request));
            async move {
                // If nobody waits for the result any more, the task has been ended anyway.
                let _unwanted = sender.send(driver.execute_operation(&request.0, &request.1).await);
            }
        };
        let (work, abort) = abortable(work.in_current_span());
        let _ended_with_the_call = AbortOnDrop(abort);
        drop(get_async_runtime().spawn(Box::pin(async move {
            // The only error is that the task was ended on purpose.
            let _ended_or_done = work.await;
        })));
        match response.await {
            Ok(result) => result,
            // The task went with the runtime it was started on, and this call goes on under another.
            Err(oneshot::Canceled) if request.0.is_read_only() => {
                self.execute_operation(&request.0, &request.1).await
            }
            Err(oneshot::Canceled) => {
                let message = "the runtime that sent the request ended before its response came";
                Err(Error::new(ErrorKind::Undecided, message).about(request.0.target().link()))
            }
        }
    }
}

/// Ends a task when the call that needs it is dropped.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
