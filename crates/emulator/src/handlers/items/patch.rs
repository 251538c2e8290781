//! `PATCH docs/{id}`: instructions instead of a document.

use sql::{Condition, Context, Value};

use super::served::Served;
use super::{body, partition_key, write_reply};
use crate::charge;
use crate::gateway::{Reply, ServiceError};
use crate::handlers::ItemRequest;
use crate::store::{Action, Operation, Pointer, Schema, WriteError, apply_patch};

/// Instructions and when they apply.
pub(super) struct Patch {
    operations: Vec<Operation>,
    condition: Option<Condition>,
}

/// Changes an item in place, all instructions or none.
pub(super) fn patch(request: &ItemRequest<'_>, id: &str) -> Result<Reply, ServiceError> {
    let store = &request.container.store;
    let schema = store.schema();
    let text = body::text(request)?;
    let payload = sql::value::parse(&text).map_err(|error| {
        ServiceError::bad_request(format!("The patch payload is not valid JSON: {error}"))
    })?;
    let patch = Patch::read(&payload)?;
    let address = partition_key::address(request, &schema)?;
    let id = address.item_id(request, id);
    let precondition = write_reply::precondition(&request.call.headers)?;
    let context = Context { now: request.call.now.0, random_seed: 0 };
    let (partition, commit) = store.write(&address.epk, request.moment(), |transaction| {
        let schema = transaction.schema().clone();
        transaction.patch(&address.epk, &id, precondition, |item| patch.apply(item, &schema, context))
    });
    let served = Served::by(&request.container, &partition, commit.lsn);
    let written = commit.result.map_err(|error| served.refusal(error.into()))?;
    let cost = write_reply::cost(&written) + charge::patch(patch.operations.len());
    let reply = Reply::new(protocol::status::Status::OK)
        .charge(cost)
        .etag(write_reply::etag_header(&written.item))
        .committed_at(commit.quorum_at);
    let minimal = write_reply::is_minimal(&request.call.headers)?;
    Ok(served.reply(if minimal { reply } else { reply.json(written.item.body()) }))
}

impl Patch {
    /// Reads `{"operations":[…],"condition":…}` or the list alone.
    pub(super) fn read(payload: &Value) -> Result<Patch, ServiceError> {
        let list = payload.as_array().or_else(|| payload.member("operations").as_array());
        let list = list.ok_or_else(|| ServiceError::bad_request("A patch needs a list of operations."))?;
        let operations = list.iter().map(read_operation).collect::<Result<_, _>>();
        let condition = match payload.member("condition") {
            Value::Undefined | Value::Null => None,
            text => {
                Some(Condition::parse(text.as_str().unwrap_or_default()).map_err(super::query_plan::refuse)?)
            }
        };
        Ok(Patch { operations: operations.map_err(ServiceError::bad_request)?, condition })
    }

    /// What becomes of `item`.
    pub(super) fn apply(&self, item: &Value, schema: &Schema, context: Context) -> Result<Value, WriteError> {
        if self.condition.as_ref().is_some_and(|condition| !condition.holds(item, &context)) {
            return Err(WriteError::ConditionFailed);
        }
        apply_patch(item, &self.operations, schema.key_paths()).map_err(WriteError::BadPatch)
    }

    pub(super) fn len(&self) -> usize {
        self.operations.len()
    }
}

fn read_operation(operation: &Value) -> Result<Operation, String> {
    let text = |member: &str| {
        operation
            .member(member)
            .as_str()
            .ok_or_else(|| format!("a patch operation needs a text member '{member}'"))
    };
    let value = || match operation.member("value") {
        Value::Undefined => Err("this patch operation needs a member 'value'".to_owned()),
        value => Ok(value.clone()),
    };
    let action = match text("op")?.to_ascii_lowercase().as_str() {
        "add" => Action::Add(value()?),
        "set" => Action::Set(value()?),
        "replace" => Action::Replace(value()?),
        "remove" => Action::Remove,
        "incr" | "increment" => match value()? {
            Value::Number(by) => Action::Increment(by),
            _ => return Err("the value of an increment must be a number".to_owned()),
        },
        "move" => Action::Move(Pointer::parse(text("from")?)?),
        other => {
            return Err(format!(
                "'{other}' is not a patch operation; use add, set, replace, remove, incr or move"
            ));
        }
    };
    Ok(Operation { action, path: Pointer::parse(text("path")?)? })
}
