//! TLS for a listener: which authority signs, and the handshake settings.
//!
//! The certificate is made beside the start, not in its way: plain connections are served at once,
//! and the first TLS connection waits for it if it comes that early.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use tokio::sync::OnceCell;

use crate::authority::{Authority, AuthorityError};
use clock::Clock;

/// Protocols offered during the handshake, in order of preference.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Where the authority behind the server certificates comes from.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum AuthoritySource {
    /// A new one for this process, made when the first client wants it.
    #[default]
    Ephemeral,
    /// The one kept in this folder, made there if there is none. If the folder cannot be used, a
    /// warning says so and an ephemeral one takes its place.
    KeptIn(PathBuf),
}

/// The TLS side of a server. Cheap to clone; clones share one certificate.
#[derive(Clone, Debug)]
pub struct Tls(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    source: AuthoritySource,
    bind: IpAddr,
    clock: Clock,
    identity: OnceCell<Identity>,
}

/// What is served, and who vouches for it.
#[derive(Clone, Debug)]
struct Identity {
    config: Arc<ServerConfig>,
    authority_pem: Arc<str>,
}

/// Why there is no certificate to serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The authority could not sign.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// The TLS library refused the certificate.
    #[error("cannot serve the certificate: {0}")]
    Rustls(#[from] rustls::Error),
    /// Making it was cut short.
    #[error("the certificate was not made: {0}")]
    Interrupted(#[from] tokio::task::JoinError),
}

impl Tls {
    /// Nothing is made yet. `bind` is named in the certificate beside the usual local names.
    pub fn new(source: AuthoritySource, bind: IpAddr, clock: Clock) -> Tls {
        Tls(Arc::new(Inner { source, bind, clock, identity: OnceCell::new() }))
    }

    /// Starts making the certificate, if its authority is one that is kept. Must be called inside a
    /// Tokio runtime.
    pub fn prepare(&self) {
        if matches!(self.0.source, AuthoritySource::KeptIn(_)) {
            let tls = self.clone();
            tokio::spawn(async move {
                if let Err(error) = tls.identity().await {
                    tracing::error!(%error, "https does not work");
                }
            });
        }
    }

    /// The certificate clients have to trust, as PEM.
    pub async fn authority_pem(&self) -> Result<Arc<str>, TlsError> {
        Ok(Arc::clone(&self.identity().await?.authority_pem))
    }

    /// The settings of every handshake.
    pub(crate) async fn config(&self) -> Result<Arc<ServerConfig>, TlsError> {
        Ok(Arc::clone(&self.identity().await?.config))
    }

    async fn identity(&self) -> Result<&Identity, TlsError> {
        let make = || async {
            let inner = Arc::clone(&self.0);
            tokio::task::spawn_blocking(move || inner.make_identity()).await?
        };
        self.0.identity.get_or_try_init(make).await
    }
}

impl Inner {
    fn make_identity(&self) -> Result<Identity, TlsError> {
        let now = self.clock.machine();
        let authority = match &self.source {
            AuthoritySource::Ephemeral => Authority::ephemeral(now)?,
            AuthoritySource::KeptIn(folder) => match Authority::kept_in(folder, now) {
                Ok(authority) => authority,
                Err(error) => {
                    tracing::warn!(%error, "https uses a certificate authority that ends with this process");
                    Authority::ephemeral(now)?
                }
            },
        };
        let served = authority.issue(self.bind, now)?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![served.certificate], served.key)?;
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        Ok(Identity { config: Arc::new(config), authority_pem: authority.certificate_pem().into() })
    }
}
