//! Interned header names and values, which cost no allocation when they are seen again.
//!
//! A process uses the same few dozen header names over and over, and half of the values that a service sends are the
//! same every time. An interned name is leaked, and limits keep a peer from leaking much.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, OnceLock};

use arc_swap::{ArcSwap, Guard};
use azure_core::http::headers::{HeaderName as AzureName, HeaderValue as AzureValue};
use http::HeaderName;
use http::header::InvalidHeaderName;

/// The highest number of interned names; further ones are allocated each time.
const NAMES_MAX: usize = 512;
/// Longer names are not interned.
const NAME_BYTES_MAX: usize = 64;
/// The highest number of interned values per name: those that came first.
const VALUES_MAX: usize = 4;
/// Longer values are not interned.
const VALUE_BYTES_MAX: usize = 64;

/// An interned header name, as a type of both crates, with the first values that it had.
pub(super) struct InternedName {
    http: HeaderName,
    azure: AzureName,
    values: [OnceLock<&'static str>; VALUES_MAX],
}

impl InternedName {
    /// Converts a value, without a copy if it is interned.
    fn value(&self, value: &str) -> AzureValue {
        if value.len() <= VALUE_BYTES_MAX {
            for interned in &self.values {
                // Leaked on purpose: at most four short values per name.
                let interned: &'static str = interned.get_or_init(|| String::leak(value.to_owned()));
                if interned == value {
                    return AzureValue::from_static(interned);
                }
            }
        }
        AzureValue::from(value.to_owned())
    }
}

pub(super) type Names = HashMap<&'static str, &'static InternedName, foldhash::fast::RandomState>;

/// All interned names. Read with every request, written when a name is seen for the first time.
static NAMES: LazyLock<ArcSwap<Names>> = LazyLock::new(|| ArcSwap::from_pointee(Names::default()));

/// A snapshot of the interned names, to be taken once per request or response.
pub(super) fn names() -> Guard<Arc<Names>> {
    NAMES.load()
}

/// Converts a header name of azure_core to one of `http`.
pub(super) fn to_http_name(names: &Names, name: &str) -> Result<HeaderName, InvalidHeaderName> {
    match names.get(name) {
        Some(interned) => Ok(interned.http.clone()),
        None => {
            let new = HeaderName::from_bytes(name.as_bytes())?;
            intern(&new);
            Ok(new)
        }
    }
}

/// Converts a header of `http` to one of azure_core.
pub(super) fn to_azure_header(names: &Names, name: &HeaderName, value: &str) -> (AzureName, AzureValue) {
    match names.get(name.as_str()) {
        Some(interned) => (interned.azure.clone(), interned.value(value)),
        None => {
            intern(name);
            (AzureName::from(name.as_str().to_owned()), AzureValue::from(value.to_owned()))
        }
    }
}

/// Interns a name for the life of the process, unless it is too long or there are too many.
fn intern(name: &HeaderName) {
    if name.as_str().len() > NAME_BYTES_MAX || NAMES.load().len() >= NAMES_MAX {
        return;
    }
    // Leaked on purpose: at most 512 short names, which are then cloned without an allocation.
    let text: &'static str = String::leak(name.as_str().to_owned());
    let new: &'static InternedName = Box::leak(Box::new(InternedName {
        http: HeaderName::from_static(text),
        azure: AzureName::from_static(text),
        values: [const { OnceLock::new() }; VALUES_MAX],
    }));
    // Repeats while other threads intern names at the same time; each round starts from the newest map.
    NAMES.rcu(|names| {
        if names.len() >= NAMES_MAX || names.contains_key(text) {
            return Arc::clone(names);
        }
        let mut more = Names::clone(names);
        more.insert(text, new);
        Arc::new(more)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_interned_when_it_is_first_seen_unless_it_is_too_long() {
        let name = HeaderName::from_static("x-ms-request-charge");
        let first = to_azure_header(&names(), &name, "1");
        let second = to_azure_header(&names(), &name, "1");
        assert_eq!(first, second);
        assert!(names().contains_key("x-ms-request-charge"));
        let long = HeaderName::from_bytes(&[b'x'; NAME_BYTES_MAX + 1]).expect("it is valid");
        intern(&long);
        assert!(!names().contains_key(long.as_str()));
    }

    #[test]
    fn the_first_values_of_a_name_are_interned_and_later_ones_are_copied() {
        let name = HeaderName::from_static("x-values");
        intern(&name);
        for round in 0..2 {
            for number in 0..VALUES_MAX + 2 {
                let text = format!("value {number}");
                let (_, value) = to_azure_header(&names(), &name, &text);
                assert_eq!(value.as_str(), text, "round {round}");
            }
            let long = "x".repeat(VALUE_BYTES_MAX + 1);
            assert_eq!(to_azure_header(&names(), &name, &long).1.as_str(), long);
        }
        let names = names();
        let interned = names["x-values"].values.each_ref().map(|value| value.get().copied());
        assert_eq!(interned, ["value 0", "value 1", "value 2", "value 3"].map(Some));
    }
}
