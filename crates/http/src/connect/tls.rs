//! TLS: certificate verification, and the choice of a protocol by ALPN.

use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::call::StepError;
use crate::error::ErrorKind;
use crate::trace::{Protocol, Step};

/// Which server certificates are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TrustPolicy {
    /// Those signed by a root certificate of the system, or by one of these.
    SystemAnd(Vec<CertificateDer<'static>>),
    /// Those signed by one of these root certificates.
    Only(Vec<CertificateDer<'static>>),
    /// Any certificate at all: for emulators only.
    AcceptAny,
}

impl Default for TrustPolicy {
    fn default() -> Self {
        TrustPolicy::SystemAnd(Vec::new())
    }
}

impl TrustPolicy {
    /// Adds what `defaults` trusts, unless this policy trusts only its own certificates, or any.
    pub(crate) fn or(self, defaults: TrustPolicy) -> Self {
        match (self, defaults) {
            (TrustPolicy::SystemAnd(mut these), TrustPolicy::SystemAnd(more)) => {
                these.extend(more);
                TrustPolicy::SystemAnd(these)
            }
            (TrustPolicy::SystemAnd(these), defaults) if these.is_empty() => defaults,
            (these, _) => these,
        }
    }
}

/// The TLS configuration and its sessions, shared by all connections of a client and of the clients made from it.
///
/// It is made when the first connection needs it, because reading the certificates of the system takes milliseconds.
#[derive(Clone)]
pub(crate) struct Tls(Arc<LazyConnectors>);

struct LazyConnectors {
    trust: TrustPolicy,
    connectors: OnceLock<Result<TlsConnectors, String>>,
}

/// One TLS configuration for each list of protocols that ALPN offers.
struct TlsConnectors {
    either: TlsConnector,
    http1: TlsConnector,
    http2: TlsConnector,
}

impl Tls {
    pub(crate) fn new(trust: TrustPolicy) -> Self {
        if trust == TrustPolicy::AcceptAny {
            tracing::warn!(
                "certificates are NOT verified: anyone between the two ends can read and change all traffic. \
                 This is for emulators only"
            );
        }
        Tls(Arc::new(LazyConnectors { trust, connectors: OnceLock::new() }))
    }

    /// Runs the TLS handshake with the host `name`, for `protocol`, or for any protocol if it is `None`.
    pub(crate) async fn handshake<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        name: &str,
        stream: S,
        protocol: Option<Protocol>,
    ) -> Result<(TlsStream<S>, Protocol), StepError> {
        let fail = |kind| StepError::new(kind, Step::Tls);
        let connectors = self.0.connectors.get_or_init(|| TlsConnectors::new(&self.0.trust)).as_ref();
        let connectors =
            connectors.map_err(|error| fail(ErrorKind::Untrusted).with_source(error.as_str()))?;
        let connector = match protocol {
            None => &connectors.either,
            Some(Protocol::Http1) => &connectors.http1,
            Some(Protocol::Http2) => &connectors.http2,
        };
        let name = ServerName::try_from(name.to_owned())
            .map_err(|error| fail(ErrorKind::Invalid).with_source(error))?;
        let tls = connector
            .connect(name, stream)
            .await
            .map_err(|error| fail(kind_of(&error)).with_source(error))?;
        let negotiated = match tls.get_ref().1.alpn_protocol() {
            Some(b"h2") => Protocol::Http2,
            // HTTP/1.1, or a peer without ALPN.
            _ => Protocol::Http1,
        };
        match protocol {
            Some(protocol) if protocol != negotiated => Err(fail(ErrorKind::Unreachable)
                .with_source(format!("the server does not support {protocol}: allow {negotiated}"))),
            _ => Ok((tls, negotiated)),
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

impl TlsConnectors {
    fn new(trust: &TrustPolicy) -> Result<Self, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let config = match trust {
            TrustPolicy::SystemAnd(more) => builder.with_root_certificates(add_roots(system_roots(), more)?),
            TrustPolicy::Only(these) => {
                builder.with_root_certificates(add_roots(RootCertStore::empty(), these)?)
            }
            TrustPolicy::AcceptAny => {
                builder.dangerous().with_custom_certificate_verifier(Arc::new(AcceptAnyCertificate(provider)))
            }
        };
        let config = config.with_no_client_auth();
        // Clones of a configuration share its session store, so a connection of one resumes a session of another.
        let offer = |protocols: &[&[u8]]| {
            let mut config = config.clone();
            config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
            TlsConnector::from(Arc::new(config))
        };
        Ok(TlsConnectors {
            either: offer(&[b"h2", b"http/1.1"]),
            http1: offer(&[b"http/1.1"]),
            http2: offer(&[b"h2"]),
        })
    }
}

fn add_roots(mut roots: RootCertStore, more: &[CertificateDer<'static>]) -> Result<RootCertStore, String> {
    for certificate in more {
        roots
            .add(certificate.clone())
            .map_err(|error| format!("a root certificate is not valid: {error}"))?;
    }
    Ok(roots)
}

/// The root certificates of the system, read once per process. One that cannot be read is left out with a warning; a
/// server that needs it is then not trusted.
fn system_roots() -> RootCertStore {
    static ROOTS: OnceLock<RootCertStore> = OnceLock::new();
    ROOTS
        .get_or_init(|| {
            let found = rustls_native_certs::load_native_certs();
            for error in &found.errors {
                tracing::warn!(%error, "some root certificates of the system cannot be read");
            }
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(found.certs);
            roots
        })
        .clone()
}

/// Accepts any certificate. Signatures are still verified, so the peer at least has the key of the certificate it
/// presents.
#[derive(Debug)]
struct AcceptAnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAnyCertificate {
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
