//! Options of preferred and excluded regions.

use std::sync::Arc;

use crate::region::Region;

/// Options of regions; unset ones come from the next layer.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RegionOptions {
    /// Overrides [`RegionSettings::preferred`] if it is set.
    pub preferred: Option<Arc<[Region]>>,
    /// Overrides [`RegionSettings::excluded`] if it is set.
    pub excluded: Option<Arc<[Region]>>,
}

/// The resolved settings of regions. Cheap to clone.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RegionSettings {
    /// The regions to try, best first; those the account has and that are not named come after them.
    /// A driver's: operations are routed by the driver's list. Default: the account's own order.
    pub preferred: Arc<[Region]>,
    /// Regions that get no requests. When all regions are excluded, the hub region is used all the same: it
    /// has every write. Default: none.
    pub excluded: Arc<[Region]>,
}

impl Default for RegionSettings {
    fn default() -> RegionSettings {
        RegionOptions::new().resolve()
    }
}

impl RegionOptions {
    /// Options that set nothing.
    pub fn new() -> RegionOptions {
        RegionOptions::default()
    }

    /// Sets [`RegionSettings::preferred`]. A region named twice counts once.
    #[must_use]
    pub fn with_preferred(self, regions: impl IntoIterator<Item = impl Into<Region>>) -> RegionOptions {
        RegionOptions { preferred: Some(distinct(regions)), ..self }
    }

    /// Sets the value of [`RegionSettings::excluded`].
    #[must_use]
    pub fn with_excluded(self, regions: impl IntoIterator<Item = impl Into<Region>>) -> RegionOptions {
        RegionOptions { excluded: Some(distinct(regions)), ..self }
    }

    /// Fills unset options from `fallback`. Lists are not merged: an operation that excludes regions names all
    /// of them.
    #[must_use]
    pub fn or(self, fallback: &RegionOptions) -> RegionOptions {
        RegionOptions {
            preferred: self.preferred.or_else(|| fallback.preferred.clone()),
            excluded: self.excluded.or_else(|| fallback.excluded.clone()),
        }
    }

    pub(super) fn resolve(&self) -> RegionSettings {
        RegionSettings {
            preferred: self.preferred.clone().unwrap_or_default(),
            excluded: self.excluded.clone().unwrap_or_default(),
        }
    }
}

fn distinct(regions: impl IntoIterator<Item = impl Into<Region>>) -> Arc<[Region]> {
    let mut distinct: Vec<Region> = Vec::new();
    for region in regions {
        let region = region.into();
        if !distinct.contains(&region) {
            distinct.push(region);
        }
    }
    distinct.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_named_twice_counts_once() {
        let options = RegionOptions::new().with_preferred(["West US", "East US", "westus"]);
        let settings = options.resolve();
        assert_eq!(*settings.preferred, [Region::from("West US"), Region::from("East US")]);
        assert!(settings.excluded.is_empty());
    }

    #[test]
    fn an_operation_can_take_back_what_the_driver_excludes() {
        let driver = RegionOptions::new().with_preferred(["a"]).with_excluded(["b"]);
        let operation = RegionOptions::new().with_excluded(Vec::<Region>::new());
        let settings = operation.or(&driver).resolve();
        assert!(settings.excluded.is_empty());
        assert_eq!(*settings.preferred, [Region::from("a")]);
    }
}
