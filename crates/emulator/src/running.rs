//! Starting an emulator, and the handle to one that runs.

use std::sync::Arc;

use protocol::account::ConsistencyLevel;
use protocol::authorization::Key;

use crate::config::EmulatorConfig;
use crate::control::Control;
use crate::error::{Door, StartError};
use crate::gateway::{Account, AccountSettings, Gateway, Region};
use crate::server::{Listeners, Server, Tls, TlsError};

/// Where an account on this machine begins.
#[derive(Clone, Copy, Debug)]
pub struct Emulator;

impl Emulator {
    /// Opens the ports and starts answering. When this returns, requests are answered.
    ///
    /// Must be called inside a Tokio runtime; the servers live on it until the handle is dropped.
    pub async fn start(config: EmulatorConfig) -> Result<Running, StartError> {
        let key = config.account_key()?;
        // Both doors first: a port that is taken is reported before anything is served.
        let account = Listeners::open(config.bind, config.port, Door::Account)?;
        let control = Listeners::open(config.bind, config.control_port, Door::Control)?;
        let tls = Tls::new(config.authority.clone(), config.bind.primary(), config.clock.clone());
        tls.prepare();
        let limits = || config.limits.clone();
        let gateway = Gateway::new(Arc::new(new_account(&config, key, account.port())), config.clock.clone());
        let account = Server::start(account, Arc::new(gateway), Some(tls.clone()), limits());
        let control = Server::start(control, Arc::new(Control), Some(tls.clone()), limits());
        Ok(Running { config, account, control, tls })
    }
}

/// A running emulator. Dropping it closes everything at once.
#[derive(Debug)]
pub struct Running {
    config: EmulatorConfig,
    account: Server,
    control: Server,
    tls: Tls,
}

impl Running {
    /// Where clients find the account, over plain HTTP: it needs no certificate to be trusted, and
    /// every official SDK accepts it for a local host. The same port speaks TLS too, see
    /// [`https_endpoint`](Running::https_endpoint).
    pub fn endpoint(&self) -> String {
        self.account_url("http")
    }

    /// Where clients find the account, over TLS.
    pub fn https_endpoint(&self) -> String {
        self.account_url("https")
    }

    /// Where health and control are.
    pub fn control_endpoint(&self) -> String {
        format!("http://{}:{}/", self.config.bind.host(), self.control.port())
    }

    /// What most SDKs take instead of an endpoint and a key.
    pub fn connection_string(&self) -> String {
        connection_string(&self.endpoint(), self.key())
    }

    /// The same, over TLS.
    pub fn https_connection_string(&self) -> String {
        connection_string(&self.https_endpoint(), self.key())
    }

    /// The account key.
    pub fn key(&self) -> &str {
        &self.config.key
    }

    /// The port of the account.
    pub fn port(&self) -> u16 {
        self.account.port()
    }

    /// The port of health and control.
    pub fn control_port(&self) -> u16 {
        self.control.port()
    }

    /// The name of the region that serves.
    pub fn region(&self) -> &str {
        &self.config.region
    }

    /// The certificate https clients have to trust, as PEM.
    pub async fn authority_pem(&self) -> Result<Arc<str>, TlsError> {
        self.tls.authority_pem().await
    }

    /// Lets requests in flight finish, for a moment, then closes everything.
    pub async fn stop(self) {
        tokio::join!(self.account.stop(), self.control.stop());
    }

    fn account_url(&self, scheme: &str) -> String {
        format!("{scheme}://{}:{}/", self.config.bind.host(), self.account.port())
    }
}

/// The account that `config` describes, in one region behind `port`.
fn new_account(config: &EmulatorConfig, key: Key, port: u16) -> Account {
    Account::new(AccountSettings {
        key,
        regions: vec![Region { name: config.region.clone(), port }],
        partitions: config.partitions,
        consistency: ConsistencyLevel::Session,
        seed: uuid::Uuid::new_v4().as_fields().0,
    })
}

fn connection_string(endpoint: &str, key: &str) -> String {
    format!("AccountEndpoint={endpoint};AccountKey={key};")
}
