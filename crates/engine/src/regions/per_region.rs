//! One value for each region, made when the region first needs it: regions can be added while an account runs.

use std::sync::OnceLock;

use super::{REGIONS_MAX, RegionId};

/// A value for each region, made when the region first needs it.
#[derive(Debug)]
pub(crate) struct PerRegion<T>([OnceLock<Box<T>>; REGIONS_MAX]);

impl<T> Default for PerRegion<T> {
    fn default() -> PerRegion<T> {
        PerRegion([const { OnceLock::new() }; REGIONS_MAX])
    }
}

impl<T> PerRegion<T> {
    /// The value of a region, if it has been made.
    pub(crate) fn get(&self, region: RegionId) -> Option<&T> {
        self.0.get(region.index())?.get().map(|value| &**value)
    }

    /// The value of a region, which `make` makes if it is the first to ask for it.
    pub(crate) fn get_or_make(&self, region: RegionId, make: impl FnOnce() -> T) -> &T {
        self.0[region.index()].get_or_init(|| Box::new(make()))
    }

    /// Replaces the value of a region.
    pub(crate) fn set(&mut self, region: RegionId, value: T) {
        self.0[region.index()] = OnceLock::from(Box::new(value));
    }

    /// The values that have been made, by region.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (RegionId, &T)> {
        let regions = self.0.iter().zip(0..).map(|(slot, id)| (RegionId(id), slot));
        regions.filter_map(|(region, slot)| Some((region, &**slot.get()?)))
    }
}
