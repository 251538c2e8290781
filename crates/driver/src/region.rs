//! A region of the account, by its name.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

/// A region by its name. `West US`, `west us` and `westus` are one region; it is shown as it was written.
#[derive(Clone)]
pub struct Region {
    name: Arc<str>,
    /// Hash of the normalized name: equal regions have equal hashes, and different ones hardly ever.
    hash: u64,
}

impl Region {
    /// The region of this name.
    pub fn new(name: impl AsRef<str>) -> Region {
        let name: Arc<str> = Arc::from(name.as_ref());
        let hash = xxh3_64(&normalized(&name).collect::<Vec<u8>>());
        Region { name, hash }
    }

    /// The name as it was written.
    pub fn as_str(&self) -> &str {
        &self.name
    }
}

/// The bytes of a region's name that tell it from others: without spaces, in lower case.
pub(crate) fn normalized(name: &str) -> impl Iterator<Item = u8> + '_ {
    name.bytes().filter(|byte| *byte != b' ').map(|byte| byte.to_ascii_lowercase())
}

impl PartialEq for Region {
    fn eq(&self, other: &Region) -> bool {
        self.hash == other.hash
            && (Arc::ptr_eq(&self.name, &other.name) || normalized(&self.name).eq(normalized(&other.name)))
    }
}

impl Eq for Region {}

impl Hash for Region {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl From<&str> for Region {
    fn from(name: &str) -> Region {
        Region::new(name)
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.name)
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn spaces_and_case_do_not_tell_regions_apart() {
        let mut regions = HashSet::from([Region::new("West US")]);
        for (name, known) in [("westus", true), ("WEST US", true), ("West US 2", false), ("East US", false)] {
            assert_eq!(regions.contains(&Region::new(name)), known, "{name}");
        }
        regions.insert(Region::new("West US 2"));
        assert_eq!(regions.len(), 2);
    }
}
