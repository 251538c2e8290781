//! The headers of a request while it is put together.
//!
//! A request has about a dozen headers whose names are known beforehand, as are half of the values: a list and
//! one text are enough, and a map is made only by transports that need one.

use std::ops::Range;
use std::sync::Arc;

use crate::options::CustomHeader;

/// The number of headers for which a new list has room.
const HEADERS_USUAL: usize = 20;
/// The bytes of values for which a new list has room.
const TEXT_USUAL: usize = 512;

/// Header names, in lower case, and their values. Each name occurs once.
#[derive(Clone, Debug)]
pub struct HeaderList {
    headers: Vec<(&'static str, Stored)>,
    /// The values that were not known beforehand, one after another.
    text: String,
    /// Headers whose names only the caller knows.
    custom: Option<Arc<[CustomHeader]>>,
}

#[derive(Clone, Debug)]
enum Stored {
    Fixed(&'static str),
    Text(Range<usize>),
}

/// A header value, and whether it was known beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// A constant of the program.
    Fixed(&'static str),
    /// A value of this request.
    Text(&'a str),
}

impl HeaderList {
    /// An empty list with room for the headers of an ordinary request.
    pub fn new() -> HeaderList {
        HeaderList {
            headers: Vec::with_capacity(HEADERS_USUAL),
            text: String::with_capacity(TEXT_USUAL),
            custom: None,
        }
    }

    /// Sets a header to a constant.
    pub fn set_fixed(&mut self, name: &'static str, value: &'static str) {
        match self.find(name) {
            Some(old) => *old = Stored::Fixed(value),
            None => self.headers.push((name, Stored::Fixed(value))),
        }
    }

    /// Sets a header to a copy of `value`.
    pub fn set(&mut self, name: &'static str, value: &str) {
        let appended = self.text.len()..self.text.len() + value.len();
        match self.find(name) {
            // Dates, signatures and ids are set anew for every request of an attempt and keep their length, so
            // their old text is overwritten.
            Some(Stored::Text(range)) if range.len() == value.len() => {
                let range = range.clone();
                return self.text.replace_range(range, value);
            }
            Some(old) => *old = Stored::Text(appended),
            None => self.headers.push((name, Stored::Text(appended))),
        }
        self.text.push_str(value);
    }

    /// Adds the headers of the caller, in place of those of their names. Their options allow no name that is set
    /// later on.
    pub(crate) fn set_custom(&mut self, custom: &Arc<[CustomHeader]>) {
        self.headers.retain(|(name, _)| custom.iter().all(|header| header.name() != *name));
        self.custom = Some(Arc::clone(custom));
    }

    fn find(&mut self, name: &'static str) -> Option<&mut Stored> {
        self.headers.iter_mut().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// The value of a header.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// All names and values, in the order in which the names were first set, those of the caller last.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> + Clone {
        let own = self.values().map(|(name, value)| match value {
            Value::Fixed(text) => (name, text),
            Value::Text(text) => (name, text),
        });
        own.chain(self.custom().map(|header| (header.name(), header.value())))
    }

    /// The headers of the caller.
    pub(super) fn custom(&self) -> impl Iterator<Item = &CustomHeader> + Clone {
        self.custom.iter().flat_map(|custom| custom.iter())
    }

    /// The names and values of the driver, with constants distinguished from other values.
    pub(super) fn values(&self) -> impl Iterator<Item = (&'static str, Value<'_>)> + Clone {
        self.headers.iter().map(|(name, value)| match value {
            Stored::Fixed(text) => (*name, Value::Fixed(text)),
            Stored::Text(range) => (*name, Value::Text(&self.text[range.clone()])),
        })
    }
}

impl Default for HeaderList {
    fn default() -> HeaderList {
        HeaderList::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_its_last_value_however_often_it_is_set() {
        let mut list = HeaderList::new();
        list.set_fixed("a", "fixed");
        list.set("b", "one");
        list.set("c", "");
        list.set("b", "two");
        list.set("a", "longer than before");
        list.set("d", "x");
        list.set_fixed("d", "y");
        list.set("b", "three");
        assert_eq!(
            list.iter().collect::<Vec<_>>(),
            [("a", "longer than before"), ("b", "three"), ("c", ""), ("d", "y")]
        );
        assert_eq!((list.get("b"), list.get("e")), (Some("three"), None));
    }

    #[test]
    fn a_value_of_the_same_length_takes_no_more_room() {
        let mut list = HeaderList::new();
        list.set("date", "Tue, 14 Nov 2023 22:13:20 GMT");
        let before = list.text.len();
        for _ in 0..100 {
            list.set("date", "Tue, 14 Nov 2023 22:13:21 GMT");
        }
        assert_eq!(list.text.len(), before);
    }
}
