//! Who answered: the headers by which clients keep their sessions.

use http::HeaderValue;
use protocol::headers as name;
use protocol::lsn::Lsn;
use protocol::partition_range::RangeId;
use protocol::session_token::SessionToken;
use protocol::status::{Status, SubStatus};

use crate::catalog::ContainerEntry;
use crate::gateway::{Reply, RequestHeaders, ServedBy, ServiceError};
use crate::store::Partition;

/// The version of session tokens of an account whose regions never changed.
const TOKEN_VERSION: i64 = -1;

/// A partition at an LSN, as response headers state it.
pub(super) struct Served<'a> {
    container: &'a ContainerEntry,
    range_id: HeaderValue,
    session_token: HeaderValue,
    lsn: Lsn,
}

impl<'a> Served<'a> {
    pub(super) fn by(container: &'a ContainerEntry, partition: &Partition, lsn: Lsn) -> Served<'a> {
        let id = partition.identity.id;
        let token = format!("{id}:{TOKEN_VERSION}#{}", lsn.0);
        Served {
            container,
            range_id: HeaderValue::from(id),
            session_token: HeaderValue::try_from(token).expect("digits and signs are valid in a header"),
            lsn,
        }
    }

    /// Adds the headers to an answer.
    pub(super) fn reply(&self, reply: Reply) -> Reply {
        let served =
            ServedBy { range_id: &self.range_id, lsn: self.lsn.0, session_token: &self.session_token };
        reply.served_by(self.container, served)
    }

    /// Adds the headers to a refusal: a client learns from a 404 as well.
    pub(super) fn refusal(&self, refusal: ServiceError) -> ServiceError {
        refusal
            .with_header(name::SESSION_TOKEN, self.session_token.clone())
            .with_header(name::PARTITION_KEY_RANGE_ID, self.range_id.clone())
            .with_header(name::LSN, HeaderValue::from(self.lsn.0))
            .with_header(name::CONTENT_PATH, self.container.content_path.clone())
            .with_header(name::ALT_CONTENT_PATH, self.container.alt_content_path.clone())
    }
}

/// Refuses a read by a client that has already seen more than this partition has: 404/1002.
pub(super) fn check_session(
    headers: &RequestHeaders<'_>,
    partition: &Partition,
    lsn: Lsn,
) -> Result<(), ServiceError> {
    let Some(text) = RequestHeaders::text(headers.session_token, name::SESSION_TOKEN)? else { return Ok(()) };
    let seen = SessionToken::find(text, RangeId(partition.identity.id)).map_err(|error| {
        ServiceError::bad_request(format!("The session token provided '{text}' is invalid: {error}"))
    })?;
    match seen {
        Some(seen) if !seen.is_satisfied_by(TOKEN_VERSION, lsn) => Err(ServiceError::listed(
            Status::NOT_FOUND,
            "The read session is not available for the input session token.",
        )
        .with_sub_status(SubStatus::READ_SESSION_NOT_AVAILABLE)),
        _ => Ok(()),
    }
}
