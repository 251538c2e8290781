//! Root certificates of a file that count for the loopback interface only.

use std::net::SocketAddr;

use perihelion_http::{Client, ClientBuilder, ErrorKind, Resolve, Resolving};
use rcgen::KeyPair;

use crate::certificates::CertificateAuthority;
use crate::server::{Server, respond};

const ADVICE: &str = "ask the operator";

/// Resolves every name to the loopback interface.
#[derive(Debug)]
struct EverythingIsHere;

impl Resolve for EverythingIsHere {
    fn resolve<'a>(&'a self, _: &'a str, port: u16) -> Resolving<'a> {
        Box::pin(async move { Ok(vec![SocketAddr::from(([127, 0, 0, 1], port))]) })
    }
}

fn client() -> ClientBuilder {
    Client::builder().no_proxy().resolver(EverythingIsHere)
}

async fn get(client: &Client, url: String) -> Result<u16, perihelion_http::Error> {
    let request = http::Request::get(url).body(()).expect("a request");
    Ok(client.send(request).await?.status().as_u16())
}

/// A certificate as PEM, after a private key as the local authority stores it.
fn pem(authority: &CertificateAuthority) -> String {
    let key = KeyPair::generate().expect("a key").serialize_pem();
    format!("{key}{}", pem_of(authority.root().as_ref()))
}

fn pem_of(der: &[u8]) -> String {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    let lines: Vec<&str> =
        text.as_bytes().chunks(64).map(|line| str::from_utf8(line).expect("ASCII")).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}

#[tokio::test]
async fn a_file_of_roots_is_trusted_for_loopback_names_and_for_no_others() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("authority.pem");
    let authority = CertificateAuthority::new();
    std::fs::write(&file, pem(&authority)).expect("written");
    let client = client().trust_file_on_loopback(&file, ADVICE).build().expect("valid");
    for (name, trusted) in [
        ("localhost", true),
        ("shop.localhost", true),
        ("127.0.0.1", true),
        ("shop.documents.azure.com", false),
        ("localhost.example", false),
    ] {
        let server = Server::tls(authority.server(name, &[]), |_| respond(1).into());
        let got = get(&client, server.url_by_name(name, "/")).await;
        match got {
            Ok(status) => assert!(trusted && status == 200, "{name} is trusted"),
            Err(error) => {
                assert!(!trusted, "{name}: {error}");
                assert_eq!(error.kind(), ErrorKind::Untrusted, "{error}");
                assert!(!error.to_string().contains(ADVICE), "not about the file: {error}");
            }
        }
    }
}

#[tokio::test]
async fn a_file_that_appears_or_changes_later_is_used_and_a_missing_one_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("authority.pem");
    let client = client().trust_file_on_loopback(&file, ADVICE).build().expect("valid");
    let untrusted = async |server: &Server| {
        let error = get(&client, server.url_by_name("localhost", "/")).await.expect_err("not trusted");
        assert_eq!(error.kind(), ErrorKind::Untrusted, "{error}");
        error.to_string()
    };

    let first = CertificateAuthority::new();
    let server = Server::tls(first.server("localhost", &["h2", "http/1.1"]), |_| respond(1).into());
    let message = untrusted(&server).await;
    assert!(message.contains("authority.pem does not exist; ask the operator"), "{message}");
    std::fs::write(&file, "nothing of use").expect("written");
    let message = untrusted(&server).await;
    assert!(message.contains("authority.pem contains no certificate"), "{message}");

    for authority in [first, CertificateAuthority::new()] {
        let server = Server::tls(authority.server("localhost", &["http/1.1"]), |_| respond(1).into());
        if file.exists() && std::fs::read_to_string(&file).expect("text").contains("BEGIN") {
            let message = untrusted(&server).await;
            assert!(message.ends_with(ADVICE), "{message}");
            assert!(message.contains("authority.pem: invalid peer certificate"), "{message}");
        }
        std::fs::write(&file, pem(&authority)).expect("written");
        assert_eq!(get(&client, server.url_by_name("localhost", "/")).await.expect("trusted now"), 200);
    }
}

#[tokio::test]
async fn a_client_that_trusts_only_its_own_roots_leaves_the_file_out() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("authority.pem");
    let (authority, own) = (CertificateAuthority::new(), CertificateAuthority::new());
    std::fs::write(&file, pem(&authority)).expect("written");
    let client =
        client().trust_only([own.root()]).trust_file_on_loopback(&file, ADVICE).build().expect("valid");
    let server = Server::tls(authority.server("localhost", &[]), |_| respond(1).into());
    let error = get(&client, server.url_by_name("localhost", "/")).await.expect_err("not trusted");
    assert_eq!(error.kind(), ErrorKind::Untrusted, "{error}");
}
