//! Where a response ends, and what its first line says.
//!
//! A codec over a byte slice: it never reads from a socket and says "need more" as an ordinary answer.

use memchr::{memchr, memmem};

/// What a buffer holds so far.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    NeedMore,
    /// A whole response: its body is `head..total` of the buffer.
    Complete {
        status: u16,
        head: usize,
        total: usize,
    },
}

/// Not a response this generator understands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

/// Looks for one whole response at the front of `buffer`.
pub(crate) fn parse(buffer: &[u8]) -> Result<Parsed, Malformed> {
    let Some(end) = memmem::find(buffer, b"\r\n\r\n") else {
        return Ok(Parsed::NeedMore);
    };
    let status = status(buffer)?;
    let head = end + 4;
    let length = match header(&buffer[..head], b"content-length") {
        Some(value) => number(value).ok_or(Malformed("content-length is not a number"))?,
        None if matches!(status, 204 | 304) => 0,
        None => return Err(Malformed("a response without content-length")),
    };
    let total = head + length;
    Ok(if buffer.len() < total { Parsed::NeedMore } else { Parsed::Complete { status, head, total } })
}

/// The trimmed value of a header in a response's head.
pub(crate) fn header<'a>(head: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let mut rest = head;
    while let Some(end) = memchr(b'\n', rest) {
        let line = &rest[..end];
        if line.len() > name.len()
            && line[name.len()] == b':'
            && line[..name.len()].eq_ignore_ascii_case(name)
        {
            return Some(line[name.len() + 1..].trim_ascii());
        }
        rest = &rest[end + 1..];
    }
    None
}

fn status(buffer: &[u8]) -> Result<u16, Malformed> {
    match buffer.get(..12) {
        Some(start) if start.starts_with(b"HTTP/1.1 ") => number(&start[9..])
            .and_then(|status| u16::try_from(status).ok())
            .ok_or(Malformed("the status is not a number")),
        _ => Err(Malformed("not HTTP/1.1")),
    }
}

fn number(digits: &[u8]) -> Option<usize> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{Malformed, Parsed, header, parse};

    #[test]
    fn a_response_is_whole_exactly_when_its_body_is() {
        let whole = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}";
        for length in 0..whole.len() {
            assert_eq!(parse(&whole[..length]), Ok(Parsed::NeedMore), "{length} bytes");
        }
        let (head, total) = (whole.len() - 2, whole.len());
        assert_eq!(parse(whole), Ok(Parsed::Complete { status: 201, head, total }));
    }

    #[test]
    fn an_empty_answer_needs_no_length() {
        let parsed = parse(b"HTTP/1.1 204 No Content\r\n\r\n");
        assert!(matches!(parsed, Ok(Parsed::Complete { status: 204, .. })), "{parsed:?}");
    }

    #[test]
    fn what_cannot_be_framed_is_refused() {
        assert_eq!(parse(b"HTTP/1.0 200 OK\r\n\r\n"), Err(Malformed("not HTTP/1.1")));
        let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        assert_eq!(parse(chunked), Err(Malformed("a response without content-length")));
    }

    #[test]
    fn header_names_match_whole_and_in_any_case() {
        let head = b"HTTP/1.1 200 OK\r\nx-etag: no\r\nETag:  \"a\" \r\n\r\n";
        assert_eq!(header(head, b"etag"), Some(&b"\"a\""[..]));
        assert_eq!(header(head, b"lsn"), None);
    }
}
