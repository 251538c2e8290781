//! The options of every command that uses an account.

use protocol::authorization::EMULATOR_KEY;

/// The endpoint of `peri up` with its default port.
const LOCAL_ENDPOINT: &str = "http://localhost:8081";

/// The account that a command uses.
#[derive(Debug, clap::Args)]
pub(crate) struct AccountOptions {
    /// Connection string of the account [default: that of `peri up` on its default port]
    #[arg(long, env = "PERI_CONNECTION_STRING", value_name = "TEXT", hide_env_values = true)]
    connection_string: Option<String>,
}

impl AccountOptions {
    /// The connection string that was given, or that of the local account.
    pub(crate) fn connection_string(&self) -> String {
        self.connection_string
            .clone()
            .unwrap_or_else(|| format!("AccountEndpoint={LOCAL_ENDPOINT}/;AccountKey={EMULATOR_KEY};"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_local_account_has_a_valid_connection_string() {
        let text = AccountOptions { connection_string: None }.connection_string();
        assert!(perihelion::Account::from_connection_string(&text).is_ok(), "{text}");
    }
}
