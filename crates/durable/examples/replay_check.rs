//! Checks that the order of the example `order_workflow` could continue with today's code, and shows what a change of that
//! code would do to it. Nothing is written and no activity runs.
//!
//! ```text
//! cargo run -p perihelion-durable --example order_workflow
//! cargo run -p perihelion-durable --example replay_check
//! peri durable history order-4711 --json > order.json     # or from a file
//! cargo run -p perihelion-durable --example replay_check order.json
//! ```

mod order;

use duroxide::providers::ProviderAdmin;
use duroxide::{OrchestrationContext, OrchestrationRegistry};
use perihelion_durable::CosmosProvider;
use perihelion_durable::replay::{ReplayCheck, history_from_json};

use order::{INSTANCE, connection_string, orchestrations};

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example prints what it does")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let history = match std::env::args().nth(1) {
        Some(file) => history_from_json(&std::fs::read_to_string(file)?)?,
        None => {
            let provider = CosmosProvider::from_connection_string(&connection_string()).await?;
            provider.read_history(INSTANCE).await?
        }
    };
    for (code, registry) in [("today's code", orchestrations()), ("changed code", without_payment())] {
        let report = ReplayCheck::new(&registry).run(&history)?;
        match report.difference {
            None => println!("{code} fits: {} turns, {} events", report.turns, report.events),
            Some(difference) => println!("{code} does not fit: {difference}"),
        }
    }
    Ok(())
}

/// The order as somebody may change it: the parcel is packed before the payment has come.
fn without_payment() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Order", |context: OrchestrationContext, items: String| async move {
            let packed = context.schedule_activity("Pack", items).await?;
            let paid = context.schedule_wait("Paid").await;
            Ok(format!("{paid} paid, {packed}"))
        })
        .build()
}
