//! What a request without a response means: whether it was sent, and whether to try another connection.
//! Pure.
//!
//! In: the client's error and its record of the exchange. Out: a [`Failure`], and a decision.

use std::error::Error as StdError;
use std::io;
use std::iter::successors;
use std::time::Duration;

use azure_core::error::ErrorKind;
use perihelion_http::trace::{RequestTrace, Sent, Step};

/// Retries over other shards within one attempt. Beyond them the region itself fails, which is for the pipeline
/// to decide.
pub(super) const OTHER_SHARDS_MAX: u32 = 2;

/// A request that took longer than this is repeated in the same region at most once: the time is better spent in
/// another region.
const SLOW: Duration = Duration::from_secs(1);

/// Why there is no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// Whether the service may have acted on the request.
    pub sent: Sent,
    /// What kind of failure it was.
    pub kind: FailureKind,
}

/// Kinds of failure, by whether another connection may help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureKind {
    /// No connection could be made.
    Unreachable,
    /// A connection failed, or the peer did not process the request.
    Broken,
    /// Nothing came back in time.
    TimedOut,
    /// The request or the response is not valid: another connection would carry the same.
    Invalid,
}

impl Failure {
    /// Reads the error and the record. A client that reports is believed; of any other only what its error
    /// says for certain counts, and everything else may have been sent.
    pub(super) fn of(error: &azure_core::Error, exchange: &RequestTrace) -> Failure {
        let http_error = perihelion_http::Error::find_in(error);
        let reported =
            if *exchange != RequestTrace::default() { Some(exchange) } else { http_error.map(|e| e.trace()) };
        let sent = match reported {
            // A request that the peer did not process had no effect, though it was sent.
            Some(record) if record.safe_to_repeat() => Sent::NotSent,
            Some(record) => record.sent,
            None => guess_sent(error),
        };
        let kind = match http_error.map(perihelion_http::Error::kind) {
            Some(kind) => kind_of(kind),
            None => guess_kind(error, reported),
        };
        Failure { sent, kind }
    }
}

fn kind_of(kind: perihelion_http::ErrorKind) -> FailureKind {
    use perihelion_http::ErrorKind as Kind;
    match kind {
        Kind::Unreachable => FailureKind::Unreachable,
        Kind::TimedOut => FailureKind::TimedOut,
        Kind::Closed | Kind::Refused => FailureKind::Broken,
        Kind::Invalid | Kind::Untrusted | Kind::Malformed | Kind::RequestBody => FailureKind::Invalid,
        // A kind that a later version adds: a connection failed in some way.
        _ => FailureKind::Broken,
    }
}

/// An error of an azure_core client: its kind, and the error of the operating system if there is one inside.
fn guess_sent(error: &azure_core::Error) -> Sent {
    match error.kind() {
        ErrorKind::Connection | ErrorKind::Credential => Sent::NotSent,
        _ if is_before_connecting(error) => Sent::NotSent,
        _ => Sent::MaybeSent,
    }
}

fn guess_kind(error: &azure_core::Error, reported: Option<&RequestTrace>) -> FailureKind {
    let before_sending = |step| matches!(step, Step::Dns | Step::Connect | Step::Tls);
    match error.kind() {
        ErrorKind::Connection => FailureKind::Unreachable,
        _ if reported.and_then(|record| record.failed_step).is_some_and(before_sending) => {
            FailureKind::Unreachable
        }
        _ if is_before_connecting(error) => FailureKind::Unreachable,
        ErrorKind::Io if io_kind(error) == Some(io::ErrorKind::TimedOut) => FailureKind::TimedOut,
        ErrorKind::Io => FailureKind::Broken,
        _ => FailureKind::Invalid,
    }
}

/// Errors of the operating system that only connecting gives.
fn is_before_connecting(error: &azure_core::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        io_kind(error),
        Some(
            Kind::ConnectionRefused
                | Kind::AddrNotAvailable
                | Kind::HostUnreachable
                | Kind::NetworkUnreachable
        )
    )
}

