//! Writes to one partition, all or nothing.
//!
//! A transaction works on a private copy of the head and only notes what is to change in the state,
//! under the partition's writer lock. Each operation first checks everything that can fail, so a
//! failed operation leaves no trace; whether the changes are carried out is up to the caller. All
//! operations of one transaction share one LSN.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use protocol::lsn::Lsn;
use protocol::partition::EffectivePartitionKey;
use sql::Value;
use thiserror::Error;

use super::document::{Document, DocumentError, terms_of_item};
use super::head::Head;
use super::inbox::Key;
use super::index::{IndexKey, IndexSpace, Term, difference};
use super::partition::PartitionIdentity;
use super::schema::ContainerSchema;
use super::state::{IndexChange, PartitionState, lsn_term};
use crate::disk::DiskError;
use crate::items::{Change, ChangeKind};
use crate::items::{EntityTag, Item, ItemDraft, Ordinal};
use crate::regions::RegionId;

/// In entity tags, regions stand above the operations of one transaction.
const REGION_SHIFT: u32 = 12;
/// Expired items removed by one write at the most.
const PURGE_MAX: usize = 16;

/// What must be true of the stored item for a write to go ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precondition<'a> {
    /// Nothing.
    #[default]
    None,
    /// The stored version has this entity tag; `*` matches any.
    IfMatch(&'a str),
    /// No such item exists: `If-None-Match: *`.
    IfAbsent,
}

/// What a write did.
#[derive(Clone, Debug)]
pub struct WrittenItem {
    /// The new version; for a deletion the one that was removed.
    pub item: Arc<Item>,
    /// The version that was replaced.
    pub previous: Option<Arc<Item>>,
    /// Index terms added and removed.
    pub terms_changed: usize,
}

/// Why a write was refused.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum WriteError {
    #[error("Resource Not Found. No item with that id exists in that logical partition.")]
    NotFound,
    #[error("Resource with specified id or name already exists.")]
    Conflict,
    #[error("Unique index constraint violation.")]
    UniqueConflict,
    #[error("One of the specified pre-condition is not met.")]
    PreconditionFailed,
    #[error("The condition of the patch does not hold for the item.")]
    ConditionFailed,
    #[error("{0}")]
    InvalidPatch(String),
    #[error(transparent)]
    InvalidDocument(#[from] DocumentError),
    #[error(
        "Partition key provided either doesn't correspond to definition in the collection or doesn't \
         match partition key field values specified in the document."
    )]
    PartitionKeyMismatch,
    #[error(transparent)]
    NotPersisted(#[from] DiskError),
}

/// Changes to one partition, being collected.
pub struct Transaction<'a> {
    head: Head,
    /// As it was before; what has changed since is in `index`.
    state: &'a PartitionState,
    identity: &'a PartitionIdentity,
    ordinals: &'a AtomicU64,
    now: u64,
    lsn: Lsn,
    region: RegionId,
    changes: Vec<Arc<Change>>,
    index: Vec<IndexChange>,
}

/// What a transaction came to.
pub(super) struct Outcome {
    pub(super) head: Head,
    pub(super) changes: Vec<Arc<Change>>,
    pub(super) index: Vec<IndexChange>,
}

impl<'a> Transaction<'a> {
    pub(super) fn new(
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
        transaction.purge();
        transaction
    }

