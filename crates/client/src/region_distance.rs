//! Regions of Azure by their distance from one of them.
//!
//! Input: the name of a region. Output: the names of all regions, the nearest first. Distances are great-circle
//! distances between the coordinates that Azure publishes for its regions (`az account list-locations`). Network
//! latency mostly follows distance, and unlike a table of measured latencies the coordinates do not age.

use std::cmp::Ordering;

/// The regions of all clouds of Azure, with latitude and longitude in degrees.
const REGIONS: [(&str, f64, f64); 69] = [
    ("Australia Central", -35.31, 149.12),
    ("Australia Central 2", -35.31, 149.12),
    ("Australia East", -33.86, 151.21),
    ("Australia Southeast", -37.81, 144.96),
    ("Austria East", 48.21, 16.37),
    ("Belgium Central", 50.85, 4.35),
    ("Brazil South", -23.55, -46.63),
    ("Brazil Southeast", -22.90, -43.21),
    ("Canada Central", 43.65, -79.38),
    ("Canada East", 46.82, -71.22),
    ("Central India", 18.58, 73.92),
    ("Central US", 41.59, -93.62),
    ("Chile Central", -33.45, -70.67),
    ("China East", 31.23, 121.47),
    ("China East 2", 31.23, 121.47),
    ("China East 3", 31.23, 121.47),
    ("China North", 39.90, 116.41),
    ("China North 2", 39.90, 116.41),
    ("China North 3", 40.82, 114.88),
    ("Denmark East", 55.68, 12.57),
    ("East Asia", 22.27, 114.19),
    ("East US", 37.37, -79.82),
    ("East US 2", 36.67, -78.39),
    ("France Central", 46.38, 2.37),
    ("France South", 43.83, 2.20),
    ("Germany North", 53.07, 8.81),
    ("Germany West Central", 50.11, 8.68),
    ("Indonesia Central", -6.20, 106.82),
    ("Israel Central", 31.27, 33.45),
    ("Italy North", 45.47, 9.18),
    ("Japan East", 35.68, 139.77),
    ("Japan West", 34.69, 135.50),
    ("Jio India Central", 21.15, 79.09),
    ("Jio India West", 22.47, 70.06),
    ("Korea Central", 37.57, 126.98),
    ("Korea South", 35.18, 129.08),
    ("Malaysia West", 3.139, 101.69),
    ("Mexico Central", 20.59, -100.39),
    ("New Zealand North", -36.85, 174.76),
    ("North Central US", 41.88, -87.63),
    ("North Europe", 53.35, -6.26),
    ("Norway East", 59.91, 10.75),
    ("Norway West", 58.97, 5.73),
    ("Poland Central", 52.23, 21.02),
    ("Qatar Central", 25.55, 51.44),
    ("South Africa North", -25.73, 28.22),
    ("South Africa West", -34.08, 18.84),
    ("South Central US", 29.42, -98.50),
    ("South India", 12.98, 80.16),
    ("Southeast Asia", 1.28, 103.83),
    ("Spain Central", 40.43, -3.42),
    ("Sweden Central", 60.67, 17.14),
    ("Switzerland North", 47.45, 8.56),
    ("Switzerland West", 46.20, 6.14),
    ("UAE Central", 24.47, 54.37),
    ("UAE North", 25.27, 55.32),
    ("UK South", 50.94, -0.80),
    ("UK West", 53.43, -3.08),
    ("US DoD Central", 41.59, -93.62),
    ("US DoD East", 37.37, -79.82),
    ("US Gov Arizona", 33.45, -112.07),
    ("US Gov Texas", 29.42, -98.50),
    ("US Gov Virginia", 37.37, -79.82),
    ("West Central US", 40.89, -110.23),
    ("West Europe", 52.37, 4.90),
    ("West India", 19.09, 72.87),
    ("West US", 37.78, -122.42),
    ("West US 2", 47.23, -119.85),
    ("West US 3", 33.45, -112.07),
];

/// The names of all regions, by their distance from the region `name`, which comes first. None if it is not known.
pub(crate) fn regions_by_distance(name: &str) -> Option<Vec<&'static str>> {
    let wanted = driver::Region::new(name);
    let origin = REGIONS.iter().find(|(known, ..)| driver::Region::new(known) == wanted)?;
    let mut regions: Vec<(f64, &'static str)> =
        REGIONS.iter().map(|region| (angle(origin, region), region.0)).collect();
    // Of several regions in one place the named one comes first; the others stay in the order of the table.
    let by_distance = |one: &(f64, &str), other: &(f64, &str)| {
        let named_first = (other.1 == origin.0).cmp(&(one.1 == origin.0));
        one.0.partial_cmp(&other.0).unwrap_or(Ordering::Equal).then(named_first)
    };
    regions.sort_by(by_distance);
    Some(regions.into_iter().map(|(_, name)| name).collect())
}

/// The central angle between two regions, in radians: their distance in units of the Earth's radius (haversine formula).
fn angle(one: &(&str, f64, f64), other: &(&str, f64, f64)) -> f64 {
    if (one.1, one.2) == (other.1, other.2) {
        return 0.0;
    }
    let (latitude, longitude) = (one.1.to_radians(), one.2.to_radians());
    let (other_latitude, other_longitude) = (other.1.to_radians(), other.2.to_radians());
    let north = ((other_latitude - latitude) / 2.0).sin().powi(2);
    let east = ((other_longitude - longitude) / 2.0).sin().powi(2);
    2.0 * (north + latitude.cos() * other_latitude.cos() * east).sqrt().asin()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearer_regions_come_first() {
        for (name, nearest) in [
            ("West Europe", &["West Europe", "Belgium Central", "Germany North"][..]),
            ("eastus2", &["East US 2", "East US"]),
            ("Japan East", &["Japan East", "Japan West", "Korea South", "Korea Central"]),
            ("australia central 2", &["Australia Central 2", "Australia Central", "Australia East"]),
            ("Brazil South", &["Brazil South", "Brazil Southeast", "Chile Central"]),
        ] {
            let regions = regions_by_distance(name).expect(name);
            assert_eq!(regions.len(), REGIONS.len());
            assert_eq!(&regions[..nearest.len()], nearest, "{name}");
        }
        let from_london = regions_by_distance("UK South").expect("known");
        let position = |name| from_london.iter().position(|known| *known == name).expect("known");
        assert!(position("North Europe") < position("East US"));
        assert!(position("East US") < position("West US"));
        assert!(position("West US") < position("Australia East"));
        assert_eq!(regions_by_distance("Mars North"), None);
    }

    #[test]
    fn distances_are_those_of_the_globe() {
        let region = |name| REGIONS.iter().find(|(known, ..)| *known == name).expect("known");
        let kilometres = |one, other| 6371.0 * angle(region(one), region(other));
        for (one, other, expected) in [
            ("West Europe", "North Europe", 750.0),
            ("East US", "UK South", 6070.0),
            ("Australia East", "Chile Central", 11_340.0),
        ] {
            let found = kilometres(one, other);
            assert!((found - expected).abs() < expected * 0.02, "{one} to {other}: {found}");
        }
    }

    #[test]
    fn the_table_names_each_region_once_and_in_order() {
        assert!(REGIONS.is_sorted_by(|one, other| one.0 < other.0));
        assert!(
            REGIONS.iter().all(|(_, latitude, longitude)| latitude.abs() <= 90.0 && longitude.abs() <= 180.0)
        );
    }
}
