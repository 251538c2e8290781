//! Tests of TLS on the same port: negotiation, trust, and failed handshakes.

use perihelion_emulator::clock::Clock;
use perihelion_emulator::server::AuthoritySource;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::*;

async fn start_tls() -> (Fixture, Tls) {
    let tls = Tls::new(AuthoritySource::Ephemeral, "127.0.0.1".parse().expect("an address"), Clock::system());
    (start_with(Limits::default(), Some(tls.clone())), tls)
}

async fn connect(
    fixture: &Fixture,
    tls: &Tls,
    name: &'static str,
    protocols: &[&str],
) -> std::io::Result<TlsStream<TcpStream>> {
    let pem = tls.authority_pem().await.expect("an authority");
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).expect("PEM")).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    let stream = TcpStream::connect(("127.0.0.1", fixture.server.port())).await.expect("connects");
    let name = ServerName::try_from(name).expect("a name");
    in_time(TlsConnector::from(Arc::new(config)).connect(name, stream)).await
}

#[tokio::test]
async fn every_local_name_is_trusted_and_no_other() {
    let (fixture, tls) = start_tls().await;
    for name in ["localhost", "127.0.0.1", "::1", "host.docker.internal"] {
        let mut client = Client::new(connect(&fixture, &tls, name, &["http/1.1"]).await.expect(name));
        assert_eq!(client.get("/scheme").await.text(), "https", "{name}");
    }
    for name in ["example.com", "127.0.0.2"] {
        assert!(connect(&fixture, &tls, name, &[]).await.is_err(), "{name}");
    }
}

#[tokio::test]
async fn the_protocol_is_negotiated_or_detected() {
    let (fixture, tls) = start_tls().await;
    let cases: [(&[&str], Option<&str>); 4] = [
        (&["h2", "http/1.1"], Some("h2")),
        (&["http/1.1", "h2"], Some("h2")),
        (&["http/1.1"], Some("http/1.1")),
        (&[], None),
    ];
    for (offered, expected) in cases {
        let stream = connect(&fixture, &tls, "localhost", offered).await.unwrap();
        let chosen =
            stream.get_ref().1.alpn_protocol().map(|protocol| String::from_utf8_lossy(protocol).into_owned());
        assert_eq!(chosen.as_deref(), expected, "{offered:?}");
        let mut client = Client::new(stream);
        if expected == Some("h2") {
            client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
            let mut head = [0; 9];
            in_time(client.0.read_exact(&mut head)).await.unwrap();
            assert_eq!(head[3], 4, "settings come first");
        } else {
            assert_eq!(client.get("/").await.text(), "ok", "{offered:?}");
        }
    }
}

#[tokio::test]
async fn http2_without_alpn_is_detected_inside_tls() {
    let (fixture, tls) = start_tls().await;
    let mut client = Client::new(connect(&fixture, &tls, "localhost", &[]).await.unwrap());
    client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
    let mut head = [0; 9];
    in_time(client.0.read_exact(&mut head)).await.unwrap();
    assert_eq!(head[3], 4, "settings come first");
}

#[tokio::test]
async fn plain_and_tls_share_the_port() {
    let (fixture, tls) = start_tls().await;
    let mut plain = fixture.connect().await;
    let mut secret = Client::new(connect(&fixture, &tls, "localhost", &[]).await.unwrap());
    for _ in 0..2 {
        assert_eq!(plain.get("/scheme").await.text(), "http");
        assert_eq!(secret.get("/scheme").await.text(), "https");
    }
}

#[tokio::test]
async fn a_broken_handshake_closes_its_connection_only() {
    let (fixture, tls) = start_tls().await;
    for bytes in [&b"\x16\x03\x01\x00\x05hello"[..], &[0x16; 600]] {
        let mut client = fixture.connect().await;
        client.send(bytes).await;
        client.until_closed().await;
    }
    let mut client = Client::new(connect(&fixture, &tls, "localhost", &[]).await.unwrap());
    assert_eq!(client.get("/").await.status, 200);
}

#[tokio::test]
async fn an_incomplete_tls_handshake_ends_with_the_head_timeout() {
    let mut limits = Limits::default();
    limits.head_timeout = Duration::from_millis(100);
    let tls = Tls::new(AuthoritySource::Ephemeral, "127.0.0.1".parse().unwrap(), Clock::system());
    let fixture = start_with(limits, Some(tls));
    let mut client = fixture.connect().await;
    client.send(b"\x16\x03\x01\x02\x00\x01").await;
    client.until_closed().await;
}
