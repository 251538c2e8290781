//! An account together with its injected faults and its request log.

use std::sync::Arc;

use clock::Clock;
use engine::account::Account;

use crate::faults::{AccountFaults, Faults, PortControl};
use crate::host_names::HostNames;
use crate::request_log::RequestLog;
use server::Bind;

/// An account, the faults that are injected into its requests, the log of those requests, and its
/// host names. Clones share them.
#[derive(Clone, Debug)]
pub struct HostedAccount {
    /// The engine's account: regions, databases, containers, items.
    pub account: Arc<Account>,
    pub(crate) account_faults: Arc<AccountFaults>,
    pub(crate) request_log: Arc<RequestLog>,
    /// What clients are told to connect to.
    pub(crate) host_names: Arc<HostNames>,
}

impl HostedAccount {
    /// Hosts `account` without any fault. `seed` seeds the random numbers of faults that are injected later.
    pub fn new(account: Account, seed: u64) -> HostedAccount {
        let account = Arc::new(account);
        let account_faults = AccountFaults::new(Arc::clone(&account.regions), seed);
        let account_faults = Arc::new(account_faults.with_events(Arc::clone(&account.events)));
        let host_names = Arc::new(HostNames::as_requested(Bind::Loopback));
        HostedAccount { account, account_faults, request_log: Arc::default(), host_names }
    }

    /// The account with other host names.
    #[must_use]
    pub fn with_host_names(self, host_names: HostNames) -> HostedAccount {
        HostedAccount { host_names: Arc::new(host_names), ..self }
    }

    /// The faults of this account when it is used without sockets. Rules about ports have no effect.
    pub fn faults_without_ports(&self, clock: &Clock) -> Faults {
        self.faults(self.port_control(clock), clock.clone())
    }

    /// What opens and closes the ports of this account; it controls none yet.
    pub(crate) fn port_control(&self, clock: &Clock) -> Arc<PortControl> {
        let (rules, request_log) = (Arc::clone(&self.account_faults), Arc::clone(&self.request_log));
        Arc::new(PortControl::new(rules, request_log, clock.clone()))
    }

    /// The faults of this account, which also apply to `ports`.
    pub(crate) fn faults(&self, ports: Arc<PortControl>, clock: Clock) -> Faults {
        Faults::new(Arc::clone(&self.account), Arc::clone(&self.account_faults), ports, clock)
    }
}
