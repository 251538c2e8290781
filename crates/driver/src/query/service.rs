//! Pages from the service, through the driver.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use protocol::headers as names;
use protocol::partition::EpkRange;
use protocol::query::QueryPlan;
use protocol::status::{Status, SubStatus};

use super::source::{Page, PageError, PageRequest, PageSource};
use super::{QueryOptions, QueryPages};
use crate::cache::{Container, PartitionRanges};
use crate::driver::CosmosDriver;
use crate::error::{Error, ErrorKind, Result};
use crate::operation::{ContainerName, Operation, OperationKind, Scope, Target};
use crate::options::OperationOptions;

/// What this client can merge, as a plan request names it.
const FEATURES: &str = "Aggregate,CompositeAggregate,CountIf,DCount,Distinct,GroupBy,HybridSearch,\
                        ListAndSetAggregate,MultipleAggregates,MultipleOrderBy,NonStreamingOrderBy,\
                        NonValueAggregate,OffsetAndLimit,OrderBy,Top,WeightedRankFusion";

/// The newest form of plans this client reads.
const QUERY_VERSION: &str = "1.4";

/// The partitions of one container, asked through the driver.
#[derive(Clone, Debug)]
pub struct ServicePages {
    driver: CosmosDriver,
    container: Arc<Container>,
    options: CallOptions,
    session_token: Option<String>,
}

/// The options of the requests that one call needs: all of them end at the deadline of the call.
#[derive(Clone, Debug)]
pub(crate) struct CallOptions {
    options: OperationOptions,
    /// The options with the deadline of the call in progress.
    current: Arc<Mutex<OperationOptions>>,
}

impl CallOptions {
    /// Options for calls of one request each, until a longer one [begins](CallOptions::begin_call).
    pub(crate) fn new(options: &OperationOptions) -> CallOptions {
        let current = Arc::new(Mutex::new(options.clone()));
        CallOptions { options: options.clone(), current }
    }

    /// A call begins: its requests, and those that are still in progress, are waited for until its deadline.
    pub(crate) fn begin_call(&self, driver: &CosmosDriver) -> Result<()> {
        let fixed = driver.call_deadline(&self.options)?.options()?;
        *crate::sync::lock(&self.current) = fixed;
        Ok(())
    }

    /// The options of a request of the call in progress.
    pub(crate) fn current(&self) -> OperationOptions {
        crate::sync::lock(&self.current).clone()
    }
}

impl CosmosDriver {
    /// Runs a query over a container, or a part of it. `body` is what the service reads:
    /// `{"query": …, "parameters": […]}`. Each request obeys `options`. Their deadline covers this call (the
    /// container, the plan, the list of partitions), and each page, however many requests it takes.
    ///
    /// A query of one logical partition needs none of this: it is one operation per page.
    pub async fn query(
        &self,
        container: &ContainerName,
        body: impl Into<Bytes>,
        query: &QueryOptions,
        options: &OperationOptions,
    ) -> Result<QueryPages<ServicePages>> {
        let options = CallOptions::new(options);
        options.begin_call(self)?;
        let container = self.container(container, &options.current()).await?;
        let source = ServicePages {
            driver: self.clone(),
            container: Arc::clone(&container),
            options,
            session_token: query.session_token.clone(),
        };
        QueryPages::start(Arc::new(source), body.into(), container.rid(), container.partition_key(), query)
            .await
    }
}

impl ServicePages {
    fn operation(&self, kind: OperationKind, body: Bytes) -> Operation {
        Operation::new(kind, Target::items(self.container.name()))
            .with_body(body)
            .with_header(names::INTENDED_COLLECTION_RID, self.container.rid().to_owned())
    }
}

impl PageSource for ServicePages {
    fn begin_call(&self) -> Result<()> {
        self.options.begin_call(&self.driver)
    }

    async fn page(&self, request: PageRequest) -> Result<Page, PageError> {
        let items_max = request.items_max.map_or_else(|| "-1".to_owned(), |items| items.to_string());
        let mut operation = self
            .operation(OperationKind::Query, request.body)
            .with_scope(Scope::Range(request.range))
            .with_header(names::ENABLE_CROSS_PARTITION, "True")
            .with_header(names::MAX_ITEM_COUNT, items_max);
        if let Some(continuation) = request.continuation {
            operation = operation.with_header(names::CONTINUATION, continuation);
        }
        if let Some(token) = &self.session_token {
            operation = operation.with_session_token(token);
        }
        let options = self.options.current();
        let response = self.driver.execute_in_task(operation, options).await.map_err(page_error)?;
        let continuation = response.continuation().filter(|text| !text.is_empty()).map(str::to_owned);
        let (_, headers, body, diagnostics) = response.into_parts();
        let charge = diagnostics.totals().charge;
        Ok(Page { body, continuation, charge, diagnostics: Some(diagnostics), headers })
    }

    async fn divide(&self, range: EpkRange, afresh: bool) -> Result<Vec<EpkRange>> {
        divide(&self.driver, &self.container, &range, afresh, &self.options.current()).await
    }

    async fn plan(&self, body: Bytes) -> Result<QueryPlan> {
        let operation = self
            .operation(OperationKind::QueryPlan, body)
            .with_header(names::ENABLE_CROSS_PARTITION, "True")
            .with_header(names::QUERY_VERSION, QUERY_VERSION)
            .with_header(names::SUPPORTED_QUERY_FEATURES, FEATURES);
        let response = self.driver.execute_operation(&operation, &self.options.current()).await?;
        serde_json::from_slice(response.body()).map_err(|error| {
            Error::new(
                ErrorKind::BadResponse,
                format!("the service did not respond with a query plan: {error}"),
            )
        })
    }
}

/// The parts of `range` that one partition each owns.
pub(crate) async fn divide(
    driver: &CosmosDriver,
    container: &Arc<Container>,
    range: &EpkRange,
    afresh: bool,
    options: &OperationOptions,
) -> Result<Vec<EpkRange>> {
    let parts = |ranges: &PartitionRanges| -> Vec<EpkRange> {
        let owners = ranges.map().overlapping(range).iter();
        owners.filter_map(|partition| partition.range.intersect(range)).collect()
    };
    let known = driver.partitions(container, options).await?;
    let now = parts(&known);
    // More than one part means that the pipeline has refreshed the partitions already.
    if !afresh || now.len() > 1 {
        return Ok(now);
    }
    Ok(parts(&*driver.refresh_partitions(container, &known, options).await?))
}

/// What an error means to a reader of many pages. 410: no single partition owns the range, and the
/// pipeline has retried where that could help. 400/1024: the name leads to another container now,
/// and pages of the two must not be mixed.
pub(crate) fn page_error(error: Error) -> PageError {
    if error.status() == Some(Status::GONE) {
        return PageError::Gone;
    }
    if error.is_status(Status::BAD_REQUEST, SubStatus::COLLECTION_RID_MISMATCH) {
        let message = "the container was made anew under its name since this began: start again, without a continuation";
        let gone = Error::new(ErrorKind::NotFound, message);
        return PageError::Failed(gone.with_status(Status::BAD_REQUEST, SubStatus::COLLECTION_RID_MISMATCH));
    }
    PageError::Failed(error)
}
