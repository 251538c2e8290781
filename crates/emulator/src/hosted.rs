//! An account together with its injected faults and its request log.

use std::sync::Arc;

use clock::Clock;
use engine::account::Account;

use crate::access::AccessControl;
use crate::advertised_hosts::AdvertisedHosts;
use crate::evaluation_pool::EvaluationPool;
use crate::faults::{AccountFaults, Faults, PortControl};
use crate::request_log::RequestLog;
use server::Bind;

/// An account, the faults that are injected into its requests, the log of those requests, the threads of long ones,
/// and its host names. Clones share all of them.
#[derive(Clone, Debug)]
pub struct HostedAccount {
    /// The engine's account: regions, databases, containers, items.
    pub account: Arc<Account>,
    pub(crate) account_faults: Arc<AccountFaults>,
    pub(crate) request_log: Arc<RequestLog>,
    /// What clients are told to connect to.
    pub(crate) advertised_hosts: Arc<AdvertisedHosts>,
    pub(crate) evaluation_pool: Arc<EvaluationPool>,
    pub(crate) access: Arc<AccessControl>,
}

impl HostedAccount {
    /// Hosts `account` without any fault. `seed` seeds the random numbers of faults that are injected later.
    pub fn new(account: Account, seed: u64) -> HostedAccount {
        let account = Arc::new(account);
        let account_faults = AccountFaults::new(Arc::clone(&account.regions), seed);
        let account_faults = Arc::new(account_faults.with_events(Arc::clone(&account.events)));
        HostedAccount {
            account,
            account_faults,
            request_log: Arc::default(),
            advertised_hosts: Arc::new(AdvertisedHosts::as_requested(Bind::Loopback)),
            evaluation_pool: Arc::default(),
            access: Arc::default(),
        }
    }

    /// The account with other host names.
    #[must_use]
    pub fn with_advertised_hosts(self, advertised_hosts: AdvertisedHosts) -> HostedAccount {
        HostedAccount { advertised_hosts: Arc::new(advertised_hosts), ..self }
    }

    /// Changes who may reach the account. Without a call, it accepts the names of this machine's loopback interface,
    /// its primary key, and tokens of Microsoft Entra ID from anyone.
    #[must_use]
    pub fn with_access(self, access: AccessControl) -> HostedAccount {
        HostedAccount { access: Arc::new(access), ..self }
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
