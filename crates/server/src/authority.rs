//! The local certificate authority: created once, stored in a folder, signs server certificates.
//!
//! Input: a folder, or nothing. Output: an [`Authority`] that can be exported (`peri cert`) and that issues
//! one short-lived certificate per start. `tls` serves with that certificate.

use std::fs;
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PublicKeyData as _, SanType,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use clock::Ticks;

/// The file with both certificate and key, so that they are always stored together.
const FILE_NAME: &str = "authority.pem";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// How long before its creation a certificate is valid: clocks differ between machines and containers.
const VALID_BEFORE: Duration = DAY;
/// How long the authority is valid: long enough that it has to be trusted only once.
const AUTHORITY_VALID: Duration = DAY.saturating_mul(30 * 365);
/// How long a server certificate is valid. Some systems refuse more than 398 days.
const SERVER_VALID: Duration = DAY.saturating_mul(390);
/// Host names of a server on this machine, as seen from the host and from containers.
const SERVER_NAMES: [&str; 2] = ["localhost", "host.docker.internal"];

/// The certificate authority that signs the certificates of this machine's local servers.
pub struct Authority {
    certificate: CertificateDer<'static>,
    certificate_pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

/// Why an authority could not be created, stored or loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthorityError {
    /// The folder or the file cannot be read or written.
    #[error("cannot use {}: {source}", path.display())]
    Storage {
        /// The folder or file that failed.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file exists, but this program did not write it.
    #[error("{} is damaged; delete it and a new authority will be made", path.display())]
    Damaged {
        /// The path of the damaged file.
        path: PathBuf,
    },
    /// The cryptography library failed.
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
}

/// A server certificate and its private key.
pub(crate) struct ServerCertificate {
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) key: PrivateKeyDer<'static>,
}

impl Authority {
    /// Creates an authority that is not stored.
    pub fn ephemeral(now: Ticks) -> Result<Authority, AuthorityError> {
        Authority::from_pem(&new_authority(now)?).ok_or_else(|| rcgen::Error::CouldNotParseCertificate.into())
    }

    /// Loads the authority stored in `folder`, or creates it there.
    ///
    /// Several processes may do this at once: one of them creates it and all of them use that one.
    pub fn stored_in(folder: &Path, now: Ticks) -> Result<Authority, AuthorityError> {
        let path = folder.join(FILE_NAME);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let created = new_authority(now)?;
                store_unless_present(folder, &path, &created)
                    .map_err(|source| AuthorityError::Storage { path: path.clone(), source })?
            }
            found => found.map_err(|source| AuthorityError::Storage { path: path.clone(), source })?,
        };
        Authority::from_pem(&text).ok_or(AuthorityError::Damaged { path })
    }

    /// The certificate clients have to trust, as PEM. It is not secret.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// Issues a certificate for a server on this machine that also listens on `bind` and has further `names`.
    pub(crate) fn issue(
        &self,
        bind: IpAddr,
        names: &[String],
        now: Ticks,
    ) -> Result<ServerCertificate, AuthorityError> {
        let key = KeyPair::generate()?;
        let certificate = server_params(bind, names, now)?.signed_by(&key, &self.issuer)?;
        Ok(ServerCertificate {
            certificate: certificate.der().clone(),
            key: PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
        })
    }

    fn from_pem(text: &str) -> Option<Authority> {
        let certificate = CertificateDer::from_pem_slice(text.as_bytes()).ok()?;
        let PrivateKeyDer::Pkcs8(key) = PrivateKeyDer::from_pem_slice(text.as_bytes()).ok()? else {
            return None;
        };
        let key = KeyPair::try_from(key.secret_pkcs8_der()).ok()?;
        // With the certificate of another key, no client could verify what is issued.
        let public = key.der_bytes();
        if !certificate.windows(public.len()).any(|window| window == public) {
            return None;
        }
        let certificate_pem = certificate_block(text)?;
        let issuer = Issuer::new(authority_params(&key), key);
        Some(Authority { certificate, certificate_pem, issuer })
    }

    /// The authority's own certificate, in DER form.
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }
}

fn new_authority(now: Ticks) -> Result<String, AuthorityError> {
    let key = KeyPair::generate()?;
    let mut params = authority_params(&key);
    (params.not_before, params.not_after) = validity(now, AUTHORITY_VALID);
    let certificate = params.self_signed(&key)?;
    Ok(certificate.pem() + &key.serialize_pem())
}

