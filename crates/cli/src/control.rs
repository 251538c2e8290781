//! Requests of commands to the control port of a running `peri up`, and the output of their responses.

use control_client::{ControlClient, ControlError, ControlErrorKind};
use serde::Serialize;
use serde_json::Value;

use crate::arguments::ControlOptions;
use crate::exit::CommandError;
use crate::output;

/// A blocking connection to the control port of a running `peri up`.
#[derive(Debug)]
pub(crate) struct ControlPort {
    runtime: tokio::runtime::Runtime,
    client: ControlClient,
    json: bool,
}

impl ControlPort {
    /// Nothing is sent yet.
    pub(crate) fn of(options: &ControlOptions) -> Result<ControlPort, CommandError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| CommandError::other(format!("cannot wait for sockets: {error}")))?;
        let client = client(&options.url, options.control_token.as_deref())?;
        Ok(ControlPort { runtime, client, json: options.json })
    }

    /// Sends `GET path` and returns the JSON of the response.
    pub(crate) fn get(&self, path: &str) -> Result<Value, CommandError> {
        Ok(self.runtime.block_on(self.client.get(path))?)
    }

    /// Sends `POST path` with `body` and returns the JSON of the response.
    pub(crate) fn post(&self, path: &str, body: &impl Serialize) -> Result<Value, CommandError> {
        Ok(self.runtime.block_on(self.client.post(path, body))?)
    }

    /// Sends `DELETE path` and returns the JSON of the response.
    pub(crate) fn delete(&self, path: &str) -> Result<Value, CommandError> {
        Ok(self.runtime.block_on(self.client.delete(path))?)
    }

    /// Prints a response: as JSON with `--json`, otherwise as the text that `text` makes of it.
    pub(crate) fn show(&self, response: &Value, text: impl FnOnce(&Value) -> String) {
        if self.json {
            output::json(response);
        } else {
            output::data(&text(response));
        }
    }
}

/// A client of the control port at `url`, which may need a token. Nothing is sent yet.
pub(crate) fn client(url: &str, token: Option<&str>) -> Result<ControlClient, CommandError> {
    let client = ControlClient::new(url)?;
    Ok(match token {
        Some(token) => client.with_token(token)?,
        None => client,
    })
}

/// The hint where `--control` applies: the command line says how to name another control port.
const UNREACHABLE_HINT: &str =
    "start it with `peri up`; if it runs, give the URL of its control port with --control or PERI_CONTROL";

impl From<ControlError> for CommandError {
    fn from(error: ControlError) -> CommandError {
        let message = error.message().to_owned();
        let command_error = match error.kind() {
            ControlErrorKind::InvalidUrl => CommandError::usage(format!("--control: {message}")),
            ControlErrorKind::Unreachable => {
                return CommandError::unreachable(message).hint(UNREACHABLE_HINT);
            }
            ControlErrorKind::Rejected => CommandError::rejected(&message),
            _ => CommandError::other(message),
        };
        match error.hint() {
            Some(hint) => command_error.hint(hint),
            None => command_error,
        }
    }
}

/// A value of a response as a person reads it, in one line; empty if it is absent.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => output::printable(text).into_owned(),
        other => output::printable(&other.to_string()).into_owned(),
    }
}

/// The entries of a list; none if the value is not a list.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