fn io_kind(error: &azure_core::Error) -> Option<io::ErrorKind> {
    successors(Some(error as &(dyn StdError + 'static)), |error: &&(dyn StdError + 'static)| {
        let error: &(dyn StdError + 'static) = *error;
        error.source()
    })
    .find_map(|error| error.downcast_ref::<io::Error>())
    .map(io::Error::kind)
}

/// Whether to send the request again over another shard at once, `tries` of them having been made, the last
/// of which took `took`.
pub(super) fn try_another_shard(failure: Failure, idempotent: bool, tries: u32, took: Duration) -> bool {
    let safe = idempotent || failure.sent == Sent::NotSent;
    let tries_max = match failure.kind {
        FailureKind::Invalid => 0,
        // Connecting failed for one shard, so it will for the next, unless the endpoint has several fronts.
        FailureKind::Unreachable | FailureKind::TimedOut => 1,
        FailureKind::Broken => OTHER_SHARDS_MAX,
    };
    let tries_max = if took > SLOW { tries_max.min(1) } else { tries_max };
    safe && tries < tries_max
}

#[cfg(test)]
mod tests {
    use super::*;

    fn azure_error(kind: ErrorKind) -> azure_core::Error {
        azure_core::Error::with_message(kind, "an error of azure_core")
    }

    fn system(kind: io::ErrorKind) -> azure_core::Error {
        azure_core::Error::new(ErrorKind::Io, io::Error::from(kind)).with_context("sending")
    }

    fn http_error(kind: perihelion_http::ErrorKind, sent: Sent) -> (azure_core::Error, RequestTrace) {
        let mut record = RequestTrace::started();
        record.sent = sent;
        (perihelion_http::Error::new(kind, "https://one.example", record).into(), record)
    }

    #[test]
    fn an_azure_core_client_is_believed_only_where_its_error_is_unambiguous() {
        let cases = [
            (azure_error(ErrorKind::Connection), Sent::NotSent, FailureKind::Unreachable),
            (azure_error(ErrorKind::Io), Sent::MaybeSent, FailureKind::Broken),
            (azure_error(ErrorKind::DataConversion), Sent::MaybeSent, FailureKind::Invalid),
            (azure_error(ErrorKind::Other), Sent::MaybeSent, FailureKind::Invalid),
            (system(io::ErrorKind::ConnectionRefused), Sent::NotSent, FailureKind::Unreachable),
            (system(io::ErrorKind::NetworkUnreachable), Sent::NotSent, FailureKind::Unreachable),
            (system(io::ErrorKind::ConnectionReset), Sent::MaybeSent, FailureKind::Broken),
            (system(io::ErrorKind::BrokenPipe), Sent::MaybeSent, FailureKind::Broken),
            (system(io::ErrorKind::TimedOut), Sent::MaybeSent, FailureKind::TimedOut),
        ];
        for (error, sent, kind) in cases {
            assert_eq!(Failure::of(&error, &RequestTrace::default()), Failure { sent, kind }, "{error}");
        }
    }

    #[test]
    fn the_report_of_the_http_client_is_believed() {
        use perihelion_http::ErrorKind as Kind;
        for (http_kind, kind) in [
            (Kind::Unreachable, FailureKind::Unreachable),
            (Kind::Closed, FailureKind::Broken),
            (Kind::Refused, FailureKind::Broken),
            (Kind::TimedOut, FailureKind::TimedOut),
            (Kind::Malformed, FailureKind::Invalid),
            (Kind::Untrusted, FailureKind::Invalid),
        ] {
            for sent in [Sent::NotSent, Sent::MaybeSent, Sent::Sent] {
                let (error, record) = http_error(http_kind, sent);
                assert_eq!(Failure::of(&error, &record), Failure { sent, kind }, "{http_kind:?}");
                let unobserved = Failure::of(&error, &RequestTrace::default());
                assert_eq!(unobserved, Failure { sent, kind }, "its error says the same: {http_kind:?}");
            }
        }
    }

    #[test]
    fn a_request_that_the_peer_did_not_process_counts_as_not_sent() {
        let (error, mut record) = http_error(perihelion_http::ErrorKind::Refused, Sent::Sent);
        record.refused = true;
        assert_eq!(Failure::of(&error, &record).sent, Sent::NotSent);
    }

    #[test]
    fn another_shard_is_tried_where_that_is_safe_and_useful() {
        const QUICK: Duration = Duration::from_millis(5);
        const LONG: Duration = Duration::from_secs(6);
        use FailureKind::{Broken, Invalid, TimedOut, Unreachable};
        // sent, failure, idempotent, tries, took, again
        let cases = [
            (Sent::NotSent, Broken, false, 0, QUICK, true),
            (Sent::NotSent, Broken, false, 1, QUICK, true),
            (Sent::NotSent, Broken, false, 2, QUICK, false),
            (Sent::MaybeSent, Broken, false, 0, QUICK, false),
            (Sent::Sent, Broken, false, 0, QUICK, false),
            (Sent::MaybeSent, Broken, true, 0, QUICK, true),
            (Sent::Sent, Broken, true, 1, QUICK, true),
            (Sent::Sent, Broken, true, 1, LONG, false),
            (Sent::NotSent, Unreachable, true, 0, QUICK, true),
            (Sent::NotSent, Unreachable, true, 1, QUICK, false),
            (Sent::Sent, TimedOut, true, 0, LONG, true),
            (Sent::Sent, TimedOut, true, 1, LONG, false),
            (Sent::Sent, TimedOut, false, 0, LONG, false),
            (Sent::NotSent, Invalid, true, 0, QUICK, false),
        ];
        for (sent, kind, idempotent, tries, took, again) in cases {
            let failure = Failure { sent, kind };
            let decided = try_another_shard(failure, idempotent, tries, took);
            assert_eq!(decided, again, "{failure:?} idempotent: {idempotent}, {tries} tries, {took:?}");
        }
    }
}
