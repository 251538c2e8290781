//! TLS: whom to trust, and what ALPN agreed on.

use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_rustls::TlsConnector;

use crate::call::Failure;
use crate::connection::{Socket, Stream};
use crate::error::ErrorKind;
use crate::exchange::{Protocol, Step};

/// Whom to trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Those the system trusts, and these.
    SystemAnd(Vec<CertificateDer<'static>>),
    /// These, and nobody else.
    Only(Vec<CertificateDer<'static>>),
    /// Anybody: for emulators only.
    Anybody,
}

/// TLS as configured, shared by all connections of a client and of its siblings, sessions included.
///
/// Made when the first connection needs it: reading the system's certificates takes milliseconds.
#[derive(Clone)]
pub(crate) struct Tls(Arc<Lazy>);

struct Lazy {
    trust: Trust,
    configs: OnceLock<Result<Configs, String>>,
}

/// One configuration for each offer of protocols.
struct Configs {
    either: TlsConnector,
    http1: TlsConnector,
    http2: TlsConnector,
}

impl Tls {
    pub(crate) fn new(trust: Trust) -> Self {
        if trust == Trust::Anybody {
            tracing::warn!(
                "certificates are NOT checked: anybody on the way can read and change everything. \
                 This is for emulators only"
            );
        }
        Tls(Arc::new(Lazy { trust, configs: OnceLock::new() }))
    }

    /// Agrees on TLS with the host `name`, and on `protocol`, or on any if there is none.
    pub(crate) async fn handshake(
        &self,
        name: &str,
        socket: Socket,
        protocol: Option<Protocol>,
    ) -> Result<(Stream, Protocol), Failure> {
        let fail = |kind| Failure::new(kind, Step::Tls);
        let configs = self.0.configs.get_or_init(|| Configs::new(&self.0.trust)).as_ref();
        let configs = configs.map_err(|error| fail(ErrorKind::Untrusted).because(error.as_str()))?;
        let connector = match protocol {
            None => &configs.either,
            Some(Protocol::Http1) => &configs.http1,
            Some(Protocol::Http2) => &configs.http2,
        };
        let name =
            ServerName::try_from(name.to_owned()).map_err(|error| fail(ErrorKind::Invalid).because(error))?;
        let tls =
            connector.connect(name, socket).await.map_err(|error| fail(kind_of(&error)).because(error))?;
        let agreed = match tls.get_ref().1.alpn_protocol() {
            Some(b"h2") => Protocol::Http2,
            // HTTP/1.1, or a peer that does not know ALPN.
            _ => Protocol::Http1,
        };
        match protocol {
            Some(protocol) if protocol != agreed => Err(fail(ErrorKind::Unreachable)
                .because(format!("the peer does not speak {protocol}: allow {agreed}, or ask another"))),
            _ => Ok((Stream::Tls(Box::new(tls)), agreed)),
        }
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tls").field(&self.0.trust).finish()
    }
}

fn kind_of(error: &io::Error) -> ErrorKind {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented) => {
            ErrorKind::Untrusted
        }
        Some(
            rustls::Error::InvalidMessage(_)
            | rustls::Error::InappropriateMessage { .. }
            | rustls::Error::InappropriateHandshakeMessage { .. }
            | rustls::Error::PeerMisbehaved(_),
        ) => ErrorKind::Malformed,
        _ => ErrorKind::Unreachable,
    }
}

impl Configs {
    fn new(trust: &Trust) -> Result<Self, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let config = match trust {
            Trust::SystemAnd(more) => builder.with_root_certificates(with(system_roots(), more)?),
            Trust::Only(these) => builder.with_root_certificates(with(RootCertStore::empty(), these)?),
            Trust::Anybody => {
                builder.dangerous().with_custom_certificate_verifier(Arc::new(TrustAnybody(provider)))
            }
        };
        let config = config.with_no_client_auth();
        // Clones share the store of sessions, so that a connection of one resumes a session of the other.
        let offer = |protocols: &[&[u8]]| {
            let mut config = config.clone();
            config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
            TlsConnector::from(Arc::new(config))
        };
        Ok(Configs {
            either: offer(&[b"h2", b"http/1.1"]),
            http1: offer(&[b"http/1.1"]),
            http2: offer(&[b"h2"]),
        })
    }
}

fn with(mut roots: RootCertStore, more: &[CertificateDer<'static>]) -> Result<RootCertStore, String> {
    for certificate in more {
        roots
            .add(certificate.clone())
            .map_err(|error| format!("a root certificate is not valid: {error}"))?;
    }
    Ok(roots)
}

/// What the system trusts, read once per process. What cannot be read is left out: a certificate that would
/// have needed it is refused then, by name.
fn system_roots() -> RootCertStore {
    static ROOTS: OnceLock<RootCertStore> = OnceLock::new();
    ROOTS
        .get_or_init(|| {
            let found = rustls_native_certs::load_native_certs();
            for error in &found.errors {
                tracing::warn!(%error, "some of the system's certificates cannot be read");
            }
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(found.certs);
            roots
        })
        .clone()
}

/// Takes any certificate. Signatures are still checked, so that at least the peer has the key of the
/// certificate it shows.
#[derive(Debug)]
struct TrustAnybody(Arc<CryptoProvider>);

impl ServerCertVerifier for TrustAnybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
