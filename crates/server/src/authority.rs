//! The emulator's own certificate authority: made once, kept in a folder, signs server certificates.
//!
//! In: a folder, or nothing. Out: an [`Authority`] that can be shown (`peri cert`) and that issues
//! one short-lived certificate per start. Serving with that certificate belongs to `tls`.

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

/// One file with certificate and key: it is there whole or not at all.
const FILE_NAME: &str = "authority.pem";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Clocks differ between machines and containers.
const VALID_BEFORE: Duration = DAY;
/// Long enough to be trusted once and forgotten.
const AUTHORITY_VALID: Duration = DAY.saturating_mul(30 * 365);
/// Some systems refuse server certificates that are valid for longer than 398 days.
const SERVER_VALID: Duration = DAY.saturating_mul(390);
/// Names under which clients reach a server on this machine, from containers too.
const SERVER_NAMES: [&str; 2] = ["localhost", "host.docker.internal"];

/// Signs the certificates this machine's emulators serve.
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

/// Why an authority could not be kept in, or read from, its folder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthorityError {
    /// The folder or the file cannot be used.
    #[error("cannot use {}: {source}", path.display())]
    Storage {
        /// The folder or file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file is there, and is not what this program wrote.
    #[error("{} is damaged; delete it and a new authority will be made", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// The cryptography refused.
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
}

/// A certificate and its key, ready to serve.
pub(crate) struct ServerCertificate {
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) key: PrivateKeyDer<'static>,
}

impl Authority {
    /// An authority that is forgotten with the process.
    pub fn ephemeral(now: Ticks) -> Result<Authority, AuthorityError> {
        Authority::from_pem(&new_authority(now)?).ok_or_else(|| rcgen::Error::CouldNotParseCertificate.into())
    }

    /// The authority kept in `folder`, made now if there is none.
    ///
    /// Several processes may do this at once: one of them makes it and all of them use that one.
    pub fn kept_in(folder: &Path, now: Ticks) -> Result<Authority, AuthorityError> {
        let path = folder.join(FILE_NAME);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let made = new_authority(now)?;
                keep(folder, &path, &made)
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

    /// A certificate for a server on this machine that also listens on `bind`.
    pub(crate) fn issue(&self, bind: IpAddr, now: Ticks) -> Result<ServerCertificate, AuthorityError> {
        let key = KeyPair::generate()?;
        let certificate = server_params(bind, now)?.signed_by(&key, &self.issuer)?;
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
        // A certificate of another key would issue certificates nobody can verify.
        let public = key.der_bytes();
        if !certificate.windows(public.len()).any(|window| window == public) {
            return None;
        }
        let certificate_pem = certificate_block(text)?;
        let issuer = Issuer::new(authority_params(&key), key);
        Some(Authority { certificate, certificate_pem, issuer })
    }

    /// The certificate itself.
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

/// What an authority's certificate says about it. Depends on nothing but its key, so that the issuer
/// can be put together again from the key alone.
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

fn server_params(bind: IpAddr, now: Ticks) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(SERVER_NAMES.map(str::to_owned))?;
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

/// Stores `text` unless somebody else was faster; returns what is stored.
fn keep(folder: &Path, path: &Path, text: &str) -> io::Result<String> {
    create_private_folder(folder)?;
    let draft = folder.join(format!(".{FILE_NAME}.{}", uuid::Uuid::new_v4()));
    let written = write_private(&draft, text).and_then(|()| publish(&draft, path));
    let _ = fs::remove_file(&draft);
    match written {
        Ok(()) => Ok(text.to_owned()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => fs::read_to_string(path),
        Err(error) => Err(error),
    }
}

/// Gives a complete file its final name, unless that name is taken. A link, not a rename: renaming
/// would replace the authority another process has just begun to use.
fn publish(draft: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(draft, path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // Some file systems have no links; the race is then merely unlikely.
        Err(_) if !path.exists() => fs::rename(draft, path),
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

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// The first certificate in a PEM text, as it stands there.
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

    /// A folder of its own for one test, gone afterwards.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new() -> Scratch {
            Scratch(std::env::temp_dir().join(format!("perihelion-{}", uuid::Uuid::new_v4())))
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn an_authority_is_made_once_and_found_again() {
        let scratch = Scratch::new();
        let folder = scratch.0.join("deep/inside");
        let made = Authority::kept_in(&folder, NOW).unwrap();
        let found = Authority::kept_in(&folder, NOW).unwrap();
        assert_eq!(made.certificate_pem(), found.certificate_pem());
        assert!(!made.certificate_pem().contains("PRIVATE"));
        let names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, [FILE_NAME], "no drafts stay behind");
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_the_key() {
        use std::os::unix::fs::PermissionsExt as _;
        let scratch = Scratch::new();
        Authority::kept_in(&scratch.0, NOW).unwrap();
        let mode = fs::metadata(scratch.0.join(FILE_NAME)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn processes_that_start_together_agree_on_one_authority() {
        let scratch = Scratch::new();
        let together = Barrier::new(8);
        let seen: Vec<String> = std::thread::scope(|scope| {
            let start = || {
                together.wait();
                Authority::kept_in(&scratch.0, NOW).unwrap().certificate_pem().to_owned()
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(seen.iter().all(|pem| *pem == seen[0]), "{seen:?}");
    }

    #[test]
    fn a_damaged_file_is_reported_and_left_alone() {
        let scratch = Scratch::new();
        let path = scratch.0.join(FILE_NAME);
        let whole = {
            Authority::kept_in(&scratch.0, NOW).unwrap();
            fs::read_to_string(&path).unwrap()
        };
        let stranger = new_authority(NOW).unwrap();
        let swapped =
            certificate_block(&stranger).unwrap() + &whole[whole.find("-----BEGIN PRIVATE").unwrap()..];
        for text in ["", "nonsense", &whole[..whole.len() / 2], &swapped] {
            fs::write(&path, text).unwrap();
            let error = Authority::kept_in(&scratch.0, NOW).unwrap_err();
            assert!(matches!(error, AuthorityError::Damaged { .. }), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_reported() {
        let scratch = Scratch::new();
        fs::write(&scratch.0, "a file where the folder should be").unwrap();
        let error = Authority::kept_in(&scratch.0, NOW).unwrap_err();
        assert!(matches!(error, AuthorityError::Storage { .. }), "{error}");
        fs::remove_file(&scratch.0).unwrap();
    }
}
