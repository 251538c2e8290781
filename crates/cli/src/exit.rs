//! The errors of commands: each has an exit code, a message and, if possible, a hint what to do next.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | success, also after a stop by a signal |
//! | 1 | failure for a reason that is not listed here |
//! | 2 | the command line is invalid |
//! | 3 | a port is already in use |
//! | 4 | the system does not allow listening on the address |
//! | 5 | the control port or the account does not respond |
//! | 6 | the control port or the account rejected the request |
//! | 7 | some items were not imported, or some instances not purged or retried |
//! | 8 | the data directory cannot be opened |
//! | 9 | `peri chaos` found a violation of a guarantee |
//! | 130 | a signal interrupted `peri chaos`, or a second signal ended a stop |

use std::net::SocketAddr;
use std::process::ExitCode;

use emulator::{ListenerKind, StartError};

use crate::listening_process;
use crate::output;

const OTHER: u8 = 1;
const USAGE: u8 = 2;
const PORT_IN_USE: u8 = 3;
const CANNOT_LISTEN: u8 = 4;
const UNREACHABLE: u8 = 5;
const REJECTED: u8 = 6;
const PARTIAL: u8 = 7;
const CANNOT_OPEN: u8 = 8;
const GUARANTEE_VIOLATED: u8 = 9;
const INTERRUPTED: u8 = 130;

/// Why a command failed, and what to do about it.
#[derive(Debug)]
pub(crate) struct CommandError {
    code: u8,
    message: String,
    hint: Option<String>,
}

impl CommandError {
    /// An error without an exit code of its own.
    pub(crate) fn other(message: String) -> CommandError {
        CommandError { code: OTHER, message, hint: None }
    }

    /// The command line is invalid.
    pub(crate) fn usage(message: String) -> CommandError {
        CommandError { code: USAGE, message, hint: None }
    }

    /// The control port or the account does not respond.
    pub(crate) fn unreachable(message: String) -> CommandError {
        CommandError { code: UNREACHABLE, message, hint: None }
    }

    /// The control port or the account rejected the request for this reason.
    pub(crate) fn rejected(reason: &str) -> CommandError {
        CommandError { code: REJECTED, message: reason.to_owned(), hint: None }
    }

    /// A part of the work was done, and a part was not.
    pub(crate) fn partial(message: String) -> CommandError {
        CommandError { code: PARTIAL, message, hint: None }
    }

    /// A guarantee was violated in a chaos run.
    pub(crate) fn guarantee_violated(message: String) -> CommandError {
        CommandError { code: GUARANTEE_VIOLATED, message, hint: None }
    }

    /// A signal interrupted the command before there was a result.
    pub(crate) fn interrupted(message: String) -> CommandError {
        CommandError { code: INTERRUPTED, message, hint: None }
    }

    /// Adds a hint what to do next.
    pub(crate) fn hint(self, hint: &str) -> CommandError {
        CommandError { hint: Some(hint.to_owned()), ..self }
    }
}

impl From<StartError> for CommandError {
    fn from(error: StartError) -> CommandError {
        let message = error.to_string();
        match error {
            StartError::PortInUse { address, listener } => port_in_use(address, listener),
            StartError::CannotListen { address, .. } => {
                CommandError { code: CANNOT_LISTEN, message, hint: Some(listen_hint(address)) }
            }
            StartError::CannotOpen(error) => {
                CommandError { code: CANNOT_OPEN, message, hint: Some(error.advice().to_owned()) }
            }
            StartError::InvalidKey { .. } => CommandError {
                code: USAGE,
                message,
                hint: Some("omit --key and PERI_KEY to use the well-known emulator key".to_owned()),
            },
            _ => CommandError::other(message),
        }
    }
}

fn port_in_use(address: SocketAddr, listener: ListenerKind) -> CommandError {
    let option = match listener {
        ListenerKind::Control => "--control-port",
        _ => "--port",
    };
    let port = address.port();
    let process = match listening_process::find(port) {
        Some(process) => format!(" by {process}"),
        None => String::new(),
    };
    CommandError {
        code: PORT_IN_USE,
        message: format!("port {port} is already in use{process}, so {listener} cannot listen on {address}"),
        hint: Some(format!("stop that process, or choose another port: {option} 0 uses any free port")),
    }
}

fn listen_hint(address: SocketAddr) -> String {
    if address.port() != 0 && address.port() < 1024 {
        "ports below 1024 often need special rights; choose a higher port".to_owned()
    } else {
        "check --bind: it must be an address of this machine, for example 127.0.0.1".to_owned()
    }
}

/// Prints the error of a command, if it failed, and returns the exit code.
pub(crate) fn exit_code(result: Result<(), CommandError>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(CommandError { code, message, hint }) => {
            output::message(&format!("error: {message}"));
            if let Some(hint) = hint {
                output::message(&format!("hint: {hint}"));
            }
            ExitCode::from(code)
        }
    }
}

/// Prints help, the version, or what is wrong with the command line, and returns the exit code.
pub(crate) fn usage_exit_code(output: &clap::Error) -> ExitCode {
    // A closed pipe (`peri --help | head -1`) is not an error.
    let _closed_pipe = output.print();
    if output.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS }
}
