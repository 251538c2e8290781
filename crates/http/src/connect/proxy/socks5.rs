//! SOCKS 5: the messages by which a client opens a tunnel (RFC 1928), with a password if the proxy asks for one (RFC 1929).

use std::io;
use std::net::IpAddr;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::{Credentials, TunnelTarget};
use crate::call::StepError;
use crate::error::ErrorKind;
use crate::trace::Step;

const VERSION: u8 = 5;
const PASSWORD_VERSION: u8 = 1;
const COMMAND_CONNECT: u8 = 1;
const ADDRESS_IPV4: u8 = 1;
const ADDRESS_NAME: u8 = 3;
const ADDRESS_IPV6: u8 = 4;
const METHOD_NONE: u8 = 0;
const METHOD_PASSWORD: u8 = 2;

/// Opens a tunnel to `target`.
pub(super) async fn tunnel(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    target: TunnelTarget<'_>,
    credentials: Option<&Credentials>,
) -> Result<(), StepError> {
    let request = connect_request(target)?;
    let greeting: &[u8] = match credentials {
        None => &[VERSION, 1, METHOD_NONE],
        Some(_) => &[VERSION, 2, METHOD_NONE, METHOD_PASSWORD],
    };
    let [version, method] = exchange(stream, greeting).await?;
    match (version, method, credentials) {
        (VERSION, METHOD_NONE, _) => {}
        (VERSION, METHOD_PASSWORD, Some(credentials)) => {
            let [_, status] = exchange(stream, &password_request(credentials)).await?;
            if status != 0 {
                return Err(rejected("the proxy does not accept the user name and password"));
            }
        }
        (VERSION, _, None) => return Err(rejected("the proxy needs a user name and password")),
        (VERSION, _, Some(_)) => return Err(rejected("the proxy accepts no user name and password")),
        _ => return Err(malformed()),
    }
    let [version, reply, _, address_type] = exchange(stream, &request).await?;
    if version != VERSION {
        return Err(malformed());
    }
    if reply != 0 {
        let reason = reply_description(reply);
        return Err(rejected(format!("the proxy could not connect to {}: {reason}", target.origin())));
    }
    // The address from which the proxy has connected: its length has to be known, its value does not.
    let length = match address_type {
        ADDRESS_IPV4 => 4,
        ADDRESS_IPV6 => 16,
        ADDRESS_NAME => usize::from(stream.read_u8().await.map_err(closed)?),
        _ => return Err(malformed()),
    };
    let mut address_and_port = [0; 257];
    stream.read_exact(&mut address_and_port[..length + 2]).await.map_err(closed)?;
    Ok(())
}

/// Sends a message and reads the first bytes of the reply.
async fn exchange<const N: usize>(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    message: &[u8],
) -> Result<[u8; N], StepError> {
    stream.write_all(message).await.map_err(closed)?;
    stream.flush().await.map_err(closed)?;
    let mut reply = [0; N];
    stream.read_exact(&mut reply).await.map_err(closed)?;
    Ok(reply)
}

fn connect_request(target: TunnelTarget<'_>) -> Result<Vec<u8>, StepError> {
    let origin = target.origin();
    let address = match target {
        TunnelTarget::Address(_, address) => Some(address.ip()),
        TunnelTarget::Name(_) => origin.host_name().parse().ok(),
    };
    let mut request = vec![VERSION, COMMAND_CONNECT, 0];
    match address {
        Some(IpAddr::V4(address)) => {
            request.push(ADDRESS_IPV4);
            request.extend(address.octets());
        }
        Some(IpAddr::V6(address)) => {
            request.push(ADDRESS_IPV6);
            request.extend(address.octets());
        }
        None => {
            let length = u8::try_from(origin.host_name().len()).map_err(|_| {
                StepError::new(ErrorKind::Invalid, Step::Proxy)
                    .with_source("the host name is longer than 255 bytes")
            })?;
            request.extend([ADDRESS_NAME, length]);
            request.extend(origin.host_name().as_bytes());
        }
    }
    request.extend(origin.port().to_be_bytes());
    Ok(request)
}

/// The lengths fit into a byte: [`Credentials::parse`] checks them.
fn password_request(credentials: &Credentials) -> Vec<u8> {
    let mut request = vec![PASSWORD_VERSION];
    for part in [&credentials.user, &credentials.password] {
        request.push(part.len() as u8);
        request.extend(part);
    }
    request
}

