//! The quota headers of container answers.

use http::HeaderValue;
use protocol::headers as name;

use crate::request::RequestHeaders;
use crate::response::{Reply, ServiceError};
use engine::catalog::ContainerEntry;

/// What a container may hold, in kilobytes; the number is one that clients compare with.
const QUOTA: &str = "documentSize=10240;documentsSize=10485760;documentsCount=-1;collectionSize=10485760;";

/// Adds what the container holds and may hold. Progress of an index change is only told to those
/// who ask; it is always complete, because a changed policy is applied before the answer.
pub(crate) fn add(
    reply: Reply,
    headers: &RequestHeaders<'_>,
    container: &ContainerEntry,
) -> Result<Reply, ServiceError> {
    let usage = container.store.usage();
    let kilobytes = usage.bytes.div_ceil(1024);
    let used = format!(
        "documentSize=0;documentsSize={kilobytes};documentsCount={};collectionSize={kilobytes};",
        usage.items
    );
    let reply = reply
        .header(name::RESOURCE_QUOTA, HeaderValue::from_static(QUOTA))
        .header(name::RESOURCE_USAGE, HeaderValue::try_from(used).expect("digits and words fit a header"));
    Ok(if RequestHeaders::flag(headers.populate_quota_info, name::POPULATE_QUOTA_INFO)? {
        reply.header(name::INDEX_TRANSFORMATION_PROGRESS, HeaderValue::from_static("100"))
    } else {
        reply
    })
}
