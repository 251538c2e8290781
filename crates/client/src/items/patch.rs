//! `patch_item`: change parts of an item where it is.

use driver::operation::{Operation, OperationKind, Scope, Target};
use driver::{Error, ErrorKind};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::write::WriteItem;
use crate::container::ContainerClient;
use crate::serialize::to_body;
use crate::{PartitionKey, Result};

/// Instructions to change an item: all or none, in order, at most ten.
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
    /// The first value that has no JSON form.
    problem: Option<Error>,
}

impl Patch {
    /// No instructions yet.
    pub fn new() -> Patch {
        Patch::default()
    }

    /// Sets a property, whether it is there or not.
    pub fn set(self, path: &str, value: impl Serialize) -> Patch {
        self.with_value("set", path, value)
    }

    /// Adds a property, or an element to an array.
    pub fn add(self, path: &str, value: impl Serialize) -> Patch {
        self.with_value("add", path, value)
    }

    /// Overwrites a property that is there.
    pub fn replace(self, path: &str, value: impl Serialize) -> Patch {
        self.with_value("replace", path, value)
    }

    /// Adds to a number, or makes it.
    pub fn increment(self, path: &str, by: impl Serialize) -> Patch {
        self.with_value("incr", path, by)
    }

    /// Takes a property or an element away.
    pub fn remove(mut self, path: &str) -> Patch {
        self.operations.push(json!({"op": "remove", "path": path}));
        self
    }

    /// Takes a property from one place to another.
    pub fn move_from(mut self, from: &str, path: &str) -> Patch {
        self.operations.push(json!({"op": "move", "from": from, "path": path}));
        self
    }

    /// Does nothing unless this holds: `FROM c WHERE c.total > 0`. Otherwise the error is
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
                let problem = Error::new(ErrorKind::BadRequest, message).with_source(error);
                self.problem.get_or_insert(problem);
            }
        }
        self
    }

    /// What is sent.
    pub(super) fn body(self) -> Result<Box<RawValue>> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        let mut body = json!({"operations": self.operations});
        if let Some(condition) = self.condition {
            body["condition"] = Value::String(condition);
        }
        Ok(to_raw_value(&body).expect("a JSON value has a JSON form"))
    }
}

impl ContainerClient {
    /// Changes parts of an item where it is.
    pub fn patch_item(&self, key: impl Into<PartitionKey>, id: &str, patch: Patch) -> WriteItem {
        let target = Target::item(self.name(), id);
        let operation = patch.body().and_then(|body| to_body(&body)).map(|body| {
            Operation::new(OperationKind::Patch, target).with_scope(Scope::Key(key.into())).with_body(body)
        });
        WriteItem::new(self.driver(), operation)
    }
}
