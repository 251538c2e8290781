//! A plain blocking client for set-up and checks: one request, one answer.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use crate::clock;
use crate::generator::excerpt;
use crate::request::{Account, Request};
use crate::response::{self, Parsed};

/// One connection to a server.
pub(crate) struct Client {
    account: Account,
    stream: TcpStream,
}

/// A whole answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: usize,
    /// Head and body, as they came.
    pub(crate) bytes: Vec<u8>,
}

impl Answer {
    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[self.head..]
    }

    /// The body as JSON, or an excerpt of what it is instead.
    pub(crate) fn json(&self) -> Result<Value, String> {
        serde_json::from_slice(self.body()).map_err(|_| self.excerpt())
    }

    /// The answer itself when its status is one of `wanted`, an excerpt otherwise.
    pub(crate) fn expect(self, wanted: &[u16]) -> Result<Answer, String> {
        if wanted.contains(&self.status) { Ok(self) } else { Err(self.excerpt()) }
    }

    fn excerpt(&self) -> String {
        excerpt(self.status, self.body())
    }
}

const TIMEOUT: Duration = Duration::from_secs(60);

impl Client {
    /// Opens the connection.
    pub(crate) fn connect(account: Account) -> io::Result<Client> {
        let stream = TcpStream::connect(account.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Client { account, stream })
    }

    /// Signs, sends and waits.
    pub(crate) fn send(&mut self, request: &Request<'_>) -> Result<Answer, String> {
        let bytes = self.account.render(request, &clock::date());
        self.exchange(&bytes).map_err(|error| format!("{} {}: {error}", request.verb, request.path))
    }

    /// Sends bytes that are a request and waits.
    pub(crate) fn exchange(&mut self, request: &[u8]) -> Result<Answer, String> {
        self.stream.write_all(request).map_err(|error| error.to_string())?;
        let mut bytes = Vec::new();
        let mut piece = vec![0; 64 * 1024];
        loop {
            match response::parse(&bytes).map_err(|malformed| malformed.0.to_owned())? {
                Parsed::Complete { status, head, .. } => return Ok(Answer { status, head, bytes }),
                Parsed::NeedMore => match self.stream.read(&mut piece).map_err(|error| error.to_string())? {
                    0 => return Err("the server closed the connection".to_owned()),
                    count => bytes.extend_from_slice(&piece[..count]),
                },
            }
        }
    }
}
