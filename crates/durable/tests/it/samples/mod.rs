//! Whole orchestrations, one kind of step per file.

mod cancellation;
mod continue_as_new;
mod control_flow;
mod detached;
mod errors;
mod events;
mod key_values;
mod poison;
mod pruning;
mod status;
mod sub_orchestrations;
mod system_calls;
mod tags;
mod timers;
mod typed;
mod versioning;

use duroxide::ActivityContext;
use duroxide::runtime::registry::ActivityRegistry;

/// The activities that several samples use.
fn activities() -> ActivityRegistry {
    ActivityRegistry::builder()
        .register("Greet", |_: ActivityContext, name: String| async move { Ok(format!("Hello, {name}!")) })
        .register("Double", |_: ActivityContext, number: String| async move {
            let number: i64 = number.parse().map_err(|_| format!("{number:?} is no number"))?;
            Ok((number * 2).to_string())
        })
        .register("Refuse", |_: ActivityContext, reason: String| async move { Err::<String, _>(reason) })
        .build()
}
