//! The source of query pages: one page of one query over one EPK range.

use std::future::Future;
use std::num::NonZeroU32;

use bytes::Bytes;
use protocol::partition::EpkRange;
use protocol::query::QueryPlan;

use crate::diagnostics::Diagnostics;
use crate::error::Error;
use crate::operation::ResponseHeaders;

/// Serves requests for pages. The driver does, through its pipeline; tests do, with plain values.
pub trait PageSource: Send + Sync + 'static {
    /// A call begins that may need several requests. Its deadline, if it has one, counts from here.
    fn begin_call(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Reads one page of an EPK range.
    fn page(&self, request: PageRequest) -> impl Future<Output = Result<Page, PageError>> + Send;

    /// The parts of `range` that one partition each owns, in order. `afresh` when the known
    /// partitions turned out to be out of date.
    fn divide(
        &self,
        range: EpkRange,
        afresh: bool,
    ) -> impl Future<Output = Result<Vec<EpkRange>, Error>> + Send;

    /// The gateway's plan for a query that has no local one.
    fn plan(&self, body: Bytes) -> impl Future<Output = Result<QueryPlan, Error>> + Send;
}

/// A request for one page.
#[derive(Clone, Debug, PartialEq)]
pub struct PageRequest {
    /// The EPK range; one partition owns it, or did.
    pub range: EpkRange,
    /// The query and its parameters, as the service reads them.
    pub body: Bytes,
    /// Where the page before stopped.
    pub continuation: Option<String>,
    /// The most rows wanted; the service may give fewer.
    pub items_max: Option<NonZeroU32>,
}

/// One page of rows.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The body of the response: `{"Documents": […]}`.
    pub body: Bytes,
    /// Where the next page starts; none when this was the last.
    pub continuation: Option<String>,
    /// Request units of the page.
    pub charge: f64,
    /// The diagnostics of the request, if it was one to the service.
    pub diagnostics: Option<Diagnostics>,
    /// The headers of the response.
    pub headers: ResponseHeaders,
}

/// Why no page came back.
#[derive(Clone, Debug)]
pub enum PageError {
    /// No single partition owns the range any more: divide it.
    Gone,
    /// The request failed for another reason.
    Failed(Error),
}

impl From<Error> for PageError {
    fn from(error: Error) -> PageError {
        PageError::Failed(error)
    }
}
