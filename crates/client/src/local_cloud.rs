//! Where the local cloud (`peri`) stores the certificate authority that signs its https endpoints.
//!
//! Input: `PERI_HOME`, or the user's data directory. Output: paths; nothing is read or created here. The client trusts the
//! authority for hosts of the loopback interface only (`runtime`), and `peri` itself creates it.

use std::path::PathBuf;

use etcetera::BaseStrategy as _;

/// The file of the certificate authority in the [folder](folder) of the local cloud.
const AUTHORITY_FILE: &str = "authority.pem";

/// The folder in which `peri` stores what outlives a run: `PERI_HOME`, or `perihelion` in the user's data directory. It
/// need not exist; none if the user has no home directory.
pub fn folder() -> Option<PathBuf> {
    folder_with(std::env::var_os("PERI_HOME").map(PathBuf::from))
}

fn folder_with(chosen: Option<PathBuf>) -> Option<PathBuf> {
    if let Some(chosen) = chosen.filter(|path| !path.as_os_str().is_empty()) {
        return Some(chosen);
    }
    let directories = etcetera::base_strategy::choose_native_strategy().ok()?;
    // On Windows the local application data, which does not roam to other machines, is the cache directory.
    let data = if cfg!(windows) { directories.cache_dir() } else { directories.data_dir() };
    Some(data.join("perihelion"))
}

/// The file with the certificate of the authority that signs the https endpoints of `peri up`. The file also has the
/// authority's key, so it is only for this user; `peri cert` prints the certificate alone.
pub fn authority_file() -> Option<PathBuf> {
    folder().map(|folder| folder.join(AUTHORITY_FILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_folder_comes_before_the_users_data_directory() {
        assert_eq!(folder_with(Some(PathBuf::from("/elsewhere"))), Some(PathBuf::from("/elsewhere")));
        for unset in [None, Some(PathBuf::new())] {
            let folder = folder_with(unset).expect("this user has a home directory");
            assert!(folder.ends_with("perihelion"), "{}", folder.display());
        }
    }
}
