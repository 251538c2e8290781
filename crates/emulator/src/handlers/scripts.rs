//! Stored procedures, triggers and user-defined functions: `…/colls/{container}/sprocs`, `triggers`, `udfs`.
//!
//! They are resources that can be managed. Running one is refused by name.

use std::sync::Arc;

use protocol::resource::check_name;
use protocol::resource_id::{ChildKind, ChildRid};
use protocol::resource_path::ResourceType;
use protocol::status::Status;
use serde_json::{Map, Value};

use super::feed::{Feed, FeedEntry, parse_position};
use super::{condition, find_container, metadata_query};
use crate::request::{Call, ContainerIds, FeedVerb, ResourceVerb, ScriptVerb};
use crate::response::{Reply, ServiceError};
use engine::catalog::{
    CatalogError, ContainerEntry, ListPosition, ScriptAddress, ScriptDefinition, ScriptEntry,
};

/// The kinds of triggers, in lower case.
const TRIGGER_TYPES: [&str; 2] = ["pre", "post"];
/// The operations that a trigger can be for, in lower case.
const TRIGGER_OPERATIONS: [&str; 6] = ["all", "create", "update", "delete", "replace", "upsert"];

/// Handles an operation on a container's scripts of one kind.
pub(crate) fn handle_feed(
    call: &Call<'_>,
    ids: &ContainerIds<'_>,
    kind: ResourceType,
    verb: FeedVerb,
) -> Result<Reply, ServiceError> {
    let container = find(call, ids)?;
    let feed = Feed { parent: &container.system.rid, plural: kind.feed_property() };
    match verb {
        FeedVerb::List => {
            let position: ListPosition<ChildRid> = parse_position(call.headers)?;
            let scripts = container.scripts_after(child_kind(kind), position);
            let entry = |script: &Arc<ScriptEntry>| FeedEntry {
                rid: script.system.rid.clone(),
                json: script.json.clone(),
            };
            feed.page(call, scripts.map(entry))
        }
        FeedVerb::Query => {
            let scripts = container.scripts_after(child_kind(kind), None);
            metadata_query::run_query(call, feed, scripts.map(|script| &script.json))
        }
        FeedVerb::Create => {
            let definition = read_definition(&call.body, kind)?;
            let script = call.account.catalog.create_script(address(ids, kind), definition, call.now)?;
            Ok(Reply::created(script.json.clone()).version(&script.system))
        }
        FeedVerb::Upsert => {
            let definition = read_definition(&call.body, kind)?;
            let created =
                call.account.catalog.create_script(address(ids, kind), definition.clone(), call.now);
            match created {
                Ok(script) => Ok(Reply::created(script.json.clone()).version(&script.system)),
                Err(CatalogError::AlreadyExists) => {
                    let id = definition.id.clone();
                    replace_by(call, (address(ids, kind), &id), definition)
                }
                Err(error) => Err(error.into()),
            }
        }
    }
}

/// Handles an operation on one script.
pub(crate) fn handle(
    call: &Call<'_>,
    ids: &ContainerIds<'_>,
    (kind, id): (ResourceType, &str),
    verb: ScriptVerb,
) -> Result<Reply, ServiceError> {
    let container = find(call, ids)?;
    match verb {
        ScriptVerb::Manage(ResourceVerb::Read) => {
            let script = container.script(child_kind(kind), id).ok_or_else(ServiceError::not_found)?;
            if let Some(reply) = condition::not_modified(call.headers, &script.system) {
                return Ok(reply);
            }
            Ok(Reply::ok(script.json.clone()).version(&script.system))
        }
        ScriptVerb::Manage(ResourceVerb::Replace) => {
            let definition = read_definition(&call.body, kind)?;
            replace_by(call, (address(ids, kind), id), definition)
        }
        ScriptVerb::Manage(ResourceVerb::Delete) => {
            let permit = |script: &ScriptEntry| condition::check_if_match(call.headers, &script.system);
            call.account.catalog.delete_script((address(ids, kind), id), permit)?;
            Ok(Reply::no_content())
        }
        ScriptVerb::Execute => {
            container.script(child_kind(kind), id).ok_or_else(ServiceError::not_found)?;
            let message = format!(
                "Running stored procedures is not supported by this account: '{id}' is stored, and cannot be \
                 executed."
            );
            Err(ServiceError::bad_request(message))
        }
    }
}

fn replace_by(
    call: &Call<'_>,
    target: (ScriptAddress<'_>, &str),
    definition: ScriptDefinition,
) -> Result<Reply, ServiceError> {
    let permit = |script: &ScriptEntry| condition::check_if_match(call.headers, &script.system);
    let script = call.account.catalog.replace_script(target, definition, call.now, permit)?;
    Ok(Reply::ok(script.json.clone()).version(&script.system))
}

fn find(call: &Call<'_>, ids: &ContainerIds<'_>) -> Result<Arc<ContainerEntry>, ServiceError> {
    find_container(call, &call.account.catalog.snapshot(), ids).cloned()
}

fn address<'a>(ids: &'a ContainerIds<'_>, kind: ResourceType) -> ScriptAddress<'a> {
    ScriptAddress { database: &ids.database, container: &ids.container, kind: child_kind(kind) }
}

fn child_kind(kind: ResourceType) -> ChildKind {
    match kind {
        ResourceType::StoredProcedure => ChildKind::StoredProcedure,
        ResourceType::Trigger => ChildKind::Trigger,
        _ => ChildKind::UserDefinedFunction,
    }
}

/// Reads and checks the definition of a script. Its source text is not checked: the service does so when it
/// runs it.
fn read_definition(body: &[u8], kind: ResourceType) -> Result<ScriptDefinition, ServiceError> {
    let invalid = |message: String| ServiceError::backend(Status::BAD_REQUEST, &message);
    let members: Map<String, Value> = serde_json::from_slice(body)
        .map_err(|error| invalid(format!("The request payload is invalid: {error}")))?;
    let text = |name: &str| match members.get(name) {
        Some(Value::String(text)) => Ok(text.clone()),
        None | Some(Value::Null) => Err(invalid(format!(
            "The input content is invalid because the required properties - '{name}; ' - are missing"
        ))),
        Some(_) => Err(invalid(format!("The input content is invalid: '{name}' has to be a string."))),
    };
    let one_of = |name: &str, allowed: &[&str]| {
        let value = text(name)?;
        match allowed.contains(&value.to_ascii_lowercase().as_str()) {
            true => Ok(Some(value)),
            false => Err(invalid(format!("The value '{value}' of '{name}' is not one of {allowed:?}."))),
        }
    };
    let id = text("id")?;
    check_name(&id)?;
    let is_trigger = kind == ResourceType::Trigger;
    Ok(ScriptDefinition {
        id,
        body: text("body")?,
        trigger_type: if is_trigger { one_of("triggerType", &TRIGGER_TYPES)? } else { None },
        trigger_operation: if is_trigger { one_of("triggerOperation", &TRIGGER_OPERATIONS)? } else { None },
    })
}
