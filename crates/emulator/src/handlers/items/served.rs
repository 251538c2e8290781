//! Who answered: the headers by which clients keep their sessions.

use std::cell::RefCell;

use bytes::Bytes;
use http::HeaderValue;
use protocol::account::ConsistencyLevel;
use protocol::headers as name;
use protocol::partition_range::RangeId;
use protocol::session_token::{PartitionToken, SessionToken};
use protocol::status::{Status, SubStatus};

use crate::request::{Call, RequestHeaders};
use crate::response::{Reply, ServedBy, ServiceError, ascii_value};
use engine::catalog::ContainerEntry;
use engine::store::{Partition, Progress};

/// A partition at an LSN, as response headers state it.
pub(super) struct Served<'a> {
    container: &'a ContainerEntry,
    range_id: u32,
    token_version: i64,
    reach: Progress,
}

impl<'a> Served<'a> {
    pub(super) fn by(container: &'a ContainerEntry, partition: &Partition, reach: Progress) -> Served<'a> {
        let (range_id, token_version) = (partition.identity.id, partition.identity.token_version);
        Served { container, range_id, token_version, reach }
    }

    fn headers(&self) -> ServedBy<'_> {
        ServedBy {
            content_path: &self.container.content_path,
            alt_content_path: &self.container.alt_content_path,
            range_id: self.range_id,
            token_version: self.token_version,
            read_regions: self.container.store.regions().saturating_sub(1),
            reach: &self.reach,
        }
    }

    /// How far it was.
    pub(super) fn reach(&self) -> &Progress {
        &self.reach
    }

    /// Adds the headers to an answer.
    pub(super) fn reply(&self, reply: Reply) -> Reply {
        reply.served_by(self.headers())
    }

    /// 200 with an item; its version is still to be set. The answer to every point read, so its
    /// headers are copied from the last such answer where that was about the same state.
    pub(super) fn item(&self, body: Bytes) -> Reply {
        TEMPLATES.with_borrow_mut(|templates| {
            let slot = &mut templates[self.slot()];
            if !slot.as_ref().is_some_and(|template| template.fits(self)) {
                *slot = Some(Template::new(self));
            }
            let template = slot.as_ref().expect("just filled");
            Reply { body, ..template.reply.clone() }
        })
    }

    fn slot(&self) -> usize {
        let container = self.container.rid.container;
        (container.wrapping_add(self.range_id)) as usize % TEMPLATES_MAX
    }

    /// Adds the headers to a refusal: a client learns from a 404 as well.
    pub(super) fn refusal(&self, refusal: ServiceError) -> ServiceError {
        refusal
            .with_header(name::SESSION_TOKEN, self.headers().session_token())
            .with_header(name::PARTITION_KEY_RANGE_ID, HeaderValue::from(self.range_id))
            .with_header(name::LSN, HeaderValue::from(self.reach.lsn.0))
            .with_header(name::CONTENT_PATH, ascii_value(&self.container.content_path))
            .with_header(name::ALT_CONTENT_PATH, ascii_value(&self.container.alt_content_path))
    }
}

/// Templates a thread remembers: one for each partition that is being read, unless there are many.
const TEMPLATES_MAX: usize = 16;

thread_local! {
    /// Each thread has its own, values included: counting the users of a value that two cores share
    /// costs more than the value.
    static TEMPLATES: RefCell<[Option<Template>; TEMPLATES_MAX]> =
        const { RefCell::new([const { None }; TEMPLATES_MAX]) };
}

/// The answer to point reads of one partition as long as nothing is written to it. A pure function of
/// the values it is recognised by, so it needs no one to invalidate it.
struct Template {
    content_path: Bytes,
    alt_content_path: Bytes,
    range_id: u32,
    token_version: i64,
    read_regions: usize,
    reach: Progress,
    reply: Reply,
}

impl Template {
    fn new(served: &Served<'_>) -> Template {
        let copy = |text: &Bytes| Bytes::copy_from_slice(text);
        let (content_path, alt_content_path) =
            (copy(&served.container.content_path), copy(&served.container.alt_content_path));
        let headers =
            ServedBy { content_path: &content_path, alt_content_path: &alt_content_path, ..served.headers() };
        let reply = Reply::item_template(headers);
        let ServedBy { range_id, token_version, read_regions, .. } = served.headers();
        let reach = served.reach.clone();
        Template { content_path, alt_content_path, range_id, token_version, read_regions, reach, reply }
    }

    fn fits(&self, served: &Served<'_>) -> bool {
        self.reach == served.reach
            && self.range_id == served.range_id
            // Another account of the same process may have a partition like this one in all else.
            && self.token_version == served.token_version
            && self.read_regions == served.headers().read_regions
            && self.content_path == served.container.content_path
            && self.alt_content_path == served.container.alt_content_path
    }
}

/// Refuses a read by a client that has already seen more than this partition has, 404/1002, and one that
/// would be shown less than bounded staleness promises, 503: another region has it.
pub(super) fn check_session(
    call: &Call<'_>,
    partition: &Partition,
    reach: &Progress,
) -> Result<(), ServiceError> {
    if call.level == ConsistencyLevel::BoundedStaleness
        && partition.is_too_stale(call.vantage.region, call.uptime)
    {
        let message = "This region is staler than the account's bounded staleness allows: replication to it is paused. \
                       Read in another region or at a weaker level, or resume it.";
        return Err(ServiceError::listed(Status::SERVICE_UNAVAILABLE, message));
    }
    let token = RequestHeaders::text(call.headers.session_token, name::SESSION_TOKEN)?;
    let Some(text) = token.filter(|_| call.vantage.enforces_session_token) else { return Ok(()) };
    // A client may still know a parent, whose LSNs its children go on from, and know it better.
    for id in [partition.identity.id].iter().chain(&partition.parents) {
        let seen = SessionToken::find(text, RangeId(*id)).map_err(|error| {
            ServiceError::bad_request(format!("The session token provided '{text}' is invalid: {error}"))
        })?;
        if seen.is_some_and(|seen| !is_satisfied(&seen, partition.identity.token_version, reach)) {
            return Err(ServiceError::listed(
                Status::NOT_FOUND,
                "The read session is not available for the input session token.",
            )
            .with_sub_status(SubStatus::READ_SESSION_NOT_AVAILABLE));
        }
    }
    Ok(())
}

/// Whether a copy has all that was seen. Where several regions write, each has LSNs of its own, and
/// what counts is how much of each region's writes has arrived.
fn is_satisfied(seen: &PartitionToken, version: i64, reach: &Progress) -> bool {
    if seen.version != version || seen.regions.is_empty() {
        return seen.is_satisfied_by(version, reach.lsn);
    }
    reach.versions.regions().all(|(region, arrived)| {
        let seen = seen.region(region).and_then(|progress| progress.lsn);
        seen.is_none_or(|seen| seen.0 <= arrived)
    })
}
