//! The change feed, `GET docs` with `a-im`: changes in the order in which they happened.

use std::cell::RefCell;
use std::sync::Arc;

use http::HeaderValue;
use protocol::headers as name;
use protocol::status::Status;
use sql::{InputOrder, QueryContext, QueryExecution, Statement};

use super::partition_response::{PartitionResponse, check_session};
use super::query_body::{QueryText, read_query};
use super::{query_plan, scope};
use crate::handlers::ItemRequest;
use crate::request::{RequestHeaders, http_date};
use crate::response::{Reply, ServiceError};
use engine::change_feed::{FeedMode, FeedPage, FeedPosition, FeedStart, read_changes};
use engine::items::Item;
use engine::regions::RegionId;
use engine::store::ContainerSchema;

/// Changes per page when the client does not set a page size.
const PAGE_ITEMS_DEFAULT: usize = 100;

/// Reads a page of the change feed: 200 with changes, or 304 when there are none, with a continuation.
pub(super) fn change_feed(request: &ItemRequest<'_>) -> Result<Reply, ServiceError> {
    let headers = request.call.headers;
    let schema = request.container.store.schema();
    let mode = mode(headers)?;
    let start = start_in_region(start(headers, mode)?, mode, lsn_region(request))?;
    let scope = scope::target(request, &schema)?.scope();
    request.admit_page(&scope, None)?;
    for partition in &scope.partitions {
        check_session(&request.call, partition, &partition.progress())?;
        if mode == FeedMode::AllVersions {
            request.container.store.purge_expired(partition, request.write_context());
        }
    }
    let limit = headers.page_size()?.limit(PAGE_ITEMS_DEFAULT);
    let filter = filter(request, &schema)?;
    let context = QueryContext { now: request.call.now.0, ..QueryContext::default() };
    let failure = RefCell::new(None);
    let accept = |item: &Item| {
        let Some(statement) = &filter else { return true };
        let run = QueryExecution::new(statement, context, InputOrder::Any);
        run.accepts(&item.value()).unwrap_or_else(|error| {
            failure.borrow_mut().get_or_insert(error);
            false
        })
    };
    let page = read_changes(&scope, mode, &start, limit, request.now_seconds(), &accept).map_err(|lost| {
        ServiceError::bad_request(format!(
            "The change feed no longer holds the changes after LSN {}: all-versions-and-deletes keeps a bounded history. Start again from now.",
            lost.0.0
        ))
    })?;
    if let Some(error) = failure.take() {
        return Err(query_plan::sql_error(error));
    }
    Ok(reply(request, page))
}

/// The query in the body of a change feed, whose condition its items satisfy.
fn filter(request: &ItemRequest<'_>, schema: &ContainerSchema) -> Result<Option<Statement>, ServiceError> {
    if request.call.body.is_empty() {
        return Ok(None);
    }
    let QueryText { text, parameters, resume } = read_query(request)?;
    let statement = Statement::prepare(&text, &parameters, &schema.sql).map_err(query_plan::sql_error)?;
    if !statement.returns_whole_documents() || statement.needs_merge() || resume.is_some() {
        return Err(ServiceError::bad_request(
            "A change feed is filtered by a query of the form SELECT * FROM c WHERE …, without other clauses.",
        ));
    }
    Ok(Some(statement))
}

fn reply(request: &ItemRequest<'_>, page: FeedPage) -> Reply {
    request.set_charged_partition(|| Arc::clone(&page.partition));
    let partition_response =
        PartitionResponse::new(request.container, &page.partition, page.progress.clone());
    let position = FeedPosition { region: lsn_region(request), ..page.position.clone() };
    let etag = HeaderValue::try_from(position.to_etag()).expect("an LSN is printable ASCII");
    let reply = if page.count == 0 {
        Reply::not_modified()
    } else {
        Reply::ok(page.body(&request.container.system.rid).into())
    };
    // One SDK reads the count whatever the status.
    let reply = reply.header(name::ITEM_COUNT, HeaderValue::from(page.count));
    partition_response.add_headers(reply.charge(page.charge.max(1.0)).etag(etag))
}

/// The region that LSNs in continuations belong to; `None` where all regions share them.
fn lsn_region(request: &ItemRequest<'_>) -> Option<RegionId> {
    let multi_write = request.call.account.regions.current().is_multi_write();
    multi_write.then_some(request.call.read_context.region)
}

/// Where the feed starts in this region. A continuation of another region says nothing about this region's
/// LSNs: the latest-version mode starts from the beginning, so that no change is missed; the all-versions mode
/// is an error.
fn start_in_region(
    start: FeedStart,
    mode: FeedMode,
    region: Option<RegionId>,
) -> Result<FeedStart, ServiceError> {
    let is_other_region = matches!(
        (&start, region),
        (FeedStart::After(FeedPosition { region: Some(theirs), .. }), Some(own)) if *theirs != own
    );
    match (is_other_region, mode) {
        (false, _) => Ok(start),
        (true, FeedMode::LatestVersion) => Ok(FeedStart::Beginning),
        (true, FeedMode::AllVersions) => Err(ServiceError::bad_request(
            "The change feed continuation is of another region. Each region of an account that writes in several has an order of changes of its own: go on in that region, or start again from now in this one.",
        )),
    }
}

fn mode(headers: &RequestHeaders<'_>) -> Result<FeedMode, ServiceError> {
    match RequestHeaders::text(headers.a_im, name::A_IM)? {
        Some(text) if text.eq_ignore_ascii_case("Incremental Feed") => Ok(FeedMode::LatestVersion),
        Some(text) if text.eq_ignore_ascii_case("Full-Fidelity Feed") => Ok(FeedMode::AllVersions),
        other => Err(ServiceError::bad_request(format!(
            "The value '{}' of the header {} is not supported; use 'Incremental Feed' or 'Full-Fidelity Feed'.",
            other.unwrap_or_default(),
            name::A_IM
        ))),
    }
}

fn start(headers: &RequestHeaders<'_>, mode: FeedMode) -> Result<FeedStart, ServiceError> {
    let since = RequestHeaders::text(headers.if_modified_since, name::IF_MODIFIED_SINCE)?;
    let start = match RequestHeaders::text(headers.if_none_match, name::IF_NONE_MATCH)? {
        Some("*") => FeedStart::Now,
        Some(etag) => FeedStart::After(FeedPosition::parse(etag).ok_or_else(|| {
            ServiceError::new(
                Status::BAD_REQUEST,
                format!("The change feed continuation '{etag}' is invalid."),
            )
        })?),
        None => match since {
            Some(date) => FeedStart::Since(seconds(date)?),
            None => FeedStart::Beginning,
        },
    };
    match (mode, &start) {
        (FeedMode::AllVersions, FeedStart::Beginning | FeedStart::Since(_)) => {
            Err(ServiceError::bad_request(
                "FullFidelity Change Feed must have valid If-None-Match header. All versions and deletes mode starts from now (*) or from a continuation.",
            ))
        }
        _ => Ok(start),
    }
}

fn seconds(date: &str) -> Result<u64, ServiceError> {
    // The SDK for Go names the time zone UTC.
    let in_gmt = date.strip_suffix(" UTC").map(|time| format!("{time} GMT"));
    http_date::parse(in_gmt.as_deref().unwrap_or(date))
        .and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok())
        .map(|since| since.as_secs())
        .ok_or_else(|| {
            ServiceError::bad_request(format!(
                "The value '{date}' of the header {} is not an RFC 1123 date.",
                name::IF_MODIFIED_SINCE
            ))
        })
}
