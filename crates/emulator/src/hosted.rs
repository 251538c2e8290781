//! An account together with its injected faults and its request log.

use std::sync::Arc;

use clock::Clock;
use engine::account::Account;

use crate::access::AccessControl;
use crate::evaluation_pool::EvaluationPool;
use crate::faults::{AccountFaults, Faults, PortControl};
use crate::request_log::RequestLog;

/// An account, the faults that are injected into its requests, the log of those requests and the threads of
/// long ones. Clones share all of them.
#[derive(Clone, Debug)]
pub struct HostedAccount {
    /// The engine's account: regions, databases, containers, items.
    pub account: Arc<Account>,
    pub(crate) account_faults: Arc<AccountFaults>,
    pub(crate) request_log: Arc<RequestLog>,
    pub(crate) evaluation_pool: Arc<EvaluationPool>,
    pub(crate) access: Arc<AccessControl>,
}

impl HostedAccount {
    /// Hosts `account` without any fault. `seed` seeds the random numbers of faults that are injected later.
    pub fn new(account: Account, seed: u64) -> HostedAccount {
        let account = Arc::new(account);
        let account_faults = Arc::new(AccountFaults::new(Arc::clone(&account.regions), seed));
        HostedAccount {
            account,
            account_faults,
            request_log: Arc::default(),
            evaluation_pool: Arc::default(),
            access: Arc::default(),
        }
    }

    /// Changes who may reach the account. Without a call, it accepts the names of this machine's loopback interface,
    /// its primary key, and tokens of Microsoft Entra ID from anyone.
    #[must_use]
    pub fn with_access(self, access: AccessControl) -> HostedAccount {
        HostedAccount { access: Arc::new(access), ..self }
    }

    /// The faults of this account when it is used without sockets. Rules about ports have no effect.
    pub fn faults_without_ports(&self, clock: &Clock) -> Faults {
        let ports = PortControl::new(Arc::clone(&self.account_faults), clock.clone(), Vec::new());
        self.faults(Arc::new(ports), clock.clone())
    }

    /// The faults of this account, which also apply to `ports`.
    pub(crate) fn faults(&self, ports: Arc<PortControl>, clock: Clock) -> Faults {
        Faults::new(Arc::clone(&self.account), Arc::clone(&self.account_faults), ports, clock)
    }
}
