//! What every command that talks to an account takes.

use crate::account;

/// Which account is meant.
#[derive(Debug, clap::Args)]
pub(crate) struct Account {
    /// Any account's connection string; without it, the account of `peri up` on its default port
    #[arg(long, env = "PERI_CONNECTION_STRING", value_name = "TEXT", hide_env_values = true)]
    connection_string: Option<String>,
}

impl Account {
    /// The connection string of the account that is meant.
    pub(crate) fn text(&self) -> String {
        self.connection_string.clone().unwrap_or_else(account::local)
    }
}