fn reply_description(reply: u8) -> &'static str {
    match reply {
        2 => "its rules do not allow it",
        3 => "the network is unreachable",
        4 => "the host is unreachable",
        5 => "the host refuses the connection",
        6 => "the time to live expired",
        7 | 8 => "it does not support this kind of request or address",
        _ => "the proxy failed",
    }
}

fn closed(error: io::Error) -> StepError {
    StepError::new(ErrorKind::Unreachable, Step::Proxy).with_source(error)
}

fn rejected(message: impl Into<String>) -> StepError {
    StepError::new(ErrorKind::Unreachable, Step::Proxy).with_source(message.into())
}

fn malformed() -> StepError {
    StepError::new(ErrorKind::Malformed, Step::Proxy).with_source("the proxy does not speak SOCKS 5")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::{Origin, Scheme};

    /// Runs the handshake with a proxy that sends these bytes, and returns what the client sent.
    async fn run(
        target: TunnelTarget<'_>,
        password: bool,
        replies: &[u8],
    ) -> (Result<(), StepError>, Vec<u8>) {
        let (mut client, mut proxy) = tokio::io::duplex(1024);
        proxy.write_all(replies).await.expect("it fits");
        let credentials = password.then(|| Credentials::parse("me:word").expect("they are valid"));
        proxy.shutdown().await.expect("it is open");
        let result = tunnel(&mut client, target, credentials.as_ref()).await;
        drop(client);
        let mut sent = Vec::new();
        proxy.read_to_end(&mut sent).await.expect("it is open");
        (result, sent)
    }

    #[tokio::test]
    async fn a_tunnel_ends_at_a_name_or_at_an_address() {
        let (name, v6) = (Origin::new(Scheme::Https, "a.b", 443), Origin::new(Scheme::Http, "[::1]", 80));
        let address = "10.0.0.1:443".parse().expect("it is an address");
        let loopback_v6 = [[0; 15].as_slice(), &[1]].concat();
        for (target, expected) in [
            (TunnelTarget::Name(&name), vec![3, 3, b'a', b'.', b'b', 1, 187]),
            (TunnelTarget::Address(&name, address), vec![1, 10, 0, 0, 1, 1, 187]),
            (TunnelTarget::Name(&v6), [&[4], loopback_v6.as_slice(), &[0, 80]].concat()),
        ] {
            let (result, sent) = run(target, false, &[5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await;
            assert!(result.is_ok(), "{target:?}: {result:?}");
            assert_eq!(sent, [&[5, 1, 0, 5, 1, 0], expected.as_slice()].concat(), "{target:?}");
        }
    }

    #[tokio::test]
    async fn a_password_is_sent_only_if_the_proxy_asks_for_it() {
        let name = Origin::new(Scheme::Https, "a", 443);
        let target = TunnelTarget::Name(&name);
        let granted = [5, 0, 0, 3, 1, b'p', 0, 0];
        let (result, sent) = run(target, true, &[&[5, 2, 1, 0], granted.as_slice()].concat()).await;
        assert!(result.is_ok(), "{result:?}");
        let password = [1, 2, b'm', b'e', 4, b'w', b'o', b'r', b'd'];
        let request = [5, 1, 0, 3, 1, b'a', 1, 187];
        assert_eq!(sent, [&[5, 2, 0, 2], password.as_slice(), &request].concat());
        let (result, sent) = run(target, true, &[&[5, 0], granted.as_slice()].concat()).await;
        assert!(result.is_ok(), "{result:?}");
        assert_eq!(sent, [&[5, 2, 0, 2], request.as_slice()].concat());
    }

    #[tokio::test]
    async fn a_proxy_that_refuses_says_why() {
        let name = Origin::new(Scheme::Https, "a", 443);
        for (password, replies, problem) in [
            (false, &[5, 0xff][..], "needs a user name and password"),
            (true, &[5, 0xff], "accepts no user name"),
            (true, &[5, 2, 1, 1], "does not accept the user name"),
            (false, &[5, 0, 5, 5, 0, 1, 0, 0, 0, 0, 0, 0], "https://a:443: the host refuses the connection"),
            (false, &[4, 0], "does not speak SOCKS 5"),
            (false, &[5, 0, 5, 0, 0, 9], "does not speak SOCKS 5"),
            (false, &[5], "early eof"),
        ] {
            let (result, _) = run(TunnelTarget::Name(&name), password, replies).await;
            let error = result.expect_err(problem);
            assert_eq!(error.step, Step::Proxy);
            let source = error.source.expect("it has a source").to_string();
            assert!(source.contains(problem), "{source}, not {problem}");
        }
    }
}
