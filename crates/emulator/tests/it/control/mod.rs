//! The control port, over sockets.

mod account;
mod clock;
mod events;
mod lifecycle;
mod operations;
mod request_log;
mod reset;
mod routes;

use http::Method;
use perihelion_emulator::EmulatorConfig;
use serde_json::Value;

use crate::live::{LiveAccount, LiveResponse};

/// An account on the machine's clock, as `peri up` starts it.
async fn account() -> LiveAccount {
    LiveAccount::start(EmulatorConfig::default()).await
}

impl LiveAccount {
    pub(crate) async fn control_get(&self, path: &str) -> LiveResponse {
        self.control(Method::GET, path, "").await
    }

    pub(crate) async fn control_post(&self, path: &str, body: Value) -> LiveResponse {
        self.control(Method::POST, path, &body.to_string()).await
    }
}
