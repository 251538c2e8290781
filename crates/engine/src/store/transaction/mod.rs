//! Transactions: writes to one partition, all or nothing.
//!
//! A transaction works on a private clone of the head and records the index changes to make, under the
//! partition's write guard. Each operation first checks everything that can fail, so a failed operation
//! leaves no trace; whether the changes are committed is up to the caller. All operations of one transaction
//! share one LSN.

pub(in crate::store) mod document;
pub(in crate::store) mod patch;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use protocol::lsn::Lsn;
use protocol::partition::EffectivePartitionKey;
use sql::Value;
use thiserror::Error;

use crate::disk::DiskError;
use crate::items::{Change, ChangeKind};
use crate::items::{EntityTag, Item, ItemParts, Ordinal};
use crate::regions::RegionId;
use crate::store::index::{IndexKey, IndexSpace, Term, difference};
use crate::store::partition::PartitionIdentity;
use crate::store::replica::head::Head;
use crate::store::replica::state::{IndexChange, PartitionState, lsn_term};
use crate::store::replication::message::ItemKey;
use crate::store::schema::ContainerSchema;
use crate::store::transaction::document::{Document, DocumentError, terms_of_item};

/// In entity tags, the region is stored above the operation's number.
const REGION_SHIFT: u32 = 12;
/// Expired items that one write deletes, at most.
const PURGE_MAX: usize = 16;

/// The precondition of a write on the stored item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precondition<'a> {
    /// No precondition: the write is unconditional.
    #[default]
    None,
    /// The stored version has this entity tag; `*` matches any.
    IfMatch(&'a str),
    /// No such item exists: `If-None-Match: *`.
    IfAbsent,
}

/// The versions that a write made and replaced.
#[derive(Clone, Debug)]
pub struct WrittenItem {
    /// The new version; for a deletion the one that was removed.
    pub item: Arc<Item>,
    /// The version that was replaced.
    pub previous: Option<Arc<Item>>,
    /// Index terms added and removed.
    pub terms_changed: usize,
}

/// Why a write failed.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum WriteError {
    /// The item does not exist.
    #[error("Resource Not Found. No item with that id exists in that logical partition.")]
    NotFound,
    /// Another item has the id.
    #[error("Resource with specified id or name already exists.")]
    Conflict,
    /// Another item has the same values under a unique key.
    #[error("Unique index constraint violation.")]
    UniqueConflict,
    /// The entity tag does not match.
    #[error("One of the specified pre-condition is not met.")]
    PreconditionFailed,
    /// The filter condition of a patch does not hold.
    #[error("The condition of the patch does not hold for the item.")]
    ConditionFailed,
    /// The patch cannot be applied; the text says why.
    #[error("{0}")]
    InvalidPatch(String),
    /// The document cannot be stored.
    #[error(transparent)]
    InvalidDocument(#[from] DocumentError),
    /// The request's partition key is not the document's.
    #[error(
        "Partition key provided either doesn't correspond to definition in the collection or doesn't \
         match partition key field values specified in the document."
    )]
    PartitionKeyMismatch,
    /// The write could not be persisted, and was not made.
    #[error(transparent)]
    NotPersisted(#[from] DiskError),
}

/// A transaction of one partition, before its commit.
pub struct Transaction<'a> {
    head: Head,
    /// The state before the transaction; what it changes is in `index`.
    state: &'a PartitionState,
    identity: &'a PartitionIdentity,
    ordinals: &'a AtomicU64,
    now: u64,
    lsn: Lsn,
    region: RegionId,
    changes: Vec<Arc<Change>>,
    index: Vec<IndexChange>,
}

/// What a transaction changes, to be committed.
pub(in crate::store) struct TransactionOutcome {
    pub(in crate::store) head: Head,
    pub(in crate::store) changes: Vec<Arc<Change>>,
    pub(in crate::store) index: Vec<IndexChange>,
}

