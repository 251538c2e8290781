//! Operations on items, and their expected outcomes.
//!
//! Pure: `decide` takes the current items and returns status and effect, for single requests and for the
//! operations of a batch.

use http::Method;
use serde_json::{Value, json};

use crate::model::{ChangeKind, Items, Version};
use crate::partition_ranges::Key;
use crate::seeded_random::SeededRandom;

/// An operation of a client. Bodies have an `id`, the partition key `pk` and a unique version number `v`.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Create { body: Value },
    Upsert { body: Value },
    Replace { body: Value, if_match: Option<String> },
    Patch { id: String, patch: Patch, if_match: Option<String> },
    Delete { id: String, if_match: Option<String> },
    Read { id: String },
}

/// The kind of a write.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WriteKind {
    Create,
    Upsert,
    Replace,
    Patch,
    Delete,
}

/// The content of a patch: a new `v`, and more.
#[derive(Clone, Debug)]
pub(crate) struct Patch {
    pub(crate) v: u64,
    pub(crate) add_to_n: Option<i64>,
    pub(crate) add_tag: bool,
    /// Removes the member `extra`; fails unless the item has it.
    pub(crate) remove_extra: bool,
    /// The condition: `n` is at least this.
    pub(crate) least_n: Option<i64>,
}

/// The expected outcome of an operation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decision {
    pub(crate) status: u16,
    /// None for a read or an error.
    pub(crate) effect: Option<Effect>,
}

/// The change of one item; without a body it is deleted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Effect {
    pub(crate) id: String,
    pub(crate) kind: ChangeKind,
    pub(crate) body: Option<Value>,
}

impl Operation {
    /// A write of the item `id` that makes it `v`; the rest is drawn from `rng`.
    pub(crate) fn random(
        write: WriteKind,
        key: &Key,
        (id, v): (String, u64),
        if_match: Option<String>,
        rng: &mut SeededRandom,
    ) -> Operation {
        let mut body = json!({"id": id, "pk": key.name, "v": v, "n": rng.below(10), "tags": []});
        if rng.chance(30) {
            body["extra"] = "x".repeat(rng.between(1, 40)).into();
        }
        match write {
            WriteKind::Create => Operation::Create { body },
            WriteKind::Upsert => Operation::Upsert { body },
            WriteKind::Replace => Operation::Replace { body, if_match },
            WriteKind::Delete => Operation::Delete { id, if_match },
            WriteKind::Patch => {
                let patch = Patch {
                    v,
                    add_to_n: rng.chance(50).then(|| rng.below(7) as i64 - 3),
                    add_tag: rng.chance(30),
                    remove_extra: rng.chance(15),
                    least_n: rng.chance(30).then(|| rng.below(8) as i64),
                };
                Operation::Patch { id, patch, if_match }
            }
        }
    }

    pub(crate) fn id(&self) -> &str {
        match self {
            Operation::Create { body } | Operation::Upsert { body } | Operation::Replace { body, .. } => {
                body["id"].as_str().unwrap()
            }
            Operation::Patch { id, .. } | Operation::Delete { id, .. } | Operation::Read { id } => id,
        }
    }

    fn if_match(&self) -> Option<&str> {
        match self {
            Operation::Replace { if_match, .. }
            | Operation::Patch { if_match, .. }
            | Operation::Delete { if_match, .. } => if_match.as_deref(),
            Operation::Create { .. } | Operation::Upsert { .. } | Operation::Read { .. } => None,
        }
    }

    /// The expected outcome with these items.
    pub(crate) fn decide(&self, items: &Items) -> Decision {
        let there = items.get(self.id());
        let rejected = |status| Decision { status, effect: None };
        let stored = |kind, body: &Value| Decision {
            status: if kind == ChangeKind::Create { 201 } else { 200 },
            effect: Some(Effect { id: self.id().to_owned(), kind, body: Some(body.clone()) }),
        };
        match (self, there) {
            (Operation::Create { body }, None) | (Operation::Upsert { body }, None) => {
                stored(ChangeKind::Create, body)
            }
            (Operation::Create { .. }, Some(_)) => rejected(409),
            (Operation::Upsert { body }, Some(_)) => stored(ChangeKind::Replace, body),
            (_, None) => rejected(404),
            (_, Some(version)) if self.if_match().is_some_and(|etag| etag != version.etag) => rejected(412),
            (Operation::Replace { body, .. }, Some(_)) => stored(ChangeKind::Replace, body),
            (Operation::Patch { patch, .. }, Some(version)) => match patch.apply(version) {
                Ok(body) => stored(ChangeKind::Replace, &body),
                Err(status) => rejected(status),
            },
            (Operation::Delete { .. }, Some(_)) => Decision {
                status: 204,
                effect: Some(Effect { id: self.id().to_owned(), kind: ChangeKind::Delete, body: None }),
            },
            (Operation::Read { .. }, Some(_)) => rejected(200),
        }
    }

