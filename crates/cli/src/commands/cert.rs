//! `peri cert`: prints or saves the certificate of the authority that `peri up` signs with. The first call creates it.

use emulator::Authority;
use emulator::clock::Clock;

use crate::arguments::Cert;
use crate::exit::CommandError;
use crate::{data_folder, output};

/// Prints the certificate, or saves it to the file of `--out`.
pub(crate) fn run(cert: &Cert) -> Result<(), CommandError> {
    let folder = data_folder::path().ok_or_else(|| CommandError::other(data_folder::MISSING.to_owned()))?;
    let authority = Authority::stored_in(&folder, Clock::system().now()).map_err(|error| {
        CommandError::other(error.to_string()).hint("set PERI_HOME to a folder it can write to")
    })?;
    match &cert.out {
        None => output::data(authority.certificate_pem().trim_end()),
        Some(file) => {
            std::fs::write(file, authority.certificate_pem())
                .map_err(|error| CommandError::other(format!("cannot write {}: {error}", file.display())))?;
            output::message(&format!("saved to {}", file.display()));
        }
    }
    Ok(())
}
