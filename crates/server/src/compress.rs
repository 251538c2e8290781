//! gzip compression of large responses, for clients that accept it.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, VARY};
use http::{HeaderValue, Response};

/// Longer responses are compressed on a blocking thread, so that they do not delay other requests.
const INLINE_BYTES_MAX: usize = 256 * 1024;

/// Whether a client that sent this `accept-encoding` can read gzip. Reads nothing but its argument.
pub(crate) fn accepts_gzip(accepted: &HeaderValue) -> bool {
    let Ok(text) = accepted.to_str() else { return false };
    let mut wildcard = false;
    for offer in text.split(',') {
        let mut parts = offer.split(';').map(str::trim);
        let coding = parts.next().unwrap_or_default();
        let wanted = !parts.any(has_zero_weight);
        if coding.eq_ignore_ascii_case("gzip") || coding.eq_ignore_ascii_case("x-gzip") {
            return wanted;
        }
        wildcard |= coding == "*" && wanted;
    }
    wildcard
}

/// Whether a parameter is `q=0`, in any spelling.
fn has_zero_weight(parameter: &str) -> bool {
    match parameter.split_once('=') {
        Some((name, weight)) if name.trim().eq_ignore_ascii_case("q") => {
            weight.trim().parse::<f32>().is_ok_and(|weight| weight <= 0.0)
        }
        _ => false,
    }
}

/// Compresses a response, unless that makes it longer. Cost grows with its length.
pub(crate) async fn gzip(response: Response<Bytes>) -> Response<Bytes> {
    if response.headers().contains_key(CONTENT_ENCODING) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let compressed = if body.len() <= INLINE_BYTES_MAX {
        deflate(&body)
    } else {
        let plain = body.clone();
        tokio::task::spawn_blocking(move || deflate(&plain)).await.ok().flatten()
    };
    let Some(compressed) = compressed.filter(|compressed| compressed.len() < body.len()) else {
        return Response::from_parts(parts, body);
    };
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    parts.headers.append(VARY, HeaderValue::from_static("accept-encoding"));
    Response::from_parts(parts, compressed)
}

fn deflate(plain: &[u8]) -> Option<Bytes> {
    let room = Vec::with_capacity(plain.len() / 4);
    let mut encoder = GzEncoder::new(room, Compression::fast());
    encoder.write_all(plain).ok()?;
    encoder.finish().ok().map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn gzip_is_used_only_when_accepted() {
        let cases = [
            ("gzip, deflate", true),
            ("gzip,deflate", true),
            ("deflate, GZIP;q=0.5", true),
            ("gzip;q=0", false),
            ("gzip; q=0.000, *", false),
            ("*", true),
            ("*;q=0", false),
            ("identity", false),
            ("br, zstd", false),
            ("", false),
        ];
        for (value, expected) in cases {
            assert_eq!(accepts_gzip(&HeaderValue::from_static(value)), expected, "{value:?}");
        }
    }

    #[tokio::test]
    async fn a_compressed_response_decompresses_to_the_original() {
        for length in [100_000, 1_000_000] {
            let plain = "{\"id\":\"abc\",\"value\":1},".repeat(length / 24);
            let response = gzip(Response::new(Bytes::from(plain.clone()))).await;
            assert_eq!(response.headers()[CONTENT_ENCODING], "gzip");
            let mut back = String::new();
            flate2::read::GzDecoder::new(&response.body()[..]).read_to_string(&mut back).unwrap();
            assert_eq!(back, plain);
        }
    }

    #[tokio::test]
    async fn a_response_that_does_not_shrink_is_left_uncompressed() {
        let already = deflate(b"some text").unwrap();
        let response = gzip(Response::new(already.clone())).await;
        assert!(!response.headers().contains_key(CONTENT_ENCODING));
        assert_eq!(response.body(), &already);
    }
}