impl<'a> Transaction<'a> {
    pub(in crate::store) fn new(
        head: Head,
        state: &'a PartitionState,
        identity: &'a PartitionIdentity,
        ordinals: &'a AtomicU64,
        now: u64,
    ) -> Transaction<'a> {
        let lsn = Lsn(head.lsn.0 + 1);
        let (changes, index) = (Vec::new(), Vec::new());
        let region = RegionId::default();
        let mut transaction =
            Transaction { head, state, identity, ordinals, now, lsn, region, changes, index };
        transaction.purge_expired_items();
        transaction
    }

    /// Marks the transaction as made in one of several write regions, for its entity tags.
    pub(in crate::store) fn in_region(self, region: RegionId) -> Transaction<'a> {
        Transaction { region, ..self }
    }

    /// The outcome to commit, even if only the replica's progress changes.
    pub(in crate::store) fn finish_always(self) -> TransactionOutcome {
        let Transaction { mut head, lsn, changes, index, .. } = self;
        if !changes.is_empty() {
            head.lsn = lsn;
        }
        TransactionOutcome { head, changes, index }
    }

    /// Makes an item exactly what another region says: this version, or deleted. Returns what it is now; a
    /// version that violates a unique key leaves it as it was.
    pub(in crate::store) fn apply_version(
        &mut self,
        key: &ItemKey,
        wanted: Option<&Arc<Item>>,
    ) -> Result<Option<Arc<Item>>, Option<Arc<Item>>> {
        let present = self.head.get(&key.epk, &key.id).cloned();
        if present.as_ref().map(|item| item.etag()) == wanted.map(|item| item.etag()) {
            return Ok(present);
        }
        let Some(wanted) = wanted else {
            if let Some(old) = present {
                self.remove_item(&old, ChangeKind::Delete);
            }
            return Ok(None);
        };
        let schema = Arc::clone(&self.head.schema);
        let value = wanted.value();
        let own = present.as_ref().map(|item| item.ordinal);
        let violates_unique_key = schema.unique_keys.iter().any(|unique| {
            let term = [unique.space.to_bytes().as_slice(), &unique.value(&value, &wanted.epk)].concat();
            self.holders(&term).any(|holder| Some(holder) != own)
        });
        if violates_unique_key {
            return Err(present);
        }
        let item = Arc::new(wanted.at_lsn(self.lsn));
        if let Some(old) = &present {
            let terms = terms_of_item(old, &old.value(), &schema);
            terms.iter().for_each(|term| self.push_index_change(term, old.ordinal, false));
            self.push_lsn_change(old.lsn, old.ordinal, false);
            self.head.remove(old);
        }
        let terms = terms_of_item(&item, &value, &schema);
        terms.iter().for_each(|term| self.push_index_change(term, item.ordinal, true));
        self.push_lsn_change(item.lsn, item.ordinal, true);
        self.head.insert(&item);
        let kind = if present.is_some() { ChangeKind::Replace } else { ChangeKind::Create };
        self.record(kind, Arc::clone(&item), present);
        Ok(Some(item))
    }

    /// The outcome to commit, if anything changed.
    pub(in crate::store) fn finish(self) -> Option<TransactionOutcome> {
        let Transaction { mut head, lsn, changes, index, .. } = self;
        head.lsn = lsn;
        (!changes.is_empty()).then_some(TransactionOutcome { head, changes, index })
    }

    /// The schema of the container.
    pub fn schema(&self) -> &Arc<ContainerSchema> {
        &self.head.schema
    }

    /// Whether the transaction has changed anything so far.
    pub(crate) fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    /// The item as this transaction sees it.
    pub fn read(&self, epk: &EffectivePartitionKey, id: &str) -> Result<Arc<Item>, WriteError> {
        self.head.get_live(epk, id, self.now).cloned().ok_or(WriteError::NotFound)
    }

    /// Stores a new item.
    pub fn create(&mut self, document: &Document) -> Result<WrittenItem, WriteError> {
        match self.live_item(&document.epk, &document.id) {
            Some(_) => Err(WriteError::Conflict),
            None => self.insert_item(document),
        }
    }

    /// Stores an item, new or not.
    pub fn upsert(
        &mut self,
        document: &Document,
        precondition: Precondition<'_>,
    ) -> Result<WrittenItem, WriteError> {
        match self.live_item(&document.epk, &document.id) {
            Some(old) => {
                check(precondition, &old)?;
                self.replace_item(&old, document)
            }
            None => self.insert_item(document),
        }
    }

    /// Stores a new version of an existing item; a different id in the document renames it.
    pub fn replace(
        &mut self,
        id: &str,
        document: &Document,
        precondition: Precondition<'_>,
    ) -> Result<WrittenItem, WriteError> {
        let old = self.live_item(&document.epk, id).ok_or(WriteError::NotFound)?;
        check(precondition, &old)?;
        if document.id != id && self.live_item(&document.epk, &document.id).is_some() {
            return Err(WriteError::Conflict);
        }
        self.replace_item(&old, document)
    }

    /// Replaces an existing item by what `change` makes of it.
    pub fn patch(
        &mut self,
        epk: &EffectivePartitionKey,
        id: &str,
        precondition: Precondition<'_>,
        change: impl FnOnce(&Value) -> Result<Value, WriteError>,
    ) -> Result<WrittenItem, WriteError> {
        let old = self.live_item(epk, id).ok_or(WriteError::NotFound)?;
        check(precondition, &old)?;
        let patched = change(&old.value())?;
        let document = Document::from_value(&patched, &self.head.schema, self.now)?.indexed(old.is_indexed);
        if document.epk != *epk || document.id != id {
            return Err(WriteError::InvalidPatch(
                "A patch may not change the id or the partition key of an item; replace or recreate it."
                    .to_owned(),
            ));
        }
        self.replace_item(&old, &document)
    }

    /// Deletes an existing item.
    pub fn delete(
        &mut self,
        epk: &EffectivePartitionKey,
        id: &str,
        precondition: Precondition<'_>,
    ) -> Result<WrittenItem, WriteError> {
        let old = self.live_item(epk, id).ok_or(WriteError::NotFound)?;
        check(precondition, &old)?;
        let terms_changed = self.remove_item(&old, ChangeKind::Delete);
        Ok(WrittenItem { item: old, previous: None, terms_changed })
    }

    /// The item if it is live; an expired one is deleted first.
    fn live_item(&mut self, epk: &EffectivePartitionKey, id: &str) -> Option<Arc<Item>> {
        let item = Arc::clone(self.head.get(epk, id)?);
        if item.is_live(self.head.schema.default_ttl, self.now) {
            return Some(item);
        }
        self.remove_item(&item, ChangeKind::Expire);
        None
    }

    fn purge_expired_items(&mut self) {
        if self.state.index.count(IndexSpace::EXPIRY).entries == 0 {
            return;
        }
        let expired: Vec<Arc<Item>> = self.state.expired(self.now).take(PURGE_MAX).cloned().collect();
        for item in expired {
            self.remove_item(&item, ChangeKind::Expire);
        }
    }

    fn insert_item(&mut self, document: &Document) -> Result<WrittenItem, WriteError> {
        self.check_unique(document, None)?;
        let terms = document.terms_at(self.now, &self.head.schema);
        // Relaxed: only uniqueness matters; ordinals order nothing else.
        let ordinal = Ordinal(self.ordinals.fetch_add(1, Ordering::Relaxed));
        let item = self.new_version(document, ordinal);
        terms.iter().for_each(|term| self.push_index_change(term, ordinal, true));
        self.push_lsn_change(item.lsn, ordinal, true);
        self.head.insert(&item);
        self.record(ChangeKind::Create, Arc::clone(&item), None);
        Ok(WrittenItem { item, previous: None, terms_changed: terms.scalars() as usize })
    }

    fn replace_item(&mut self, old: &Arc<Item>, document: &Document) -> Result<WrittenItem, WriteError> {
        self.check_unique(document, Some(old.ordinal))?;
        let old_terms = document.terms_of_replaced(old, &self.head.schema);
        let terms = document.terms_at(self.now, &self.head.schema);
        let item = self.new_version(document, old.ordinal);
        let (removed, added) = difference(&old_terms, &terms);
        let terms_changed = removed.len() + added.len();
        removed.into_iter().for_each(|term| self.push_index_change(term, old.ordinal, false));
        added.into_iter().for_each(|term| self.push_index_change(term, old.ordinal, true));
        self.push_lsn_change(old.lsn, old.ordinal, false);
        self.push_lsn_change(item.lsn, old.ordinal, true);
        self.head.replace(old, &item);
        self.record(ChangeKind::Replace, Arc::clone(&item), Some(Arc::clone(old)));
        Ok(WrittenItem { item, previous: Some(Arc::clone(old)), terms_changed })
    }

    fn remove_item(&mut self, item: &Arc<Item>, kind: ChangeKind) -> usize {
        let terms = terms_of_item(item, &item.value(), &self.head.schema);
        terms.iter().for_each(|term| self.push_index_change(term, item.ordinal, false));
        self.push_lsn_change(item.lsn, item.ordinal, false);
        self.head.remove(item);
        self.record(kind, Arc::clone(item), None);
        terms.scalars() as usize
    }

    fn check_unique(&self, document: &Document, own: Option<Ordinal>) -> Result<(), WriteError> {
        let applied = |term: Vec<u8>| self.holders(&term).any(|holder| Some(holder) != own);
        if document.unique_terms(&self.head.schema).any(applied) {
            Err(WriteError::UniqueConflict)
        } else {
            Ok(())
        }
    }

    /// The items with exactly this index term, including the changes of this transaction.
    fn holders(&self, term: &[u8]) -> impl Iterator<Item = Ordinal> {
        let mut holders: Vec<Ordinal> = self.state.index.ordinals_under(term).collect();
        for change in self.index.iter().filter(|change| change.entry.term() == term) {
            match change.added {
                true => holders.push(change.entry.ordinal()),
                false => holders.retain(|holder| *holder != change.entry.ordinal()),
            }
        }
        holders.into_iter()
    }

    fn new_version(&self, document: &Document, ordinal: Ordinal) -> Arc<Item> {
        let operation = self.changes.len() as u32 | u32::from(self.region.0) << REGION_SHIFT;
        let etag = EntityTag::new(self.identity.id, self.lsn, operation, self.now);
        Arc::new(Item::new(ItemParts {
            ordinal,
            id: document.id.clone(),
            epk: document.epk.clone(),
            lsn: self.lsn,
            modified_at: self.now,
            ttl: document.ttl,
            is_indexed: document.is_indexed,
            user_text: &document.user_text,
            container_link: &self.identity.container_link,
            rid: &self.identity.item_rid(ordinal),
            etag: &etag,
        }))
    }

    fn push_index_change(&mut self, term: Term<'_>, ordinal: Ordinal, added: bool) {
        let entry = IndexKey::of_term(term.bytes, ordinal);
        self.index.push(IndexChange { entry, imprecise: term.imprecise, added });
    }

    fn push_lsn_change(&mut self, lsn: Lsn, ordinal: Ordinal, added: bool) {
        self.push_index_change(Term { bytes: &lsn_term(lsn), imprecise: false }, ordinal, added);
    }

    fn record(&mut self, kind: ChangeKind, item: Arc<Item>, previous: Option<Arc<Item>>) {
        self.changes.push(Arc::new(Change { lsn: self.lsn, kind, item, previous, at: self.now }));
    }
}

fn check(precondition: Precondition<'_>, item: &Item) -> Result<(), WriteError> {
    let contains_lsn = match precondition {
        Precondition::None => true,
        Precondition::IfMatch(tag) => {
            tag == "*" || tag == item.etag_str() || tag == item.etag_str().trim_matches('"')
        }
        Precondition::IfAbsent => false,
    };
    if contains_lsn { Ok(()) } else { Err(WriteError::PreconditionFailed) }
}
