//! Why an operator's request failed.

use std::fmt;

use crate::error::Failure;

/// Why an operator's request failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum OperatorError {
    /// The account has no database with this id.
    NoDatabase {
        /// The id of the database.
        database: String,
    },
    /// The database has no container with this id.
    NoContainer {
        /// The id of the database.
        database: String,
        /// The id of the container.
        container: String,
    },
    /// The container has neither an instance with this id nor messages to it.
    NoInstance {
        /// The id of the instance.
        instance: String,
    },
    /// What was asked for is not possible, for the reason in the text.
    Refused(String),
    /// A request to the account failed.
    Request(Box<perihelion::Error>),
}

impl From<Failure> for OperatorError {
    fn from(failure: Failure) -> OperatorError {
        match failure {
            Failure::Request(error) => OperatorError::Request(error),
            other @ Failure::Invalid(_) => OperatorError::Refused(other.to_string()),
        }
    }
}

impl From<perihelion::Error> for OperatorError {
    fn from(error: perihelion::Error) -> OperatorError {
        OperatorError::Request(Box::new(error))
    }
}

impl fmt::Display for OperatorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OperatorError::NoDatabase { database } => write!(f, "the account has no database {database:?}"),
            OperatorError::NoContainer { database, container } => {
                write!(f, "the database {database:?} has no container {container:?}")
            }
            OperatorError::NoInstance { instance } => {
                write!(f, "there is no instance {instance:?}, and no message to it")
            }
            OperatorError::Refused(message) => f.write_str(message),
            OperatorError::Request(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for OperatorError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            OperatorError::Request(error) => Some(error),
            _ => None,
        }
    }
}
