//! What every command that talks to an account takes.

use crate::account_client::ConnectionString;

/// Which account is meant.
#[derive(Debug, clap::Args)]
pub(crate) struct Account {
    /// Any account's connection string; without it, the account of `peri up` on its default port
    #[arg(long, env = "PERI_CONNECTION_STRING", value_name = "TEXT", hide_env_values = true)]
    connection_string: Option<String>,
}

impl Account {
    /// The connection string itself.
    pub(crate) fn text(&self) -> String {
        self.connection_string.clone().unwrap_or_else(ConnectionString::local_text)
    }

    /// Where it is, and the key to it.
    pub(crate) fn connection(&self) -> Result<ConnectionString, String> {
        match &self.connection_string {
            None => Ok(ConnectionString::local()),
            Some(text) => text.parse().map_err(|error| format!("this is no connection string: {error}")),
        }
    }
}
