//! Where `peri` keeps what outlives a run: `PERI_HOME`, or a folder among the user's data.

use std::ffi::OsString;
use std::path::PathBuf;

/// Said when there is no such place.
pub(crate) const MISSING: &str = "there is no home folder to keep things in; set PERI_HOME";

/// The folder, which need not exist yet.
pub(crate) fn folder() -> Option<PathBuf> {
    folder_by(|name| std::env::var_os(name).filter(|value| !value.is_empty()))
}

/// The same, with the environment as an argument.
fn folder_by(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = |name: &str| variable(name).map(PathBuf::from);
    if let Some(chosen) = path("PERI_HOME") {
        return Some(chosen);
    }
    let data = if cfg!(windows) {
        path("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        path("HOME").map(|home| home.join("Library/Application Support"))
    } else {
        let from_desktop = path("XDG_DATA_HOME").filter(|folder| folder.is_absolute());
        from_desktop.or_else(|| path("HOME").map(|home| home.join(".local/share")))
    };
    data.map(|folder| folder.join("perihelion"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(variables: &[(&str, &str)], expected: Option<&str>) {
        let lookup = |name: &str| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
        };
        assert_eq!(folder_by(lookup), expected.map(PathBuf::from), "{variables:?}");
    }

    #[test]
    fn a_chosen_home_wins_everywhere() {
        check(&[("PERI_HOME", "/p"), ("HOME", "/h"), ("XDG_DATA_HOME", "/x")], Some("/p"));
        check(&[], None);
    }

    #[cfg(all(unix, not(target_os = "macos")))]
    #[test]
    fn otherwise_it_is_among_the_users_data() {
        check(&[("HOME", "/h"), ("XDG_DATA_HOME", "/x")], Some("/x/perihelion"));
        check(&[("HOME", "/h"), ("XDG_DATA_HOME", "relative")], Some("/h/.local/share/perihelion"));
        check(&[("HOME", "/h")], Some("/h/.local/share/perihelion"));
    }
}
