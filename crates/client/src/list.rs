//! Lists of databases and containers, as pages or as a stream.

use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use driver::operation::{Operation, OperationKind, Target};
use driver::{CosmosDriver, Error, ErrorKind};
use futures::{Stream, StreamExt, TryStreamExt};
use protocol::headers as names;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::call_options::call_options;
use crate::pages::{PageReader, PageStream, entries};
use crate::response::Response;
use crate::serialize::from_body;
use crate::{OperationOptions, Result};

/// A list of databases or containers, to be read as [`pages`](List::pages) or as a [`stream`](List::stream).
#[must_use = "nothing is sent before it is read"]
pub struct List<T> {
    request: ListRequest,
    entry: PhantomData<fn() -> T>,
}

/// A list with its options, without the type of its entries.
#[derive(Debug)]
struct ListRequest {
    driver: CosmosDriver,
    target: Target,
    /// The property of the response that contains the resources.
    member: &'static str,
    options: OperationOptions,
    continuation: Option<String>,
    ended: bool,
}

call_options!(impl[T] List<T>, "Sets how long the request for each page may take.");

impl<T> List<T> {
    fn options_mut(&mut self) -> &mut OperationOptions {
        &mut self.request.options
    }
}

impl<T: DeserializeOwned> List<T> {
    pub(crate) fn new(driver: &CosmosDriver, target: Target, member: &'static str) -> List<T> {
        let (driver, options) = (driver.clone(), OperationOptions::new());
        let request = ListRequest { driver, target, member, options, continuation: None, ended: false };
        List { request, entry: PhantomData }
    }

    /// Continues after an earlier page, which may have been read in another process.
    pub fn continuation(mut self, continuation: impl Into<String>) -> List<T> {
        self.request.continuation = Some(continuation.into());
        self
    }

    /// The list page by page, as a [`Stream`](crate::Stream) of responses.
    pub fn pages(self) -> ListPages<T> {
        let (member, continuation) = (self.request.member, self.request.continuation.clone());
        ListPages { pages: PageStream::new(self.request), member, continuation, entry: PhantomData }
    }

    /// The entries as a stream that requests pages as they are needed. It ends with the first error.
    pub fn stream(self) -> impl Stream<Item = Result<T>> + Send
    where
        T: Send,
    {
        entries(self.pages().map_ok(Response::into_value))
    }
}

impl<T> fmt::Debug for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("List").field("target", &self.request.target).finish_non_exhaustive()
    }
}

impl PageReader for ListRequest {
    type Page = driver::Response;

    async fn read(&mut self) -> Result<Option<driver::Response>> {
        if self.ended {
            return Ok(None);
        }
        let mut operation = Operation::new(OperationKind::ReadFeed, self.target.clone());
        if let Some(continuation) = &self.continuation {
            operation = operation.with_header(names::CONTINUATION, continuation.clone());
        }
        let response = self.driver.execute_operation(&operation, &self.options).await?;
        self.continuation = response.continuation().map(str::to_owned);
        self.ended = self.continuation.is_none();
        Ok(Some(response))
    }
}

/// A list that is being read page by page: a [`Stream`](crate::Stream) of responses. After an error, the next page is
/// the one that failed, unless its entries do not fit into `T` ([`Mismatch`](crate::ErrorKind::Mismatch)).
#[derive(Debug)]
pub struct ListPages<T> {
    pages: PageStream<ListRequest>,
    member: &'static str,
    continuation: Option<String>,
    entry: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> ListPages<T> {
    /// Reads the next page; none after the last. Dropping the future loses no page.
    pub async fn next_page(&mut self) -> Result<Option<Response<Vec<T>>>> {
        self.next().await.transpose()
    }

    /// The continuation after the pages so far, for [`List::continuation`]; none after the last page.
    pub fn continuation(&self) -> Option<&str> {
        self.continuation.as_deref()
    }
}

impl<T: DeserializeOwned> Stream for ListPages<T> {
    type Item = Result<Response<Vec<T>>>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let list = self.get_mut();
        let page = ready!(list.pages.poll_next_unpin(context));
        Poll::Ready(page.map(|page| {
            let page = page?;
            list.continuation = page.continuation().map(str::to_owned);
            read_page(page, list.member)
        }))
    }
}

/// The entries of a response body such as `{"Databases": […], …}`.
fn read_page<T: DeserializeOwned>(page: driver::Response, member: &str) -> Result<Response<Vec<T>>> {
    let members: HashMap<String, Box<RawValue>> = from_body(page.body())?;
    match members.get(member) {
        Some(entries) => Ok(Response::with_value(from_body(entries.get().as_bytes())?, page)),
        None => Err(Error::new(ErrorKind::BadResponse, format!("the response has no `{member}`"))),
    }
}
