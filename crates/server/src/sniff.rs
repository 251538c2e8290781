//! Which protocol a client speaks, from its first bytes. Pure.

/// What an HTTP/2 client sends first, with or without TLS around it.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// First byte of a TLS record that carries a handshake.
const TLS_HANDSHAKE: u8 = 0x16;

/// The protocol behind a connection's first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spoken {
    /// What has arrived so far could still be more than one of them.
    NeedMore,
    Tls,
    Http2,
    /// Anything else: garbage too, which HTTP/1.1 answers with 400.
    Http1,
}

/// Reads nothing but `first_bytes`: everything that has arrived since the connection opened.
pub(crate) fn spoken(first_bytes: &[u8]) -> Spoken {
    match first_bytes.first() {
        None => Spoken::NeedMore,
        Some(&TLS_HANDSHAKE) => Spoken::Tls,
        Some(_) if first_bytes.starts_with(HTTP2_PREFACE) => Spoken::Http2,
        Some(_) if HTTP2_PREFACE.starts_with(first_bytes) => Spoken::NeedMore,
        Some(_) => Spoken::Http1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell_the_protocols_apart() {
        let cases: [(&[u8], Spoken); 11] = [
            (b"", Spoken::NeedMore),
            (b"\x16", Spoken::Tls),
            (b"\x16\x03\x01\x02\x00", Spoken::Tls),
            (b"G", Spoken::Http1),
            (b"P", Spoken::NeedMore),
            (b"PO", Spoken::Http1),
            (b"PRI * HTTP/2.0\r\n", Spoken::NeedMore),
            (b"PRI * HTTP/1.1\r\n", Spoken::Http1),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Spoken::Http2),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04", Spoken::Http2),
            (b"\0\xff\xfe", Spoken::Http1),
        ];
        for (bytes, expected) in cases {
            assert_eq!(spoken(bytes), expected, "{bytes:?}");
        }
    }
}
