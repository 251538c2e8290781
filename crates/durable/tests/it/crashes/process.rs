//! A process in the process: a runtime with everything that it holds, which can be dropped at any time.

use std::sync::Arc;
use std::time::Duration;

use duroxide::runtime::{Runtime, RuntimeOptions};
use perihelion::faults::{ConnectionEffect, FaultInjector, FaultRule, OperationKind};
use perihelion::{Account, CosmosClient};
use perihelion_durable::{CosmosLeaseProvider, CosmosProvider, ProviderOptions};

use super::ledger::Ledger;
use super::workloads;
use crate::factory;

/// The id of the rule that ends the process.
const CUT: &str = "cut";
/// How long slot leases last: so briefly that they are renewed while a workload runs.
const LEASE_TIME: Duration = Duration::from_millis(300);

/// What becomes of the last request of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LastWrite {
    /// It is carried out, and its response is received.
    Answered,
    /// It is carried out, and the process never learns of it.
    Unanswered,
}

/// Options with which locks expire soon, and what was left behind is found soon.
pub(crate) fn provider_options() -> ProviderOptions {
    factory::options()
        .poll_intervals(Duration::from_millis(20), Duration::from_millis(100))
        .reconciler_interval(Duration::from_millis(50))
        .reconciler_age(Duration::from_millis(200))
}

/// Options of a runtime whose locks expire after this time.
pub(crate) fn runtime_options(lock_time: Duration) -> RuntimeOptions {
    RuntimeOptions {
        orchestrator_lock_timeout: lock_time,
        worker_lock_timeout: lock_time,
        ..crate::running::runtime_options()
    }
}

/// A provider that shares the slots with others.
pub(crate) async fn provider(client: &CosmosClient, options: &ProviderOptions) -> Arc<CosmosProvider> {
    let leases = |container: &perihelion::ContainerClient| -> Arc<dyn perihelion_durable::LeaseProvider> {
        Arc::new(CosmosLeaseProvider::with_lease_time(container, LEASE_TIME))
    };
    Arc::new(CosmosProvider::with_leases(client, options.clone(), leases).await.expect("a provider"))
}

/// A rule for the requests after this many.
fn after(rule: FaultRule, requests: u64) -> FaultRule {
    if requests == 0 { rule } else { rule.skipping(requests) }
}

/// A process that is killed after so many writes.
pub(crate) struct Process {
    runtime: Option<tokio::runtime::Runtime>,
    faults: FaultInjector,
}

impl Process {
    /// Starts a process whose writes beyond this number never leave it.
    pub(crate) fn start(
        options: &ProviderOptions,
        lock_time: Duration,
        ledger: &Ledger,
        writes: u64,
        last: LastWrite,
    ) -> Process {
        let faults = FaultInjector::new(writes);
        if let LastWrite::Unanswered = last {
            let lost = FaultRule::connection(ConnectionEffect::CloseAfter).on(OperationKind::Write);
            faults.add(after(lost, writes - 1).times(1)).expect("a rule");
        }
        let cut = FaultRule::connection(ConnectionEffect::FailBeforeSending).on(OperationKind::Write);
        // The rule before ends the evaluation for the write that it hits.
        let skipped = match last {
            LastWrite::Answered => writes,
            LastWrite::Unanswered => writes - 1,
        };
        faults.add(after(cut, skipped).named(CUT)).expect("a rule");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let account = Account::from_connection_string(factory::account()).expect("valid");
        let client = CosmosClient::builder(account).faults(&faults).build().expect("valid");
        let (options, activities) = (options.clone(), workloads::activities(ledger));
        runtime.spawn(async move {
            let provider = provider(&client, &options).await;
            let runtime_options = runtime_options(lock_time);
            let started = Runtime::start_with_options(
                provider,
                activities,
                workloads::orchestrations(),
                runtime_options,
            );
            let _running = started.await;
            std::future::pending::<()>().await;
        });
        Process { runtime: Some(runtime), faults }
    }

    /// Whether the process has come to the point at which it is to be killed.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.faults.hits(CUT) > Some(0)
    }

    /// Ends the process: nothing of it runs any more.
    pub(crate) fn kill(mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
