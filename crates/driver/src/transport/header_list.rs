//! The headers of a request while it is put together.
//!
//! A dozen names that are known beforehand, with values of which half are: a list and one text are enough, and
//! a map comes only where the client needs one.

use std::collections::HashMap;
use std::ops::Range;

use azure_core::http::headers::{HeaderName, HeaderValue, Headers};

/// Room for the headers of nearly every request, and for their values.
const HEADERS_USUAL: usize = 20;
const TEXT_USUAL: usize = 512;

/// Names, lower case, and values. A name is there once.
#[derive(Clone, Debug)]
pub struct HeaderList {
    headers: Vec<(&'static str, Value)>,
    /// The values that were not known beforehand, one after another.
    text: String,
}

#[derive(Clone, Debug)]
enum Value {
    Fixed(&'static str),
    Text(Range<usize>),
}

impl HeaderList {
    /// No headers, and room for what an operation and the transport add.
    pub fn new() -> HeaderList {
        HeaderList { headers: Vec::with_capacity(HEADERS_USUAL), text: String::with_capacity(TEXT_USUAL) }
    }

    /// Sets a header to a value that is known beforehand.
    pub fn set_fixed(&mut self, name: &'static str, value: &'static str) {
        self.put(name, Value::Fixed(value));
    }

    /// Sets a header to a copy of `value`.
    pub fn set(&mut self, name: &'static str, value: &str) {
        // What is written again with every try has one length: it takes no more room than once.
        if let Some((_, Value::Text(place))) = self.headers.iter().find(|(known, _)| *known == name)
            && place.len() == value.len()
        {
            return self.text.replace_range(place.clone(), value);
        }
        let start = self.text.len();
        self.text.push_str(value);
        self.put(name, Value::Text(start..self.text.len()));
    }

    fn put(&mut self, name: &'static str, value: Value) {
        match self.headers.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.headers.push((name, value)),
        }
    }

    /// The value of a header.
    pub fn get(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(known, _)| *known == name)?;
        Some(self.text_of(value))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> + Clone {
        self.headers.iter().map(|(name, value)| (*name, self.text_of(value)))
    }

    /// The same as `azure_core` has them.
    pub fn to_azure(&self) -> Headers {
        let map = self.headers.iter().map(|(name, value)| {
            let value = match value {
                Value::Fixed(text) => HeaderValue::from_static(text),
                Value::Text(place) => HeaderValue::from(self.text[place.clone()].to_owned()),
            };
            (HeaderName::from_static(name), value)
        });
        Headers::from(map.collect::<HashMap<_, _>>())
    }

    fn text_of<'a>(&'a self, value: &'a Value) -> &'a str {
        match value {
            Value::Fixed(text) => text,
            Value::Text(place) => &self.text[place.clone()],
        }
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
