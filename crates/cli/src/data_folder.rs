//! The folder in which `peri` stores what outlives a run: `PERI_HOME`, or a folder in the user's data directory.

use std::path::PathBuf;

use etcetera::BaseStrategy as _;

/// The message if there is no such folder.
pub(crate) const MISSING: &str = "this user has no home directory to store files in; set PERI_HOME";

/// The path of the folder, which need not exist yet; none if the user has no home directory.
pub(crate) fn path() -> Option<PathBuf> {
    if let Some(chosen) = std::env::var_os("PERI_HOME").filter(|value| !value.is_empty()) {
        return Some(PathBuf::from(chosen));
    }
    let directories = etcetera::base_strategy::choose_native_strategy().ok()?;
    // On Windows the local application data, which does not roam to other machines, is the cache directory.
    let data = if cfg!(windows) { directories.cache_dir() } else { directories.data_dir() };
    Some(data.join("perihelion"))
}
