//! What is wanted: made once, never changed while it is carried out.
//!
//! An [`Operation`] says what ([`OperationKind`]) is done to what ([`Target`]), where in EPK space
//! ([`Scope`]), with which body and under which condition. How it is carried out is in `options`; what came
//! of it is a [`Response`](crate::Response).

mod headers;
mod invalid;
mod kind;
mod name;
mod target;

use std::borrow::Cow;

use bytes::Bytes;
use protocol::partition::{EpkRange, PartitionKey};
use protocol::partition_range::RangeId;
use protocol::status::Status;

pub use self::headers::ResponseHeaders;
pub use self::kind::{Access, OperationKind, Plane};
pub use self::target::{ContainerName, Target};

/// Which part of a container an operation is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// No part: metadata, or whatever the gateway makes of it.
    #[default]
    Container,
    /// One logical partition, by its key.
    Key(PartitionKey),
    /// An EPK range. The driver finds the physical partition that covers it; an EPK range that more
    /// than one covers (after a split) gets 410/1002, and the caller divides it.
    Range(EpkRange),
    /// One physical partition, by its id.
    Partition(RangeId),
}

/// Under which condition the operation is carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Precondition {
    /// The operation is carried out in any case.
    #[default]
    None,
    /// Only if the resource still has this ETag.
    IfMatch(String),
    /// Only if it no longer has this ETag; on change feeds, where to continue.
    IfNoneMatch(String),
}

/// One thing to do. Build it with [`Operation::new`] and the `with_` methods.
#[derive(Clone, Debug)]
pub struct Operation {
    kind: OperationKind,
    target: Target,
    scope: Scope,
    /// The key of the scope, as it is sent.
    key_header: Option<String>,
    body: Bytes,
    precondition: Precondition,
    session_token: Option<String>,
    headers: Vec<(&'static str, Cow<'static, str>)>,
    repeatable: bool,
}

impl Operation {
    /// An operation without body, key or condition.
    pub fn new(kind: OperationKind, target: Target) -> Operation {
        Operation {
            kind,
            target,
            scope: Scope::Container,
            key_header: None,
            body: Bytes::new(),
            precondition: Precondition::None,
            session_token: None,
            headers: Vec::new(),
            repeatable: false,
        }
    }

    /// An operation that reads one item.
    pub fn read_item(container: &ContainerName, key: PartitionKey, id: &str) -> Operation {
        Operation::new(OperationKind::Read, Target::item(container, id)).with_scope(Scope::Key(key))
    }

    /// Makes a new item of `body`.
    pub fn create_item(container: &ContainerName, key: PartitionKey, body: impl Into<Bytes>) -> Operation {
        Operation::new(OperationKind::Create, Target::items(container))
            .with_scope(Scope::Key(key))
            .with_body(body)
    }

    /// Writes an item, whether it is there or not.
    pub fn upsert_item(container: &ContainerName, key: PartitionKey, body: impl Into<Bytes>) -> Operation {
        Operation::new(OperationKind::Upsert, Target::items(container))
            .with_scope(Scope::Key(key))
            .with_body(body)
    }

    /// Writes over an item that is there.
    pub fn replace_item(
        container: &ContainerName,
        key: PartitionKey,
        id: &str,
        body: impl Into<Bytes>,
    ) -> Operation {
        Operation::new(OperationKind::Replace, Target::item(container, id))
            .with_scope(Scope::Key(key))
            .with_body(body)
    }

    /// An operation that deletes an item.
    pub fn delete_item(container: &ContainerName, key: PartitionKey, id: &str) -> Operation {
        Operation::new(OperationKind::Delete, Target::item(container, id)).with_scope(Scope::Key(key))
    }

    /// Sets the part of the container that the operation is about.
    #[must_use]
    pub fn with_scope(mut self, scope: Scope) -> Operation {
        self.key_header = match &scope {
            Scope::Key(key) => Some(key.to_header()),
            Scope::Container | Scope::Range(_) | Scope::Partition(_) => None,
        };
        self.scope = scope;
        self
    }

    /// Sets the body of the request.
    #[must_use]
    pub fn with_body(mut self, body: impl Into<Bytes>) -> Operation {
        self.body = body.into();
        self
    }

    /// Sets the precondition of the operation.
    #[must_use]
    pub fn with_precondition(mut self, precondition: Precondition) -> Operation {
        self.precondition = precondition;
        self
    }

    /// Reads at least what this session token has seen, instead of what this driver has.
    #[must_use]
    pub fn with_session_token(mut self, token: impl Into<String>) -> Operation {
        self.session_token = Some(token.into());
        self
    }

    /// Adds a header. A name given twice is sent with its last value.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: impl Into<Cow<'static, str>>) -> Operation {
        self.headers.push((name, value.into()));
        self
    }

    /// Marks the operation as idempotent: the caller knows that carrying it out twice is the same as once, so it
    /// may be repeated when it may have been received.
    #[must_use]
    pub fn repeatable(mut self) -> Operation {
        self.repeatable = true;
        self
    }

    /// The kind of the operation.
    pub fn kind(&self) -> OperationKind {
        self.kind
    }

    /// The resource that the operation is about.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// In which part of the container.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The logical partition, as the header writes it.
    pub fn key_header(&self) -> Option<&str> {
        self.key_header.as_deref()
    }

    /// With which body; empty for none.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// The precondition of the operation.
    pub fn precondition(&self) -> &Precondition {
        &self.precondition
    }

    /// The session token the caller gave.
    pub fn session_token(&self) -> Option<&str> {
        self.session_token.as_deref()
    }

    /// The headers the caller gave, in order.
    pub fn headers(&self) -> &[(&'static str, Cow<'static, str>)] {
        &self.headers
    }

    /// Whether the operation is about data or metadata.
    pub fn plane(&self) -> Plane {
        Plane::of(self.kind, self.target.resource())
    }

    /// Whether it leaves everything as it was.
    pub fn is_read_only(&self) -> bool {
        self.kind.is_read_only()
    }

    /// Whether the operation reads or writes, as circuit breakers tell them apart.
    pub(crate) fn access(&self) -> Access {
        if self.is_read_only() { Access::Read } else { Access::Write }
    }

    /// Whether the service would respond with `status` because an earlier attempt of this operation was carried out.
    pub fn may_have_caused(&self, status: Status) -> bool {
        self.kind.may_have_caused(status, self.precondition != Precondition::None)
    }

    /// Whether it may be sent again although it may have been received.
    pub fn is_idempotent(&self) -> bool {
        self.repeatable || self.kind.is_idempotent()
    }
}
