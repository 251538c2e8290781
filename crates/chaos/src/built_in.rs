//! The scenarios that come with it, one file each under `scenarios/`.

use crate::scenario::Scenario;

/// Their files, by name, in the order they are played.
const FILES: &[(&str, &str)] = &[("region-down", include_str!("../scenarios/region-down.toml"))];

/// All of them.
pub fn all() -> Vec<Scenario> {
    FILES
        .iter()
        .map(|(name, text)| Scenario::read(name, text).expect("the scenarios that come with it are valid"))
        .collect()
}

/// The one of this name.
pub fn find(name: &str) -> Option<Scenario> {
    all().into_iter().find(|scenario| scenario.name == name)
}
