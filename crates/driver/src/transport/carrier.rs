//! What carries a request to its endpoint and brings the whole answer back.
//!
//! The product's own HTTP client is one (feature `connections`), and so is every `HttpClient` of `azure_core`, through [`Foreign`].

use std::fmt;
use std::sync::Arc;

use azure_core::error::ErrorKind;
use azure_core::http::{AsyncRawResponse, HttpClient};
use bytes::{Bytes, BytesMut};
use futures::future::BoxFuture;
use futures::{Stream, StreamExt};
use protocol::status::Status;

use super::outcome::Answer;
use super::request::Outgoing;

/// An answer longer than this is not one of the service, which keeps its pages below 4 MB.
const BODY_BYTES_MAX: usize = 128 * 1024 * 1024;

/// Carries requests.
///
/// What happens on the way is reported to the scope around it ([`perihelion_http::trace`]), by those that
/// can. Dropping the future ends the request.
pub trait Carrier: Send + Sync + fmt::Debug {
    /// Sends a request and reads the answer to its last byte, of which there may be 128 MB.
    fn carry<'a>(&'a self, request: &'a Outgoing<'a>) -> BoxFuture<'a, azure_core::Result<Answer>>;

    /// Whether it gives up by itself at the deadline that the scope around it names. Over one that does not,
    /// a timer is held.
    fn keeps_deadlines(&self) -> bool {
        false
    }
}

/// Any client of `azure_core`. Requests are translated for it, a timer keeps the deadline, and its answers are
/// read from a stream.
#[derive(Debug)]
pub struct Foreign(pub Arc<dyn HttpClient>);

impl Carrier for Foreign {
    fn carry<'a>(&'a self, request: &'a Outgoing<'a>) -> BoxFuture<'a, azure_core::Result<Answer>> {
        Box::pin(async move {
            let request = request.to_azure();
            collect(self.0.execute_request(&request).await?).await
        })
    }
}

async fn collect(response: AsyncRawResponse) -> azure_core::Result<Answer> {
    let (status, headers, body) = response.deconstruct();
    Ok(Answer::new(Status(u16::from(status)), headers.into(), whole(body).await?))
}

/// Reads a whole body, unless it is longer than any that the service sends: that is an answer nobody can use,
/// and asking again would bring it again. One that came in one piece is not copied.
pub(super) async fn whole<E>(
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
    while let Some(piece) = next {
        all.extend_from_slice(&piece);
        if all.len() > BODY_BYTES_MAX {
            return Err(too_long());
        }
        next = body.next().await.transpose()?;
    }
    Ok(all.freeze())
}

fn within_limit(body: Bytes) -> azure_core::Result<Bytes> {
    if body.len() > BODY_BYTES_MAX { Err(too_long()) } else { Ok(body) }
}

fn too_long() -> azure_core::Error {
    azure_core::Error::with_message(
        ErrorKind::DataConversion,
        format!("the answer is longer than {BODY_BYTES_MAX} bytes; ask for less at a time"),
    )
}
