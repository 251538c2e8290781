//! What drivers of one process share: connections, defaults and the environment's word.

use crate::gateway::GatewayClient;
use crate::sharding::ShardedTransport;
use crate::transport::{HttpClientConfig, TransportFactory};
use std::sync::Arc;

use crate::account::Account;
use crate::clock::Clock;
use crate::driver::CosmosDriver;
use crate::error::{Error, ErrorKind, Result};
use crate::options::{DriverOptions, DriverSettings, EnvironmentOptions};
use crate::sharding::ShardingConfig;

/// Shared by the drivers of a process. Cheap to clone; connections live as long as a clone or a driver does.
#[derive(Clone, Debug)]
pub struct CosmosRuntime(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    connections: Arc<ShardedTransport>,
    options: DriverOptions,
    environment: EnvironmentOptions,
    application: Option<String>,
    clock: Clock,
}

/// Makes a [`CosmosRuntime`]; everything but the factory has a default.
#[derive(Debug)]
pub struct CosmosRuntimeBuilder {
    factory: Arc<dyn TransportFactory>,
    client: HttpClientConfig,
    sharding: Option<ShardingConfig>,
    options: DriverOptions,
    environment: EnvironmentOptions,
    application: Option<String>,
    clock: Clock,
}

impl CosmosRuntime {
    /// A runtime whose HTTP clients come from `factory`.
    pub fn builder(factory: Arc<dyn TransportFactory>) -> CosmosRuntimeBuilder {
        CosmosRuntimeBuilder {
            factory,
            client: HttpClientConfig::default(),
            sharding: None,
            options: DriverOptions::new(),
            environment: EnvironmentOptions::default(),
            application: None,
            clock: Clock::machine(),
        }
    }

    /// A driver for one account. Nothing is sent before the first operation.
    pub fn driver(&self, account: &Account, options: DriverOptions) -> Result<CosmosDriver> {
        let shared = &*self.0;
        let settings = DriverSettings::resolve(options, &shared.options, &shared.environment)?;
        let gateway = GatewayClient::new(
            Arc::clone(&shared.connections),
            account.credential().clone(),
            account.endpoint(),
            shared.application.as_deref(),
            shared.clock.clone(),
        );
        Ok(CosmosDriver::new(account, settings, gateway, shared.clock.clone()))
    }

    /// The connections that all drivers of the process share.
    #[cfg(feature = "test-util")]
    pub fn connections(&self) -> &Arc<ShardedTransport> {
        &self.0.connections
    }
}

impl CosmosRuntimeBuilder {
    /// What every HTTP client is made with.
    #[must_use]
    pub fn with_client(mut self, client: HttpClientConfig) -> CosmosRuntimeBuilder {
        self.client = client;
        self
    }

    /// How HTTP/2 connections are spread; otherwise what the environment says, or the defaults.
    #[must_use]
    pub fn with_sharding(mut self, sharding: ShardingConfig) -> CosmosRuntimeBuilder {
        self.sharding = Some(sharding);
        self
    }

    /// What drivers obey that say nothing of their own.
    #[must_use]
    pub fn with_options(mut self, options: DriverOptions) -> CosmosRuntimeBuilder {
        self.options = options;
        self
    }

    /// What the environment says, below everything else.
    #[must_use]
    pub fn with_environment(mut self, environment: EnvironmentOptions) -> CosmosRuntimeBuilder {
        self.environment = environment;
        self
    }

    /// The application's name, added to the user agent of every request.
    #[must_use]
    pub fn with_application(mut self, name: impl Into<String>) -> CosmosRuntimeBuilder {
        self.application = Some(name.into());
        self
    }

    /// Where time comes from.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> CosmosRuntimeBuilder {
        self.clock = clock;
        self
    }

    /// The runtime. An option that cannot be obeyed is an error.
    pub fn build(self) -> Result<CosmosRuntime> {
        let sharding =
            self.sharding.unwrap_or_else(|| ShardingConfig::from_environment(&self.environment.sharding));
        let connections = ShardedTransport::new(self.factory, self.client, sharding, self.clock.clone())
            .map_err(|bad| Error::new(ErrorKind::Configuration, bad.to_string()).with_source(bad))?;
        Ok(CosmosRuntime(Arc::new(Shared {
            connections: Arc::new(connections),
            options: self.options,
            environment: self.environment,
            application: self.application,
            clock: self.clock,
        })))
    }
}
