//! The headers of a response, in whichever map the client received them.
//!
//! A response has two dozen headers and the driver looks at six. Moving all of them from one kind of map to
//! another was a sixth of what a point read cost, so both kinds are kept as they came.

use azure_core::http::headers::Headers;
use http::HeaderMap;
use protocol::headers as names;
use protocol::status::SubStatus;

/// The headers of a response. Names are lower case.
#[derive(Clone, Debug, Default)]
pub struct ResponseHeaders(Map);

#[derive(Clone, Debug)]
enum Map {
    /// From a client of `azure_core`.
    Azure(Headers),
    /// From the product's own.
    Http(HeaderMap),
}

impl Default for Map {
    fn default() -> Map {
        Map::Http(HeaderMap::new())
    }
}

impl ResponseHeaders {
    /// One header; none as well if its value is not text.
    ///
    /// Looks at all of them: names differ in length, so that is cheaper than hashing one.
    pub fn get(&self, name: &str) -> Option<&str> {
        match &self.0 {
            // `Headers::get_optional_with` formats its error before it knows that there is none.
            Map::Azure(headers) => {
                let (_, value) = headers.iter().find(|(known, _)| known.as_str() == name)?;
                Some(value.as_str())
            }
            Map::Http(headers) => {
                let (_, value) = headers.iter().find(|(known, _)| known.as_str() == name)?;
                value.to_str().ok()
            }
        }
    }

    /// Every header whose value is text, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let (azure, http) = match &self.0 {
            Map::Azure(headers) => (Some(headers), None),
            Map::Http(headers) => (None, Some(headers)),
        };
        let azure = azure.into_iter().flat_map(Headers::iter);
        let azure = azure.map(|(name, value)| (name.as_str(), value.as_str()));
        let http = http.into_iter().flat_map(HeaderMap::iter);
        let http = http.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        azure.chain(http)
    }

    /// The request units a response says it cost.
    pub(crate) fn charge(&self) -> f64 {
        self.get(names::REQUEST_CHARGE).and_then(|text| text.parse().ok()).unwrap_or(0.0)
    }

    /// The sub-status of a response.
    pub(crate) fn sub_status(&self) -> SubStatus {
        self.get(names::SUB_STATUS).and_then(|text| text.parse().ok()).map_or(SubStatus::NONE, SubStatus)
    }
}

impl From<Headers> for ResponseHeaders {
    fn from(headers: Headers) -> ResponseHeaders {
        ResponseHeaders(Map::Azure(headers))
    }
}

impl From<HeaderMap> for ResponseHeaders {
    fn from(headers: HeaderMap) -> ResponseHeaders {
        ResponseHeaders(Map::Http(headers))
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn both_kinds_of_map_give_the_same() {
        let mut azure = Headers::new();
        let mut http = HeaderMap::new();
        for (name, value) in [("x-ms-request-charge", "2.5"), ("x-ms-substatus", "1002"), ("date", "now")] {
            azure.insert(name, value);
            http.insert(name, HeaderValue::from_static(value));
        }
        for headers in [ResponseHeaders::from(azure), ResponseHeaders::from(http)] {
            assert_eq!(headers.charge(), 2.5);
            assert_eq!(headers.sub_status(), SubStatus(1002));
            assert_eq!((headers.get("date"), headers.get("etag")), (Some("now"), None));
            let mut all: Vec<_> = headers.iter().collect();
            all.sort_unstable();
            assert_eq!(all, [("date", "now"), ("x-ms-request-charge", "2.5"), ("x-ms-substatus", "1002")]);
        }
    }

    #[test]
    fn what_is_not_text_or_not_a_number_is_not_there() {
        let mut http = HeaderMap::new();
        http.insert("x-ms-request-charge", HeaderValue::from_static("much"));
        http.insert("x-ms-substatus", HeaderValue::from_bytes(b"\xff").expect("a header may hold it"));
        let headers = ResponseHeaders::from(http);
        assert_eq!((headers.charge(), headers.sub_status()), (0.0, SubStatus::NONE));
        assert_eq!(headers.iter().count(), 1);
    }
}
