//! The control port, over sockets.

mod account;
mod clock;
mod frame;
mod lifecycle;
mod operations;
mod sight;

use http::Method;
use perihelion_emulator::EmulatorConfig;
use serde_json::Value;

use crate::live::{Account, Answer};

/// An account on the machine's clock, as `peri up` starts it.
async fn account() -> Account {
    Account::start(EmulatorConfig::default()).await
}

impl Account {
    async fn ask(&self, path: &str) -> Answer {
        self.control(Method::GET, path, "").await
    }

    async fn tell(&self, path: &str, body: Value) -> Answer {
        self.control(Method::POST, path, &body.to_string()).await
    }
}
