//! Certificates for the servers of the tests, generated on demand.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// A certificate authority that a client can trust.
pub(crate) struct CertificateAuthority {
    root: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

impl CertificateAuthority {
    pub(crate) fn new() -> CertificateAuthority {
        let key = KeyPair::generate().expect("a key can be made");
        let mut params = CertificateParams::new(Vec::new()).expect("an empty list of names is valid");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = params.self_signed(&key).expect("it signs itself").der().clone();
        CertificateAuthority { root, issuer: Issuer::new(params, key) }
    }

    pub(crate) fn root(&self) -> CertificateDer<'static> {
        self.root.clone()
    }

    /// A server whose certificate is for `name`, and that offers these protocols.
    pub(crate) fn server(&self, name: &str, protocols: &[&str]) -> TlsAcceptor {
        self.sign(params(name), protocols)
    }

    /// A server whose certificate for `name` has expired.
    pub(crate) fn expired_server(&self, name: &str) -> TlsAcceptor {
        let mut params = params(name);
        params.not_before = date_time_ymd(2001, 1, 1);
        params.not_after = date_time_ymd(2002, 1, 1);
        self.sign(params, &[])
    }

    fn sign(&self, params: CertificateParams, protocols: &[&str]) -> TlsAcceptor {
        let key = KeyPair::generate().expect("a key can be made");
        let certificate = params.signed_by(&key, &self.issuer).expect("the authority signs");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider knows them")
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).expect("the key is one"),
            )
            .expect("key and certificate match");
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }
}

fn params(name: &str) -> CertificateParams {
    CertificateParams::new(vec![name.to_owned()]).expect("the name is one")
}
