//! An account for all tests, and a container of its own for each.

use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

use async_trait::async_trait;
use duroxide::provider_validations::ProviderFactory;
use duroxide::providers::Provider;
use emulator::{Emulator, EmulatorConfig};
use futures::TryStreamExt;
use perihelion::{ContainerClient, CosmosClient, Patch, Query};
use perihelion_durable::{CosmosProvider, ProviderOptions};
use serde_json::{Value, json};

/// The connection string of an account that all tests of the process share.
pub(crate) fn account() -> &'static str {
    static ACCOUNT: OnceLock<String> = OnceLock::new();
    ACCOUNT.get_or_init(|| {
        let (sender, receiver) = std::sync::mpsc::channel();
        // The account outlives the runtimes of single tests.
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let running = Emulator::start(EmulatorConfig::default()).await.expect("the account starts");
                sender.send(running.connection_string()).expect("the test waits");
                std::future::pending::<()>().await;
            });
        });
        receiver.recv().expect("the account started")
    })
}

/// A client of the account.
pub(crate) fn client() -> CosmosClient {
    CosmosClient::from_connection_string(account()).expect("a valid connection string")
}

/// Options for a container that no other test uses.
pub(crate) fn options() -> ProviderOptions {
    ProviderOptions::new().database("tests").container(format!("c-{:016x}", fastrand::u64(..)))
}

/// A provider with a container of its own.
pub(crate) async fn create_provider() -> Arc<CosmosProvider> {
    Arc::new(CosmosProvider::new(&client(), options()).await.expect("a provider"))
}

/// Creates providers, each with a container of its own.
pub(crate) struct Factory {
    history_cache: bool,
    /// The container of the provider that was created last.
    container: Mutex<Option<ContainerClient>>,
}

impl Factory {
    pub(crate) fn new() -> Factory {
        Factory { history_cache: true, container: Mutex::default() }
    }

    /// Providers that read every history from the container, so that they notice what is done to it there.
    pub(crate) fn uncached() -> Factory {
        Factory { history_cache: false, container: Mutex::default() }
    }

    fn container(&self) -> ContainerClient {
        self.container.lock().expect("no panic").clone().expect("a provider was created")
    }
}

#[async_trait]
impl ProviderFactory for Factory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        let options = if self.history_cache { options() } else { options().history_cache_bytes(0) };
        let provider = CosmosProvider::new(&client(), options).await.expect("a provider");
        *self.container.lock().expect("no panic") = Some(provider.container().clone());
        Arc::new(provider)
    }

    async fn corrupt_instance_history(&self, instance: &str) {
        let container = self.container();
        let query = Query::new("SELECT VALUE c.id FROM c WHERE c.type = 'history'");
        let ids: Vec<String> = container
            .query_items(query)
            .partition_key(instance)
            .stream()
            .try_collect()
            .await
            .expect("the ids of history documents");
        for id in ids {
            let patch = Patch::new().set("/eventData", json!([{"no": "event"}]));
            container.patch_item(instance, &id, patch).await.expect("patched");
        }
    }

    async fn get_max_attempt_count(&self, instance: &str) -> u32 {
        let container = self.container();
        let id = format!("{instance}:instance");
        let document = container.read_item::<Value>(instance, &id).await.expect("an instance").into_value();
        let attempts = document["attempts"].as_object().cloned().unwrap_or_default();
        attempts.values().filter_map(Value::as_u64).max().unwrap_or(0) as u32
    }
}

/// Whether the tests run in their long form.
pub(crate) fn is_long() -> bool {
    std::env::var_os("PERI_DURABLE_LONG").is_some()
}