    /// The same, by one of several regions that write.
    pub(super) fn in_region(self, region: RegionId) -> Transaction<'a> {
        Transaction { region, ..self }
    }

    /// What is to be carried out, even if that is nothing but how far the copy is.
    pub(super) fn finish_always(self) -> Outcome {
        let Transaction { mut head, lsn, changes, index, .. } = self;
        if !changes.is_empty() {
            head.lsn = lsn;
        }
        Outcome { head, changes, index }
    }

    /// Makes an item exactly what another region says: this version, or gone. Says what it is now; a
    /// version that a unique key keeps out leaves it as it was.
    pub(super) fn adopt(
        &mut self,
        key: &Key,
        wanted: Option<&Arc<Item>>,
    ) -> Result<Option<Arc<Item>>, Option<Arc<Item>>> {
        let present = self.head.get(&key.epk, &key.id).cloned();
        if present.as_ref().map(|item| item.etag()) == wanted.map(|item| item.etag()) {
            return Ok(present);
        }
        let Some(wanted) = wanted else {
            if let Some(old) = present {
                self.remove(&old, ChangeKind::Delete);
            }
            return Ok(None);
        };
        let schema = Arc::clone(&self.head.schema);
        let value = wanted.value();
        let own = present.as_ref().map(|item| item.ordinal);
        let kept_out = schema.unique_keys.iter().any(|unique| {
            let term = [unique.space.to_bytes().as_slice(), &unique.value(&value, &wanted.epk)].concat();
            self.holders(&term).any(|holder| Some(holder) != own)
        });
        if kept_out {
            return Err(present);
        }
        let item = Arc::new(wanted.at_lsn(self.lsn));
        if let Some(old) = &present {
            let terms = terms_of_item(old, &old.value(), &schema);
            terms.iter().for_each(|term| self.note(term, old.ordinal, false));
            self.note_lsn(old.lsn, old.ordinal, false);
            self.head.remove(old);
        }
        let terms = terms_of_item(&item, &value, &schema);
        terms.iter().for_each(|term| self.note(term, item.ordinal, true));
        self.note_lsn(item.lsn, item.ordinal, true);
        self.head.insert(&item);
        let kind = if present.is_some() { ChangeKind::Replace } else { ChangeKind::Create };
        self.record(kind, Arc::clone(&item), present);
        Ok(Some(item))
    }

    /// What is to be carried out, if anything.
    pub(super) fn finish(self) -> Option<Outcome> {
        let Transaction { mut head, lsn, changes, index, .. } = self;
        head.lsn = lsn;
        (!changes.is_empty()).then_some(Outcome { head, changes, index })
    }

    /// The rules in force.
    pub fn schema(&self) -> &Arc<ContainerSchema> {
        &self.head.schema
    }

    /// Whether there is anything to carry out so far.
    pub(crate) fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    /// The item as this transaction sees it.
    pub fn read(&self, epk: &EffectivePartitionKey, id: &str) -> Result<Arc<Item>, WriteError> {
        self.head.get_live(epk, id, self.now).cloned().ok_or(WriteError::NotFound)
    }

    /// Stores a new item.
    pub fn create(&mut self, document: &Document) -> Result<WrittenItem, WriteError> {
        match self.live(&document.epk, &document.id) {
            Some(_) => Err(WriteError::Conflict),
            None => self.insert(document),
        }
    }

    /// Stores an item, new or not.
    pub fn upsert(
        &mut self,
        document: &Document,
        precondition: Precondition<'_>,
    ) -> Result<WrittenItem, WriteError> {
        match self.live(&document.epk, &document.id) {
            Some(old) => {
                check(precondition, &old)?;
                self.put(&old, document)
            }
            None => self.insert(document),
        }
    }

    /// Stores a new version of an existing item; a different id in the document renames it.
    pub fn replace(
        &mut self,
        id: &str,
        document: &Document,
        precondition: Precondition<'_>,
    ) -> Result<WrittenItem, WriteError> {
        let old = self.live(&document.epk, id).ok_or(WriteError::NotFound)?;
        check(precondition, &old)?;
        if document.id != id && self.live(&document.epk, &document.id).is_some() {
            return Err(WriteError::Conflict);
        }
        self.put(&old, document)
    }

    /// Stores what `change` makes of an existing item.
    pub fn patch(
        &mut self,
        epk: &EffectivePartitionKey,
        id: &str,
        precondition: Precondition<'_>,
        change: impl FnOnce(&Value) -> Result<Value, WriteError>,
    ) -> Result<WrittenItem, WriteError> {
        let old = self.live(epk, id).ok_or(WriteError::NotFound)?;
        check(precondition, &old)?;
        let patched = change(&old.value())?;
        let document = Document::from_value(&patched, &self.head.schema, self.now)?;
        if document.epk != *epk || document.id != id {
            return Err(WriteError::InvalidPatch(
                "A patch may not change the id or the partition key of an item; replace or recreate it."
                    .to_owned(),
            ));
        }
        self.put(&old, &document)
    }

    /// Removes an item.
    pub fn delete(
        &mut self,
        epk: &EffectivePartitionKey,
        id: &str,
        precondition: Precondition<'_>,
    ) -> Result<WrittenItem, WriteError> {
        let old = self.live(epk, id).ok_or(WriteError::NotFound)?;
        check(precondition, &old)?;
        let terms_changed = self.remove(&old, ChangeKind::Delete);
        Ok(WrittenItem { item: old, previous: None, terms_changed })
    }

    /// The item, after removing it if its time is over.
    fn live(&mut self, epk: &EffectivePartitionKey, id: &str) -> Option<Arc<Item>> {
        let item = Arc::clone(self.head.get(epk, id)?);
        if item.is_live(self.head.schema.default_ttl, self.now) {
            return Some(item);
        }
        self.remove(&item, ChangeKind::Expire);
        None
    }

    fn purge(&mut self) {
        if self.state.index.count(IndexSpace::EXPIRY).entries == 0 {
            return;
        }
        let expired: Vec<Arc<Item>> = self.state.expired(self.now).take(PURGE_MAX).cloned().collect();
        for item in expired {
            self.remove(&item, ChangeKind::Expire);
        }
    }

    fn insert(&mut self, document: &Document) -> Result<WrittenItem, WriteError> {
        self.check_unique(document, None)?;
        let terms = document.terms_at(self.now, &self.head.schema);
        let ordinal = Ordinal(self.ordinals.fetch_add(1, Ordering::Relaxed));
        let item = self.version(document, ordinal);
        terms.iter().for_each(|term| self.note(term, ordinal, true));
        self.note_lsn(item.lsn, ordinal, true);
        self.head.insert(&item);
        self.record(ChangeKind::Create, Arc::clone(&item), None);
        Ok(WrittenItem { item, previous: None, terms_changed: terms.scalars() as usize })
    }

    fn put(&mut self, old: &Arc<Item>, document: &Document) -> Result<WrittenItem, WriteError> {
        self.check_unique(document, Some(old.ordinal))?;
        let old_terms = document.terms_of_replaced(old, &self.head.schema);
        let terms = document.terms_at(self.now, &self.head.schema);
        let item = self.version(document, old.ordinal);
        let (removed, added) = difference(&old_terms, &terms);
        let terms_changed = removed.len() + added.len();
        removed.into_iter().for_each(|term| self.note(term, old.ordinal, false));
        added.into_iter().for_each(|term| self.note(term, old.ordinal, true));
        self.note_lsn(old.lsn, old.ordinal, false);
        self.note_lsn(item.lsn, old.ordinal, true);
        self.head.replace(old, &item);
        self.record(ChangeKind::Replace, Arc::clone(&item), Some(Arc::clone(old)));
        Ok(WrittenItem { item, previous: Some(Arc::clone(old)), terms_changed })
    }

    fn remove(&mut self, item: &Arc<Item>, kind: ChangeKind) -> usize {
        let terms = terms_of_item(item, &item.value(), &self.head.schema);
        terms.iter().for_each(|term| self.note(term, item.ordinal, false));
        self.note_lsn(item.lsn, item.ordinal, false);
        self.head.remove(item);
        self.record(kind, Arc::clone(item), None);
        terms.scalars() as usize
    }

    fn check_unique(&self, document: &Document, own: Option<Ordinal>) -> Result<(), WriteError> {
        let taken = |term: Vec<u8>| self.holders(&term).any(|holder| Some(holder) != own);
        if document.unique_terms(&self.head.schema).any(taken) {
            Err(WriteError::UniqueConflict)
        } else {
            Ok(())
        }
    }

    /// The items under exactly `term`, with the changes of this transaction.
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

    fn version(&self, document: &Document, ordinal: Ordinal) -> Arc<Item> {
        let operation = self.changes.len() as u32 | u32::from(self.region.0) << REGION_SHIFT;
        let etag = EntityTag::new(self.identity.id, self.lsn, operation, self.now);
        Arc::new(Item::new(ItemDraft {
            ordinal,
            id: document.id.clone(),
            epk: document.epk.clone(),
            lsn: self.lsn,
            modified_at: self.now,
            ttl: document.ttl,
            user_text: &document.user_text,
            container_link: &self.identity.container_link,
            rid: &self.identity.item_rid(ordinal),
            etag: &etag,
        }))
    }

    fn note(&mut self, term: Term<'_>, ordinal: Ordinal, added: bool) {
        let entry = IndexKey::of_term(term.bytes, ordinal);
        self.index.push(IndexChange { entry, imprecise: term.imprecise, added });
    }

    fn note_lsn(&mut self, lsn: Lsn, ordinal: Ordinal, added: bool) {
        self.note(Term { bytes: &lsn_term(lsn), imprecise: false }, ordinal, added);
    }

    fn record(&mut self, kind: ChangeKind, item: Arc<Item>, previous: Option<Arc<Item>>) {
        self.changes.push(Arc::new(Change { lsn: self.lsn, kind, item, previous, at: self.now }));
    }
}

fn check(precondition: Precondition<'_>, item: &Item) -> Result<(), WriteError> {
    let holds = match precondition {
        Precondition::None => true,
        Precondition::IfMatch(tag) => {
            tag == "*" || tag == item.etag_str() || tag == item.etag_str().trim_matches('"')
        }
        Precondition::IfAbsent => false,
    };
    if holds { Ok(()) } else { Err(WriteError::PreconditionFailed) }
}
