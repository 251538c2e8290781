//! Pages of a feed: the JSON envelope, the page size, the continuation token.
//!
//! Input: resources in the order of their `_rid`s, or in reverse, and the paging headers. Output: one page. A continuation
//! token names the last resource of the previous page, so a page starts in the right place whatever was created
//! or deleted in between.

use std::str::FromStr;

use bytes::{BufMut, Bytes, BytesMut};
use http::HeaderValue;
use protocol::headers as name;

use crate::request::{Call, RequestHeaders};
use crate::response::{Reply, ServiceError};
use engine::catalog::ListPosition;

/// How many resources a page has when the client does not set a page size.
pub(crate) const PAGE_ITEMS_DEFAULT: usize = 100;

/// The envelope of a feed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Feed<'a> {
    /// The `_rid` of the parent, empty for the account.
    pub(crate) parent: &'a str,
    /// The member that holds the list, such as `Databases`.
    pub(crate) plural: &'static str,
}

/// One resource of a page.
#[derive(Clone, Debug)]
pub(crate) struct FeedEntry {
    /// The `_rid` of the resource.
    pub(crate) rid: String,
    /// The JSON text of the resource.
    pub(crate) json: Bytes,
}

impl Feed<'_> {
    /// The reply with one page of `rest`, the resources after the request's continuation. Cost grows with the
    /// page, not with the feed.
    pub(crate) fn page(
        self,
        call: &Call<'_>,
        rest: impl Iterator<Item = FeedEntry>,
    ) -> Result<Reply, ServiceError> {
        call.headers.check_continuation_limit()?;
        let limit = call.headers.page_size()?.limit(PAGE_ITEMS_DEFAULT);
        let mut rest = rest;
        let mut page: Vec<FeedEntry> = rest.by_ref().take(limit).collect();
        let more = rest.next().is_some();
        let last = if more { page.last_mut().map(|entry| std::mem::take(&mut entry.rid)) } else { None };
        let reply = self.reply(page.iter().map(|entry| &entry.json));
        Ok(match last {
            Some(rid) => reply.header(name::CONTINUATION, continuation(&rid)),
            None => reply,
        })
    }

    /// The reply with the envelope around `entries`, and their number in body and header.
    pub(crate) fn reply<'b>(self, entries: impl Iterator<Item = &'b Bytes>) -> Reply {
        let mut body = BytesMut::with_capacity(1024);
        body.put_slice(b"{\"_rid\":\"");
        body.put_slice(self.parent.as_bytes());
        body.put_slice(b"\",\"");
        body.put_slice(self.plural.as_bytes());
        body.put_slice(b"\":[");
        let mut count = 0_u64;
        for entry in entries {
            if count > 0 {
                body.put_u8(b',');
            }
            body.put_slice(entry);
            count += 1;
        }
        body.put_slice(format!("],\"_count\":{count}}}").as_bytes());
        Reply::ok(body.freeze()).header(name::ITEM_COUNT, HeaderValue::from(count))
    }
}

/// Prefix of a continuation token, which contains the `_rid` of the last resource already listed.
const CONTINUATION_PREFIX: &str = "+RID:~";

fn continuation(rid: &str) -> HeaderValue {
    HeaderValue::try_from(format!("{CONTINUATION_PREFIX}{rid}#RT:1"))
        .expect("a _rid is base64, which fits a header")
}

/// Parses where the page starts: the direction of the feed, and the resource at which the continuation token
/// left off.
pub(crate) fn parse_position<K: FromStr>(
    headers: &RequestHeaders<'_>,
) -> Result<ListPosition<K>, ServiceError> {
    let is_reversed = headers.is_reversed()?;
    let Some(token) = RequestHeaders::text(headers.continuation, name::CONTINUATION)? else {
        return Ok(ListPosition { after: None, is_reversed });
    };
    let rid = token.strip_prefix(CONTINUATION_PREFIX).and_then(|rest| rest.split('#').next());
    match rid.and_then(|rid| rid.parse().ok()) {
        Some(key) => Ok(ListPosition { after: Some(key), is_reversed }),
        None => Err(invalid_continuation(token)),
    }
}

/// 400: the continuation token is invalid, or of another feed.
pub(crate) fn invalid_continuation(token: &str) -> ServiceError {
    ServiceError::bad_request(format!("Invalid Continuation Token '{token}'."))
}
