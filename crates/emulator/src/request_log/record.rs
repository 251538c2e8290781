//! One record of the request log: a request, when it arrived, and a summary of its response.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method};
use protocol::headers as name;
use smol_str::SmolStr;

use super::inline_text::InlineText;
use engine::regions::RegionId;

/// Bytes of a user agent that are recorded.
const USER_AGENT_BYTES_MAX: usize = 256;

/// Path text; the inline length suits most items: some bytes for each name, and a GUID.
pub(crate) type PathText = InlineText<78>;
/// Activity id text; the inline length suits a GUID.
pub(crate) type ActivityText = InlineText<38>;

/// What is recorded of a request when it arrives.
#[derive(Debug)]
pub(crate) struct RequestArrival {
    uptime: Duration,
    method: Method,
    path: PathText,
    user_agent: Arc<str>,
}

/// Recorded as the status when the connection ended before the response.
pub(crate) const STATUS_UNANSWERED: u16 = 499;

/// The operation label of a connection that was cut off before there was a request.
pub(super) const CONNECTION_OPERATION: &str = "connection";

/// How a fault cut a connection off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CutConnection {
    /// It was open, and was reset.
    Reset,
    /// Nothing is read from it, and nothing is written to it.
    Swallowed,
}

impl CutConnection {
    /// The status that is recorded for it.
    pub(super) fn status(self) -> u16 {
        match self {
            CutConnection::Reset => 0,
            CutConnection::Swallowed => STATUS_UNANSWERED,
        }
    }
}

/// What is recorded of a response, without its body.
#[derive(Clone, Debug)]
pub(crate) struct ResponseSummary {
    /// The label of the operation; `unknown` when the request failed before it was routed.
    pub(crate) operation: &'static str,
    /// Zero when the connection was closed instead; [`STATUS_UNANSWERED`] when it ended before that.
    pub(crate) status: u16,
    pub(crate) sub_status: u32,
    pub(crate) charge: f64,
    pub(crate) activity: ActivityText,
    pub(crate) partition: Option<ServingPartition>,
    /// The fault rules that touched it, in order.
    pub(crate) rules: Vec<SmolStr>,
}

/// The partition that served a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServingPartition {
    /// The container as `dbs/{database}/colls/{container}`.
    pub(crate) container: HeaderValue,
    pub(crate) range: u32,
}

impl ServingPartition {
    /// Reads the partition from response headers.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Option<ServingPartition> {
        let range = headers.get(name::PARTITION_KEY_RANGE_ID)?.to_str().ok()?.parse().ok()?;
        Some(ServingPartition { container: headers.get(name::ALT_CONTENT_PATH)?.clone(), range })
    }
}

/// A request and its response.
#[derive(Clone, Debug)]
pub(crate) struct RequestRecord {
    /// Counts all requests of the account, from 1.
    pub(crate) number: u64,
    /// When the response was ready.
    pub(crate) uptime: Duration,
    pub(crate) duration: Duration,
    pub(crate) region: RegionId,
    pub(crate) method: Method,
    pub(crate) operation: &'static str,
    pub(crate) status: u16,
    pub(crate) sub_status: u32,
    pub(crate) charge: f64,
    pub(crate) rules: Vec<SmolStr>,
    pub(crate) partition: Option<ServingPartition>,
    pub(crate) user_agent: Arc<str>,
    path: PathText,
    activity: ActivityText,
}

impl RequestArrival {
    /// Copies what is recorded of a request. `uptime` is now.
    pub(crate) fn from_parts(
        request: &Parts,
        user_agent: Option<&HeaderValue>,
        uptime: Duration,
    ) -> RequestArrival {
        RequestArrival {
            uptime,
            method: request.method.clone(),
            path: PathText::new(request.uri.path()),
            user_agent: cached_user_agent(user_agent),
        }
    }

    /// What is recorded of a connection without a request.
    pub(super) fn connection(uptime: Duration) -> RequestArrival {
        let (path, user_agent) = (PathText::new(""), cached_user_agent(None));
        RequestArrival { uptime, method: Method::CONNECT, path, user_agent }
    }
}

impl RequestRecord {
    pub(super) fn new(
        region: RegionId,
        arrival: RequestArrival,
        summary: ResponseSummary,
        uptime: Duration,
    ) -> RequestRecord {
        RequestRecord {
            number: 0,
            uptime,
            duration: uptime.saturating_sub(arrival.uptime),
            region,
            method: arrival.method,
            operation: summary.operation,
            status: summary.status,
            sub_status: summary.sub_status,
            charge: summary.charge,
            rules: summary.rules,
            partition: summary.partition,
            user_agent: arrival.user_agent,
            path: arrival.path,
            activity: summary.activity,
        }
    }

    pub(crate) fn path(&self) -> &str {
        self.path.as_str()
    }

    pub(crate) fn activity(&self) -> &str {
        self.activity.as_str()
    }

    /// The id of the partition key range that served it.
    pub(crate) fn range(&self) -> Option<u32> {
        self.partition.as_ref().map(|partition| partition.range)
    }

    /// `dbs/{database}/colls/{container}` of the partition that served it.
    pub(crate) fn container_path(&self) -> Option<&str> {
        self.partition.as_ref().and_then(|partition| partition.container.to_str().ok())
    }
}

/// The user agent as shared text. Clients send the same one with each request, so each thread caches the
/// last one.
fn cached_user_agent(user_agent: Option<&HeaderValue>) -> Arc<str> {
    thread_local! {
        static LAST: RefCell<Arc<str>> = RefCell::new(Arc::from(""));
    }
    let value = user_agent.map(|value| value.as_bytes()).unwrap_or_default();
    let value = &value[..value.len().min(USER_AGENT_BYTES_MAX)];
    LAST.with_borrow_mut(|last| {
        if last.as_bytes() != value {
            *last = String::from_utf8_lossy(value).into();
        }
        Arc::clone(last)
    })
}
