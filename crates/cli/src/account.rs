//! Accounts, as commands that move items reach them: through the client that any program has.

use std::error::Error as _;

use perihelion::{Account, ContainerClient, ContainerProperties, CosmosClient, Error, ErrorKind};
use protocol::authorization::EMULATOR_KEY;

use crate::arguments::ContainerPath;
use crate::exit::Failure;

/// Where `peri up` listens unless it is told otherwise.
const LOCAL_ENDPOINT: &str = "http://localhost:8081";

/// The connection string of a `peri up` that was told nothing.
pub(crate) fn local() -> String {
    format!("AccountEndpoint={LOCAL_ENDPOINT}/;AccountKey={EMULATOR_KEY};")
}

/// The account of a connection string. Nothing is sent yet.
pub(crate) fn client(connection_string: &str) -> Result<CosmosClient, Failure> {
    let usage = |error: Error| Failure::usage(format!("this is no connection string: {}", error.message()));
    let account = Account::from_connection_string(connection_string).map_err(usage)?;
    CosmosClient::builder(account).application("peri").build().map_err(|error| Failure::usage(reason(&error)))
}

/// A container of it, whether or not there is one.
pub(crate) fn container(client: &CosmosClient, path: &ContainerPath) -> ContainerClient {
    client.database(&path.database).container(&path.container)
}

/// What a container is, or nothing if there is none.
pub(crate) async fn properties(container: &ContainerClient) -> Result<Option<ContainerProperties>, Failure> {
    match container.read().await {
        Ok(found) => Ok(Some(found.into_value())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failure(&error)),
    }
}

/// Why an account did not do what was asked: its words, and the status where it gave one.
pub(crate) fn reason(error: &Error) -> String {
    match (error.status(), error.sub_status()) {
        (None, _) => error.message().to_owned(),
        (Some(status), sub_status) if sub_status.is_none() => format!("{}: {}", status.0, error.message()),
        (Some(status), sub_status) => format!("{}/{sub_status}: {}", status.0, error.message()),
    }
}

/// How a command ends that an account failed.
pub(crate) fn failure(error: &Error) -> Failure {
    let reason = reason(error);
    match error.kind() {
        // Its certificate is not trusted: nothing that was typed is wrong.
        ErrorKind::Configuration if error.source().is_some() => Failure::unreachable(&reason),
        ErrorKind::Configuration => Failure::usage(reason),
        ErrorKind::Unauthenticated => {
            Failure::refused(&reason).hint("check the key in --connection-string or PERI_CONNECTION_STRING")
        }
        ErrorKind::BadResponse => Failure::other(format!("this is no answer of an account: {reason}")),
        kind if kind.is_transient() && error.status().is_none() => Failure::unreachable(&reason),
        _ => Failure::refused(&reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_local_account_is_one() {
        assert!(client(&local()).is_ok());
    }

    #[test]
    fn what_is_no_connection_string_is_said_without_its_secrets() {
        let failure = client("Endpoint=sb://h;SharedAccessKey=secret").expect_err("another service's");
        let text = format!("{failure:?}");
        assert!(text.contains("no connection string") && !text.contains("secret"), "{text}");
    }

    #[test]
    fn a_reason_has_the_status_that_was_answered() {
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
