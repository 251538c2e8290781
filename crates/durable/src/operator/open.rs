//! Opens a container that exists.

use std::sync::Arc;

use perihelion::{CosmosClient, ErrorKind};

use super::{Operator, OperatorError};
use crate::container;
use crate::core::Core;
use crate::leases::InMemoryLeaseProvider;
use crate::options::ProviderOptions;
use crate::store::Store;

impl Operator {
    /// An operator of a container that exists. One that does not is an error, and is not created.
    pub async fn open(
        client: &CosmosClient,
        database: &str,
        container: &str,
    ) -> Result<Operator, OperatorError> {
        let options = ProviderOptions::new().database(database).container(container).history_cache_bytes(0);
        let found = match container::open_existing(client, &options).await {
            Ok(found) => found,
            Err(error) if error.kind() == Some(ErrorKind::NotFound) => {
                return Err(missing(client, database, container).await);
            }
            Err(error) => return Err(error.into()),
        };
        let leases = Arc::new(InMemoryLeaseProvider::new());
        Ok(Operator {
            core: Arc::new(Core::new(Store::new(found, options.telemetry.clone()), options, leases)),
        })
    }
}

/// Says which of the two is missing.
async fn missing(client: &CosmosClient, database: &str, container: &str) -> OperatorError {
    match client.database(database).read().await {
        Ok(_) => {
            OperatorError::NoContainer { database: database.to_owned(), container: container.to_owned() }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            OperatorError::NoDatabase { database: database.to_owned() }
        }
        Err(error) => error.into(),
    }
}
