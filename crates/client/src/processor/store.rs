//! The lease container: plans and leases, read and written one by one.
//!
//! Every write says which version it is of. What a lease means is left to `lease`.

use std::collections::BTreeMap;
use std::time::Duration;

use driver::{Error, ErrorKind};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::lease::{Lease, Plan};
use crate::container::ContainerClient;
use crate::items::Query;
use crate::{Item, OperationOptions, Result, TimeoutOptions};

/// Something that is stored, and its version.
#[derive(Clone, Debug)]
pub(super) struct Stored<D> {
    pub(super) value: D,
    pub(super) etag: String,
}

/// What came of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// It is stored, as this version.
    Done(String),
    /// Somebody else has written in the meantime.
    Changed,
    /// There is nothing to write over.
    Missing,
}

/// Everything a processor keeps.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) plan: Option<Stored<Plan>>,
    /// In the order of the ring.
    pub(super) leases: Vec<Stored<Lease>>,
}

impl Listing {
    fn of(items: impl IntoIterator<Item = Item<Kept>>) -> Listing {
        let mut listing = Listing::default();
        for Item { value, etag, .. } in items {
            match value {
                Kept::Plan(value) => listing.plan = Some(Stored { value, etag }),
                Kept::Lease(value) => listing.leases.push(Stored { value, etag }),
            }
        }
        listing.leases.sort_by(|a, b| a.value.range().min.cmp(&b.value.range().min));
        listing
    }
}

/// The part of a lease container that belongs to one processor.
#[derive(Clone, Debug)]
pub(super) struct LeaseStore {
    container: ContainerClient,
    /// The processor's id: that of its plan, and how those of its leases begin.
    id: String,
    options: OperationOptions,
}

/// Both kinds of items: a plan is told from a lease by what it has.
#[derive(Deserialize)]
#[serde(untagged)]
enum Kept {
    Plan(Plan),
    Lease(Lease),
}

impl Kept {
    fn processor(&self) -> &str {
        match self {
            Kept::Plan(plan) => &plan.processor,
            Kept::Lease(lease) => &lease.processor,
        }
    }
}

impl LeaseStore {
    /// The leases of the processor `name` over the container with this `_rid`. Says what is wrong with a lease
    /// container that cannot keep any.
    pub(super) async fn open(
        container: &ContainerClient,
        name: &str,
        rid: &str,
        options: &OperationOptions,
    ) -> Result<LeaseStore> {
        let path = format!("{}/{}", container.name().database(), container.id());
        let known = container.driver().container(container.name()).await.map_err(|error| {
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

    /// The same, whose requests end after `timeout`.
    pub(super) fn within(self, timeout: Duration) -> LeaseStore {
        let timeouts = TimeoutOptions::new().with_end_to_end(timeout);
        let options = OperationOptions::new().with_timeouts(timeouts).or(&self.options);
        LeaseStore { options, ..self }
    }

    /// The processor's id.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Everything the processor keeps.
    pub(super) async fn list(&self) -> Result<Listing> {
        let query = Query::new("SELECT * FROM c WHERE c.processor = @processor")
            .with_parameter("@processor", &self.id);
        let mut pages =
            self.container.query_items::<Item<Kept>>(query).options(self.options.clone()).pages().await?;
        let mut items = Vec::new();
        while let Some(page) = pages.next_page().await? {
            items.extend(page.items);
        }
        Ok(Listing::of(items))
    }

    /// Everything a container keeps, by processor, and where. What is none of a processor's is left out.
    pub(super) async fn all(container: &ContainerClient) -> Result<Vec<(LeaseStore, Listing)>> {
        let query = Query::new("SELECT * FROM c WHERE IS_DEFINED(c.processor)");
        let mut pages = container.query_items::<serde_json::Value>(query).pages().await?;
        let mut by_id: BTreeMap<String, Vec<Item<Kept>>> = BTreeMap::new();
        while let Some(page) = pages.next_page().await? {
            for item in page.items.into_iter().filter_map(|item| serde_json::from_value(item).ok()) {
                let item: Item<Kept> = item;
                by_id.entry(item.value.processor().to_owned()).or_default().push(item);
            }
        }
        let store = |id| LeaseStore { container: container.clone(), id, options: OperationOptions::new() };
        Ok(by_id.into_iter().map(|(id, items)| (store(id), Listing::of(items))).collect())
    }

    /// The plan; none when the processor has never been started.
    pub(super) async fn plan(&self) -> Result<Option<Stored<Plan>>> {
        self.read(&self.id).await
    }

    pub(super) async fn lease(&self, id: &str) -> Result<Option<Stored<Lease>>> {
        self.read(id).await
    }

    /// Stores a plan where there is none.
    pub(super) async fn create_plan(&self, plan: &Plan) -> Result<Written> {
        self.create(&plan.id, plan).await
    }

    pub(super) async fn replace_plan(&self, plan: &Plan, etag: &str) -> Result<Written> {
        self.replace(&plan.id, plan, etag).await
    }

    /// Stores a lease where there is none.
    pub(super) async fn create_lease(&self, lease: &Lease) -> Result<Written> {
        self.create(&lease.id, lease).await
    }

    pub(super) async fn replace_lease(&self, lease: &Lease, etag: &str) -> Result<Written> {
        self.replace(&lease.id, lease, etag).await
    }

    pub(super) async fn delete(&self, id: &str, etag: &str) -> Result<Written> {
        let call = self.container.delete_item(id, id).if_match(etag).options(self.options.clone());
        written(call.await.map(|_| String::new()))
    }

    async fn read<D: DeserializeOwned + Send + 'static>(&self, id: &str) -> Result<Option<Stored<D>>> {
        match self.container.read_item::<Item<D>>(id, id).options(self.options.clone()).await {
            Ok(found) => {
                let Item { value, etag, .. } = found.into_value();
                Ok(Some(Stored { value, etag }))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn create(&self, id: &str, value: &impl Serialize) -> Result<Written> {
        written(etag(self.container.create_item(id, value).options(self.options.clone()).await))
    }

    async fn replace(&self, id: &str, value: &impl Serialize, version: &str) -> Result<Written> {
        let call = self.container.replace_item(id, id, value).if_match(version);
        written(etag(call.options(self.options.clone()).await))
    }
}

fn etag(answer: Result<crate::ItemResponse<()>>) -> Result<String> {
    let answer = answer?;
    answer.etag().map(str::to_owned).ok_or_else(|| {
        Error::new(ErrorKind::BadResponse, "the answer to the write of a lease has no entity tag")
    })
}

fn written(result: Result<String>) -> Result<Written> {
    match result {
        Ok(etag) => Ok(Written::Done(etag)),
        Err(error) => match error.kind() {
            ErrorKind::Conflict | ErrorKind::PreconditionFailed => Ok(Written::Changed),
            ErrorKind::NotFound => Ok(Written::Missing),
            _ => Err(error),
        },
    }
}
