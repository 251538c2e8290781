//! Reads the body of a response whose length is not known beforehand.

use azure_core::error::ErrorKind;
use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt};

/// The longest response body that is read. The service keeps its pages below 4 MB.
pub(super) const BODY_BYTES_MAX: usize = 128 * 1024 * 1024;

/// Reads a body to its end. A body that is longer than any the service sends is an error, because repeating the
/// request would bring it again. A body that came as one chunk is not copied.
pub(super) async fn read_body<E>(
    mut body: impl Stream<Item = Result<Bytes, E>> + Unpin,
) -> azure_core::Result<Bytes>
where
    azure_core::Error: From<E>,
{
    let Some(first) = body.next().await.transpose()? else { return Ok(Bytes::new()) };
    let Some(second) = body.next().await.transpose()? else { return within_limit(first) };
    let mut all = BytesMut::with_capacity(first.len() * 2);
    all.extend_from_slice(&first);
    let mut next = Some(second);
    while let Some(chunk) = next {
        all.extend_from_slice(&chunk);
        if all.len() > BODY_BYTES_MAX {
            return Err(body_too_long());
        }
        next = body.next().await.transpose()?;
    }
    Ok(all.freeze())
}

fn within_limit(body: Bytes) -> azure_core::Result<Bytes> {
    if body.len() > BODY_BYTES_MAX { Err(body_too_long()) } else { Ok(body) }
}

fn body_too_long() -> azure_core::Error {
    azure_core::Error::with_message(
        ErrorKind::DataConversion,
        format!("the response is longer than {BODY_BYTES_MAX} bytes; ask for less at a time"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_of_several_chunks_is_joined_and_a_broken_one_is_an_error() {
        let chunks = |broken: bool| {
            let mut chunks: Vec<azure_core::Result<Bytes>> =
                ["ab", "", "cd", "e"].map(|p| Ok(Bytes::from(p))).into();
            if broken {
                chunks.push(Err(azure_core::Error::with_message(ErrorKind::Io, "reset")));
            }
            futures::stream::iter(chunks)
        };
        assert_eq!(read_body(chunks(false)).await.expect("complete"), "abcde");
        assert!(read_body(chunks(true)).await.is_err());
    }
}
