//! TLS for a server: which authority signs its certificate, and the handshake settings.
//!
//! The certificate is created in the background: plain connections are served at once, and a TLS connection
//! that comes early waits for it.

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
    /// A new one for this process, created when the first client needs it.
    #[default]
    Ephemeral,
    /// The one stored in this folder, created there if there is none. If the folder cannot be used, a
    /// warning is logged and an ephemeral one is used instead.
    StoredIn(PathBuf),
}

/// The TLS side of a server. Cheap to clone; clones share one certificate.
#[derive(Clone, Debug)]
pub struct Tls(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    source: AuthoritySource,
    bind: IpAddr,
    /// Further host names of the certificate.
    names: Vec<String>,
    clock: Clock,
    identity: OnceCell<Identity>,
}

/// The TLS settings with the server's certificate, and the authority that signed it.
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
    /// The TLS library rejected the certificate.
    #[error("cannot serve the certificate: {0}")]
    Rustls(#[from] rustls::Error),
    /// The task that creates the certificate was cancelled or panicked.
    #[error("the certificate was not created: {0}")]
    Interrupted(#[from] tokio::task::JoinError),
}

impl Tls {
    /// Prepares TLS without creating a certificate yet. The certificate will name `bind` and the usual local
    /// host names.
    pub fn new(source: AuthoritySource, bind: IpAddr, clock: Clock) -> Tls {
        Tls(Arc::new(Inner { source, bind, names: Vec::new(), clock, identity: OnceCell::new() }))
    }

    /// TLS whose certificate will also name these hosts. Must be called before the certificate is needed.
    #[must_use]
    pub fn with_names(self, names: Vec<String>) -> Tls {
        let Inner { source, bind, clock, .. } = &*self.0;
        let (source, bind, clock) = (source.clone(), *bind, clock.clone());
        Tls(Arc::new(Inner { source, bind, names, clock, identity: OnceCell::new() }))
    }

    /// Starts to create the certificate if its authority is stored in a folder. Must be called inside a Tokio
    /// runtime.
    pub fn prepare(&self) {
        if matches!(self.0.source, AuthoritySource::StoredIn(_)) {
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

    /// The TLS settings of every handshake.
    pub(crate) async fn config(&self) -> Result<Arc<ServerConfig>, TlsError> {
        Ok(Arc::clone(&self.identity().await?.config))
    }

    async fn identity(&self) -> Result<&Identity, TlsError> {
        let create = || async {
            let inner = Arc::clone(&self.0);
            tokio::task::spawn_blocking(move || inner.create_identity()).await?
        };
        self.0.identity.get_or_try_init(create).await
    }
}

impl Inner {
    fn create_identity(&self) -> Result<Identity, TlsError> {
        let now = self.clock.wall_clock();
        let authority = match &self.source {
            AuthoritySource::Ephemeral => Authority::ephemeral(now)?,
            AuthoritySource::StoredIn(folder) => match Authority::stored_in(folder, now) {
                Ok(authority) => authority,
                Err(error) => {
                    tracing::warn!(%error, "https uses a certificate authority that ends with this process");
                    Authority::ephemeral(now)?
                }
            },
        };
        let served = authority.issue(self.bind, &self.names, now)?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![served.certificate], served.key)?;
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        Ok(Identity { config: Arc::new(config), authority_pem: authority.certificate_pem().into() })
    }
}
