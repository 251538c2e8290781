//! One request, written down.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method};
use protocol::headers as name;
use smol_str::SmolStr;

use super::text::Text;
use engine::regions::RegionId;

/// Bytes of a user agent that are kept.
const AGENT_KEPT: usize = 256;

/// Room for the path of most items: some bytes for each name, and a GUID.
pub(crate) type PathText = Text<78>;
/// Room for a GUID.
pub(crate) type ActivityText = Text<38>;

/// What is remembered of a request until it is answered.
#[derive(Debug)]
pub(crate) struct Arrival {
    uptime: Duration,
    method: Method,
    path: PathText,
    user_agent: Arc<str>,
}

/// In the place of a status: the connection ended before the answer.
pub(crate) const UNANSWERED: u16 = 499;

/// What is known about an answer without reading it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// What was asked for; `unknown` when it was refused before anybody looked.
    pub(crate) operation: &'static str,
    /// Zero when the connection was closed instead; [`UNANSWERED`] when it ended before that.
    pub(crate) status: u16,
    pub(crate) sub_status: u32,
    pub(crate) charge: f64,
    pub(crate) activity: ActivityText,
    pub(crate) answerer: Option<Answerer>,
    /// The fault rules that touched it, in order.
    pub(crate) rules: Vec<SmolStr>,
}

/// The partition that answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answerer {
    /// `dbs/{database}/colls/{container}`.
    pub(crate) container: HeaderValue,
    pub(crate) range: u32,
}

impl Answerer {
    /// Who answered, by headers that say so.
    pub(crate) fn named_in(headers: &HeaderMap) -> Option<Answerer> {
        let range = headers.get(name::PARTITION_KEY_RANGE_ID)?.to_str().ok()?.parse().ok()?;
        Some(Answerer { container: headers.get(name::ALT_CONTENT_PATH)?.clone(), range })
    }
}

/// A request and its answer.
#[derive(Clone, Debug)]
pub(crate) struct Sighting {
    /// Counts all requests of the account, from 1.
    pub(crate) number: u64,
    /// When it was answered.
    pub(crate) uptime: Duration,
    pub(crate) took: Duration,
    pub(crate) region: RegionId,
    pub(crate) method: Method,
    pub(crate) operation: &'static str,
    pub(crate) status: u16,
    pub(crate) sub_status: u32,
    pub(crate) charge: f64,
    pub(crate) rules: Vec<SmolStr>,
    pub(crate) answerer: Option<Answerer>,
    pub(crate) user_agent: Arc<str>,
    path: PathText,
    activity: ActivityText,
}

impl Arrival {
    /// What to remember of a request, and of who says to have sent it. `uptime` is now.
    pub(crate) fn of(request: &Parts, user_agent: Option<&HeaderValue>, uptime: Duration) -> Arrival {
        Arrival {
            uptime,
            method: request.method.clone(),
            path: PathText::new(request.uri.path()),
            user_agent: remembered(user_agent),
        }
    }
}

impl Sighting {
    pub(super) fn new(region: RegionId, arrival: Arrival, seen: Seen, uptime: Duration) -> Sighting {
        Sighting {
            number: 0,
            uptime,
            took: uptime.saturating_sub(arrival.uptime),
            region,
            method: arrival.method,
            operation: seen.operation,
            status: seen.status,
            sub_status: seen.sub_status,
            charge: seen.charge,
            rules: seen.rules,
            answerer: seen.answerer,
            user_agent: arrival.user_agent,
            path: arrival.path,
            activity: seen.activity,
        }
    }

    pub(crate) fn path(&self) -> &str {
        self.path.as_str()
    }

    pub(crate) fn activity(&self) -> &str {
        self.activity.as_str()
    }

    /// Which range answered.
    pub(crate) fn range(&self) -> Option<u32> {
        self.answerer.as_ref().map(|answerer| answerer.range)
    }

    /// `dbs/{database}/colls/{container}` of the partition that answered.
    pub(crate) fn served_by(&self) -> Option<&str> {
        self.answerer.as_ref().and_then(|answerer| answerer.container.to_str().ok())
    }
}

/// Clients say the same in each request, so each thread remembers the last one it read.
fn remembered(user_agent: Option<&HeaderValue>) -> Arc<str> {
    thread_local! {
        static LAST: RefCell<Arc<str>> = RefCell::new(Arc::from(""));
    }
    let value = user_agent.map(|value| value.as_bytes()).unwrap_or_default();
    let value = &value[..value.len().min(AGENT_KEPT)];
    LAST.with_borrow_mut(|last| {
        if last.as_bytes() != value {
            *last = String::from_utf8_lossy(value).into();
        }
        Arc::clone(last)
    })
}
