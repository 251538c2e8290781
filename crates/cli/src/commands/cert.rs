//! `peri cert`: show the authority that `peri up` signs with, making it if this is the first time.

use emulator::Authority;
use emulator::clock::Clock;

use crate::arguments::Cert;
use crate::exit::Failure;
use crate::{home, output};

/// Prints the certificate, or saves it where `--out` says.
pub(crate) fn run(cert: &Cert) -> Result<(), Failure> {
    let folder = home::folder().ok_or_else(|| Failure::other(home::MISSING.to_owned()))?;
    let authority = Authority::stored_in(&folder, Clock::system().now()).map_err(|error| {
        Failure::other(error.to_string()).hint("set PERI_HOME to a folder it can write to")
    })?;
    match &cert.out {
        None => output::data(authority.certificate_pem().trim_end()),
        Some(file) => {
            std::fs::write(file, authority.certificate_pem())
                .map_err(|error| Failure::other(format!("cannot write {}: {error}", file.display())))?;
            output::message(&format!("saved to {}", file.display()));
        }
    }
    Ok(())
}
