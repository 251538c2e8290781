//! `patch_item`: changes properties of an item without sending the whole item.

use driver::operation::{Operation, OperationKind, Scope, Target};
use driver::{Error, ErrorKind};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::write::WriteItem;
use crate::container::ContainerClient;
use crate::serialize::to_body;
use crate::{PartitionKey, Result};

/// Up to ten patch operations on one item, applied in order, all or none.
///
/// ```
/// use perihelion::Patch;
///
/// let patch = Patch::new().set("/status", "shipped").increment("/version", 1).only_if("FROM c WHERE c.total > 0");
/// ```
#[derive(Debug, Default)]
#[must_use = "a patch does nothing until it is sent"]
pub struct Patch {
    operations: Vec<Value>,
    condition: Option<String>,
    /// The error of the first value that cannot be serialized.
    error: Option<Error>,
}

impl Patch {
    /// A patch without operations.
    pub fn new() -> Patch {
        Patch::default()
    }

    /// Sets a property, whether it exists or not.
    pub fn set(self, path: &str, value: impl Serialize) -> Patch {
        self.with_value("set", path, value)
    }

    /// Adds a property, or an element to an array.
    pub fn add(self, path: &str, value: impl Serialize) -> Patch {
        self.with_value("add", path, value)
    }

    /// Replaces a property that exists.
    pub fn replace(self, path: &str, value: impl Serialize) -> Patch {
        self.with_value("replace", path, value)
    }

    /// Adds to a number, or creates it with this value.
    pub fn increment(self, path: &str, by: impl Serialize) -> Patch {
        self.with_value("incr", path, by)
    }

    /// Removes a property or an array element.
    pub fn remove(mut self, path: &str) -> Patch {
        self.operations.push(json!({"op": "remove", "path": path}));
        self
    }

    /// Moves a property from one path to another.
    pub fn move_from(mut self, from: &str, path: &str) -> Patch {
        self.operations.push(json!({"op": "move", "from": from, "path": path}));
        self
    }

    /// Applies the patch only if this condition holds: `FROM c WHERE c.total > 0`. Otherwise the error is
    /// [`PreconditionFailed`](crate::ErrorKind::PreconditionFailed).
    pub fn only_if(mut self, condition: impl Into<String>) -> Patch {
        self.condition = Some(condition.into());
        self
    }

    fn with_value(mut self, operation: &str, path: &str, value: impl Serialize) -> Patch {
        match serde_json::to_value(value) {
            Ok(value) => self.operations.push(json!({"op": operation, "path": path, "value": value})),
            Err(error) => {
                let message = format!("the value for {path} has no JSON form: {error}");
                self.error.get_or_insert(Error::new(ErrorKind::BadRequest, message).with_source(error));
            }
        }
        self
    }

    /// The request body, or the error of a value that cannot be serialized.
    pub(super) fn body(self) -> Result<Box<RawValue>> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let mut body = json!({"operations": self.operations});
        if let Some(condition) = self.condition {
            body["condition"] = Value::String(condition);
        }
        Ok(to_raw_value(&body).expect("a JSON value has a JSON form"))
    }
}

impl ContainerClient {
    /// Changes properties of an item without sending the whole item.
    pub fn patch_item(&self, key: impl Into<PartitionKey>, id: &str, patch: Patch) -> WriteItem {
        let target = Target::item(self.name(), id);
        let operation = patch.body().and_then(|body| to_body(&body)).map(|body| {
            Operation::new(OperationKind::Patch, target).with_scope(Scope::Key(key.into())).with_body(body)
        });
        WriteItem::new(self.driver(), operation)
    }
}
