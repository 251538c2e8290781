//! The headers of the partition that served a request, by which clients keep their sessions.

use std::cell::RefCell;

use bytes::Bytes;
use http::HeaderValue;
use protocol::account::ConsistencyLevel;
use protocol::headers as name;
use protocol::partition_range::RangeId;
use protocol::session_token::{PartitionToken, SessionToken};
use protocol::status::{Status, SubStatus};

use crate::request::{Call, RequestHeaders};
use crate::response::{PartitionHeaders, QuotaUsage, Reply, ServiceError, ascii_value};
use engine::catalog::ContainerEntry;
use engine::store::{Partition, Progress};

/// A partition and its progress, for the headers of a response.
pub(super) struct PartitionResponse<'a> {
    container: &'a ContainerEntry,
    range_id: u32,
    token_version: i64,
    progress: Progress,
    usage: QuotaUsage,
}

impl<'a> PartitionResponse<'a> {
    pub(super) fn new(
        container: &'a ContainerEntry,
        partition: &Partition,
        progress: Progress,
    ) -> PartitionResponse<'a> {
        let (range_id, token_version) = (partition.identity.id, partition.identity.token_version);
        let state = partition.latest_head();
        let usage = QuotaUsage { items: state.len() as u64, bytes: state.bytes() };
        PartitionResponse { container, range_id, token_version, progress, usage }
    }

    fn headers(&self) -> PartitionHeaders<'_> {
        PartitionHeaders {
            content_path: &self.container.content_path,
            alt_content_path: &self.container.alt_content_path,
            range_id: self.range_id,
            token_version: self.token_version,
            read_regions: self.container.store.regions().saturating_sub(1),
            progress: &self.progress,
            usage: self.usage,
        }
    }

    /// The progress of the replica that served the request.
    pub(super) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Adds the partition headers to a reply.
    pub(super) fn add_headers(&self, reply: Reply) -> Reply {
        reply.partition_headers(self.headers())
    }

    /// The reply to a point read: 200 with an item, whose version is still to be set. Its headers are cloned
    /// from the last such reply if the partition has not changed since.
    pub(super) fn item_reply(&self, body: Bytes) -> Reply {
        TEMPLATES.with_borrow_mut(|templates| {
            let slot = &mut templates[self.template_slot()];
            if !slot.as_ref().is_some_and(|template| template.matches(self)) {
                *slot = Some(ReplyTemplate::new(self));
            }
            let template = slot.as_ref().expect("just filled");
            Reply { body, ..template.reply.clone() }
        })
    }

    fn template_slot(&self) -> usize {
        let container = self.container.rid.container;
        (container.wrapping_add(self.range_id)) as usize % TEMPLATES_MAX
    }

    /// Adds the partition headers to an error: a 404 also advances the session.
    pub(super) fn error(&self, error: ServiceError) -> ServiceError {
        error
            .with_header(name::SESSION_TOKEN, self.headers().session_token())
            .with_header(name::PARTITION_KEY_RANGE_ID, HeaderValue::from(self.range_id))
            .with_header(name::LSN, HeaderValue::from(self.progress.lsn.0))
            .with_header(name::CONTENT_PATH, ascii_value(&self.container.content_path))
            .with_header(name::ALT_CONTENT_PATH, ascii_value(&self.container.alt_content_path))
    }
}

/// Templates that a thread caches: one for each partition that is being read, unless there are many.
const TEMPLATES_MAX: usize = 16;

thread_local! {
    /// Per thread, including the values: a reference count that two cores share costs more than the value.
    static TEMPLATES: RefCell<[Option<ReplyTemplate>; TEMPLATES_MAX]> =
        const { RefCell::new([const { None }; TEMPLATES_MAX]) };
}

/// The reply to point reads of one partition until a write changes its progress. It is a pure function of the
/// values that it is compared by, so it needs no invalidation.
struct ReplyTemplate {
    content_path: Bytes,
    alt_content_path: Bytes,
    range_id: u32,
    token_version: i64,
    read_regions: usize,
    progress: Progress,
    usage: QuotaUsage,
    reply: Reply,
}

