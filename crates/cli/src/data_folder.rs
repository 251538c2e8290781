//! The folder in which `peri` stores what outlives a run. Clients look for the certificate authority there, so its path is
//! theirs to compute.

use std::path::PathBuf;

/// The message if there is no such folder.
pub(crate) const MISSING: &str = "this user has no home directory to store files in; set PERI_HOME";

/// The path of the folder, which need not exist yet; none if the user has no home directory.
pub(crate) fn path() -> Option<PathBuf> {
    perihelion::local_cloud::folder()
}
