//! An account as the emulator serves it.

use std::sync::Arc;

use engine::account::Account;

use crate::faults::FaultSet;
use crate::sight::Sight;

/// An account, the faults that are injected into its requests, and the log of those requests. Clones
/// share all three.
#[derive(Clone, Debug)]
pub struct HostedAccount {
    /// The engine's account: regions, databases, containers, items.
    pub account: Arc<Account>,
    pub(crate) faults: Arc<FaultSet>,
    pub(crate) sight: Arc<Sight>,
}

impl HostedAccount {
    /// Serves `account` without any fault. Random faults that are injected later are drawn from `seed`.
    pub fn new(account: Account, seed: u64) -> HostedAccount {
        let account = Arc::new(account);
        let faults = Arc::new(FaultSet::new(Arc::clone(&account.regions), seed));
        HostedAccount { account, faults, sight: Arc::default() }
    }
}
