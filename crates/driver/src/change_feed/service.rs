//! Changes from the service, through the driver.

use std::sync::Arc;

use bytes::Bytes;
use protocol::headers as names;
use protocol::partition::EpkRange;
use protocol::session_token::SessionToken;
use protocol::status::Status;

use super::cursor::FeedPosition;
use super::{ChangeFeed, ChangeFeedMode, ChangeFeedOptions, ChangeRequest, ChangeSource, Changes};
use crate::cache::Container;
use crate::driver::CosmosDriver;
use crate::error::{Error, ErrorKind, Result};
use crate::operation::{ContainerName, Operation, OperationKind, Precondition, Scope, Target};
use crate::options::OperationOptions;
use crate::query::PageError;
use crate::query::service::{CallOptions, divide, page_error};

/// The form of envelopes this client reads.
const WIRE_FORMAT: &str = "2021-09-15";

/// The partitions of one container, asked through the driver.
#[derive(Clone, Debug)]
pub struct ServiceChanges {
    driver: CosmosDriver,
    container: Arc<Container>,
    options: CallOptions,
    session_token: Option<String>,
}

impl CosmosDriver {
    /// Reads the changes of a container, or of a part of it. Each request obeys `options`. Their deadline covers this
    /// call, and each page, however many requests it takes.
    pub async fn change_feed(
        &self,
        container: &ContainerName,
        feed: ChangeFeedOptions,
        options: &OperationOptions,
    ) -> Result<ChangeFeed<ServiceChanges>> {
        let options = CallOptions::new(options);
        options.begin_call(self)?;
        let mut source = self.changes_with(container, options).await?;
        source.session_token = feed.session_token.clone();
        let rid = source.container.rid().to_owned();
        ChangeFeed::start(Arc::new(source), &rid, feed).await
    }

    /// The changes of a container for a reader that keeps its own place, range by range. Each call of the reader
    /// obeys `options`, and its deadline counts from the call.
    pub async fn changes_of(
        &self,
        container: &ContainerName,
        options: &OperationOptions,
    ) -> Result<ServiceChanges> {
        self.changes_with(container, CallOptions::new(options)).await
    }

    async fn changes_with(&self, container: &ContainerName, options: CallOptions) -> Result<ServiceChanges> {
        let container = self.container(container, &options.current()).await?;
        Ok(ServiceChanges { driver: self.clone(), container, options, session_token: None })
    }
}

impl ServiceChanges {
    /// The `_rid` of the container. One made anew under the same name has another, and is not read.
    pub fn container_rid(&self) -> &str {
        self.container.rid()
    }
}

impl ChangeSource for ServiceChanges {
    fn begin_call(&self) -> Result<()> {
        self.options.begin_call(&self.driver)
    }

    async fn changes(&self, request: ChangeRequest) -> Result<Changes, PageError> {
        let mut operation = Operation::new(OperationKind::ReadFeed, Target::items(self.container.name()))
            .with_scope(Scope::Range(request.range))
            .with_header(names::INTENDED_COLLECTION_RID, self.container.rid().to_owned());
        operation = match request.mode {
            ChangeFeedMode::LatestVersion => operation.with_header(names::A_IM, names::A_IM_INCREMENTAL),
            ChangeFeedMode::AllVersionsAndDeletes => operation
                .with_header(names::A_IM, names::A_IM_FULL_FIDELITY)
                .with_header(names::CHANGE_FEED_WIRE_FORMAT_VERSION, WIRE_FORMAT),
        };
        if let Some(items) = request.items_max {
            operation = operation.with_header(names::MAX_ITEM_COUNT, items.to_string());
        }
        if let Some(token) = &self.session_token {
            operation = operation.with_session_token(token);
        }
        operation = match request.since {
            FeedPosition::Beginning => operation,
            FeedPosition::Now => operation.with_precondition(Precondition::IfNoneMatch("*".to_owned())),
            FeedPosition::Time(time) => operation.with_header(names::IF_MODIFIED_SINCE, time),
            FeedPosition::Etag(etag) => operation.with_precondition(Precondition::IfNoneMatch(etag)),
        };
        let options = self.options.current();
        let response = self.driver.execute_operation(&operation, &options).await.map_err(page_error)?;
        let Some(etag) = response.etag().map(str::to_owned) else {
            let message = "a page of the change feed has no continuation";
            return Err(Error::new(ErrorKind::BadResponse, message).into());
        };
        let lsn = response.header(names::LSN).and_then(|text| text.parse().ok()).or_else(|| {
            let token = SessionToken::parse(response.session_token()?).ok()?;
            Some(token.partitions().first()?.lsn.0)
        });
        let quiet = response.status() == Status::NOT_MODIFIED;
        let (_, headers, body, diagnostics) = response.into_parts();
        let body = if quiet { Bytes::new() } else { body };
        let charge = diagnostics.totals().charge;
        Ok(Changes { body, etag, lsn, charge, diagnostics: Some(diagnostics), headers })
    }

    async fn divide(&self, range: EpkRange, afresh: bool) -> Result<Vec<EpkRange>> {
        // The partitions may be asked for twice, so the deadline is fixed for both.
        let options = self.driver.call_deadline(&self.options.current())?.options()?;
        divide(&self.driver, &self.container, &range, afresh, &options).await
    }
}
