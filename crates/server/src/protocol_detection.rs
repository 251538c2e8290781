//! Protocol detection: TLS, HTTP/2 or HTTP/1.1, from a connection's first bytes. Pure.

/// The connection preface of HTTP/2, with or without TLS around it.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// First byte of a TLS record that carries a handshake.
const TLS_HANDSHAKE: u8 = 0x16;

/// The protocol behind a connection's first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// The bytes so far fit more than one protocol.
    Undetermined,
    Tls,
    Http2,
    /// Anything else, including garbage, to which HTTP/1.1 responds with 400.
    Http1,
}

/// Detects the protocol from all bytes that have arrived since the connection opened.
pub(crate) fn detect(first_bytes: &[u8]) -> Protocol {
    match first_bytes.first() {
        None => Protocol::Undetermined,
        Some(&TLS_HANDSHAKE) => Protocol::Tls,
        Some(_) if first_bytes.starts_with(HTTP2_PREFACE) => Protocol::Http2,
        Some(_) if HTTP2_PREFACE.starts_with(first_bytes) => Protocol::Undetermined,
        Some(_) => Protocol::Http1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell_the_protocols_apart() {
        let cases: [(&[u8], Protocol); 11] = [
            (b"", Protocol::Undetermined),
            (b"\x16", Protocol::Tls),
            (b"\x16\x03\x01\x02\x00", Protocol::Tls),
            (b"G", Protocol::Http1),
            (b"P", Protocol::Undetermined),
            (b"PO", Protocol::Http1),
            (b"PRI * HTTP/2.0\r\n", Protocol::Undetermined),
            (b"PRI * HTTP/1.1\r\n", Protocol::Http1),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Protocol::Http2),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04", Protocol::Http2),
            (b"\0\xff\xfe", Protocol::Http1),
        ];
        for (bytes, expected) in cases {
            assert_eq!(detect(bytes), expected, "{bytes:?}");
        }
    }
}