impl ReplyTemplate {
    fn new(partition_response: &PartitionResponse<'_>) -> ReplyTemplate {
        let copy = |text: &Bytes| Bytes::copy_from_slice(text);
        let (content_path, alt_content_path) = (
            copy(&partition_response.container.content_path),
            copy(&partition_response.container.alt_content_path),
        );
        let headers = PartitionHeaders {
            content_path: &content_path,
            alt_content_path: &alt_content_path,
            ..partition_response.headers()
        };
        let reply = Reply::item_template(headers);
        let PartitionHeaders { range_id, token_version, read_regions, .. } = partition_response.headers();
        let progress = partition_response.progress.clone();
        ReplyTemplate {
            content_path,
            alt_content_path,
            range_id,
            token_version,
            read_regions,
            progress,
            usage: partition_response.usage,
            reply,
        }
    }

    fn matches(&self, partition_response: &PartitionResponse<'_>) -> bool {
        self.progress == partition_response.progress
            && self.usage == partition_response.usage
            && self.range_id == partition_response.range_id
            // Another account in the same process may have a partition that is equal otherwise.
            && self.token_version == partition_response.token_version
            && self.read_regions == partition_response.headers().read_regions
            && self.content_path == partition_response.container.content_path
            && self.alt_content_path == partition_response.container.alt_content_path
    }
}

/// Rejects a read whose session token is ahead of this replica, 404/1002, and one that would violate bounded
/// staleness, 503, so that the client tries another region.
pub(super) fn check_session(
    call: &Call<'_>,
    partition: &Partition,
    progress: &Progress,
) -> Result<(), ServiceError> {
    if call.level == ConsistencyLevel::BoundedStaleness
        && partition.is_too_stale(call.read_context.region, call.uptime)
    {
        let message = "This region is staler than the account's bounded staleness allows: replication to it is paused. \
                       Read in another region or at a weaker level, or resume it.";
        return Err(ServiceError::backend(Status::SERVICE_UNAVAILABLE, message));
    }
    let token = RequestHeaders::text(call.headers.session_token, name::SESSION_TOKEN)?;
    let Some(text) = token.filter(|_| call.read_context.enforces_session_token) else { return Ok(()) };
    // The token may name a parent range, whose LSNs its children continue.
    for id in [partition.identity.id].iter().chain(&partition.parents) {
        let seen = SessionToken::find(text, RangeId(*id)).map_err(|error| {
            ServiceError::bad_request(format!("The session token provided '{text}' is invalid: {error}"))
        })?;
        if seen.is_some_and(|seen| !is_satisfied(&seen, partition.identity.token_version, progress)) {
            return Err(ServiceError::backend(
                Status::NOT_FOUND,
                "The read session is not available for the input session token.",
            )
            .with_sub_status(SubStatus::READ_SESSION_NOT_AVAILABLE));
        }
    }
    Ok(())
}

/// Rejects a session token that is malformed, whatever it would be used for.
pub(super) fn check_session_token(headers: &RequestHeaders<'_>) -> Result<(), ServiceError> {
    match RequestHeaders::text(headers.session_token, name::SESSION_TOKEN)? {
        Some(text) => SessionToken::parse(text).map(drop).map_err(|error| {
            ServiceError::bad_request(format!("The session token provided '{text}' is invalid: {error}"))
        }),
        None => Ok(()),
    }
}

/// Whether a replica has everything in a session token. In a multi-write account each region has LSNs of its
/// own, and the progress of each region's writes is compared.
fn is_satisfied(seen: &PartitionToken, version: i64, progress: &Progress) -> bool {
    if seen.version != version || seen.regions.is_empty() {
        return seen.is_satisfied_by(version, progress.lsn);
    }
    progress.versions.regions().all(|(region, arrived)| {
        let seen = seen.region(region).and_then(|progress| progress.lsn);
        seen.is_none_or(|seen| seen.0 <= arrived)
    })
}
