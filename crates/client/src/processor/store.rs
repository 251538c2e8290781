//! Reads and writes the items of the lease container: processor records and leases.
//!
//! Every write has an ETag as its precondition. The meaning of the items is in `lease`.

use std::collections::BTreeMap;
use std::time::Duration;

use driver::{Error, ErrorKind};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::lease::{Lease, ProcessorRecord};
use crate::container::ContainerClient;
use crate::items::Query;
use crate::{Item, OperationOptions, Result, TimeoutOptions};

/// A stored item and its ETag.
#[derive(Clone, Debug)]
pub(super) struct Versioned<D> {
    pub(super) value: D,
    pub(super) etag: String,
}

/// How a conditional write ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WriteOutcome {
    /// The item is stored and has this ETag.
    Stored(String),
    /// Another instance has written the item in the meantime.
    Conflict,
    /// The item does not exist.
    Missing,
}

/// Everything that a processor stores in the lease container.
#[derive(Debug, Default)]
pub(super) struct StoredState {
    pub(super) record: Option<Versioned<ProcessorRecord>>,
    /// The leases, in the order of their EPK ranges.
    pub(super) leases: Vec<Versioned<Lease>>,
}

impl StoredState {
    fn of(items: impl IntoIterator<Item = Item<StoredItem>>) -> StoredState {
        let mut state = StoredState::default();
        for Item { value, etag, .. } in items {
            match value {
                StoredItem::Record(value) => state.record = Some(Versioned { value, etag }),
                StoredItem::Lease(value) => state.leases.push(Versioned { value, etag }),
            }
        }
        state.leases.sort_by(|a, b| a.value.range().min.cmp(&b.value.range().min));
        state
    }
}

/// The part of a lease container that belongs to one processor.
#[derive(Clone, Debug)]
pub(super) struct LeaseStore {
    container: ContainerClient,
    /// The processor's id, which is the id of its record and the prefix of the ids of its leases.
    id: String,
    options: OperationOptions,
}

/// An item of either kind; serde tells a record from a lease by its properties.
#[derive(Deserialize)]
#[serde(untagged)]
enum StoredItem {
    Record(ProcessorRecord),
    Lease(Lease),
}

impl StoredItem {
    fn processor(&self) -> &str {
        match self {
            StoredItem::Record(record) => &record.processor,
            StoredItem::Lease(lease) => &lease.processor,
        }
    }
}

impl LeaseStore {
    /// The items of the processor `name` that monitors the container with this `_rid`. Fails if the lease container
    /// does not exist or has the wrong partition key.
    pub(super) async fn open(
        container: &ContainerClient,
        name: &str,
        rid: &str,
        options: &OperationOptions,
    ) -> Result<LeaseStore> {
        let path = format!("{}/{}", container.name().database(), container.id());
        let known = container.driver().container(container.name(), options).await.map_err(|error| {
            if error.kind() != ErrorKind::NotFound {
                return error;
            }
            let message = format!(
                "the lease container {path} does not exist: create it with the partition key /id, then start again"
            );
            Error::new(ErrorKind::NotFound, message).with_source(error)
        })?;
        let paths: Vec<&str> = known.partition_key().paths.iter().map(|path| path.as_str()).collect();
        if paths != ["/id"] {
            let message = format!(
                "the lease container {path} has the partition key {}, and leases need /id: use another container, or create one with the partition key /id",
                paths.join(", ")
            );
            return Err(Error::new(ErrorKind::Configuration, message));
        }
        let (container, options) = (container.clone(), options.clone());
        Ok(LeaseStore { container, id: format!("{name}.{rid}"), options })
    }

    /// This store with a timeout for each request.
    pub(super) fn with_timeout(self, timeout: Duration) -> LeaseStore {
        let timeouts = TimeoutOptions::new().with_end_to_end(timeout);
        let options = OperationOptions::new().with_timeouts(timeouts).or(&self.options);
        LeaseStore { options, ..self }
    }

