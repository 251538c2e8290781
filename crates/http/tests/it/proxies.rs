//! Requests through proxies: CONNECT over TCP and TLS, and SOCKS 5, each to servers with TLS and without.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use perihelion_http::trace::{Protocol, Sent, Step};
use perihelion_http::{Client, ErrorKind, Proxy};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use crate::certificates::CertificateAuthority;
use crate::client::{builder, get_traced};
use crate::server::{Script, Server, ServerLog, respond};

/// A proxy of one of the four kinds, which records what it was asked for, and connects to `127.0.0.1` whatever the name.
fn proxy(scheme: &'static str, tls: Option<TlsAcceptor>) -> Server {
    Server::start(scheme, move |number, stream, log| {
        let tls = tls.clone();
        async move {
            let record =
                |asked: String| log.send_modify(|log: &mut ServerLog| log.requests.push((number, asked)));
            // Ends with the client's connection, or with one that is refused.
            let _ = match tls {
                Some(tls) => match tls.accept(stream).await {
                    Ok(stream) => connect_method(stream, record).await,
                    Err(_) => None,
                },
                None if scheme.starts_with("socks") => socks5(stream, record).await,
                None => connect_method(stream, record).await,
            };
        }
    })
}

async fn relay(mut client: impl AsyncRead + AsyncWrite + Unpin, port: u16) -> Option<()> {
    let mut target = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.ok()?;
    tokio::io::copy_bidirectional(&mut client, &mut target).await.ok()?;
    Some(())
}

async fn connect_method(
    mut client: impl AsyncRead + AsyncWrite + Unpin,
    record: impl Fn(String),
) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).expect("it is text");
    let target = head.split(' ').nth(1).expect("it has a target").to_owned();
    let password = if head.contains("Basic bWU6c2VjcmV0") { " with the password" } else { "" };
    record(format!("{target}{password}"));
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.ok()?;
    client.flush().await.ok()?;
    let port = target.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).expect("it has a port");
    relay(client, port).await
}

/// A proxy that wants the password `secret` of `me`, by the byte.
async fn socks5(mut client: TcpStream, record: impl Fn(String)) -> Option<()> {
    let mut greeting = [0; 2];
    client.read_exact(&mut greeting).await.ok()?;
    let mut methods = vec![0; usize::from(greeting[1])];
    client.read_exact(&mut methods).await.ok()?;
    let mut password = "";
    if methods.contains(&2) {
        client.write_all(&[5, 2]).await.ok()?;
        let mut request = [0; 11];
        client.read_exact(&mut request).await.ok()?;
        let accepted = request == *b"\x01\x02me\x06secret";
        client.write_all(&[1, u8::from(!accepted)]).await.ok()?;
        password = " with the password";
    } else {
        client.write_all(&[5, 0]).await.ok()?;
    }
    let mut request = [0; 4];
    client.read_exact(&mut request).await.ok()?;
    let host = match request[3] {
        1 => {
            let mut address = [0; 4];
            client.read_exact(&mut address).await.ok()?;
            Ipv4Addr::from(address).to_string()
        }
        _ => {
            let mut name = vec![0; usize::from(client.read_u8().await.ok()?)];
            client.read_exact(&mut name).await.ok()?;
            String::from_utf8(name).expect("it is text")
        }
    };
    let port = client.read_u16().await.ok()?;
    record(format!("{host}:{port}{password}"));
    client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.ok()?;
    relay(client, port).await
}

/// Resolves every name to the loopback interface.
#[derive(Debug)]
struct Loopback;

impl perihelion_http::Resolve for Loopback {
    fn resolve<'a>(&'a self, _host: &'a str, port: u16) -> perihelion_http::Resolving<'a> {
        Box::pin(async move { Ok(vec![SocketAddr::from((Ipv4Addr::LOCALHOST, port))]) })
    }
}

#[tokio::test]
async fn requests_go_through_proxies_of_every_kind() {
    let authority = CertificateAuthority::new();
    for scheme in ["http", "https", "socks5", "socks5h"] {
        for secure in [false, true] {
            let proxy_tls = (scheme == "https").then(|| authority.server("127.0.0.1", &[]));
            let proxy = proxy(scheme, proxy_tls);
            let server = match secure {
                false => Server::plain(|_| Script::from(respond(2))),
                true => {
                    let tls = authority.server("account.example", &["http/1.1"]);
                    Server::tls(tls, |_| Script::from(respond(2)))
                }
            };
            let url = format!("{scheme}://me:secret@{}", proxy.address());
            let builder = builder().trust_only([authority.root()]).resolver(Loopback);
            let client =
                builder.proxy(Proxy::new(&url).expect("it is a proxy")).build().expect("it is valid");
            let what = format!("{scheme} proxy, TLS to the server: {secure}");
            for _ in 0..2 {
                let (trace, response) =
                    get_traced(&client, &server.url_by_name("account.example", "/")).await;
                assert_eq!(response.expect(&what).1, b"ok", "{what}");
                assert_eq!(trace.remote, Some(proxy.address()), "{what}");
            }
            // With `socks5` the client resolves the name, with the others the proxy does.
            let host = if scheme == "socks5" { "127.0.0.1" } else { "account.example" };
            let asked = format!("{host}:{} with the password", server.address().port());
            assert_eq!(proxy.log().requests, [(0, asked)], "{what}: one tunnel for both requests");
        }
    }
}

#[tokio::test]
async fn http2_and_the_socks_password_work_through_a_tunnel() {
    let authority = CertificateAuthority::new();
    let proxy = proxy("socks5h", None);
    let wrong = format!("socks5h://me:secreT@{}", proxy.address());
    let client =
        Client::builder().proxy(Proxy::new(&wrong).expect("it is a proxy")).build().expect("it is valid");
    let (_, response) = get_traced(&client, "http://account.example/").await;
    let error = response.expect_err("the password is wrong");
    assert_eq!(
        (error.kind(), error.step(), error.sent()),
        (ErrorKind::Unreachable, Step::Proxy, Sent::NotSent)
    );

    let tls = authority.server("account.example", &["h2"]);
    let server = crate::connections::server(move |_| Some(tls.clone()), &Arc::new(Semaphore::new(0)));
    let url = format!("socks5h://{}", proxy.address());
    let builder = builder().trust_only([authority.root()]);
    let client = builder.proxy(Proxy::new(&url).expect("it is a proxy")).build().expect("it is valid");
    let (trace, response) = get_traced(&client, &server.url_by_name("account.example", "/")).await;
    assert!(response.is_ok(), "{response:?}");
    assert_eq!(trace.protocol, Some(Protocol::Http2));
}

#[tokio::test]
async fn a_proxy_that_is_not_trusted_or_not_valid_is_an_error_of_the_proxy() {
    let authority = CertificateAuthority::new();
    let proxy = proxy("https", Some(authority.server("127.0.0.1", &[])));
    let url = format!("https://{}", proxy.address());
    let client = builder().proxy_url(&url).build().expect("it is valid");
    let (_, response) = get_traced(&client, "http://account.example/").await;
    let error = response.expect_err("its authority is not trusted");
    assert_eq!((error.kind(), error.step()), (ErrorKind::Untrusted, Step::Proxy), "{error:?}");

    let client = builder().proxy_url("ftp://proxy.example").build().expect("the error is that of a request");
    let (_, response) = get_traced(&client, "http://account.example/").await;
    let error = response.expect_err("it is no proxy");
    assert_eq!((error.kind(), error.step(), error.sent()), (ErrorKind::Invalid, Step::Proxy, Sent::NotSent));
}
