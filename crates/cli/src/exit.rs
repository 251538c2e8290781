//! How it ends: an error's kind becomes an exit code and a helpful last line.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | ended as asked, also by a signal |
//! | 1 | failed for a reason not listed here |
//! | 2 | the command line makes no sense |
//! | 3 | a port is already in use |
//! | 4 | the system does not let it listen there |
//! | 5 | nothing answers on the control port or at the account |
//! | 6 | the running `peri up` or the account refused what was asked |
//! | 7 | some items were not imported |
//! | 8 | the data directory cannot be opened |
//! | 9 | a promise was broken under `peri chaos` |
//! | 130 | a signal cut it short: a run of `peri chaos`, or the stop that another signal had asked for |

use std::net::SocketAddr;
use std::process::ExitCode;

use emulator::{ListenerKind, StartError};

use crate::output;
use crate::port_holder;

const OTHER: u8 = 1;
const USAGE: u8 = 2;
const PORT_IN_USE: u8 = 3;
const CANNOT_LISTEN: u8 = 4;
const NOT_RUNNING: u8 = 5;
const REFUSED: u8 = 6;
const PARTIAL: u8 = 7;
const CANNOT_OPEN: u8 = 8;
const BROKEN: u8 = 9;
const INTERRUPTED: u8 = 130;

/// Why a command failed, and what to do about it.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
    hint: Option<String>,
}

impl Failure {
    /// A failure without a code of its own.
    pub(crate) fn other(message: String) -> Failure {
        Failure { code: OTHER, message, hint: None }
    }

    /// What was typed cannot be meant.
    pub(crate) fn usage(message: String) -> Failure {
        Failure { code: USAGE, message, hint: None }
    }

    /// Nothing answers where the control port should be.
    pub(crate) fn not_running(authority: &str, reason: &str) -> Failure {
        let message = format!("nothing answers at http://{authority}: {reason}");
        let hint =
            "start it with `peri up`; if it runs, --control or PERI_CONTROL says where its control port is";
        Failure { code: NOT_RUNNING, message, hint: Some(hint.to_owned()) }
    }

    /// No account answers.
    pub(crate) fn unreachable(reason: &str) -> Failure {
        let message = format!("the account does not answer: {reason}");
        let hint = "start it with `peri up`, or say which account is meant with --connection-string";
        Failure { code: NOT_RUNNING, message, hint: Some(hint.to_owned()) }
    }

    /// The control port or the account said no, and why.
    pub(crate) fn refused(reason: &str) -> Failure {
        Failure { code: REFUSED, message: reason.to_owned(), hint: None }
    }

    /// Some of what was asked was done, and some was not.
    pub(crate) fn partial(message: String) -> Failure {
        Failure { code: PARTIAL, message, hint: None }
    }

    /// What was promised did not hold.
    pub(crate) fn broken(message: String) -> Failure {
        Failure { code: BROKEN, message, hint: None }
    }

    /// A signal came before there was a result.
    pub(crate) fn interrupted(message: String) -> Failure {
        Failure { code: INTERRUPTED, message, hint: None }
    }

    /// Adds what to do next.
    pub(crate) fn hint(self, hint: &str) -> Failure {
        Failure { hint: Some(hint.to_owned()), ..self }
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Failure {
        let message = error.to_string();
        match error {
            StartError::PortInUse { address, listener } => port_in_use(address, listener),
            StartError::CannotListen { address, .. } => {
                Failure { code: CANNOT_LISTEN, message, hint: Some(listen_hint(address)) }
            }
            StartError::CannotOpen(error) => {
                Failure { code: CANNOT_OPEN, message, hint: Some(error.advice().to_owned()) }
            }
            StartError::InvalidKey { .. } => Failure {
                code: USAGE,
                message,
                hint: Some("leave --key and PERI_KEY out to use the well-known emulator key".to_owned()),
            },
            _ => Failure::other(message),
        }
    }
}

fn port_in_use(address: SocketAddr, listener: ListenerKind) -> Failure {
    let option = match listener {
        ListenerKind::Control => "--control-port",
        _ => "--port",
    };
    let port = address.port();
    let holder = match port_holder::find(port) {
        Some(holder) => format!(" by {holder}"),
        None => String::new(),
    };
    Failure {
        code: PORT_IN_USE,
        message: format!("port {port} is already in use{holder}, so {listener} cannot listen on {address}"),
        hint: Some(format!("stop that process, or choose another port: {option} 0 takes any that is free")),
    }
}

fn listen_hint(address: SocketAddr) -> String {
    if address.port() != 0 && address.port() < 1024 {
        "ports below 1024 often need special rights; choose a higher one".to_owned()
    } else {
        "check --bind: it must be an address of this machine; 127.0.0.1 always is".to_owned()
    }
}

/// The code of a command that ended, after saying why if it failed.
pub(crate) fn after(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { code, message, hint }) => {
            output::message(&format!("error: {message}"));
            if let Some(hint) = hint {
                output::message(&format!("hint: {hint}"));
            }
            ExitCode::from(code)
        }
    }
}

/// The code after help, the version, or a command line that could not be understood.
pub(crate) fn after_usage(answer: &clap::Error) -> ExitCode {
    // A closed pipe (`peri --help | head -1`) is not an error.
    let _ = answer.print();
    if answer.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS }
}