    /// Method, path, further headers and body of a single request.
    pub(crate) fn request(&self) -> (Method, String, Vec<(&'static str, String)>, String) {
        let one = format!("/dbs/d/colls/c/docs/{}", self.id());
        let all = "/dbs/d/colls/c/docs".to_owned();
        let mut headers: Vec<(&'static str, String)> = Vec::new();
        headers.extend(self.if_match().map(|etag| ("if-match", etag.to_owned())));
        match self {
            Operation::Create { body } => (Method::POST, all, headers, body.to_string()),
            Operation::Upsert { body } => {
                headers.push(("x-ms-documentdb-is-upsert", "true".to_owned()));
                (Method::POST, all, headers, body.to_string())
            }
            Operation::Replace { body, .. } => (Method::PUT, one, headers, body.to_string()),
            Operation::Patch { patch, .. } => (Method::PATCH, one, headers, patch.to_json().to_string()),
            Operation::Delete { .. } => (Method::DELETE, one, headers, String::new()),
            Operation::Read { .. } => (Method::GET, one, headers, String::new()),
        }
    }

    /// The operation as a member of a batch.
    pub(crate) fn in_batch(&self) -> Value {
        let mut member = match self {
            Operation::Create { body } => json!({"operationType": "Create", "resourceBody": body}),
            Operation::Upsert { body } => json!({"operationType": "Upsert", "resourceBody": body}),
            Operation::Replace { body, .. } => json!({"operationType": "Replace", "resourceBody": body}),
            Operation::Patch { patch, .. } => {
                json!({"operationType": "Patch", "resourceBody": patch.to_json()})
            }
            Operation::Delete { .. } => json!({"operationType": "Delete"}),
            Operation::Read { .. } => json!({"operationType": "Read"}),
        };
        member["id"] = self.id().into();
        if let Some(etag) = self.if_match() {
            member["ifMatch"] = etag.into();
        }
        member
    }

    /// A short description for the log.
    pub(crate) fn description(&self) -> String {
        let tag = self.if_match().map(|etag| format!(" if-match {etag}")).unwrap_or_default();
        match self {
            Operation::Create { body } => format!("create {body}"),
            Operation::Upsert { body } => format!("upsert {body}"),
            Operation::Replace { body, .. } => format!("replace {body}{tag}"),
            Operation::Patch { id, patch, .. } => format!("patch {id} {}{tag}", patch.to_json()),
            Operation::Delete { id, .. } => format!("delete {id}{tag}"),
            Operation::Read { id } => format!("read {id}"),
        }
    }
}

/// The expected outcome of each operation of a batch, and whether the batch commits.
pub(crate) fn decide_batch(operations: &[Operation], items: &Items) -> (Vec<Decision>, bool) {
    let mut items = items.clone();
    let mut decisions = Vec::new();
    for operation in operations {
        let decision = operation.decide(&items);
        let failed = decision.status >= 400;
        if let Some(Effect { id, body, .. }) = &decision.effect {
            match body {
                // The etag is not known before the batch commits, so no operation can name it.
                Some(body) => {
                    items.insert(id.clone(), Version { body: body.clone(), etag: String::new(), lsn: 0 })
                }
                None => items.remove(id),
            };
        }
        decisions.push(decision);
        if failed {
            let skipped = Decision { status: 424, effect: None };
            let failed_at = decisions.len() - 1;
            decisions[..failed_at].fill(skipped.clone());
            decisions.resize(operations.len(), skipped);
            return (decisions, false);
        }
    }
    (decisions, true)
}

impl Patch {
    fn to_json(&self) -> Value {
        let mut operations = vec![json!({"op": "set", "path": "/v", "value": self.v})];
        operations.extend(self.add_to_n.map(|by| json!({"op": "incr", "path": "/n", "value": by})));
        if self.add_tag {
            operations.push(json!({"op": "add", "path": "/tags/-", "value": self.v}));
        }
        if self.remove_extra {
            operations.push(json!({"op": "remove", "path": "/extra"}));
        }
        let mut patch = json!({"operations": operations});
        if let Some(least) = self.least_n {
            patch["condition"] = format!("FROM c WHERE c.n >= {least}").into();
        }
        patch
    }

    /// The patched body, or the status of the error.
    fn apply(&self, version: &Version) -> Result<Value, u16> {
        let mut body = version.body.clone();
        let n = body["n"].as_i64().unwrap();
        if self.least_n.is_some_and(|least| n < least) {
            return Err(412);
        }
        body["v"] = self.v.into();
        if let Some(by) = self.add_to_n {
            body["n"] = (n + by).into();
        }
        if self.add_tag {
            body["tags"].as_array_mut().unwrap().push(self.v.into());
        }
        if self.remove_extra && body.as_object_mut().unwrap().remove("extra").is_none() {
            return Err(400);
        }
        Ok(body)
    }
}
