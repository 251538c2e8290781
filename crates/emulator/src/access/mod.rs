//! Who may reach an account: by which host names, with which keys, and with which tokens of Microsoft Entra ID.
//!
//! Input: the settings of the account. Output: one [`AccessControl`] that all its regions share. What an
//! authenticated sender may do is decided in `request`.

mod account_keys;
mod entra;
mod host_names;
mod json_web_keys;

pub use account_keys::AccountKeys;
pub use entra::EntraTokens;
pub(crate) use entra::JwtError;
pub(crate) use host_names::ForeignRequest;
pub use host_names::HostNames;
pub use json_web_keys::{JsonWebKeys, JsonWebKeysError};

/// The rules by which requests are let in, shared by all regions of an account.
#[derive(Clone, Debug, Default)]
pub struct AccessControl {
    /// The host names that requests may be addressed to.
    pub host_names: HostNames,
    /// The keys of the account beside its primary one.
    pub keys: AccountKeys,
    /// Which tokens of Microsoft Entra ID are accepted.
    pub entra: EntraTokens,
}
