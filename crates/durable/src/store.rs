//! Requests to the container: documents in and out, with retries of what may succeed later.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::TryStreamExt;
use perihelion::{Batch, BatchItem, ContainerClient, ErrorKind, Patch, Query};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::documents::DocumentType;
use crate::error::{Failure, Result};
use crate::telemetry::Telemetry;

/// How often a request that may succeed later is repeated, on top of what the driver itself does.
const RETRIES: u32 = 3;
/// The wait before the first repetition; the n-th takes n times as long.
const RETRY_DELAY: Duration = Duration::from_millis(100);
/// The longest wait before a repetition, whatever the service asks for.
const RETRY_DELAY_MAX: Duration = Duration::from_secs(5);

/// The container, and what its requests have cost.
#[derive(Debug)]
pub(crate) struct Store {
    container: ContainerClient,
    requests: AtomicU64,
    /// Request units, in hundredths.
    charge: AtomicU64,
    telemetry: Telemetry,
}

/// A document with its ETag.
#[derive(Clone, Debug)]
pub(crate) struct Versioned<T> {
    pub(crate) document: T,
    pub(crate) etag: String,
}

/// A document of which only the type and the ETag are known yet.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) document_type: DocumentType,
    pub(crate) etag: String,
    data: Box<RawValue>,
}

impl Row {
    /// The document as a value of its type.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_str(self.data.get())
            .map_err(|error| Failure::invalid(format!("a stored document cannot be read: {error}")))
    }
}

impl Store {
    pub(crate) fn new(container: ContainerClient, telemetry: Telemetry) -> Store {
        Store { container, requests: AtomicU64::new(0), charge: AtomicU64::new(0), telemetry }
    }

    /// The client of the container.
    pub(crate) fn container(&self) -> &ContainerClient {
        &self.container
    }

    /// The operations sent so far, and the request units they have cost.
    pub(crate) fn usage(&self) -> (u64, f64) {
        (self.requests.load(Ordering::Relaxed), self.charge.load(Ordering::Relaxed) as f64 / 100.0)
    }

    fn count(&self, requests: u32, charge: f64) {
        self.requests.fetch_add(u64::from(requests), Ordering::Relaxed);
        self.charge.fetch_add((charge * 100.0).round() as u64, Ordering::Relaxed);
        self.telemetry.charged(charge);
    }

    /// Reads a document; none if it does not exist.
    pub(crate) async fn read<T>(&self, partition: &str, id: &str) -> Result<Option<Versioned<T>>>
    where
        T: DeserializeOwned + Send + 'static,
    {
        let response =
            retrying(|| async { Ok(self.container.read_item::<T>(partition, id).optional().await?) }).await?;
        self.count(1, response.as_ref().map_or(1.0, perihelion::Response::charge));
        Ok(response.map(|response| {
            let etag = response.etag().unwrap_or_default().to_owned();
            Versioned { document: response.into_value(), etag }
        }))
    }

    /// Creates a document and returns its ETag. Fails with a conflict if there is one with its id.
    pub(crate) async fn create(&self, partition: &str, document: &impl Serialize) -> Result<String> {
        let response = self.container.create_item(partition, document).await?;
        self.count(1, response.charge());
        Ok(response.etag().unwrap_or_default().to_owned())
    }

    /// Creates a document with an id that nobody else uses. A conflict says that an earlier try without a response has
    /// created it.
    pub(crate) async fn create_own(
        &self,
        partition: &str,
        document: &impl Serialize,
    ) -> Result<Option<String>> {
        let created = retrying(|| async {
            match self.create(partition, document).await {
                Ok(etag) => Ok(Some(etag)),
                Err(error) if error.kind() == Some(ErrorKind::Conflict) => Ok(None),
                Err(error) => Err(error),
            }
        });
        created.await
    }

    /// Replaces a document that still has this ETag, and returns its new one.
    pub(crate) async fn replace(
        &self,
        partition: &str,
        id: &str,
        etag: &str,
        document: &impl Serialize,
    ) -> Result<String> {
        let response = self.container.replace_item(partition, id, document).if_match(etag).await?;
        self.count(1, response.charge());
        Ok(response.etag().unwrap_or_default().to_owned())
    }

