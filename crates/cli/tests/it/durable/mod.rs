//! `peri durable` against orchestrations that a runtime in this process executes.

mod actions;
mod bad_input;
mod look;
mod tail;

use std::sync::Arc;
use std::time::Duration;

use durable::CosmosProvider;
use durable::duroxide::runtime::Runtime;
use durable::duroxide::runtime::registry::ActivityRegistry;
use durable::duroxide::{ActivityContext, Client, OrchestrationContext, OrchestrationRegistry};
use durable::perihelion::Patch;
use serde_json::Value;

use crate::test_account::TestAccount;

/// How long a test waits for something before it fails.
const LIMIT: Duration = Duration::from_secs(20);

/// An account with the container of orchestrations, and a runtime that may be stopped.
struct Workflows {
    account: TestAccount,
    tokio: tokio::runtime::Runtime,
    provider: Arc<CosmosProvider>,
    client: Client,
    runtime: Option<Arc<Runtime>>,
}

impl Workflows {
    /// An account whose runtime runs.
    fn started() -> Workflows {
        let mut workflows = Workflows::stopped();
        let provider = Arc::clone(&workflows.provider);
        let runtime =
            workflows.tokio.block_on(Runtime::start_with_store(provider, activities(), orchestrations()));
        workflows.runtime = Some(runtime);
        workflows
    }

    /// An account with the container, and no runtime.
    fn stopped() -> Workflows {
        let account = TestAccount::with(&[]);
        let tokio = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("threads");
        let connection = account.up.account()["connectionString"].as_str().expect("text").to_owned();
        let provider = tokio.block_on(CosmosProvider::from_connection_string(&connection));
        let provider = Arc::new(provider.expect("the container is created"));
        let client = Client::new(Arc::clone(&provider) as Arc<dyn durable::duroxide::providers::Provider>);
        Workflows { account, tokio, provider, client, runtime: None }
    }

    fn stop_runtime(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            self.tokio.block_on(runtime.shutdown(Some(1_000)));
        }
    }

    fn start(&self, instance: &str, orchestration: &str, input: &str) {
        self.tokio
            .block_on(self.client.start_orchestration(instance, orchestration, input))
            .expect("enqueued");
    }

    /// Waits until an instance has ended.
    fn end(&self, instance: &str) {
        self.tokio.block_on(self.client.wait_for_orchestration(instance, LIMIT)).expect("it ends");
    }

    /// Changes a document behind the back of the runtime.
    fn patch(&self, instance: &str, id: &str, patch: Patch) {
        let container = self.provider.container().clone();
        self.tokio.block_on(async { container.patch_item(instance, id, patch).await }).expect("patched");
    }

    fn create(&self, instance: &str, document: &Value) {
        let container = self.provider.container().clone();
        self.tokio.block_on(async { container.create_item(instance, document).await }).expect("created");
    }

    fn document(&self, instance: &str, id: &str) -> Option<Value> {
        let container = self.provider.container().clone();
        let read = self.tokio.block_on(async { container.read_item::<Value>(instance, id).optional().await });
        read.expect("a response").map(durable::perihelion::Response::into_value)
    }

    /// The output of a command of `peri durable`.
    #[track_caller]
    fn durable(&self, arguments: &[&str]) -> String {
        self.account.stdout_of(&[&["durable"], arguments].concat())
    }

    /// The lines of JSON that a command of `peri durable` prints.
    #[track_caller]
    fn json(&self, arguments: &[&str]) -> Vec<Value> {
        let shown = self.durable(&[arguments, &["--json"]].concat());
        shown.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// Waits until an instance waits for this, which an open wait of it has as its name.
    #[track_caller]
    fn waits_for(&self, instance: &str, name: &str) {
        for _ in 0..LIMIT.as_millis() / 100 {
            let output =
                self.account.command(&["durable", "why", instance, "--json"]).output().expect("runs");
            let why: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            let waits = why["waits"].as_array().cloned().unwrap_or_default();
            if waits.iter().any(|wait| wait["name"] == name) {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("{instance} does not wait for {name}");
    }
}

impl Drop for Workflows {
    fn drop(&mut self) {
        self.stop_runtime();
    }
}

fn activities() -> ActivityRegistry {
    ActivityRegistry::builder()
        .register("charge", |_: ActivityContext, input: String| async move { Ok(format!("charged {input}")) })
        .register("fail", |_: ActivityContext, reason: String| async move { Err::<String, _>(reason) })
        .build()
}

fn orchestrations() -> OrchestrationRegistry {
    let order = |context: OrchestrationContext, input: String| async move {
        context.set_custom_status("charging");
        context.set_kv_value("customer", &input);
        context.schedule_activity("charge", input.as_str()).await?;
        context.schedule_timer(Duration::from_millis(20)).await;
        context.schedule_sub_orchestration("Ship", input).await?;
        context.set_custom_status("waits for approval");
        let answer = context.schedule_wait("Approved").await;
        Ok(format!("approved: {answer}"))
    };
    let ship = |context: OrchestrationContext, input: String| async move {
        context.schedule_activity("charge", input).await
    };
    let broken = |context: OrchestrationContext, input: String| async move {
        context.schedule_activity("fail", input).await
    };
    let twice = |context: OrchestrationContext, input: String| async move {
        match input.as_str() {
            "first" => context.continue_as_new("second").await,
            _ => Ok(input),
        }
    };
    OrchestrationRegistry::builder()
        .register("Order", order)
        .register("Ship", ship)
        .register("Broken", broken)
        .register("Twice", twice)
        .build()
}