/// The parameters of an authority's certificate. They depend only on its key, so that the issuer can be
/// rebuilt from the key alone.
fn authority_params(key: &KeyPair) -> CertificateParams {
    let mut params = CertificateParams::default();
    let id = params.key_identifier(key);
    let short_id: String = id.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "Perihelion");
    params.distinguished_name.push(DnType::CommonName, format!("Perihelion local authority {short_id}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn server_params(bind: IpAddr, names: &[String], now: Ticks) -> Result<CertificateParams, rcgen::Error> {
    // An IPv6 address has brackets in a URL, and none in a certificate.
    let names = names.iter().map(|name| name.trim_start_matches('[').trim_end_matches(']').to_owned());
    let mut params =
        CertificateParams::new(SERVER_NAMES.map(str::to_owned).into_iter().chain(names).collect::<Vec<_>>())?;
    let mut addresses = vec![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    if !bind.is_unspecified() && !addresses.contains(&bind) {
        addresses.push(bind);
    }
    params.subject_alt_names.extend(addresses.into_iter().map(SanType::IpAddress));
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "localhost");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    (params.not_before, params.not_after) = validity(now, SERVER_VALID);
    Ok(params)
}

fn validity(now: Ticks, length: Duration) -> (time::OffsetDateTime, time::OffsetDateTime) {
    let now = time::OffsetDateTime::from(now.to_system_time());
    (now - VALID_BEFORE, now + length)
}

/// Stores `text` unless another process was faster; returns what is stored.
fn store_unless_present(folder: &Path, path: &Path, text: &str) -> io::Result<String> {
    create_private_folder(folder)?;
    // Created with mode 0600, and removed when it is dropped.
    let mut file = tempfile::Builder::new().prefix(".authority.").tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    match publish(file.path(), path) {
        Ok(()) => Ok(text.to_owned()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => fs::read_to_string(path),
        Err(error) => Err(error),
    }
}

/// Gives a complete file its final name, unless that name is taken. A link, not a rename: renaming would
/// replace the authority that another process has just begun to use.
fn publish(file: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(file, path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // Some file systems have no hard links; there the race is unlikely, but possible.
        Err(_) if !path.exists() => fs::rename(file, path),
        Err(error) => Err(error),
    }
}

fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// The first certificate in a PEM text, unchanged.
fn certificate_block(text: &str) -> Option<String> {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----";
    let from = text.find(BEGIN)?;
    let to = from + text[from..].find(END)? + END.len();
    Some(format!("{}\n", &text[from..to]))
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    const NOW: Ticks = Ticks(17_000_000_000_000_000);

    #[test]
    fn an_authority_is_created_once_and_loaded_afterwards() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("deep/inside");
        let created = Authority::stored_in(&folder, NOW).unwrap();
        let loaded = Authority::stored_in(&folder, NOW).unwrap();
        assert_eq!(created.certificate_pem(), loaded.certificate_pem());
        assert!(!created.certificate_pem().contains("PRIVATE"));
        let names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, [FILE_NAME], "no temporary files stay behind");
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_the_key() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        Authority::stored_in(directory.path(), NOW).unwrap();
        let mode = fs::metadata(directory.path().join(FILE_NAME)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn processes_that_start_together_agree_on_one_authority() {
        let directory = tempfile::tempdir().unwrap();
        let together = Barrier::new(8);
        let certificates: Vec<String> = std::thread::scope(|scope| {
            let start = || {
                together.wait();
                Authority::stored_in(directory.path(), NOW).unwrap().certificate_pem().to_owned()
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(certificates.iter().all(|pem| *pem == certificates[0]), "{certificates:?}");
    }

    #[test]
    fn a_damaged_file_is_reported_and_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE_NAME);
        let whole = {
            Authority::stored_in(directory.path(), NOW).unwrap();
            fs::read_to_string(&path).unwrap()
        };
        let stranger = new_authority(NOW).unwrap();
        let swapped =
            certificate_block(&stranger).unwrap() + &whole[whole.find("-----BEGIN PRIVATE").unwrap()..];
        for text in ["", "nonsense", &whole[..whole.len() / 2], &swapped] {
            fs::write(&path, text).unwrap();
            let error = Authority::stored_in(directory.path(), NOW).unwrap_err();
            assert!(matches!(error, AuthorityError::Damaged { .. }), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn a_folder_that_cannot_be_created_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "a file where the folder should be").unwrap();
        let error = Authority::stored_in(&path, NOW).unwrap_err();
        assert!(matches!(error, AuthorityError::Storage { .. }), "{error}");
    }
}