    /// Changes properties of a document.
    pub(crate) async fn patch(&self, partition: &str, id: &str, patch: Patch) -> Result<()> {
        let response = self.container.patch_item(partition, id, patch).await?;
        self.count(1, response.charge());
        Ok(())
    }

    /// Deletes a document; one that does not exist is no error.
    pub(crate) async fn delete(&self, partition: &str, id: &str) -> Result<()> {
        match retrying(|| async { Ok(self.container.delete_item(partition, id).await?) }).await {
            Ok(response) => self.count(1, response.charge()),
            Err(error) if error.kind() == Some(ErrorKind::NotFound) => self.count(1, 1.0),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Deletes a document that still has this ETag.
    pub(crate) async fn delete_version(&self, partition: &str, id: &str, etag: &str) -> Result<()> {
        let response = self.container.delete_item(partition, id).if_match(etag).await?;
        self.count(1, response.charge());
        Ok(())
    }

    /// Executes a batch once: a caller that gets no response has to find out what happened.
    pub(crate) async fn execute(&self, batch: Batch) -> Result<Vec<BatchItem>> {
        let response = self.container.execute_batch(batch).await?;
        self.count(1, response.charge());
        Ok(response.into_value())
    }

    /// The documents of one partition that a query selects with `SELECT *`.
    pub(crate) async fn query_partition(
        &self,
        partition: &str,
        query: impl Fn() -> Query,
    ) -> Result<Vec<Row>> {
        let rows: Vec<Box<RawValue>> = retrying(|| self.collect(query(), Some(partition))).await?;
        rows.into_iter().map(Row::new).collect()
    }

    /// The values of one partition that a query selects.
    pub(crate) async fn values_of_partition<T>(
        &self,
        partition: &str,
        query: impl Fn() -> Query,
    ) -> Result<Vec<T>>
    where
        T: DeserializeOwned + Send + 'static,
    {
        retrying(|| self.collect(query(), Some(partition))).await
    }

    /// The values of all partitions that a query selects.
    pub(crate) async fn values<T>(&self, query: impl Fn() -> Query) -> Result<Vec<T>>
    where
        T: DeserializeOwned + Send + 'static,
    {
        retrying(|| self.collect(query(), None)).await
    }

    /// The documents of all partitions that a query selects with `SELECT *`.
    pub(crate) async fn query(&self, query: impl Fn() -> Query) -> Result<Vec<Row>> {
        let rows: Vec<Box<RawValue>> = self.values(query).await?;
        rows.into_iter().map(Row::new).collect()
    }

    async fn collect<T>(&self, query: Query, partition: Option<&str>) -> Result<Vec<T>>
    where
        T: DeserializeOwned + Send + 'static,
    {
        let mut items = self.container.query_items::<T>(query);
        if let Some(partition) = partition {
            items = items.partition_key(partition);
        }
        let mut pages = items.pages().await?;
        let mut rows = Vec::new();
        while let Some(page) = pages.try_next().await? {
            self.count(page.requests, page.charge);
            rows.extend(page.items);
        }
        Ok(rows)
    }
}

impl Row {
    fn new(data: Box<RawValue>) -> Result<Row> {
        #[derive(Deserialize)]
        struct Header {
            #[serde(rename = "type")]
            document_type: DocumentType,
            #[serde(rename = "_etag", default)]
            etag: String,
        }
        let Header { document_type, etag } = serde_json::from_str(data.get())
            .map_err(|error| Failure::invalid(format!("a stored document cannot be read: {error}")))?;
        Ok(Row { document_type, etag, data })
    }
}

/// Repeats a request that may succeed later a few times, after the wait that the service asks for.
pub(crate) async fn retrying<T, F>(mut request: impl FnMut() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let mut retries = 0;
    loop {
        match request().await {
            Err(error) if retries < RETRIES && error.is_retryable() && !error.is_lost_race() => {
                retries += 1;
                let delay = error.retry_after().unwrap_or(RETRY_DELAY * retries).min(RETRY_DELAY_MAX);
                tracing::debug!(%error, retries, ?delay, "a request is repeated");
                tokio::time::sleep(delay).await;
            }
            result => return result,
        }
    }
}
