//! The keys of an account beside its primary one: a secondary key, and keys that allow reading only.

use protocol::authorization::AccountKey;

/// The keys of an account beside its primary one.
#[derive(Clone, Debug, Default)]
pub struct AccountKeys {
    /// A second key with the rights of the primary one, so that clients can change keys one by one.
    pub secondary: Option<AccountKey>,
    /// Keys that sign reads only.
    pub read_only: Vec<AccountKey>,
}
