//! TLS: certificate verification, and the choice of a protocol by ALPN.
//!
//! The cryptography is that of a feature, `rustls-ring` or `rustls-aws-lc`; so are the roots of the system,
//! `native-roots` or `platform-verifier`. With both of a pair, the second one counts.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::proxy::is_loopback;
use crate::call::StepError;
use crate::error::{BoxError, ErrorKind};
use crate::stream::{BaseStream, Socket, Stream};
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

impl TrustPolicy {
    /// Adds what `defaults` trusts, unless this policy trusts only its own certificates, or any.
    fn or(self, defaults: TrustPolicy) -> Self {
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

/// What a client trusts: everywhere, and on the loopback interface in addition.
#[derive(Clone, Debug)]
pub(crate) struct Trust {
    pub(crate) policy: TrustPolicy,
    pub(crate) loopback: Option<LoopbackRoots>,
}

impl Trust {
    /// Adds what `defaults` trusts, unless this client trusts only its own certificates, or any.
    pub(crate) fn or(self, defaults: Trust) -> Self {
        Trust { policy: self.policy.or(defaults.policy), loopback: self.loopback.or(defaults.loopback) }
    }
}

impl Default for Trust {
    fn default() -> Self {
        Trust { policy: TrustPolicy::SystemAnd(Vec::new()), loopback: None }
    }
}

/// Root certificates of a file, trusted only for hosts of the loopback interface.
#[derive(Clone, Debug)]
pub(crate) struct LoopbackRoots {
    /// The PEM file, which may be created after the client.
    pub(crate) file: PathBuf,
    /// What to do about a certificate that is not trusted, for the error message.
    pub(crate) advice: String,
}

impl LoopbackRoots {
    /// The certificates of the file, or why there are none. Other PEM blocks of the file are ignored.
    fn read(&self) -> Result<Vec<CertificateDer<'static>>, String> {
        let file = self.file.display();
        let pem = std::fs::read(&self.file).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => format!("{file} does not exist"),
            _ => format!("{file} cannot be read: {error}"),
        })?;
        match CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>() {
            Ok(roots) if !roots.is_empty() => Ok(roots),
            Ok(_) | Err(_) => Err(format!("{file} contains no certificate")),
        }
    }
}

/// The TLS configuration and its sessions, shared by all connections of a client and of the clients made from it.
///
/// It is made when the first connection needs it, because reading the certificates of the system takes milliseconds.
#[derive(Clone)]
pub(crate) struct Tls(Arc<LazyConnectors>);

struct LazyConnectors {
    trust: Trust,
    connectors: OnceLock<Result<TlsConnectors, String>>,
}

/// One TLS configuration for each list of protocols that ALPN offers.
struct TlsConnectors {
    either: TlsConnector,
    http1: TlsConnector,
    http2: TlsConnector,
}

impl Tls {
    pub(crate) fn new(trust: Trust) -> Self {
        if trust.policy == TrustPolicy::AcceptAny {
            tracing::warn!(
                "certificates are NOT verified: anyone between the two ends can read and change all traffic. \
                 This is for emulators only"
            );
        }
        Tls(Arc::new(LazyConnectors { trust, connectors: OnceLock::new() }))
    }

    /// Runs the TLS handshake with the host `name`, for `protocol`, or for any protocol if it is `None`.
    pub(crate) async fn handshake(
        &self,
        name: &str,
        base: BaseStream,
        protocol: Option<Protocol>,
    ) -> Result<(Stream, Protocol), StepError> {
        let (tls, protocol) = self.handshake_over(base, name, protocol).await?;
        Ok((Stream::Tls(Box::new(tls)), protocol))
    }

    /// Runs the TLS handshake with the proxy `name`, which speaks HTTP/1.1.
    pub(crate) async fn handshake_with_proxy(
        &self,
        name: &str,
        socket: Socket,
    ) -> Result<BaseStream, StepError> {
        match self.handshake_over(socket, name, Some(Protocol::Http1)).await {
            Ok((tls, _)) => Ok(BaseStream::TlsToProxy(Box::new(tls))),
            Err(error) => Err(StepError { step: Step::Proxy, ..error }),
        }
    }

    async fn handshake_over<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        name: &str,
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
            .map_err(|error| fail(kind_of(&error)).with_source(cause_of(error)))?;
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

/// The error of a handshake; that of [`LoopbackVerifier`] without the types that rustls wraps it in.
fn cause_of(error: io::Error) -> BoxError {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(cause)))) => {
            cause.to_string().into()
        }
        _ => error.into(),
    }
}

