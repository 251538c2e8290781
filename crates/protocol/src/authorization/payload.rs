//! The string to sign, and the variants of it that clients use for one request.
//!
//! Input: verb, path and dates. Output: the text, its signature, or whether a signature is right. Clients
//! differ in how they name a resource, so that one path can be signed in several ways.

use std::borrow::Cow;
use std::{fmt, iter};

use super::key::{AccountKey, Signature};
use crate::resource_id::DatabaseRid;
use crate::resource_path::{ResourcePath, ResourceType};

/// The string to sign: five lines, of which three are in lower case. `Display` writes it; the response to a
/// wrong signature quotes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignaturePayload<'a> {
    /// The HTTP method, in any case.
    pub verb: &'a str,
    /// The resource type and the link that are signed.
    pub target: SignedTarget<'a>,
    /// The `x-ms-date` header; empty when there is none.
    pub x_date: &'a str,
    /// The `date` header; signed only when there is no `x-ms-date`.
    pub date: &'a str,
}

/// The resource that a signature covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedTarget<'a> {
    /// The path segment of its type, such as `docs`; empty for the account.
    pub resource_type: &'a str,
    /// The link by names in their original case, or the lower-cased `_rid`.
    pub link: Cow<'a, str>,
}

/// The longest payload that is assembled on the stack; only very long ids exceed it.
const STACK_BYTES_MAX: usize = 512;

impl SignaturePayload<'_> {
    /// Signs the payload with the account key.
    ///
    /// Cost: linear in the text; only a text beyond `STACK_BYTES_MAX` is allocated.
    pub fn sign(&self, key: &AccountKey) -> Signature {
        let lines = self.lines();
        let length = lines.iter().map(|(line, _)| line.len() + 1).sum();
        let (mut stack, mut heap) = ([0; STACK_BYTES_MAX], Vec::new());
        // The text is assembled first: updating the hash line by line costs more in its own buffering.
        let text = match stack.get_mut(..length) {
            Some(text) => text,
            None => {
                heap.resize(length, 0);
                &mut heap[..]
            }
        };
        let mut rest = &mut *text;
        for (line, case) in lines {
            let (place, after) = rest.split_at_mut(line.len() + 1);
            let (end, place) = place.split_last_mut().expect("a line has room for its end");
            place.copy_from_slice(line.as_bytes());
            if case == Case::Lower {
                place.make_ascii_lowercase();
            }
            *end = b'\n';
            rest = after;
        }
        key.sign_bytes(text)
    }

    /// The lines of the text, and the case they are signed in.
    fn lines(&self) -> [(&str, Case); 5] {
        let date = if self.x_date.is_empty() { self.date } else { "" };
        [
            (self.verb, Case::Lower),
            (self.target.resource_type, Case::Lower),
            (&self.target.link, Case::Own),
            (self.x_date, Case::Lower),
            (date, Case::Lower),
        ]
    }
}

/// Whether a line is signed in lower case.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    Lower,
    Own,
}

impl fmt::Display for SignaturePayload<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (line, case) in self.lines() {
            match case {
                Case::Lower => writeln!(f, "{}", line.to_ascii_lowercase())?,
                Case::Own => writeln!(f, "{line}")?,
            }
        }
        Ok(())
    }
}

/// The string to sign of a request that carries `x-ms-date`.
pub fn string_to_sign(verb: &str, resource_type: &str, link: &str, x_date: &str) -> String {
    let target = SignedTarget { resource_type, link: Cow::Borrowed(link) };
    SignaturePayload { verb, target, x_date, date: "" }.to_string()
}

/// The value of the `authorization` header of a request that carries `x-ms-date`, URL-encoded.
pub fn sign(key: &AccountKey, verb: &str, resource_type: &str, link: &str, x_date: &str) -> String {
    let target = SignedTarget { resource_type, link: Cow::Borrowed(link) };
    let signature = SignaturePayload { verb, target, x_date, date: "" }.sign(key);
    super::token::master_header(signature)
}

/// Every variant in which some client signs this path, the likeliest first.
///
/// Cost: the first variant costs nothing unless an id has escapes. It is right for nearly every request, so
/// the others are computed lazily.
pub fn signed_targets<'a>(path: &ResourcePath<'a>) -> impl Iterator<Item = SignedTarget<'a>> {
    let kind = path.resource_type();
    let target = |resource_type, link| SignedTarget { resource_type, link };
    let operation = signed_container(path)
        .into_iter()
        .flat_map(move |link| ["colls", "partitionkey"].map(|kind| target(kind, Cow::Owned(link.clone()))));
    let by_name = iter::once_with(move || Some(target(kind.path_segment(), path.link())));
    let by_id = move || signed_id(path).map(|id| target(kind.path_segment(), Cow::Owned(id)));
    let escaped = iter::once_with(move || {
        path.raw().contains('%').then(|| target(kind.path_segment(), Cow::Borrowed(path.raw_link())))
    });
    // Offers have no names, so the `_rid` is the likeliest link for them and the second likeliest for other
    // resources.
    let is_offer = kind == ResourceType::Offer;
    let offer = iter::once_with(move || if is_offer { by_id() } else { None });
    let by_id = iter::once_with(move || if is_offer { None } else { by_id() });
    operation.chain(offer.chain(by_name).chain(by_id).chain(escaped).flatten())
}

/// The first of [`signed_targets`], computed without the others because it is right for nearly every
/// request.
pub(super) fn likeliest_target<'a>(path: &ResourcePath<'a>) -> SignedTarget<'a> {
    let kind = path.resource_type();
    match kind {
        ResourceType::Operation | ResourceType::Offer => {
            signed_targets(path).next().expect("every path has a target")
        }
        _ => SignedTarget { resource_type: kind.path_segment(), link: path.link() },
    }
}

/// The lower-cased `_rid` that some clients sign in place of the link when the path uses ids. The Python
/// client decides by the database segment alone, and so does this function.
fn signed_id(path: &ResourcePath<'_>) -> Option<String> {
    let is_offer = path.resource_type() == ResourceType::Offer;
    if !is_offer && path.database()?.parse::<DatabaseRid>().is_err() {
        return None;
    }
    let last = path.levels().rev().find_map(|level| level.id.as_deref())?;
    Some(last.to_ascii_lowercase())
}

/// The link of the container, which is what clients sign for operations on a container.
fn signed_container(path: &ResourcePath<'_>) -> Option<String> {
    if path.resource_type() != ResourceType::Operation {
        return None;
    }
    Some(format!("dbs/{}/colls/{}", path.database()?, path.container()?))
}

/// Whether `signature` is right for this request in any variant. Otherwise returns the first payload as the
/// error, for the response to quote.
///
/// Cost: one hash for a right signature, up to four for a wrong one. Signatures are compared in constant
/// time.
pub fn verify<'a>(
    key: &AccountKey,
    signature: &Signature,
    verb: &'a str,
    path: &ResourcePath<'a>,
    dates: (&'a str, &'a str),
) -> Result<(), SignaturePayload<'a>> {
    let (x_date, date) = dates;
    let fits = |payload: &SignaturePayload<'_>| payload.sign(key) == *signature;
    let first = SignaturePayload { verb, target: likeliest_target(path), x_date, date };
    let others =
        || signed_targets(path).skip(1).map(|target| SignaturePayload { verb, target, x_date, date });
    if fits(&first) || others().any(|payload| fits(&payload)) { Ok(()) } else { Err(first) }
}
