//! One operation of a bulk, and how it is written on the wire.

use bytes::Bytes;
use protocol::batch::BatchOperationType;
use protocol::partition::PartitionKey;

use crate::operation::OperationKind;

/// One operation on one item. Its body is bytes of exactly one JSON value, as it will be sent.
#[derive(Clone, Debug)]
pub struct BulkOperation {
    kind: BatchOperationType,
    key: PartitionKey,
    /// The partition key as its header value.
    key_text: String,
    id: Option<String>,
    body: Bytes,
    if_match: Option<String>,
    repeatable: bool,
}

impl BulkOperation {
    /// An operation that creates an item.
    pub fn create(key: PartitionKey, body: impl Into<Bytes>) -> BulkOperation {
        BulkOperation::new(BatchOperationType::Create, key, None, body.into())
    }

    /// An operation that creates or replaces an item.
    pub fn upsert(key: PartitionKey, body: impl Into<Bytes>) -> BulkOperation {
        BulkOperation::new(BatchOperationType::Upsert, key, None, body.into())
    }

    /// An operation that replaces an existing item.
    pub fn replace(key: PartitionKey, id: &str, body: impl Into<Bytes>) -> BulkOperation {
        BulkOperation::new(BatchOperationType::Replace, key, Some(id), body.into())
    }

    /// An operation that changes parts of an item: `body` is the instructions, as a patch request has them.
    pub fn patch(key: PartitionKey, id: &str, body: impl Into<Bytes>) -> BulkOperation {
        BulkOperation::new(BatchOperationType::Patch, key, Some(id), body.into())
    }

    /// An operation that reads an item.
    pub fn read(key: PartitionKey, id: &str) -> BulkOperation {
        BulkOperation::new(BatchOperationType::Read, key, Some(id), Bytes::new())
    }

    /// An operation that deletes an item.
    pub fn delete(key: PartitionKey, id: &str) -> BulkOperation {
        BulkOperation::new(BatchOperationType::Delete, key, Some(id), Bytes::new())
    }

    fn new(kind: BatchOperationType, key: PartitionKey, id: Option<&str>, body: Bytes) -> BulkOperation {
        let key_text = key.to_header();
        let id = id.map(str::to_owned);
        BulkOperation { kind, key, key_text, id, body, if_match: None, repeatable: false }
    }

    /// Carries the operation out only if the item still has this ETag.
    #[must_use]
    pub fn with_if_match(mut self, etag: impl Into<String>) -> BulkOperation {
        self.if_match = Some(etag.into());
        self
    }

    /// Marks the operation as idempotent: when its response is lost, it is sent again instead of ending as
    /// [`Undecided`](crate::ErrorKind::Undecided). A create that then gets 409 still ends so, because the item may
    /// be its own or another client's.
    #[must_use]
    pub fn repeatable(mut self) -> BulkOperation {
        self.repeatable = true;
        self
    }

    /// The kind of the operation.
    pub fn kind(&self) -> OperationKind {
        match self.kind {
            BatchOperationType::Create => OperationKind::Create,
            BatchOperationType::Upsert => OperationKind::Upsert,
            BatchOperationType::Replace => OperationKind::Replace,
            BatchOperationType::Read => OperationKind::Read,
            BatchOperationType::Delete => OperationKind::Delete,
            BatchOperationType::Patch => OperationKind::Patch,
        }
    }

    /// The partition key of its item.
    pub fn key(&self) -> &PartitionKey {
        &self.key
    }

    pub(super) fn is_conditional(&self) -> bool {
        self.if_match.is_some()
    }

    /// Whether it may be sent again although it may have been carried out.
    pub(super) fn may_be_repeated(&self) -> bool {
        self.repeatable || self.kind == BatchOperationType::Read
    }

    /// About how many bytes it adds to a request.
    pub(super) fn bytes(&self) -> usize {
        // Names, quotes and a few escapes.
        const AROUND: usize = 96;
        let texts = [self.id.as_deref(), self.if_match.as_deref()];
        AROUND
            + self.body.len()
            + self.key_text.len()
            + texts.into_iter().flatten().map(str::len).sum::<usize>()
    }

    fn write(&self, to: &mut Vec<u8>) {
        let mut text = |name: &str, value: &str| {
            to.extend_from_slice(name.as_bytes());
            serde_json::to_writer(&mut *to, value).expect("text is JSON, and memory takes it");
        };
        text("{\"operationType\":", self.kind.name());
        text(",\"partitionKey\":", &self.key_text);
        if let Some(id) = &self.id {
            text(",\"id\":", id);
        }
        if let Some(etag) = &self.if_match {
            text(",\"ifMatch\":", etag);
        }
        if !self.body.is_empty() {
            to.extend_from_slice(b",\"resourceBody\":");
            to.extend_from_slice(&self.body);
        }
        to.push(b'}');
    }
}

/// The body of a request with these operations.
pub(super) fn write_batch<'a>(operations: impl Iterator<Item = &'a BulkOperation> + Clone) -> Bytes {
    let mut body = Vec::with_capacity(2 + operations.clone().map(BulkOperation::bytes).sum::<usize>());
    for operation in operations {
        body.push(if body.is_empty() { b'[' } else { b',' });
        operation.write(&mut body);
    }
    body.push(b']');
    body.into()
}

#[cfg(test)]
mod tests {
    use protocol::batch::parse_operations;

    use super::*;

    #[test]
    fn a_batch_is_what_the_service_reads() {
        let key = || PartitionKey::single("k\"é");
        let operations = [
            BulkOperation::create(key(), r#"{"id":"1"}"#),
            BulkOperation::upsert(key(), r#"{"id":"2"}"#).with_if_match("\"e\""),
            BulkOperation::replace(key(), "3", r#"{"id":"3"}"#),
            BulkOperation::patch(key(), "4", r#"{"operations":[]}"#),
            BulkOperation::read(key(), "5\\"),
            BulkOperation::delete(key(), "6"),
        ];
        let body = write_batch(operations.iter());
        let read = parse_operations(&body).expect("a batch");
        let ids: Vec<_> = read.iter().map(|operation| operation.id.as_deref()).collect();
        assert_eq!(ids, [None, None, Some("3"), Some("4"), Some("5\\"), Some("6")]);
        assert_eq!(read[1].if_match.as_deref(), Some("\"e\""));
        for (read, sent) in read.iter().zip(&operations) {
            assert_eq!(read.partition_key_text().as_deref(), Some(&*key().to_header()));
            assert_eq!(read.resource_body.map_or("", |body| body.get()).as_bytes(), &sent.body[..]);
        }
        let announced: usize = operations.iter().map(BulkOperation::bytes).sum();
        assert!(body.len() <= announced + 2, "{} of {announced}", body.len());
    }
}
