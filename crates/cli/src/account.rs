//! The account that commands import into and export from, through the client of any Rust program.

use std::error::Error as _;

use perihelion::{Account, ContainerClient, ContainerProperties, CosmosClient, Error, ErrorKind};

use crate::arguments::ContainerPath;
use crate::exit::CommandError;

/// A client of the account of a connection string. Nothing is sent yet.
pub(crate) fn client(connection_string: &str) -> Result<CosmosClient, CommandError> {
    let usage =
        |error: Error| CommandError::usage(format!("the connection string is invalid: {}", error.message()));
    let account = Account::from_connection_string(connection_string).map_err(usage)?;
    CosmosClient::builder(account)
        .application("peri")
        .build()
        .map_err(|error| CommandError::usage(reason(&error)))
}

/// The client of a container, which need not exist.
pub(crate) fn container(client: &CosmosClient, path: &ContainerPath) -> ContainerClient {
    client.database(&path.database).container(&path.container)
}

/// The properties of a container; none if it does not exist.
pub(crate) async fn properties(
    container: &ContainerClient,
) -> Result<Option<ContainerProperties>, CommandError> {
    match container.read().await {
        Ok(found) => Ok(Some(found.into_value())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(command_error(&error)),
    }
}

/// The message of an error, with the status of the response if there was one.
pub(crate) fn reason(error: &Error) -> String {
    match (error.status(), error.sub_status()) {
        (None, _) => error.message().to_owned(),
        (Some(status), sub_status) if sub_status.is_none() => format!("{}: {}", status.0, error.message()),
        (Some(status), sub_status) => format!("{}/{sub_status}: {}", status.0, error.message()),
    }
}

/// The error of a command whose request to the account failed.
pub(crate) fn command_error(error: &Error) -> CommandError {
    let reason = reason(error);
    match error.kind() {
        // The certificate of the account is not trusted; the command line is valid.
        ErrorKind::Configuration if error.source().is_some() => unreachable(&reason),
        ErrorKind::Configuration => CommandError::usage(reason),
        ErrorKind::Unauthenticated => CommandError::rejected(&reason)
            .hint("check the key in --connection-string or PERI_CONNECTION_STRING"),
        ErrorKind::BadResponse => {
            CommandError::other(format!("the response is not that of an account: {reason}"))
        }
        kind if kind.is_transient() && error.status().is_none() => unreachable(&reason),
        _ => CommandError::rejected(&reason),
    }
}

fn unreachable(reason: &str) -> CommandError {
    CommandError::unreachable(format!("the account does not respond: {reason}"))
        .hint("start it with `peri up`, or name another account with --connection-string")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_an_invalid_connection_string_does_not_contain_its_secrets() {
        let error = client("Endpoint=sb://h;SharedAccessKey=secret").expect_err("that of another service");
        let text = format!("{error:?}");
        assert!(text.contains("connection string is invalid") && !text.contains("secret"), "{text}");
    }

    #[test]
    fn a_reason_has_the_status_of_the_response() {
        use protocol::status::{Status, SubStatus};
        let error = Error::new(ErrorKind::BadRequest, "no");
        for (error, expected) in [
            (error.clone(), "no"),
            (error.clone().with_status(Status(400), SubStatus::NONE), "400: no"),
            (error.with_status(Status(400), SubStatus(1001)), "400/1001: no"),
        ] {
            assert_eq!(reason(&error), expected);
        }
    }
}
