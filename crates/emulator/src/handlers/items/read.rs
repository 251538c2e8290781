//! Reading an item, `GET docs/{id}`: the point read.

use protocol::headers as name;

use super::partition_response::{PartitionResponse, check_session};
use super::{item_write, partition_key};
use crate::handlers::ItemRequest;
use crate::request::RequestHeaders;
use crate::response::{Reply, ServiceError};
use engine::charge;

/// Returns the stored text of an item: nothing is parsed, nothing is copied.
pub(super) fn read(request: &ItemRequest<'_>, id: &str) -> Result<Reply, ServiceError> {
    let headers = request.call.headers;
    let schema = request.container.store.schema();
    let address = partition_key::address(request, &schema)?;
    let state = address.partition.head();
    let partition_response = PartitionResponse::new(request.container, &address.partition, state.progress());
    check_session(&request.call, &address.partition, partition_response.progress())
        .map_err(|error| partition_response.error(error))?;
    let id = address.item_id(request, id);
    let Some(item) = state.get_live(&address.epk, &id, request.now_seconds()) else {
        return Err(partition_response.error(ServiceError::not_found().with_charge(charge::NOT_FOUND)));
    };
    let etag = item_write::etag_header(item);
    let unchanged = RequestHeaders::text(headers.if_none_match, name::IF_NONE_MATCH)?
        .is_some_and(|known| known == item.etag_str() || known == "*");
    let reply = if unchanged {
        partition_response.add_headers(Reply::not_modified()).charge(charge::NOT_FOUND)
    } else {
        let header = name::EXCLUDE_SYSTEM_PROPERTIES;
        let body = match RequestHeaders::flag(headers.exclude_system_properties, header)? {
            true => item.user_body().into(),
            false => item.body(),
        };
        partition_response.item_reply(body).charge(charge::read(item.size()))
    };
    Ok(reply.item_version(etag, item.lsn))
}
