//! A document as index terms: for each indexed path, `space · value`.
//!
//! Once sorted, terms are unique and in order, so that the difference between two versions of an item is one merge
//! of two lists. Arrays and objects leave a marker at their own path (they are defined there, and
//! sort after the scalars) and terms for what they contain.

use protocol::container::IndexingNode;
use sql::Value;
use sql::value::{OrderKeyPrecision, ValueKind, encode_order_key};

use super::policy::{Composite, Policy, is_time};
use super::space::{IndexSpace, Step};
use crate::items::is_system_member;

/// The terms of one document, back to back in one buffer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Terms {
    bytes: Vec<u8>,
    spans: Vec<Span>,
    scalars: u32,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    /// The space that the term begins with, at hand for comparisons.
    space: IndexSpace,
    start: u32,
    end: u32,
    /// The value is longer than the term, or has an order the term does not show.
    imprecise: bool,
}

/// One term: space and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Term<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) imprecise: bool,
}

impl Terms {
    /// The terms of `document` under `policy`. Cost grows with the document.
    pub(crate) fn of(document: &Value, policy: &Policy) -> Terms {
        let mut terms = Terms { bytes: Vec::with_capacity(1024), spans: Vec::with_capacity(32), scalars: 0 };
        if let (Some(members), Some(root)) = (document.as_object(), policy.root()) {
            for (name, value) in members.iter().filter(|(name, _)| !is_system_member(name)) {
                terms.walk(value, IndexSpace::ROOT.member(name), root.property(name), name == "id");
            }
        }
        for composite in policy.composites().iter().filter(|composite| !composite.uses_time()) {
            terms.add_composite(document, composite, 0);
        }
        terms
    }

    /// Adds what depends on the time of writing: `_ts` and the composite indexes that include it.
    pub(crate) fn add_time(&mut self, document: &Value, policy: &Policy, seconds: u64) {
        if let Some(space) = policy.time() {
            let start = self.open(space);
            encode_order_key(&Value::from(seconds as i64), &mut self.bytes);
            self.close(start, false);
            self.scalars += 1;
        }
        for composite in policy.composites().iter().filter(|composite| composite.uses_time()) {
            self.add_composite(document, composite, seconds);
        }
    }

    /// How many scalar values are indexed: what a write pays for.
    pub(crate) fn scalars(&self) -> u32 {
        self.scalars
    }

    /// The terms in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Term<'_>> {
        self.spans.iter().map(|span| self.term(*span))
    }

    /// Adds one term that the policy does not govern. Call [`Terms::sort`] when all are added.
    pub(crate) fn add(&mut self, space: IndexSpace, value: &[u8]) {
        let start = self.open(space);
        self.bytes.extend_from_slice(value);
        self.close(start, false);
    }

    /// Puts the terms in order and drops repetitions (equal elements of one array).
    pub(crate) fn sort(&mut self) {
        let bytes = &self.bytes;
        let slice = |span: &Span| &bytes[span.start as usize..span.end as usize];
        // Few terms share a space, and spaces order as the bytes they are written as.
        self.spans.sort_unstable_by(|a, b| a.space.cmp(&b.space).then_with(|| slice(a).cmp(slice(b))));
        self.spans.dedup_by(|a, b| a.space == b.space && slice(a) == slice(b));
    }

    fn term(&self, span: Span) -> Term<'_> {
        Term { bytes: &self.bytes[span.start as usize..span.end as usize], imprecise: span.imprecise }
    }

    /// Begins a term: what follows until [`Terms::close`] is its value.
    fn open(&mut self, space: IndexSpace) -> (IndexSpace, usize) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&space.to_bytes());
        (space, start)
    }

    fn close(&mut self, (space, start): (IndexSpace, usize), imprecise: bool) {
        self.spans.push(Span { space, start: start as u32, end: self.bytes.len() as u32, imprecise });
    }

    fn walk(&mut self, value: &Value, space: IndexSpace, place: IndexingNode<'_>, always: bool) {
        if place.is_all_excluded() && !always {
            return;
        }
        let here = place.is_indexed() || always;
        match value {
            Value::Undefined => {}
            Value::Object(members) => {
                if here {
                    self.mark(space, ValueKind::Object);
                }
                for (name, member) in members.iter() {
                    self.walk(member, space.member(name), place.property(name), false);
                }
            }
            Value::Array(elements) => {
                if here {
                    self.mark(space, ValueKind::Array);
                }
                for element in elements.iter() {
                    self.walk(element, space.element(), place.element(), false);
                }
            }
            scalar if here => {
                let start = self.open(space);
                let precision = encode_order_key(scalar, &mut self.bytes);
                self.close(start, precision == Some(OrderKeyPrecision::Prefix));
                self.scalars += 1;
            }
            _ => {}
        }
    }

    fn mark(&mut self, space: IndexSpace, kind: ValueKind) {
        let start = self.open(space);
        self.bytes.push(kind as u8);
        self.close(start, true);
    }

    /// Every document has an entry in every composite index: a missing part sorts first.
    fn add_composite(&mut self, document: &Value, composite: &Composite, seconds: u64) {
        let start = self.open(composite.space);
        let mut imprecise = false;
        let time = Value::from(seconds as i64);
        for (path, descending) in &composite.parts {
            let part_start = self.bytes.len();
            let value = if is_time(path) { &time } else { follow(document, path) };
            match encode_order_key(value, &mut self.bytes) {
                Some(precision) => imprecise |= precision == OrderKeyPrecision::Prefix,
                None => {
                    self.bytes.push(value.kind() as u8);
                    imprecise |= value.is_defined();
                }
            }
            if *descending {
                self.bytes[part_start..].iter_mut().for_each(|byte| *byte = !*byte);
            }
        }
        self.close(start, imprecise);
    }
}

/// The value at a path of members; undefined when it is not there.
pub(crate) fn follow<'a>(document: &'a Value, path: &[Step]) -> &'a Value {
    path.iter().fold(document, |value, step| match step {
        Step::Key(name) => value.member(name),
        Step::Element => &Value::Undefined,
    })
}

/// What changes between two versions: `(removed, added)`, by one merge of the sorted lists.
pub(crate) fn difference<'a>(old: &'a Terms, new: &'a Terms) -> (Vec<Term<'a>>, Vec<Term<'a>>) {
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    let (mut old, mut new) = (old.iter().peekable(), new.iter().peekable());
    loop {
        match (old.peek(), new.peek()) {
            (Some(o), Some(n)) => match o.bytes.cmp(n.bytes) {
                std::cmp::Ordering::Equal => {
                    old.next();
                    new.next();
                }
                std::cmp::Ordering::Less => removed.extend(old.next()),
                std::cmp::Ordering::Greater => added.extend(new.next()),
            },
            (Some(_), None) => removed.extend(old.next()),
            (None, Some(_)) => added.extend(new.next()),
            (None, None) => return (removed, added),
        }
    }
}
