//! The five lines that are signed, and which five a request may have meant.
//!
//! In: verb, path and dates. Out: the text, its signature, or whether a signature fits. Clients
//! differ in how they name a resource, so one path can be signed in several ways.

use std::borrow::Cow;
use std::fmt;

use super::key::{Key, Signature};
use crate::resource_id::DatabaseRid;
use crate::resource_path::{ResourcePath, ResourceType};

/// What is signed: five lines, of which three are in lower case. Its text form is the string to
/// sign, which the answer to a wrong signature quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload<'a> {
    /// The HTTP method, in any case.
    pub verb: &'a str,
    /// What is addressed.
    pub target: SignedTarget<'a>,
    /// The `x-ms-date` header; empty when there is none.
    pub x_date: &'a str,
    /// The `date` header; signed only when there is no `x-ms-date`.
    pub date: &'a str,
}

/// The resource of a signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedTarget<'a> {
    /// The word of its type, empty for the account.
    pub resource_type: &'a str,
    /// Its link, by names in their own case, or its lower-cased `_rid`.
    pub link: Cow<'a, str>,
}

impl Payload<'_> {
    /// The pieces of the text, in order, in the case they are signed in.
    fn pieces(&self, out: &mut dyn FnMut(&[u8])) {
        lower_case(self.verb, out);
        out(b"\n");
        lower_case(self.target.resource_type, out);
        out(b"\n");
        out(self.target.link.as_bytes());
        out(b"\n");
        lower_case(self.x_date, out);
        out(b"\n");
        if self.x_date.is_empty() {
            lower_case(self.date, out);
        }
        out(b"\n");
    }

    /// The signature of this text.
    ///
    /// Cost: linear in the text, without an allocation.
    pub fn sign(&self, key: &Key) -> Signature {
        key.sign_pieces(|out| self.pieces(out))
    }
}

fn lower_case(text: &str, out: &mut dyn FnMut(&[u8])) {
    let mut buffer = [0; 64];
    for chunk in text.as_bytes().chunks(buffer.len()) {
        let lower = &mut buffer[..chunk.len()];
        lower.copy_from_slice(chunk);
        lower.make_ascii_lowercase();
        out(lower);
    }
}

impl fmt::Display for Payload<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verb, kind) = (self.verb.to_ascii_lowercase(), self.target.resource_type.to_ascii_lowercase());
        let date = if self.x_date.is_empty() { self.date } else { "" };
        let (x_date, date) = (self.x_date.to_ascii_lowercase(), date.to_ascii_lowercase());
        write!(f, "{verb}\n{kind}\n{}\n{x_date}\n{date}\n", self.target.link)
    }
}

/// The string to sign of a request that carries `x-ms-date`.
pub fn string_to_sign(verb: &str, resource_type: &str, link: &str, x_date: &str) -> String {
    let target = SignedTarget { resource_type, link: Cow::Borrowed(link) };
    Payload { verb, target, x_date, date: "" }.to_string()
}

/// The value of the `authorization` header of a request that carries `x-ms-date`, URL-encoded.
pub fn sign(key: &Key, verb: &str, resource_type: &str, link: &str, x_date: &str) -> String {
    let target = SignedTarget { resource_type, link: Cow::Borrowed(link) };
    let signature = Payload { verb, target, x_date, date: "" }.sign(key);
    super::token::master_header(signature)
}

/// Every way in which some client signs this path, likeliest first.
///
/// Cost: none for the first unless some id has escapes; nearly every request is settled by it.
pub fn signed_targets<'a>(path: &ResourcePath<'a>) -> impl Iterator<Item = SignedTarget<'a>> {
    let kind = path.resource_type();
    let target = |resource_type, link| SignedTarget { resource_type, link };
    let by_name = target(kind.word(), path.link());
    let escaped = path.raw().contains('%').then(|| target(kind.word(), Cow::Borrowed(path.raw_link())));
    let by_id = signed_id(path).map(|id| target(kind.word(), Cow::Owned(id)));
    // An offer has no name, so its id is the first guess; elsewhere it is the second.
    let (offer, by_id) = if kind == ResourceType::Offer { (by_id, None) } else { (None, by_id) };
    let operation = signed_container(path)
        .into_iter()
        .flat_map(move |link| ["colls", "partitionkey"].map(|kind| target(kind, Cow::Owned(link.clone()))));
    operation.chain(offer).chain([by_name]).chain(by_id).chain(escaped)
}

/// The `_rid` that stands for the whole link where a path can be one of ids: the last one, in lower
/// case. The client in Python judges by the database's segment alone, so that is what counts.
fn signed_id(path: &ResourcePath<'_>) -> Option<String> {
    let is_offer = path.resource_type() == ResourceType::Offer;
    if !is_offer && path.database()?.parse::<DatabaseRid>().is_err() {
        return None;
    }
    let last = path.levels().rev().find_map(|level| level.id.as_deref())?;
    Some(last.to_ascii_lowercase())
}

/// What is done to a container is signed as the container.
fn signed_container(path: &ResourcePath<'_>) -> Option<String> {
    if path.resource_type() != ResourceType::Operation {
        return None;
    }
    Some(format!("dbs/{}/colls/{}", path.database()?, path.container()?))
}

/// Whether `signature` is right for this request, read in any of the ways clients sign. The first
/// payload comes back as an error, for the answer to quote.
///
/// Cost: one hash of the payload for a right signature, up to four for a wrong one. Signatures are
/// compared in constant time.
pub fn verify<'a>(
    key: &Key,
    signature: &Signature,
    verb: &'a str,
    path: &ResourcePath<'a>,
    dates: (&'a str, &'a str),
) -> Result<(), Payload<'a>> {
    let (x_date, date) = dates;
    let mut first = None;
    for target in signed_targets(path) {
        let payload = Payload { verb, target, x_date, date };
        if payload.sign(key) == *signature {
            return Ok(());
        }
        first.get_or_insert(payload);
    }
    Err(first.expect("every path has a target"))
}
