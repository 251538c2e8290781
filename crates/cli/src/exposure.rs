//! What an account needs before machines other than this one may connect to it. Pure.
//!
//! The well-known key protects nothing, and whoever reaches the control port can change and read everything. So both
//! need a decision of the user.

use emulator::{Bind, WELL_KNOWN_KEY};

use crate::exit::CommandError;

/// Refuses to listen beyond this machine without a key and a token for the control port that the user chose. Returns
/// warnings about what was chosen.
pub(crate) fn check(
    bind: Bind,
    key: Option<&str>,
    control_token: Option<&str>,
) -> Result<Vec<String>, CommandError> {
    if bind.is_loopback() {
        return Ok(Vec::new());
    }
    let address = bind.primary();
    let Some(key) = key else {
        let message = format!(
            "--bind {address} lets other machines connect, and everyone knows the key of the emulator"
        );
        return Err(CommandError::usage(message)
            .hint("choose a key with --key or PERI_KEY; if everyone may use the account, give the well-known key there"));
    };
    if control_token.is_none() {
        let message =
            format!("--bind {address} opens the control port to other machines, and it has no token");
        return Err(CommandError::usage(message)
            .hint("choose a token with --control-token or PERI_CONTROL_TOKEN, for `peri up` and for the other commands"));
    }
    let mut warnings = Vec::new();
    if key.trim() == WELL_KNOWN_KEY {
        warnings.push(format!(
            "everyone who can connect to {address} can use the account: its key is the well-known one"
        ));
    }
    Ok(warnings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_machines_may_connect_if_the_user_chose_a_key_and_a_token() {
        let check = |bind: &str, key, token| check(bind.parse().unwrap(), key, token);
        for loopback in ["127.0.0.1", "localhost", "::1", "127.0.0.9"] {
            assert!(check(loopback, None, None).is_ok_and(|warnings| warnings.is_empty()), "{loopback}");
        }
        for beyond in ["0.0.0.0", "::", "192.168.1.7"] {
            assert!(check(beyond, None, Some("t")).is_err(), "{beyond}");
            assert!(check(beyond, Some("a2V5"), None).is_err(), "{beyond}");
            assert!(check(beyond, Some("a2V5"), Some("t")).is_ok_and(|warnings| warnings.is_empty()));
            let warnings = check(beyond, Some(WELL_KNOWN_KEY), Some("t")).unwrap();
            assert!(warnings[0].contains("well-known"), "{warnings:?}");
        }
    }
}