impl TlsConnectors {
    fn new(trust: &Trust) -> Result<Self, String> {
        let provider = Arc::new(crypto_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let verifier: Arc<dyn ServerCertVerifier> = match (&trust.policy, &trust.loopback) {
            (TrustPolicy::AcceptAny, _) => Arc::new(AnyCertificate { provider, is_accepted: true }),
            (TrustPolicy::Only(these), _) => roots_verifier(RootCertStore::empty(), these, provider)?,
            (TrustPolicy::SystemAnd(more), None) => system_verifier(more, provider)?,
            (TrustPolicy::SystemAnd(more), Some(loopback)) => Arc::new(LoopbackVerifier {
                system: system_verifier(more, Arc::clone(&provider))?,
                loopback: loopback.clone(),
                provider,
            }),
        };
        let config = builder.dangerous().with_custom_certificate_verifier(verifier);
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

#[cfg(feature = "rustls-aws-lc")]
fn crypto_provider() -> CryptoProvider {
    rustls::crypto::aws_lc_rs::default_provider()
}

#[cfg(not(feature = "rustls-aws-lc"))]
fn crypto_provider() -> CryptoProvider {
    rustls::crypto::ring::default_provider()
}

/// Lets the operating system verify certificates, with `more` roots.
#[cfg(feature = "platform-verifier")]
fn system_verifier(
    more: &[CertificateDer<'static>],
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, String> {
    let verifier = rustls_platform_verifier::Verifier::new_with_extra_roots(more.iter().cloned(), provider);
    match verifier {
        Ok(verifier) => Ok(Arc::new(verifier)),
        Err(error) => Err(format!("the system cannot verify certificates: {error}")),
    }
}

/// Trusts the root certificates of the system, and `more` of them.
#[cfg(not(feature = "platform-verifier"))]
fn system_verifier(
    more: &[CertificateDer<'static>],
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, String> {
    roots_verifier(system_roots(), more, provider)
}

/// Trusts the certificates that one of `roots`, or of `more` roots, has signed.
fn roots_verifier(
    roots: RootCertStore,
    more: &[CertificateDer<'static>],
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, String> {
    let roots = add_roots(roots, more)?;
    if roots.is_empty() {
        return Ok(Arc::new(AnyCertificate { provider, is_accepted: false }));
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
    Ok(verifier.map_err(|error| error.to_string())?)
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
#[cfg(all(feature = "native-roots", not(feature = "platform-verifier")))]
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

/// No certificates: this build does not know those of the system.
#[cfg(not(any(feature = "native-roots", feature = "platform-verifier")))]
fn system_roots() -> RootCertStore {
    RootCertStore::empty()
}

/// Verifies the three kinds of signatures with the algorithms of a provider, for verifiers of certificates.
macro_rules! verify_signatures_with {
    ($provider:ident) => {
        fn verify_tls12_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            let algorithms = &self.$provider.signature_verification_algorithms;
            rustls::crypto::verify_tls12_signature(message, cert, dss, algorithms)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            let algorithms = &self.$provider.signature_verification_algorithms;
            rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.$provider.signature_verification_algorithms.supported_schemes()
        }
    };
}

/// Trusts what the system trusts, and for hosts of the loopback interface the roots of a file.
///
/// The file is read when a certificate needs it, so that a file is used which was created or replaced after the client,
/// even by the server of this handshake. It is small, and only servers on this machine make it necessary.
#[derive(Debug)]
struct LoopbackVerifier {
    system: Arc<dyn ServerCertVerifier>,
    loopback: LoopbackRoots,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for LoopbackVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verify = |verifier: &dyn ServerCertVerifier| {
            verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
        };
        let error = match verify(&*self.system) {
            Err(error) if is_loopback(&server_name.to_str()) => error,
            verified => return verified,
        };
        let advice = &self.loopback.advice;
        let refuse = |reason: String| {
            let text = format!("{error}; {reason}; {advice}");
            CertificateError::Other(OtherError(Arc::from(Box::<dyn StdError + Send + Sync>::from(text))))
                .into()
        };
        let roots = self.loopback.read().map_err(refuse)?;
        let roots = roots_verifier(RootCertStore::empty(), &roots, Arc::clone(&self.provider));
        let file = self.loopback.file.display();
        verify(&*roots.map_err(|error| refuse(format!("{file} cannot be used: {error}")))?)
            .map_err(|error| refuse(format!("nor is it valid for an authority of {file}: {error}")))
    }

    verify_signatures_with!(provider);
}

/// Accepts every certificate, or none because there are no root certificates. Signatures are verified all the same, so a
/// peer that is accepted at least has the key of the certificate it presents.
#[derive(Debug)]
struct AnyCertificate {
    provider: Arc<CryptoProvider>,
    is_accepted: bool,
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.is_accepted {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::UnknownIssuer.into())
        }
    }

    verify_signatures_with!(provider);
}