    /// The processor's id: its name and the `_rid` of the monitored container.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Reads everything that the processor stores.
    pub(super) async fn list(&self) -> Result<StoredState> {
        let query = Query::new("SELECT * FROM c WHERE c.processor = @processor")
            .with_parameter("@processor", &self.id);
        let mut pages = self
            .container
            .query_items::<Item<StoredItem>>(query)
            .options(self.options.clone())
            .pages()
            .await?;
        let mut items = Vec::new();
        while let Some(page) = pages.next_page().await? {
            items.extend(page.items);
        }
        Ok(StoredState::of(items))
    }

    /// Reads everything that all processors store in a container. Items of other origin are ignored.
    pub(super) async fn list_all(container: &ContainerClient) -> Result<Vec<(LeaseStore, StoredState)>> {
        let query = Query::new("SELECT * FROM c WHERE IS_DEFINED(c.processor)");
        let mut pages = container.query_items::<serde_json::Value>(query).pages().await?;
        let mut by_id: BTreeMap<String, Vec<Item<StoredItem>>> = BTreeMap::new();
        while let Some(page) = pages.next_page().await? {
            for item in page.items.into_iter().filter_map(|item| serde_json::from_value(item).ok()) {
                let item: Item<StoredItem> = item;
                by_id.entry(item.value.processor().to_owned()).or_default().push(item);
            }
        }
        let store = |id| LeaseStore { container: container.clone(), id, options: OperationOptions::new() };
        Ok(by_id.into_iter().map(|(id, items)| (store(id), StoredState::of(items))).collect())
    }

    /// Reads the processor's record; none if the processor has never been started.
    pub(super) async fn record(&self) -> Result<Option<Versioned<ProcessorRecord>>> {
        self.read(&self.id).await
    }

    pub(super) async fn lease(&self, id: &str) -> Result<Option<Versioned<Lease>>> {
        self.read(id).await
    }

    /// Stores the record of a processor that has none.
    pub(super) async fn create_record(&self, record: &ProcessorRecord) -> Result<WriteOutcome> {
        self.create(&record.id, record).await
    }

    pub(super) async fn replace_record(&self, record: &ProcessorRecord, etag: &str) -> Result<WriteOutcome> {
        self.replace(&record.id, record, etag).await
    }

    /// Stores a lease that does not exist yet.
    pub(super) async fn create_lease(&self, lease: &Lease) -> Result<WriteOutcome> {
        self.create(&lease.id, lease).await
    }

    pub(super) async fn replace_lease(&self, lease: &Lease, etag: &str) -> Result<WriteOutcome> {
        self.replace(&lease.id, lease, etag).await
    }

    pub(super) async fn delete(&self, id: &str, etag: &str) -> Result<WriteOutcome> {
        let call = self.container.delete_item(id, id).if_match(etag).options(self.options.clone());
        write_outcome(call.await.map(|_| String::new()))
    }

    async fn read<D: DeserializeOwned + Send + 'static>(&self, id: &str) -> Result<Option<Versioned<D>>> {
        match self.container.read_item::<Item<D>>(id, id).options(self.options.clone()).await {
            Ok(found) => {
                let Item { value, etag, .. } = found.into_value();
                Ok(Some(Versioned { value, etag }))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn create(&self, id: &str, value: &impl Serialize) -> Result<WriteOutcome> {
        write_outcome(require_etag(self.container.create_item(id, value).options(self.options.clone()).await))
    }

    async fn replace(&self, id: &str, value: &impl Serialize, version: &str) -> Result<WriteOutcome> {
        let call = self.container.replace_item(id, id, value).if_match(version);
        write_outcome(require_etag(call.options(self.options.clone()).await))
    }
}

fn require_etag(response: Result<crate::ItemResponse<()>>) -> Result<String> {
    let response = response?;
    response
        .etag()
        .map(str::to_owned)
        .ok_or_else(|| Error::new(ErrorKind::BadResponse, "the response to the write of a lease has no ETag"))
}

fn write_outcome(result: Result<String>) -> Result<WriteOutcome> {
    match result {
        Ok(etag) => Ok(WriteOutcome::Stored(etag)),
        Err(error) => match error.kind() {
            ErrorKind::Conflict | ErrorKind::PreconditionFailed => Ok(WriteOutcome::Conflict),
            ErrorKind::NotFound => Ok(WriteOutcome::Missing),
            _ => Err(error),
        },
    }
}
