//! `GET docs/{id}`.

use protocol::headers as name;

use super::served::{Served, check_session};
use super::{partition_key, write_reply};
use crate::handlers::ItemRequest;
use crate::request::RequestHeaders;
use crate::response::{Reply, ServiceError};
use engine::charge;

/// Answers with the stored text as it is: nothing is parsed, nothing is copied.
pub(super) fn read(request: &ItemRequest<'_>, id: &str) -> Result<Reply, ServiceError> {
    let headers = request.call.headers;
    let schema = request.container.store.schema();
    let address = partition_key::address(request, &schema)?;
    let state = address.partition.head();
    let served = Served::by(request.container, &address.partition, state.progress());
    check_session(&request.call, &address.partition, served.reach())
        .map_err(|refusal| served.refusal(refusal))?;
    let id = address.item_id(request, id);
    let Some(item) = state.get_live(&address.epk, &id, request.now_seconds()) else {
        return Err(served.refusal(ServiceError::not_found().with_charge(charge::NOT_FOUND)));
    };
    let etag = write_reply::etag_header(item);
    let unchanged = RequestHeaders::text(headers.if_none_match, name::IF_NONE_MATCH)?
        .is_some_and(|known| known == item.etag_str() || known == "*");
    let reply = if unchanged {
        served.reply(Reply::not_modified()).charge(charge::NOT_FOUND)
    } else {
        served.item(item.body()).charge(charge::read(item.size()))
    };
    Ok(reply.item_version(etag, item.lsn))
}
