//! Lists of databases and containers, as pages or as a stream.

use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;

use driver::operation::{Operation, OperationKind, Target};
use driver::{CosmosDriver, Error, ErrorKind};
use futures::Stream;
use futures::stream::try_unfold;
use protocol::headers as names;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::response::Response;
use crate::serialize::from_body;
use crate::{OperationOptions, Result};

/// A list of databases or containers, to be read as [`pages`](List::pages) or as a [`stream`](List::stream).
#[must_use = "nothing is sent before it is read"]
pub struct List<T> {
    driver: CosmosDriver,
    target: Target,
    /// The property of the response that contains the resources.
    member: &'static str,
    options: OperationOptions,
    continuation: Option<String>,
    entry: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> List<T> {
    pub(crate) fn new(driver: &CosmosDriver, target: Target, member: &'static str) -> List<T> {
        let (driver, options) = (driver.clone(), OperationOptions::new());
        List { driver, target, member, options, continuation: None, entry: PhantomData }
    }

    /// Sets the options of each request.
    pub fn options(mut self, options: OperationOptions) -> List<T> {
        self.options = options;
        self
    }

    /// Continues after an earlier page, which may have been read in another process.
    pub fn continuation(mut self, continuation: impl Into<String>) -> List<T> {
        self.continuation = Some(continuation.into());
        self
    }

    /// Reads the list page by page.
    pub fn pages(self) -> ListPages<T> {
        ListPages { list: self, ended: false }
    }

    /// The entries as a stream that requests pages as they are needed. It ends with the first error.
    pub fn stream(self) -> impl Stream<Item = Result<T>> + Send
    where
        T: Send,
    {
        try_unfold((self.pages(), Vec::new().into_iter()), async |(mut pages, mut entries)| {
            loop {
                if let Some(entry) = entries.next() {
                    return Ok(Some((entry, (pages, entries))));
                }
                match pages.next_page().await? {
                    Some(page) => entries = page.into_value().into_iter(),
                    None => return Ok(None),
                }
            }
        })
    }
}

impl<T> fmt::Debug for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("List").field("target", &self.target).finish_non_exhaustive()
    }
}

/// A list that is being read page by page.
#[derive(Debug)]
pub struct ListPages<T> {
    list: List<T>,
    ended: bool,
}

impl<T: DeserializeOwned> ListPages<T> {
    /// Reads the next page; none after the last. After an error, a further call requests the same page again.
    pub async fn next_page(&mut self) -> Result<Option<Response<Vec<T>>>> {
        if self.ended {
            return Ok(None);
        }
        let List { driver, target, member, options, continuation, .. } = &mut self.list;
        let mut operation = Operation::new(OperationKind::ReadFeed, target.clone());
        if let Some(continuation) = continuation {
            operation = operation.with_header(names::CONTINUATION, continuation.clone());
        }
        let response = driver.execute_operation(&operation, options).await?;
        let entries = entries(response.body(), member)?;
        *continuation = response.continuation().map(str::to_owned);
        self.ended = continuation.is_none();
        Ok(Some(Response::with_value(entries, response)))
    }

    /// The continuation after the pages so far, for [`List::continuation`]; none after the last page.
    pub fn continuation(&self) -> Option<&str> {
        self.list.continuation.as_deref()
    }
}

/// The entries of a response body such as `{"Databases": […], …}`.
fn entries<T: DeserializeOwned>(body: &[u8], member: &str) -> Result<Vec<T>> {
    let members: HashMap<String, Box<RawValue>> = from_body(body)?;
    match members.get(member) {
        Some(entries) => from_body(entries.get().as_bytes()),
        None => Err(Error::new(ErrorKind::BadResponse, format!("the response has no `{member}`"))),
    }
}
