//! Who is measured, each behind duroxide's trait.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use driver_bench::peri::Peri;
use duroxide::providers::Provider;
use duroxide::providers::sqlite::SqliteProvider;
use perihelion::CosmosClient;
use perihelion_durable::{CosmosProvider, ProviderOptions};

/// A provider that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Perihelion,
    /// duroxide-cdb, on the same account.
    Cdb,
    /// duroxide's own provider on SQLite in memory.
    Sqlite,
    /// duroxide-pg, on the PostgreSQL of `DATABASE_URL`.
    Pg,
}

impl Kind {
    pub(crate) const ALL: [Kind; 4] = [Kind::Perihelion, Kind::Cdb, Kind::Sqlite, Kind::Pg];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Perihelion => "perihelion",
            Kind::Cdb => "cdb",
            Kind::Sqlite => "sqlite",
            Kind::Pg => "pg",
        }
    }

    pub(crate) fn parse(name: &str) -> Result<Kind, String> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name).ok_or(format!("nobody is called {name}"))
    }

    /// Whether it stores its state in the account.
    pub(crate) fn uses_account(self) -> bool {
        matches!(self, Kind::Perihelion | Kind::Cdb)
    }

    /// A provider with a store of its own.
    pub(crate) async fn create(self, peri: &Peri) -> Result<Arc<dyn Provider>, String> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let store = format!("bench{}", NEXT.fetch_add(1, Ordering::Relaxed));
        // The same port speaks both; without TLS for both.
        let endpoint = peri.endpoint.replacen("https://", "http://", 1);
        Ok(match self {
            Kind::Perihelion => {
                let client = CosmosClient::with_key(&endpoint, &peri.key).map_err(|error| error.to_string())?;
                let options = ProviderOptions::new().database("perihelion").container(store);
                Arc::new(CosmosProvider::new(&client, options).await.map_err(|error| error.to_string())?)
            }
            Kind::Cdb => {
                let provider = duroxide_cdb::CosmosDBProvider::new_with_container(
                    &endpoint, &peri.key, "cdb", &store,
                );
                Arc::new(provider.await.map_err(|error| error.to_string())?)
            }
            Kind::Sqlite => {
                Arc::new(SqliteProvider::new_in_memory().await.map_err(|error| error.to_string())?)
            }
            Kind::Pg => {
                let url = std::env::var("DATABASE_URL")
                    .map_err(|_| "DATABASE_URL names no PostgreSQL; leave pg out with --only".to_owned())?;
                let provider = duroxide_pg::PostgresProvider::new_with_schema(&url, Some(&store)).await;
                Arc::new(provider.map_err(|error| error.to_string())?)
            }
        })
    }
}
