//! Reads as of a snapshot or an LSN, which a header requests.

use protocol::lsn::Lsn;

use crate::handlers::ItemRequest;
use crate::request::AS_OF;
use crate::request::RequestHeaders;
use crate::response::ServiceError;
use engine::query::Scope;

/// The state to read.
#[derive(Debug, PartialEq, Eq)]
enum AsOf<'a> {
    Snapshot(&'a str),
    Lsn(Lsn),
}

/// The scope with the partitions as of the requested state, or unchanged without the header.
pub(super) fn apply(request: &ItemRequest<'_>, scope: Scope) -> Result<Scope, ServiceError> {
    let Some(text) = RequestHeaders::text(request.call.headers.as_of, AS_OF)? else { return Ok(scope) };
    let bad_request = |message: String| ServiceError::bad_request(message);
    let partitions = match parse(text).map_err(bad_request)? {
        AsOf::Snapshot(name) => {
            let snapshot =
                request.call.account.snapshots.get(name).map_err(|error| bad_request(error.to_string()))?;
            let container = snapshot.container(request.container.rid).ok_or_else(|| {
                bad_request(format!("The snapshot '{name}' was taken before this container was made."))
            })?;
            container.views_over(&scope.within, request.call.read_context)
        }
        AsOf::Lsn(lsn) => {
            let [partition] = scope.partitions.as_slice() else {
                return Err(bad_request(
                    "An LSN belongs to one partition: name a partition key or a partition key range as well."
                        .to_owned(),
                ));
            };
            let replica = partition.at(lsn).ok_or_else(|| {
                bad_request(format!(
                    "The partition cannot be shown at LSN {lsn}: it is at {} and keeps a bounded history.",
                    partition.progress().lsn
                ))
            })?;
            vec![replica]
        }
    };
    Ok(Scope { partitions, ..scope })
}

fn parse(text: &str) -> Result<AsOf<'_>, String> {
    let bad = || {
        format!("The value '{text}' of the header {AS_OF} is invalid; use 'snapshot=NAME' or 'lsn=NUMBER'.")
    };
    match text.split_once('=').ok_or_else(bad)? {
        ("snapshot", name) => Ok(AsOf::Snapshot(name)),
        ("lsn", number) => number.parse().map(|lsn| AsOf::Lsn(Lsn(lsn))).map_err(|_| bad()),
        _ => Err(bad()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_named_by_a_snapshot_or_an_lsn() {
        assert_eq!(parse("snapshot=before=after"), Ok(AsOf::Snapshot("before=after")));
        assert_eq!(parse("lsn=42"), Ok(AsOf::Lsn(Lsn(42))));
        for text in ["", "42", "lsn=", "lsn=x", "time=3"] {
            assert!(parse(text).unwrap_err().contains("snapshot=NAME"), "{text}");
        }
    }
}
